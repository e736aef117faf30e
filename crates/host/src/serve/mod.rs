//! `wellspring serve`: threads, listeners, signals, and an orderly end.

mod listeners;
pub mod open;
mod twin;
mod waiting;

use crate::access::key_refresh;
use crate::audit;
use crate::cluster_watch;
use crate::http::connection::EarlierTraffic;
use crate::http::server::Server;
use crate::http::{Host, connection};
use crate::leads;
use crate::limits::CountedConnection;
use crate::log_watch;
use crate::otlp;
use crate::protocol::{FirstBytes, FirstBytesWait, ProtocolConnection, read_first_bytes};
use crate::setup::SetupError;
use crate::socket::Socket;
use crate::stats;
use crate::threads::{spawn, yielding};
use crate::tls;
use open::OpenServer;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use waiting::Waiting;

/// Time between two calls of the faces' `tick`.
const TICK: Duration = Duration::from_secs(1);
/// Blocking threads of each serving thread, apart from one per possible long read.
const BLOCKING_THREADS: usize = 64;
/// Why a server did not serve, or not to its end.
#[derive(Debug)]
pub enum ServeError {
    /// It could not begin.
    Setup(SetupError),
    /// It stopped, and could not store this many events that it had accepted.
    Lost(u64),
    /// It stopped, and its logs could not be closed.
    NotClosed(tokio::task::JoinError),
}

impl From<SetupError> for ServeError {
    fn from(error: SetupError) -> Self {
        Self::Setup(error)
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(error) => error.fmt(f),
            Self::Lost(events) => {
                write!(f, "{events} accepted events could not be stored and are lost")
            }
            Self::NotClosed(error) => write!(f, "cannot close the logs cleanly: {error}"),
        }
    }
}

impl std::error::Error for ServeError {}

/// Serves until a signal. `listened_with` describes the durability for the start message.
///
/// # Errors
/// [`ServeError`]
pub fn serve(opened: OpenServer, sync: &str) -> Result<(), ServeError> {
    let OpenServer { server, stop, foreign_keys, waiting } = opened;
    if !server.host.process.core_dumps {
        forbid_core_dumps();
    }
    let host = Arc::clone(&server.host);
    let main = runtime("main", BLOCKING_THREADS)?;
    // Before any client can be answered: everything answered is kept, however soon the signal
    // comes.
    let mut signals = {
        let _within = main.enter();
        StopSignals::watch()?
    };
    let ServingThreads { threads, wakes } =
        start_threads(&server, &main, sync, waiting.map(Waiting::end))?;
    let gather = {
        let host = Arc::clone(&host);
        move || host.figures()
    };
    main.block_on(twin::refuse(&host))?;
    let exporter = otlp::start(&host.otlp, &host.clock, gather)?;
    let drain = Duration::from_millis(host.config.drain_timeout_ms);
    main.block_on(async {
        let _file_limit = survive_file_limit();
        tokio::spawn(tick(Arc::clone(&server)));
        if let Some(tls) = &host.tls {
            tokio::spawn(tls::keep_current(Arc::clone(tls), Arc::clone(&host.clock)));
        }
        tokio::spawn(key_refresh::keep(
            Arc::clone(&host.access),
            foreign_keys,
            host.process.data.clone(),
            Arc::clone(&host.clock),
        ));
        let audited = Arc::clone(&host);
        tokio::spawn(async move { tell_refusals(&audited).await });
        log_watch::start(&host);
        cluster_watch::start(&host);
        leads::start(&host);
        host.backups.start(&host.node, &host.clock, host.stopping.clone())?;
        let kept = Arc::clone(&host);
        let other_files = Box::new(move || kept.kept_files());
        host.scrubs.start(&host.node, other_files, &host.clock, host.stopping.clone())?;
        host.node.join();
        let name = signals.next().await;
        tracing::info!(signal = name, "stopping");
        // A second signal means: now.
        tokio::spawn(async move {
            signals.next().await;
            std::process::exit(130);
        });
        leads::hand_over(&host).await;
        let _ = stop.send(true);
        wakes.iter().for_each(|wake| wake());
        // The threads limit their own draining; this waits for them without blocking the signals.
        let joined =
            tokio::task::spawn_blocking(move || threads.into_iter().for_each(|t| drop(t.join())));
        let _ = tokio::time::timeout(drain + Duration::from_secs(2), joined).await;
        if let Some(exporter) = exporter {
            let stopped = tokio::task::spawn_blocking(|| exporter.stop());
            let _ = tokio::time::timeout(Duration::from_secs(2), stopped).await;
        }
        let (closing, serving) = (Arc::clone(&host), Arc::clone(&server));
        let close = move || {
            serving.close();
            closing.audit.tell_refusals(&closing.node, closing.clock.monotonic_us());
            closing.node.close()
        };
        let lost = tokio::task::spawn_blocking(close).await;
        match lost {
            Ok(0) => Ok(()),
            Ok(lost) => Err(ServeError::Lost(lost)),
            Err(error) => Err(ServeError::NotClosed(error)),
        }
    })?;
    tracing::info!("stopped");
    main.shutdown_background();
    Ok(())
}

