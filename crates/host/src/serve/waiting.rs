//! A node whose logs cannot be opened yet, because the nodes themselves order them: it belongs to
//! no group, or has not found its orderer. It listens on its address, so that the others reach it,
//! and answers what founds a group and what tells how far it is. Everything else is 503.
//!
//! There are no accounts to ask before the logs are there. So nothing here tells more than a name,
//! numbers and a state, and only a node that is no member yet can be told to become one.

use super::{StopSignals, listeners};
use crate::cluster::founding::{FOUND_PATH, INIT_PATH, MAX_BODY_BYTES, MEMBER_PATH, read};
use crate::cluster::group::GroupStage;
use crate::cluster::node_auth::{self, Sender};
use crate::cluster::{Cluster, Group, WholeBodyFault, whole};
use crate::http::work::elsewhere;
use crate::node::status::EngineState;
use crate::protocol::{FirstBytes, FirstBytesWait, Protocol, ProtocolConnection, read_first_bytes};
use crate::settings::ProcessConfig;
use crate::setup::SetupError;
use crate::socket::Socket;
use crate::stats::Stats;
use crate::threads;
use crate::tls::{self, Tls};
use crate::wire::problem::{self, Problem};
use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Serialize;
use std::convert::Infallible;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt as _;
use tokio::runtime::Builder;
use tokio::sync::{Semaphore, watch};
use wellspring_client::connection::Content;

/// Time between two looks at the group.
const LOOK: Duration = Duration::from_millis(20);
/// What is waited for for so long is said: the steps of a founding follow each other sooner.
const SAY_AFTER: Duration = Duration::from_secs(1);
/// How often it is said again.
const SAY_AGAIN: Duration = Duration::from_secs(60);
/// How long a client may take with a head.
const HEAD_PATIENCE: Duration = Duration::from_secs(10);
/// Connections at a time.
const MOST_CONNECTIONS: usize = 256;

/// What answers until the server does.
pub(super) struct Waiting {
    cluster: Arc<Cluster>,
    listener: TcpListener,
    /// Set when the server listens itself.
    over: watch::Sender<bool>,
}

struct Served {
    cluster: Arc<Cluster>,
    protocol: Arc<dyn Protocol>,
    stats: Arc<Stats>,
    tls: Option<Arc<Tls>>,
    over: watch::Receiver<bool>,
}

impl Waiting {
    /// Listens and answers, if the engine of the cluster is a group.
    ///
    /// # Errors
    /// A sentence: the address cannot be used.
    pub(super) fn start(
        process: &ProcessConfig,
        tls: Option<&Arc<Tls>>,
        stats: &Arc<Stats>,
        cluster: &Arc<Cluster>,
    ) -> Result<Option<Waiting>, SetupError> {
        let Some(group) = cluster.engine.group() else { return Ok(None) };
        let protocol = group.protocol();
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|e| format!("cannot start the runtime: {e}"))?;
        let (address, mut bound) = {
            let _entered = runtime.enter();
            listeners::bind(process.address()?, 1)?
        };
        let listener = bound.pop().ok_or("no listener")?;
        let copied = listener.try_clone();
        let copied = copied.map_err(|e| format!("cannot listen on {address}: {e}"))?;
        let (over, seen) = watch::channel(false);
        let served = Arc::new(Served {
            cluster: Arc::clone(cluster),
            protocol,
            stats: Arc::clone(stats),
            tls: tls.map(Arc::clone),
            over: seen,
        });
        let signals = {
            let _entered = runtime.enter();
            StopSignals::watch()?
        };
        threads::spawn("waiting".to_owned(), move || {
            runtime.block_on(accept(copied, &served, signals));
        })?;
        tracing::info!(%address, "listens for the other nodes");
        Ok(Some(Waiting { cluster: Arc::clone(cluster), listener, over }))
    }

    /// Blocks until this node takes part in a group that has an orderer, or learns that the group
    /// goes on without it: then its copies can be read.
    pub(super) fn until_ordered(&self) {
        let Some(group) = self.cluster.engine.group() else { return };
        let (mut waited_for, mut is_said) = (String::new(), false);
        let mut silent = Duration::ZERO;
        loop {
            let state = group.state();
            let is_ordered = state.stage == GroupStage::Member && state.orderer.is_some();
            if is_ordered || state.stopped.is_some() {
                return;
            }
            let why = why(group);
            if why != waited_for {
                (waited_for, is_said, silent) = (why, false, Duration::ZERO);
            }
            if silent >= if is_said { SAY_AGAIN } else { SAY_AFTER } {
                tracing::warn!(node = %self.cluster.node, "{waited_for}");
                (is_said, silent) = (true, Duration::ZERO);
            }
            std::thread::sleep(LOOK);
            silent += LOOK;
        }
    }

    /// Answers no more; its listener.
    pub(super) fn end(self) -> TcpListener {
        let _ = self.over.send(true);
        self.listener
    }
}

