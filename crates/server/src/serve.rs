//! `wellspring serve`: threads, listeners, signals, and an orderly end.

use crate::access::{self, Gate, renewal};
use crate::audit::{self, Audit};
use crate::config::{Config, LogFormat, ServeArgs};
use crate::http::body_memory::BodyMemory;
use crate::http::cors::Cors;
use crate::http::{Shell, connection, routes};
use crate::limits::{Connected, Limits};
use crate::links::settings::LinkSettings;
use crate::links::{self, VisitorKeys};
use crate::node::Node;
use crate::otlp::{self, Otlp};
use crate::stats::{self, Stats};
use crate::tls::{self, Tls};
use bytes::Bytes;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};
use wellspring_log::storage::create_folder;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;
/// Blocking threads of each serving thread.
const BLOCKING_THREADS: usize = 64;
/// Their niceness: about a third of the share of a thread that serves, where a core has to be shared.
const BLOCKING_NICE: i32 = 5;
/// Descriptors kept for files and the rest, out of those the process may have, besides those of
/// segments.
const RESERVED_FDS: u64 = 512;
/// Descriptors kept for each segment there is: its file, its index, and half as many again for
/// segments to come until the next start.
const SEGMENT_FDS: u64 = 3;

/// Runs the server until a signal ends it.
pub(crate) fn run(args: ServeArgs) -> ExitCode {
    let print = args.print_config;
    let config = match Config::load(args) {
        Ok(config) => config,
        Err(message) => return refuse(&message),
    };
    if print {
        return match crate::cli::say(config.to_toml().trim_end()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        };
    }
    if let Err(message) = init_logging(&config) {
        return refuse(&message);
    }
    match serve(config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => refuse(&message),
    }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("wellspring: {message}");
    ExitCode::FAILURE
}

fn init_logging(config: &Config) -> Result<(), String> {
    let level: tracing::Level = config.log_level.parse().map_err(|_| {
        format!("--log-level must be error, warn, info, debug or trace, not {:?}", config.log_level)
    })?;
    let lines = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    match config.log_format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}

/// Opens everything that a configuration names. Serving ends when the sender says so.
fn open(mut config: Config) -> Result<(Arc<Shell>, watch::Sender<bool>), String> {
    if config.threads == 0 {
        config.threads = std::thread::available_parallelism().map_or(1, usize::from);
    }
    let descriptors = raise_descriptor_limit();
    let clock = crate::clock::system();
    let tls = Tls::open(&config)?;
    access::sealed::check_log(&config.data)?;
    keep_private(&config.data)?;
    let node = Node::open(&config, Arc::clone(&clock)).map_err(|e| e.to_string())?;
    config.max_connections =
        connections_that_fit(config.max_connections, descriptors, node.segments());
    let accounts = node.access().ok_or("there is no system log")?;
    let gate = Arc::new(Gate::open(&config, Arc::clone(&clock), accounts)?);
    access::first::ensure_admin(&gate)?;
    access::sealed::check(&config.data, &gate)?;
    check_exposure(&config, &gate)?;
    let visitor_keys = VisitorKeys::open(&config.data, clock.wall_us()).map_err(|e| {
        format!("the key of visitors cannot be kept in {}: {e}", config.data.display())
    })?;
    let (stop, stopping) = watch::channel(false);
    // Each core may have two serving threads.
    let stats = Arc::new(Stats::new(2 * config.threads, routes::TABLE.len(), clock.monotonic_us()));
    let shell = Arc::new(Shell {
        node,
        access: gate,
        limits: Arc::new(Limits::of(&config, &stats, &clock)?),
        link_settings: LinkSettings::of(&config)?,
        tls,
        cors: Cors::of(&config)?,
        body_memory: BodyMemory::new(&stats, config.body_memory_bytes),
        audit: Audit::new(config.audit),
        otlp: Otlp::open(&config)?,
        stats,
        request_ids: AtomicU64::new(first_request_id(clock.wall_us())),
        visitor_keys,
        clock,
        stopping,
        long_reads: Arc::new(Semaphore::new(config.max_long_reads)),
        link_reads: Arc::new(Semaphore::new((config.threads / 2).max(1))),
        subscriptions: Arc::new(Semaphore::new(config.max_subscribers)),
        config,
    });
    Ok((shell, stop))
}