/// Tells the faces the time while the server runs.
async fn tick(server: Arc<Server>) {
    loop {
        let ticking = Arc::clone(&server);
        let ticked =
            tokio::task::spawn_blocking(move || ticking.tick(ticking.host.clock.wall_us())).await;
        if let Err(error) = ticked {
            tracing::error!(%error, "a periodic task of a face failed");
        }
        tokio::time::sleep(TICK).await;
    }
}

/// Has the audit record what it did not keep one by one.
async fn tell_refusals(host: &Host) {
    loop {
        tokio::time::sleep(audit::TELL_EVERY).await;
        host.audit.tell_refusals(&host.node, host.clock.monotonic_us());
    }
}

/// Memory contains tokens, keys and passwords: no crash may write it to a file, and no other
/// process of the same user may read it.
fn forbid_core_dumps() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Core).maximum;
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
    // Where cores are piped to a program, the limit has no effect.
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "cannot disable core dumps");
        }
    }
}

fn runtime(name: &str, blocking_threads: usize) -> Result<Runtime, SetupError> {
    let yield_to_serving = yielding();
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(blocking_threads)
        .thread_name(format!("{name}-blocking"))
        .on_thread_start(yield_to_serving)
        .build()
        .map_err(|e| SetupError::new(format!("cannot start the runtime: {e}")))
}

/// The serving threads, and how to tell the lean ones that the server is shutting down.
struct ServingThreads {
    threads: Vec<JoinHandle<()>>,
    wakes: Vec<Box<dyn Fn() + Send>>,
}

/// The source of a serving thread's connections.
enum Arrivals {
    /// It accepts them itself.
    Accepted(std::net::TcpListener),
    /// The lean thread next to it hands them over.
    #[cfg(target_os = "linux")]
    HandedOver(tokio::sync::mpsc::UnboundedReceiver<crate::lean::Handover>),
}

/// One listener per core, and one thread, or two with the lean loop. The listeners share the port;
/// the kernel spreads connections.
fn start_threads(
    server: &Arc<Server>,
    main: &Runtime,
    sync: &str,
    bound: Option<std::net::TcpListener>,
) -> Result<ServingThreads, SetupError> {
    let host = &server.host;
    let (address, listeners) = {
        let _entered = main.enter();
        listeners::bind_to(bound, host.process.address()?, host.process.threads)?
    };
    server.bound_to(address);
    let mut second = second_listener(host, main)?;
    let mut serving = ServingThreads { threads: Vec::new(), wakes: Vec::new() };
    for (index, listener) in listeners.into_iter().enumerate() {
        let name = format!("http-{index}");
        let runtime = runtime(&name, BLOCKING_THREADS + host.config.max_long_reads)?;
        let arrivals = arrivals(server, index, listener, runtime.handle(), &mut serving)?;
        let also = second.take();
        let server = Arc::clone(server);
        serving.threads.push(spawn(name, move || {
            stats::enter_thread(index);
            runtime.block_on(serve_until_stopped(arrivals, also, server));
            runtime.shutdown_timeout(Duration::from_millis(100));
        })?);
    }
    tracing::info!(
        address = %address,
        data = %host.process.data.display(),
        sync,
        threads = host.process.threads,
        lean_loop = !serving.wakes.is_empty(),
        tls = host.tls.is_some(),
        "wellspring listens"
    );
    Ok(serving)
}

/// The listener on the second address, if there is one. The first serving thread accepts from it,
/// without the lean loop.
fn second_listener(
    host: &Host,
    main: &Runtime,
) -> Result<Option<std::net::TcpListener>, SetupError> {
    let Some(address) = host.process.second_address()? else { return Ok(None) };
    let _entered = main.enter();
    let (address, mut listeners) = listeners::bind(address, 1)?;
    tracing::info!(%address, "wellspring also listens");
    Ok(listeners.pop())
}

