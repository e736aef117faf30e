//! `wellspring serve`: threads, listeners, signals, and an orderly end.

use crate::config::{Config, LogFormat, ServeArgs};
use crate::http::{Shell, connection, routes};
use crate::node::Node;
use crate::stats::{self, Stats};
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Semaphore, watch};

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;
/// Blocking threads of each serving thread.
const BLOCKING_THREADS: usize = 64;
/// Descriptors kept for files and the rest, out of those the process may have.
const RESERVED_FDS: u64 = 512;

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

fn serve(mut config: Config) -> Result<(), String> {
    if config.threads == 0 {
        config.threads = std::thread::available_parallelism().map_or(1, usize::from);
    }
    config.max_connections = connections_that_fit(config.max_connections);
    let clock = crate::clock::system();
    let node = Node::open(&config, Arc::clone(&clock)).map_err(|e| e.to_string())?;
    let (stop, stopping) = watch::channel(false);
    let stats = Arc::new(Stats::new(config.threads, routes::TABLE.len()));
    let shell = Arc::new(Shell {
        node,
        stats,
        request_ids: AtomicU64::new(first_request_id(clock.wall_us())),
        clock,
        stopping,
        long_reads: Arc::new(Semaphore::new(config.max_long_reads)),
        subscriptions: Arc::new(Semaphore::new(config.max_subscribers)),
        config,
    });
    let main = runtime("main")?;
    let threads = start_threads(&shell, &main)?;
    let drain = Duration::from_millis(shell.config.drain_timeout_ms);
    main.block_on(async {
        let name = signal().await.map_err(|e| format!("signals cannot be watched: {e}"))?;
        tracing::info!(signal = name, "stopping");
        // A second signal means: now.
        tokio::spawn(async {
            if signal().await.is_ok() {
                std::process::exit(130);
            }
        });
        let _ = stop.send(true);
        // The threads bound their own draining; this waits for them without blocking the signals.
        let joined =
            tokio::task::spawn_blocking(move || threads.into_iter().for_each(|t| drop(t.join())));
        let _ = tokio::time::timeout(drain + Duration::from_secs(2), joined).await;
        let closing = Arc::clone(&shell);
        let _ = tokio::task::spawn_blocking(move || closing.node.close()).await;
        Ok::<(), String>(())
    })?;
    tracing::info!("stopped");
    main.shutdown_background();
    Ok(())
}

/// Request ids begin somewhere else at every start; they need not be secret.
fn first_request_id(wall_us: u64) -> u64 {
    wall_us.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(std::process::id()) << 32
}

/// Raises the limit on descriptors as far as allowed; gives the connections that fit under it.
fn connections_that_fit(wanted: usize) -> usize {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let fit =
        wanted.min(usize::try_from(allowed.saturating_sub(RESERVED_FDS)).unwrap_or(usize::MAX));
    if fit < wanted {
        eprintln!(
            "wellspring: only {allowed} open files are allowed, so at most {fit} connections"
        );
    }
    fit.max(16)
}

fn runtime(name: &str) -> Result<Runtime, String> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .thread_name(format!("{name}-blocking"))
        .build()
        .map_err(|e| format!("the runtime cannot start: {e}"))
}

/// One listener and one thread for each core. They share the port; the kernel spreads connections.
fn start_threads(shell: &Arc<Shell>, main: &Runtime) -> Result<Vec<JoinHandle<()>>, String> {
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
    let threads = listeners.into_iter().enumerate().map(|(index, listener)| {
        let shell = Arc::clone(shell);
        let name = format!("http-{index}");
        let runtime = runtime(&name)?;
        #[allow(clippy::disallowed_methods)] // the server's shell: a door for threads
        std::thread::Builder::new()
            .name(name)
            .spawn(move || {
                stats::enter_thread(index);
                let drain = Duration::from_millis(shell.config.drain_timeout_ms);
                runtime.block_on(accept_until_stopped(listener, shell, drain));
                runtime.shutdown_timeout(Duration::from_millis(100));
            })
            .map_err(|e| format!("a thread cannot start: {e}"))
    });
    let threads = threads.collect::<Result<_, String>>()?;
    tracing::info!(
        address = %address,
        data = %shell.config.data.display(),
        sync = shell.config.sync,
        threads = shell.config.threads,
        "wellspring listens"
    );
    Ok(threads)
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

/// Accepts connections until the server stops, then waits for those that are open.
async fn accept_until_stopped(listener: std::net::TcpListener, shell: Arc<Shell>, drain: Duration) {
    let listener = match TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!(%error, "a listener failed");
            return;
        }
    };
    let mut stopping = shell.stopping.clone();
    // Every connection holds a sender; when the last is gone, so are the connections.
    let (open, mut all_closed) = tokio::sync::mpsc::channel::<()>(1);
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => take(stream, &shell, open.clone()),
                Err(error) => {
                    // Out of descriptors, most likely: waiting is all that helps.
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            _ = stopping.wait_for(|&stopping| stopping) => break,
        }
    }
    drop(listener);
    drop(open);
    if tokio::time::timeout(drain, all_closed.recv()).await.is_err() {
        tracing::warn!("connections were cut after {} ms", drain.as_millis());
    }
}

fn take(stream: TcpStream, shell: &Arc<Shell>, open: tokio::sync::mpsc::Sender<()>) {
    let _ = stream.set_nodelay(true);
    let stats = &shell.stats;
    if stats.connections.fetch_add(1, Relaxed) >= shell.config.max_connections as i64 {
        stats.connections.fetch_sub(1, Relaxed);
        stats.refused.fetch_add(1, Relaxed);
        let _ = stream.try_write(
            b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        );
        return;
    }
    let shell = Arc::clone(shell);
    tokio::spawn(async move {
        let _open = open;
        let _counted = Counted(Arc::clone(&shell.stats));
        connection::serve(stream, shell).await;
    });
}

/// Counts a connection as open.
struct Counted(Arc<Stats>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Relaxed);
    }
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