/// What a node waits for.
fn why(group: &dyn Group) -> String {
    let state = group.state();
    match (state.stage, state.voters()) {
        (GroupStage::Waiting, _) => "this node waits for cluster init or join".to_owned(),
        (GroupStage::Accepted, _) => {
            "a founding was accepted and has not begun: repeat wellspring cluster init".to_owned()
        }
        (GroupStage::Member, (_, 0)) => "waiting for the group that this node joins".to_owned(),
        (GroupStage::Member, (reachable, all)) if 2 * reachable > all => {
            format!("waiting for a node that orders, with {reachable} of {all} voters")
        }
        (GroupStage::Member, (reachable, all)) => format!("{reachable} of {all} voters reachable"),
    }
}

async fn accept(listener: TcpListener, served: &Arc<Served>, mut signals: StopSignals) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "a listener failed");
            return;
        }
    };
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut over = served.over.clone();
    loop {
        let accepted = tokio::select! {
            biased;
            _ = over.wait_for(|&over| over) => break,
            signal = signals.next() => {
                tracing::info!(signal, "stopping");
                // Nothing has been answered that would have to be kept.
                std::process::exit(0);
            }
            accepted = listener.accept() => accepted,
        };
        let (Ok((stream, peer)), Ok(permit)) = (accepted, Arc::clone(&room).try_acquire_owned())
        else {
            tokio::time::sleep(LOOK).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let served = Arc::clone(served);
        tokio::spawn(async move {
            let _permit = permit;
            match &served.tls {
                None => serve(stream, peer, &served).await,
                Some(tls) => {
                    let address = Some(peer.ip().to_canonical());
                    let over = served.over.clone();
                    let shaken = tls::shake_hands(tls, stream, address, HEAD_PATIENCE, over).await;
                    if let Some(stream) = shaken {
                        serve(stream, peer, &served).await;
                    }
                }
            }
        });
    }
    drop(listener);
    // Answers that are under way, and the streams of other nodes, which last.
    let _ = room.acquire_many(MOST_CONNECTIONS as u32).await;
}

async fn serve<S: Socket + Send + 'static>(mut stream: S, peer: SocketAddr, served: &Arc<Served>) {
    let wait = FirstBytesWait { idle: HEAD_PATIENCE, header: HEAD_PATIENCE };
    let magics = [served.protocol.magic()];
    let first = read_first_bytes(&mut stream, Bytes::new(), &magics, wait).await;
    let Some((said, read)) = first else { return };
    if said == FirstBytes::Protocol(0) {
        let client = Some(peer.ip().to_canonical());
        let connection = ProtocolConnection::new(stream, read, client, &served.stats);
        return served.protocol.serve(connection).await;
    }
    let (reading, writing) = tokio::io::split(stream);
    let reading = std::io::Cursor::new(read).chain(reading);
    let answer = |request| {
        let served = Arc::clone(served);
        async move { Ok::<_, Infallible>(answer(&served, request).await) }
    };
    let mut http = hyper::server::conn::http1::Builder::new();
    http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEAD_PATIENCE);
    let io = TokioIo::new(tokio::io::join(reading, writing));
    let _ = http.serve_connection(io, service_fn(answer)).await;
}

