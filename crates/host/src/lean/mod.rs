//! The lean loop: HTTP/1.1 for the fast paths it is given and nothing else, one epoll loop per
//! serving thread, without a runtime (decisions 0008 and 0025).
//!
//! ```text
//! socket → worker → session → head, chunked → served_path (FastPath), seam (Guards)
//!             ↑        ↓
//!           send  ←  answers       anything else: the socket and the bytes read → tokio
//! ```
//!
//! `session` is the protocol without a socket; `worker` and `conn` handle the sockets.
//!
//! At the first request that is for no fast path, the socket moves to the tokio thread of the same
//! core, with the bytes already read, and stays there. Events taken before and after the move are
//! in two partitions, which are observed and stored in opposite orders, so the connection's order
//! is kept (decisions 0008 and 0009). A request that the loop cannot admit at once moves as well,
//! so every refusal is worded in one place.

mod answer;
#[cfg(any(test, feature = "testing"))]
pub mod both_stacks;
mod conn;
mod dispatched;
mod head;
mod limited;
mod logged;
mod loop_state;
mod placement;
mod repeat;
#[cfg(any(test, feature = "fuzzing"))]
mod replay;
mod replies;
mod request;
mod seam;
mod served_path;
mod session;
mod slab;
mod state;
mod sweep;
mod wakeup;
mod worker;

pub(crate) use wakeup::Wakeup;

use crate::fast::{FastRoute, ServingThread, Stack, erase};
use crate::http::server::Server;
use crate::limits::CountedConnection;
use crate::record::RouteName;
use dispatched::DispatchedPath;
use head::HeadLimits;
use loop_state::LoopState;
use seam::ServerGuards;
use std::io;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tokio::runtime::Handle;
use tokio::sync::mpsc::UnboundedSender;
use worker::{Parts, Worker};

/// A connection for the other stack.
///
/// Events accepted from it before are in the lean thread's partition; later ones go to the
/// partition of the tokio thread with the same index. They stay in order because the batcher drains
/// the lean thread's first.
pub(crate) struct Handover {
    /// The socket, non-blocking.
    pub(crate) stream: TcpStream,
    /// Bytes already read, which belong to the next request.
    pub(crate) read: Vec<u8>,
    /// Whether events may have been accepted from it that are not stored yet.
    pub(crate) handed_in: bool,
    /// The peer's address, if known.
    pub(crate) peer: Option<IpAddr>,
    pub(crate) open: CountedConnection,
}

/// Request ids reserved for each thread, enough for a million a second for years.
const REQUEST_IDS: u64 = 1 << 48;

/// The part of the configuration that the loop needs; times in µs.
#[derive(Debug, Clone)]
struct Settings {
    access_log: bool,
    /// The first of this thread's own range of request ids.
    first_request_id: u64,
    /// The route that each path's answers are counted for.
    routes: Vec<RouteName>,
    /// The route of requests that could not be understood.
    no_route: RouteName,
    header_us: u64,
    body_us: u64,
    idle_us: u64,
    write_us: u64,
    drain_us: u64,
}

impl Settings {
    fn of(host: &crate::http::Host, shared: &LoopState<ServerGuards>) -> Settings {
        let config = &host.config;
        let [header_us, body_us, idle_us, write_us, drain_us] = [
            config.header_timeout_ms,
            config.body_timeout_ms,
            config.idle_timeout_ms,
            config.write_timeout_ms,
            config.drain_timeout_ms,
        ]
        .map(|ms| ms.saturating_mul(1_000));
        let route = |FastRoute { method, path }| host.routes.name_of(method, path);
        Settings {
            access_log: config.access_log,
            first_request_id: host.request_ids.fetch_add(REQUEST_IDS, Relaxed),
            routes: shared.paths.iter().map(|served| served.path.route()).map(route).collect(),
            no_route: host.routes.no_name(),
            header_us,
            body_us,
            idle_us,
            write_us,
            drain_us,
        }
    }
}