fn serve(config: Config) -> Result<(), String> {
    if !config.core_dumps {
        forbid_core_dumps();
    }
    let (shell, stop) = open(config)?;
    let main = runtime("main")?;
    let Serving { threads, wakes } = start_threads(&shell, &main)?;
    let exporter = otlp::start(&shell)?;
    let drain = Duration::from_millis(shell.config.drain_timeout_ms);
    main.block_on(async {
        let _file_limit = survive_file_limit();
        let days = Arc::clone(&shell);
        tokio::spawn(async move { links::turn_daily(&days.visitor_keys, &*days.clock).await });
        tokio::spawn(tls::keep_current(Arc::clone(&shell)));
        tokio::spawn(renewal::keep(Arc::clone(&shell)));
        let audited = Arc::clone(&shell);
        tokio::spawn(async move { tell_refusals(&audited).await });
        let name = signal().await.map_err(|e| format!("signals cannot be watched: {e}"))?;
        tracing::info!(signal = name, "stopping");
        // A second signal means: now.
        tokio::spawn(async {
            if signal().await.is_ok() {
                std::process::exit(130);
            }
        });
        let _ = stop.send(true);
        wakes.iter().for_each(|wake| wake());
        // The threads bound their own draining; this waits for them without blocking the signals.
        let joined =
            tokio::task::spawn_blocking(move || threads.into_iter().for_each(|t| drop(t.join())));
        let _ = tokio::time::timeout(drain + Duration::from_secs(2), joined).await;
        if let Some(exporter) = exporter {
            let stopped = tokio::task::spawn_blocking(|| exporter.stop());
            let _ = tokio::time::timeout(Duration::from_secs(2), stopped).await;
        }
        let closing = Arc::clone(&shell);
        let close = move || {
            closing.audit.tell_refusals(&closing.node, closing.clock.monotonic_us());
            closing.node.close()
        };
        let lost = tokio::task::spawn_blocking(close).await;
        match lost {
            Ok(0) => Ok(()),
            Ok(lost) => Err(format!("{lost} accepted events could not be stored and are lost")),
            Err(error) => Err(format!("the logs were not closed in order: {error}")),
        }
    })?;
    tracing::info!("stopped");
    main.shutdown_background();
    Ok(())
}

/// Makes the data folder for its owner alone, and durable, if it is not there; of one that is, others' rights are
/// not taken away, but told.
fn keep_private(data: &Path) -> Result<(), String> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |e: io::Error| format!("the data folder {}: {e}", data.display());
    if !data.try_exists().map_err(failed)? {
        return create_folder(data).map_err(failed);
    }
    let mode = std::fs::metadata(data).map_err(failed)?.permissions().mode();
    if mode & 0o007 != 0 {
        tracing::warn!(
            data = %data.display(),
            "other users of this machine can look into the data folder: chmod 700 it"
        );
    }
    Ok(())
}

/// Refuses to let other machines in where nobody has to say who he is, unless that is meant.
fn check_exposure(config: &Config, access: &Gate) -> Result<(), String> {
    let address = config.address()?;
    if !access.is_open() {
        return Ok(());
    }
    if address.ip().is_loopback() {
        tracing::info!("there are no accounts: whoever reaches {address} may do everything");
        return Ok(());
    }
    if config.insecure {
        tracing::warn!(
            "there are no accounts and {address} is not a loopback address: whoever reaches it may do everything"
        );
        return Ok(());
    }
    Err(format!(
        "--listen {address} can be reached from other machines and there are no accounts; make one with \
         `wellspring user add NAME --role admin --data {}`, listen on 127.0.0.1, or say --insecure if the \
         network is private",
        config.data.display()
    ))
}

