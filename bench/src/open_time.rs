//! Time from starting a server's process to its first answer, and the memory it then holds.

use crate::{
    flags::{Flags, Outcome},
    machine,
    row::Sink,
    store::{Dialect, Store},
};
use std::{
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::fd::AsRawFd as _,
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

/// `wsbench open`: starts the binary on a data folder some times over and stops it again.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let dialect: Dialect = flags.required("server")?;
    let sink = Sink::from_flags("open", dialect.name(), &mut flags)?;
    let binary: String = flags.required("binary")?;
    let data: String = flags.required("data")?;
    let size: u64 = flags.or("size", 0)?;
    let cold = flags.or("cold", false)?;
    let core: Option<usize> = flags.optional("pin")?;
    flags.finish()?;
    if let Some(core) = core {
        machine::pin_to(core)?;
    }
    if cold {
        forget_pages(Path::new(&data))?;
    }
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let started = Instant::now();
    let mut server = Started::new(start(dialect, &binary, &data, &address)?);
    while !answers(dialect, &address) {
        if let Some(status) = server.0.try_wait()? {
            return Err(format!("the server ended with {status}").into());
        }
        if started.elapsed() > Duration::from_secs(300) {
            return Err("the server is not ready after five minutes".into());
        }
        std::thread::sleep(Duration::from_micros(200));
    }
    let ready = started.elapsed();
    let at_ready = machine::resident_mib(server.0.id()).ok_or("the server is gone")?;
    let own = machine::anonymous_bytes(server.0.id()).ok_or("the server is gone")?;
    let head = Store::open(dialect, &address)?.head()?;
    if head != size {
        return Err(format!("the log has {head} events, not {size}").into());
    }
    let state = match (size, cold) {
        (0, _) => "empty".to_owned(),
        (_, true) => format!("{size} events, cold cache"),
        (_, false) => format!("{size} events, warm cache"),
    };
    for (what, value, unit) in [
        ("start to ready", ready.as_secs_f64() * 1000.0, "ms"),
        ("resident when ready", at_ready, "MiB"),
        ("resident when ready and not of files", own as f64 / 1_048_576.0, "MiB"),
    ] {
        let mut row = sink.row(&format!("{what}, {state}"), value, unit);
        (row.size, row.samples) = (size, 1);
        sink.put(&row)?;
    }
    Ok(())
}

pub(crate) fn start(dialect: Dialect, binary: &str, data: &str, address: &str) -> Outcome<Child> {
    let mut command = Command::new(binary);
    match dialect {
        Dialect::Wellspring => command.args(["serve", "--data", data, "--listen", address]),
        Dialect::Umadb => command.args(["--listen", address, "--db-path", data]),
    };
    Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?)
}

/// A server that does not outlive its measurement.
pub(crate) struct Started(pub(crate) Child, Duration);

impl Started {
    /// It may take ten seconds to stop.
    pub(crate) fn new(child: Child) -> Self {
        Self(child, Duration::from_secs(10))
    }

    /// It may take so long to stop.
    pub(crate) fn may_take(&mut self, time: Duration) {
        self.1 = time;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        // SAFETY: the child has not been waited for, so its id is still its own.
        unsafe { libc::kill(self.0.id() as i32, libc::SIGTERM) };
        let asked = Instant::now();
        while matches!(self.0.try_wait(), Ok(None)) {
            if asked.elapsed() > self.1 {
                let _ = self.0.kill();
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Whether the server answers: readiness over HTTP, `Head` over gRPC.
fn answers(dialect: Dialect, address: &str) -> bool {
    match dialect {
        Dialect::Umadb => Store::open(dialect, address).is_ok_and(|mut store| store.head().is_ok()),
        Dialect::Wellspring => {
            let Ok(mut socket) = TcpStream::connect(address) else { return false };
            let asked = socket.write_all(b"GET /health/ready HTTP/1.1\r\nHost: bench\r\n\r\n");
            let mut answer = [0; 64];
            asked.is_ok()
                && socket
                    .read(&mut answer)
                    .is_ok_and(|read| answer[..read].starts_with(b"HTTP/1.1 200"))
        }
    }
}

/// Asks the kernel to drop its cached pages of these files only; the rest of the machine keeps its
/// own.
fn forget_pages(path: &Path) -> Outcome<()> {
    if path.is_dir() {
        for entry in std::fs::read_dir(path)? {
            forget_pages(&entry?.path())?;
        }
    } else if path.is_file() {
        let file = std::fs::File::open(path)?;
        file.sync_all()?;
        // SAFETY: the descriptor is open; the call takes no pointers.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
    }
    Ok(())
}