async fn answer(served: &Served, request: Request<Incoming>) -> Response<Content> {
    let (status, kind, content) = match route(served, request).await {
        Ok(content) => (200, "application/json", content),
        Err(problem) => (problem.kind.status, "application/problem+json", problem.to_json()),
    };
    let mut response = Response::new(Content::new(Bytes::from(content)));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

async fn route(served: &Served, request: Request<Incoming>) -> Result<Vec<u8>, Box<Problem>> {
    let cluster = Arc::clone(&served.cluster);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    match (&method, &*path) {
        (&Method::GET, "/health" | "/health/live") => Ok(br#"{"status":"healthy"}"#.to_vec()),
        (&Method::GET, "/v1/cluster") => document(&state(&cluster)),
        (&Method::GET, MEMBER_PATH) => {
            of_a_node(&cluster, &request)?;
            document(&cluster.member()?)
        }
        (&Method::POST, FOUND_PATH) => {
            of_a_node(&cluster, &request)?;
            let body = body_of(request).await?;
            let told = read(&body)?;
            document(&elsewhere(move || cluster.found(&told)).await??)
        }
        (&Method::POST, INIT_PATH) => {
            // No page of a browser founds a cluster.
            if request.headers().contains_key(ORIGIN) {
                let detail = "a page of a browser cannot found a cluster";
                return Err(problem::FOREIGN_PAGE.because(detail));
            }
            let body = body_of(request).await?;
            document(&cluster.init(&read(&body)?).await?)
        }
        _ => {
            let group = cluster.group()?;
            Err(problem::WAITING_FOR_CLUSTER.because(why(group)))
        }
    }
}

fn document(document: &impl Serialize) -> Result<Vec<u8>, Box<Problem>> {
    serde_json::to_vec(document).map_err(|error| problem::INTERNAL.because(error.to_string()))
}

/// `GET /v1/cluster`, with what anyone may know.
#[derive(Serialize)]
struct WaitingDocument {
    node: String,
    journal: &'static str,
    engine: EngineState,
    leader: Option<()>,
    nodes: [WaitingLine; 1],
    logs: [(); 0],
}

#[derive(Serialize)]
struct WaitingLine {
    node: String,
    url: String,
    version: &'static str,
    reachable: bool,
    role: &'static str,
}

fn state(cluster: &Cluster) -> WaitingDocument {
    let status = cluster.engine.status();
    let journal = status.kind;
    let mut engine = EngineState::from(status);
    engine.trouble = cluster.engine.group().map(why);
    let members = engine.group.iter_mut().flat_map(|group| &mut group.members);
    members.for_each(|member| member.url.clear());
    let line = WaitingLine {
        node: cluster.node.to_string(),
        url: cluster.url.clone(),
        version: env!("CARGO_PKG_VERSION"),
        reachable: true,
        role: "waiting",
    };
    let node = cluster.node.to_string();
    WaitingDocument { node, journal, engine, leader: None, nodes: [line], logs: [] }
}

/// Whether the request is signed by a node.
fn of_a_node(cluster: &Cluster, request: &Request<Incoming>) -> Result<(), Box<Problem>> {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let values = request.headers().get_all(node_auth::HEADER).iter().map(|value| value.as_bytes());
    let now_us = crate::clock::system().wall_us();
    match node_auth::judge(&cluster.key, (request.method().as_str(), target), values, now_us) {
        Sender::OfNode { .. } => Ok(()),
        Sender::NotOfANode => Err(problem::NOT_A_NODE.because("this route is for nodes")),
        Sender::Refused(fault) => Err(problem::NOT_A_NODE.because(fault.to_string())),
    }
}

async fn body_of(request: Request<Incoming>) -> Result<Bytes, Box<Problem>> {
    let kind = request.headers().get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    if !kind.is_some_and(|kind| kind.starts_with(b"application/json")) {
        return Err(problem::BAD_REQUEST.because("Content-Type must be application/json"));
    }
    whole(request.into_body(), MAX_BODY_BYTES).await.map_err(|fault| match fault {
        WholeBodyFault::TooLarge => problem::BAD_REQUEST.because("the body is too large"),
        WholeBodyFault::Broken(error) => problem::BAD_REQUEST.because(error.to_string()),
    })
}