/// Has the audit tell of what it did not keep one by one.
async fn tell_refusals(shell: &Shell) {
    loop {
        tokio::time::sleep(audit::TELL_EVERY).await;
        shell.audit.tell_refusals(&shell.node, shell.clock.monotonic_us());
    }
}

/// Request ids begin somewhere else at every start; they need not be secret.
fn first_request_id(wall_us: u64) -> u64 {
    wall_us.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id()) << 32
}

/// Memory holds tokens, keys and what passwords were sent: no crash is to leave it in a file, nor may
/// another process of the same user read it.
fn forbid_core_dumps() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let maximum = getrlimit(Resource::Core).maximum;
    let _ = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum });
    // Where cores are piped to a program the limit means nothing.
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_dumpable_behavior};
        if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
            tracing::warn!(%error, "core dumps cannot be forbidden");
        }
    }
}

/// Raises the limit on descriptors as far as allowed; how many that is.
fn raise_descriptor_limit() -> u64 {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

/// The connections that fit beside what `segments` segments need, at most `wanted`: connections
/// must not take the descriptors that the next segment is made with.
fn connections_that_fit(wanted: usize, descriptors: u64, segments: u64) -> usize {
    let reserved = RESERVED_FDS.saturating_add(segments.saturating_mul(SEGMENT_FDS));
    let fit = wanted
        .min(usize::try_from(descriptors.saturating_sub(reserved)).unwrap_or(usize::MAX))
        .max(16);
    if fit < wanted {
        eprintln!(
            "wellspring: only {descriptors} open files are allowed and {segments} segments need \
             some of them, so at most {fit} connections"
        );
    }
    fit
}

fn runtime(name: &str) -> Result<Runtime, String> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name(format!("{name}-blocking"))
        .on_thread_start(yield_to_serving)
        .build()
        .map_err(|e| format!("the runtime cannot start: {e}"))
}

/// Makes this thread, which does long work, one that those that serve overtake. Not by much: it also
/// holds locks that they wait for, for a moment.
fn yield_to_serving() {
    // Of the thread alone, on Linux; a system that refuses leaves it as it is.
    #[cfg(target_os = "linux")]
    let _ = rustix::process::setpriority_process(None, BLOCKING_NICE);
}

/// The threads that serve, and how to tell the lean ones that the server stops.
struct Serving {
    threads: Vec<JoinHandle<()>>,
    wakes: Vec<Box<dyn Fn() + Send>>,
}

/// Where a serving thread's connections come from.
enum Arrivals {
    /// It accepts them itself.
    Accepted(std::net::TcpListener),
    /// The lean thread beside it hands them over.
    #[cfg(target_os = "linux")]
    HandedOver(tokio::sync::mpsc::UnboundedReceiver<crate::lean::Handover>),
}

/// One listener for each core, and one thread, or two with the lean loop. The
/// listeners share the port; the kernel spreads connections.
fn start_threads(shell: &Arc<Shell>, main: &Runtime) -> Result<Serving, String> {
    let mut address = shell.config.address()?;
    refuse_shared_port(address)?;
    let mut listeners = Vec::new();
    {
        let _entered = main.enter();
        for _ in 0..shell.config.threads {
            let listener =
                listen(address).map_err(|e| format!("{address} cannot be listened on: {e}"))?;
            // Port 0 became a real one; the others must take the same.
            address = listener.local_addr().map_err(|e| e.to_string())?;
            listeners.push(listener.into_std().map_err(|e| e.to_string())?);
        }
    }
    shell.link_settings.bound_to(address);
    let mut serving = Serving { threads: Vec::new(), wakes: Vec::new() };
    for (index, listener) in listeners.into_iter().enumerate() {
        let arrivals = arrivals(shell, index, listener, &mut serving)?;
        let name = format!("http-{index}");
        let runtime = runtime(&name)?;
        let shell = Arc::clone(shell);
        serving.threads.push(spawn(name, move || {
            stats::enter_thread(index);
            runtime.block_on(serve_until_stopped(arrivals, shell));
            runtime.shutdown_timeout(Duration::from_millis(100));
        })?);
    }
    tracing::info!(
        address = %address,
        data = %shell.config.data.display(),
        sync = shell.config.sync,
        threads = shell.config.threads,
        lean_loop = !serving.wakes.is_empty(),
        tls = shell.tls.is_some(),
        "wellspring listens"
    );
    Ok(serving)
}