/// Serves `listener` until the server stops. `wakeup` wakes it to check whether the server is
/// stopping, or whether there is room again. Handlers find timers and threads in `runtime`.
///
/// A bug that panics costs the connections of this loop, not the loop: it restarts with the same
/// listener. Accepted events are stored.
///
/// # Errors
/// The loop could not be set up.
pub(crate) fn run(
    server: &Arc<Server>,
    listener: &TcpListener,
    wakeup: &Arc<Wakeup>,
    handover: &UnboundedSender<Handover>,
    runtime: &Handle,
) -> io::Result<()> {
    loop {
        let (listener, wakeup) = (listener.try_clone()?, Arc::clone(wakeup));
        let worker = worker(server, listener, wakeup, handover.clone(), runtime)?;
        if catch_unwind(AssertUnwindSafe(|| worker.run())).is_ok() || server.host.is_stopping() {
            return Ok(());
        }
        tracing::error!("a lean loop panicked: its connections are lost, and it restarts");
    }
}

fn worker(
    server: &Arc<Server>,
    listener: TcpListener,
    wakeup: Arc<Wakeup>,
    handover: UnboundedSender<Handover>,
    runtime: &Handle,
) -> io::Result<Worker<ServerGuards>> {
    let host = &server.host;
    let config = &host.config;
    let limits = HeadLimits {
        headers: config.max_headers,
        head_bytes: config.max_buffer_bytes,
        url_bytes: config.max_url_bytes,
        traced: host.otlp.is_on(),
    };
    let waker = Arc::clone(&wakeup);
    let thread = ServingThread::new(Stack::Lean, Arc::new(move || waker.wake()));
    let mut paths: Vec<_> = host.faces.fast_paths().iter().map(|make| make(&thread)).collect();
    // The last, behind those of the same routes that are faster.
    paths.extend(DispatchedPath::new(server, runtime, &thread).map(erase));
    let serving = ServerGuards { host: Arc::clone(host) };
    let mut shared = LoopState::new(serving, paths, limits, host.body_memory.clone());
    shared.magics.extend(server.magics());
    shared.tally.logs =
        config.access_log || tracing::enabled!(target: "access", tracing::Level::DEBUG);
    let parts = Parts {
        listener: Some(listener),
        wakeup,
        settings: Settings::of(host, &shared),
        stats: Arc::clone(&host.stats),
        limits: Arc::clone(&host.limits),
        clock: Arc::clone(&host.clock),
        stopping: host.stopping.clone(),
        handover,
    };
    Worker::new(parts, shared)
}

/// The result of a scripted connection of the lean loop.
#[derive(Debug, PartialEq, Eq)]
#[cfg(any(test, feature = "fuzzing"))]
pub struct ReplayedConnection {
    /// Accepted targets and bodies, codes and data of clicks, in order.
    pub taken: Vec<(String, Vec<u8>)>,
    /// Statuses answered, without `100 Continue`; `None` if the output is not a sequence of
    /// answers.
    pub statuses: Option<Vec<u16>>,
    /// The bytes the connection was handed over with, if it was.
    pub handed_over: Option<Vec<u8>>,
}

/// Serves an ingest connection that sends these pieces, without a backend. For the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
pub fn ingest_connection<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> ReplayedConnection {
    let limits = HeadLimits { headers: 16, head_bytes: 8_192, url_bytes: 4_096, traced: false };
    let trace = replay::replay(limits, pieces);
    ReplayedConnection {
        taken: trace.taken,
        statuses: replay::statuses(&trace.answers),
        handed_over: match trace.end {
            replay::End::Left(rest) => Some(rest),
            replay::End::Closed => None,
        },
    }
}

#[cfg(test)]
mod pipeline_tests;

#[cfg(test)]
mod session_tests;

#[cfg(test)]
mod third_path_tests;

#[cfg(test)]
mod visit_tests;

#[cfg(test)]
mod whole_tests;

#[cfg(test)]
mod worker_tests;