/// Starts the lean thread of a core, if configured, and gives it the listener.
#[cfg(target_os = "linux")]
fn arrivals(
    server: &Arc<Server>,
    index: usize,
    listener: std::net::TcpListener,
    runtime: &Handle,
    serving: &mut ServingThreads,
) -> Result<Arrivals, SetupError> {
    use crate::lean::{self, Wakeup};
    let host = &server.host;
    // It does not speak TLS.
    if !host.config.lean_loop || host.tls.is_some() {
        return Ok(Arrivals::Accepted(listener));
    }
    let wakeup = Wakeup::new().map_err(|e| format!("cannot wake a lean thread: {e}"))?;
    let wakeup = Arc::new(wakeup);
    let waker = Arc::clone(&wakeup);
    serving.wakes.push(Box::new(move || waker.wake()));
    let (handover, handed_over) = tokio::sync::mpsc::unbounded_channel();
    let (server, runtime) = (Arc::clone(server), runtime.clone());
    serving.threads.push(spawn(format!("lean-{index}"), move || {
        stats::enter_thread(server.host.process.threads + index);
        if let Err(error) = lean::run(&server, &listener, &wakeup, &handover, &runtime) {
            tracing::error!(%error, "cannot start a lean thread");
        }
    })?);
    Ok(Arrivals::HandedOver(handed_over))
}

#[cfg(not(target_os = "linux"))]
fn arrivals(
    _: &Arc<Server>,
    _: usize,
    listener: std::net::TcpListener,
    _: &Handle,
    _: &mut ServingThreads,
) -> Result<Arrivals, SetupError> {
    Ok(Arrivals::Accepted(listener))
}

/// Serves connections until the server stops, then waits for the open ones.
async fn serve_until_stopped(
    arrivals: Arrivals,
    also: Option<std::net::TcpListener>,
    server: Arc<Server>,
) {
    // Every connection holds a sender; when the last is dropped, all connections have ended.
    let (open, mut all_closed) = tokio::sync::mpsc::channel::<()>(1);
    let (drain, mut stopping) = (server.host.config.drain_timeout_ms, server.host.stopping.clone());
    let ended = async {
        let _ = stopping.wait_for(|&stopping| stopping).await;
        tokio::time::sleep(Duration::from_millis(drain)).await;
    };
    let also_open = open.clone();
    let accepted_also = async {
        let open = also_open;
        if let Some(listener) = also {
            accept_until_stopped(listener, &server, open).await;
        }
    };
    let accepted = async {
        match arrivals {
            Arrivals::Accepted(listener) => accept_until_stopped(listener, &server, open).await,
            #[cfg(target_os = "linux")]
            Arrivals::HandedOver(connections) => take_over(connections, &server, open).await,
        }
    };
    let served = async {
        tokio::join!(accepted_also, accepted);
        all_closed.recv().await;
    };
    tokio::select! {
        biased;
        () = served => {}
        () = ended => tracing::warn!("connections were closed after {drain} ms"),
    }
}

/// Serves what the lean thread hands over until it ends, within its time.
#[cfg(target_os = "linux")]
async fn take_over(
    mut connections: tokio::sync::mpsc::UnboundedReceiver<crate::lean::Handover>,
    server: &Arc<Server>,
    open: tokio::sync::mpsc::Sender<()>,
) {
    while let Some(connection) = connections.recv().await {
        match TcpStream::from_std(connection.stream) {
            Ok(stream) => {
                let accepted = AcceptedConnection { stream, peer: connection.peer };
                let earlier = EarlierTraffic {
                    read: connection.read.into(),
                    handed_in: connection.handed_in,
                };
                start(accepted, earlier, server, connection.open, &open);
            }
            Err(error) => tracing::warn!(%error, "cannot take over a connection"),
        }
    }
}

/// A connection, and its peer's address if known.
struct AcceptedConnection {
    stream: TcpStream,
    peer: Option<IpAddr>,
}

/// Accepts connections until the server stops.
async fn accept_until_stopped(
    listener: std::net::TcpListener,
    server: &Arc<Server>,
    open: tokio::sync::mpsc::Sender<()>,
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "a listener failed");
            return;
        }
    };
    let mut stopping = server.host.stopping.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    admit(AcceptedConnection { stream, peer: Some(address.ip().to_canonical()) }, server, &open);
                }
                Err(error) => {
                    // Most likely out of descriptors: only waiting helps.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            _ = stopping.wait_for(|&stopping| stopping) => break,
        }
    }
}