/// Starts a thread.
///
/// # Errors
/// The system gives none.
#[allow(clippy::disallowed_methods)] // the server's shell: a door for threads
pub(crate) fn spawn(
    name: String,
    work: impl FnOnce() + Send + 'static,
) -> Result<JoinHandle<()>, String> {
    let thread = std::thread::Builder::new().name(name).spawn(work);
    thread.map_err(|e| format!("a thread cannot start: {e}"))
}

/// Starts the lean thread of a core, if there is to be one, and gives it the listener.
#[cfg(target_os = "linux")]
fn arrivals(
    shell: &Arc<Shell>,
    index: usize,
    listener: std::net::TcpListener,
    serving: &mut Serving,
) -> Result<Arrivals, String> {
    use crate::lean::{self, Bell};
    // It does not speak TLS.
    if !shell.config.lean_loop || shell.tls.is_some() {
        return Ok(Arrivals::Accepted(listener));
    }
    let bell = Bell::new().map_err(|e| format!("a lean thread cannot be woken: {e}"))?;
    let bell = Arc::new(bell);
    let ringer = Arc::clone(&bell);
    serving.wakes.push(Box::new(move || ringer.ring()));
    let (handover, handed_over) = tokio::sync::mpsc::unbounded_channel();
    let shell = Arc::clone(shell);
    serving.threads.push(spawn(format!("lean-{index}"), move || {
        stats::enter_thread(shell.config.threads + index);
        if let Err(error) = lean::run(&shell, &listener, &bell, &handover) {
            tracing::error!(%error, "a lean thread cannot start");
        }
    })?);
    Ok(Arrivals::HandedOver(handed_over))
}

#[cfg(not(target_os = "linux"))]
fn arrivals(
    _: &Arc<Shell>,
    _: usize,
    listener: std::net::TcpListener,
    _: &mut Serving,
) -> Result<Arrivals, String> {
    Ok(Arrivals::Accepted(listener))
}

/// The threads share the port by `SO_REUSEPORT`, which would let a second server
/// share it too and answer every other client from other data. A socket without
/// the option cannot be bound while any server listens: that tells.
fn refuse_shared_port(address: SocketAddr) -> Result<(), String> {
    match std::net::TcpListener::bind(address) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(format!(
            "{address} is in use by another program; stop it, or choose another port with --listen"
        )),
        Err(error) => Err(format!("{address} cannot be listened on: {error}")),
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.set_reuseport(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves connections until the server stops, then waits for those that are open.
async fn serve_until_stopped(arrivals: Arrivals, shell: Arc<Shell>) {
    // Every connection holds a sender; when the last is gone, so are the connections.
    let (open, mut all_closed) = tokio::sync::mpsc::channel::<()>(1);
    let (drain, mut stopping) = (shell.config.drain_timeout_ms, shell.stopping.clone());
    let ended = async {
        let _ = stopping.wait_for(|&stopping| stopping).await;
        tokio::time::sleep(Duration::from_millis(drain)).await;
    };
    let served = async {
        match arrivals {
            Arrivals::Accepted(listener) => accept_until_stopped(listener, &shell, open).await,
            #[cfg(target_os = "linux")]
            Arrivals::HandedOver(connections) => take_over(connections, &shell, open).await,
        }
        all_closed.recv().await;
    };
    tokio::select! {
        biased;
        () = served => {}
        () = ended => tracing::warn!("connections were cut after {drain} ms"),
    }
}

/// Serves what the lean thread hands over until it ends. It ends in time.
#[cfg(target_os = "linux")]
async fn take_over(
    mut connections: tokio::sync::mpsc::UnboundedReceiver<crate::lean::Handover>,
    shell: &Arc<Shell>,
    open: tokio::sync::mpsc::Sender<()>,
) {
    while let Some(connection) = connections.recv().await {
        match TcpStream::from_std(connection.stream) {
            Ok(stream) => {
                let accepted = Accepted { stream, peer: connection.peer };
                start(accepted, connection.read.into(), shell, connection.open, &open);
            }
            Err(error) => tracing::warn!(%error, "a connection could not be taken over"),
        }
    }
}

/// A connection, and who is at the other end if that is known.
struct Accepted {
    stream: TcpStream,
    peer: Option<IpAddr>,
}

/// Accepts connections until the server stops.
async fn accept_until_stopped(
    listener: std::net::TcpListener,
    shell: &Arc<Shell>,
    open: tokio::sync::mpsc::Sender<()>,
) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "a listener failed");
            return;
        }
    };
    let mut stopping = shell.stopping.clone();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    admit(Accepted { stream, peer: Some(address.ip().to_canonical()) }, shell, &open);
                }
                Err(error) => {
                    // Out of descriptors, most likely: waiting is all that helps.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            _ = stopping.wait_for(|&stopping| stopping) => break,
        }
    }
}

fn admit(accepted: Accepted, shell: &Arc<Shell>, open: &tokio::sync::mpsc::Sender<()>) {
    let _ = accepted.stream.set_nodelay(true);
    match shell.limits.connect(accepted.peer) {
        Ok(counted) => start(accepted, Bytes::new(), shell, counted, open),
        // A client that waits for a handshake would make nothing of the words.
        Err(_) if shell.tls.is_some() => {}
        Err(told) => {
            let _ = accepted.stream.try_write(&told);
        }
    }
}

/// Serves a connection of which `read` has been read already.
fn start(
    accepted: Accepted,
    read: Bytes,
    shell: &Arc<Shell>,
    counted: Connected,
    open: &tokio::sync::mpsc::Sender<()>,
) {
    let (shell, open) = (Arc::clone(shell), (open.clone(), counted));
    let Accepted { stream, peer } = accepted;
    // Two tasks: one that could be both would have the size of the larger.
    match shell.tls.clone() {
        None => tokio::spawn(async move {
            let _open = open;
            connection::serve(stream, peer, read, shell).await;
        }),
        Some(tls) => tokio::spawn(async move {
            let _open = open;
            if let Some(stream) = tls::shake_hands(&tls, stream, peer, &shell).await {
                connection::serve(stream, peer, Bytes::new(), shell).await;
            }
        }),
    };
}

/// A write beyond a limit on file sizes (`ulimit -f`) is to fail like one on a full disk, not to
/// end the process: for that its signal needs someone who listens.
fn survive_file_limit() -> Option<tokio::signal::unix::Signal> {
    /// `SIGXFSZ`, the same on all of Linux' common architectures.
    const FILE_SIZE_LIMIT: i32 = 25;
    tokio::signal::unix::signal(tokio::signal::unix::SignalKind::from_raw(FILE_SIZE_LIMIT)).ok()
}

/// Waits for a signal to stop.
async fn signal() -> io::Result<&'static str> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        result = tokio::signal::ctrl_c() => result.map(|()| "SIGINT"),
        _ = terminate.recv() => Ok("SIGTERM"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_to_segments() {
        assert_eq!(connections_that_fit(16_384, 524_288, 10_000), 16_384);
        assert_eq!(connections_that_fit(16_384, 20_000, 1_000), 16_384);
        assert_eq!(connections_that_fit(16_384, 20_000, 4_000), 20_000 - 512 - 12_000);
        assert_eq!(connections_that_fit(16_384, 1_024, 4_000), 16);
    }
}