fn admit(accepted: AcceptedConnection, server: &Arc<Server>, open: &tokio::sync::mpsc::Sender<()>) {
    let _ = accepted.stream.set_nodelay(true);
    match server.host.limits.connect(accepted.peer) {
        Ok(counted) => start(accepted, EarlierTraffic::default(), server, counted, open),
        // A client that waits for a handshake could not read an answer.
        Err(_) if server.host.tls.is_some() => {}
        Err(told) => {
            let _ = accepted.stream.try_write(&told);
        }
    }
}

/// Serves a connection, after what another stack did with it.
fn start(
    accepted: AcceptedConnection,
    earlier: EarlierTraffic,
    server: &Arc<Server>,
    counted: CountedConnection,
    open: &tokio::sync::mpsc::Sender<()>,
) {
    let (server, open) = (Arc::clone(server), (open.clone(), counted));
    let AcceptedConnection { stream, peer } = accepted;
    // Two tasks: one that could be both would have the size of the larger.
    match server.host.tls.clone() {
        None => tokio::spawn(async move {
            let _open = open;
            let Some(came) = first_of(stream, peer, earlier, &server).await else { return };
            let (stream, earlier) = came;
            if !earlier.read.is_empty() {
                // A socket is not writable to the runtime that does not know it yet, and hyper
                // leaves a pipelined request behind an answer that it could not write at once.
                let _ = stream.writable().await;
            }
            connection::serve(stream, peer, earlier, server).await;
        }),
        Some(tls) => tokio::spawn(async move {
            let _open = open;
            let patience = Duration::from_millis(server.host.config.header_timeout_ms);
            let stopping = server.host.stopping.clone();
            let Some(stream) = tls::shake_hands(&tls, stream, peer, patience, stopping).await
            else {
                return;
            };
            if let Some((stream, earlier)) = first_of(stream, peer, earlier, &server).await {
                connection::serve(stream, peer, earlier, server).await;
            }
        }),
    };
}

/// Reads what tells HTTP from another protocol, which then serves the connection. `None`: it has
/// ended.
async fn first_of<S: Socket + Send + 'static>(
    mut stream: S,
    peer: Option<IpAddr>,
    earlier: EarlierTraffic,
    server: &Server,
) -> Option<(S, EarlierTraffic)> {
    let config = &server.host.config;
    let [idle, header] =
        [config.idle_timeout_ms, config.header_timeout_ms].map(Duration::from_millis);
    let wait = FirstBytesWait { idle, header };
    let mut stopping = server.host.stopping.clone();
    let EarlierTraffic { read, handed_in } = earlier;
    let magics = server.magics();
    let (said, read) = tokio::select! {
        biased;
        first = read_first_bytes(&mut stream, read, &magics, wait) => first?,
        // No request has arrived yet, so none stays unanswered.
        _ = stopping.wait_for(|&stopping| stopping) => return None,
    };
    match said {
        FirstBytes::Protocol(index) => {
            let stats = &server.host.stats;
            let connection = ProtocolConnection::new(stream, read, peer, stats);
            server.protocols()[index].serve(connection).await;
            None
        }
        FirstBytes::Http | FirstBytes::Undecided => {
            Some((stream, EarlierTraffic { read, handed_in }))
        }
    }
}

/// A write beyond a limit on file sizes (`ulimit -f`) must fail like one on a full disk, not end
/// the process: for that its signal needs a handler.
fn survive_file_limit() -> Option<Signal> {
    /// `SIGXFSZ`, the same on all of Linux' common architectures.
    const FILE_SIZE_LIMIT: i32 = 25;
    signal(SignalKind::from_raw(FILE_SIZE_LIMIT)).ok()
}

/// The signals that stop a server, handled from when this is made: none ends the process at once
/// after that.
pub(super) struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl StopSignals {
    /// Make it within a runtime.
    ///
    /// # Errors
    /// A sentence: the system refuses to handle signals.
    pub(super) fn watch() -> Result<StopSignals, SetupError> {
        let watch = |kind| signal(kind).map_err(|e| format!("cannot handle signals: {e}"));
        Ok(StopSignals {
            terminate: watch(SignalKind::terminate())?,
            interrupt: watch(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.terminate.recv() => "SIGTERM",
        }
    }
}

#[cfg(test)]
mod protocol_tests;
