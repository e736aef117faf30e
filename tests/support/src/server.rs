//! The real server as a child process on a free loopback port.

use crate::client::Client;
use crate::following;
use crate::program::program_path;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use wellspring_patience::{PATIENCE, Patience, free_port};

/// A running server. Killed when dropped.
pub struct Server {
    child: Child,
    /// Whether it speaks TLS: the plain client detects readiness by its refusal of plain HTTP.
    tls: bool,
    pub address: SocketAddr,
    pub dir: PathBuf,
    /// The first lines of its log.
    lines: Arc<Mutex<Vec<String>>>,
    /// What its log has told of it.
    told: Mutex<Receiver<LogEvent>>,
    _owned: Option<tempfile::TempDir>,
}

/// What a server's log tells of it.
enum LogEvent {
    /// It waits for other nodes.
    Waits,
    Listens,
    /// Nothing more.
    Ended,
}

/// Flags for each of the two HTTP/1.1 stacks.
pub const BOTH_LOOPS: [[&str; 2]; 2] = [["--lean-loop", "true"], ["--lean-loop", "false"]];

/// An address at which no server listens: no program is given its port as a free one.
pub const NOBODY: &str = "127.0.0.1:1";

impl Server {
    /// A server on a new folder.
    pub fn start() -> Server {
        Server::start_with(&[])
    }

    pub fn start_with(flags: &[&str]) -> Server {
        let owned = tempfile::tempdir().unwrap();
        let mut server = Server::start_in(owned.path(), flags);
        server._owned = Some(owned);
        server
    }

    /// A server on this folder, which may have been used before.
    pub fn start_in(dir: &Path, flags: &[&str]) -> Server {
        Server::start_under(&[], dir, flags)
    }

    /// The same, started by a command that executes the server: its arguments precede the server's
    /// own.
    pub fn start_under(command: &[&str], dir: &Path, flags: &[&str]) -> Server {
        Server::start_at(None, command, dir, flags)
    }

    /// The same, at this address if one is given: that of a killed server.
    pub fn start_at(
        address: Option<SocketAddr>,
        command: &[&str],
        dir: &Path,
        flags: &[&str],
    ) -> Server {
        let follows = following::behind_a_leader(command, dir, flags).unwrap_or_default();
        let follows: Vec<&str> = follows.iter().map(String::as_str).collect();
        let flags = [flags, &follows].concat();
        let follow = |server: &Server| following::follow(dir, server.address);
        Server::start_waiting_for(address, command, dir, &flags, follow)
    }

    /// The same, independent of the mode of these tests: with exactly these flags.
    pub fn start_alone(
        address: Option<SocketAddr>,
        command: &[&str],
        dir: &Path,
        flags: &[&str],
    ) -> Server {
        Server::start_waiting_for(address, command, dir, flags, |_| ())
    }

    /// The same, with what ends its wait for other nodes, if it waits for some.
    pub fn start_waiting_for(
        address: Option<SocketAddr>,
        command: &[&str],
        dir: &Path,
        flags: &[&str],
        found_or_join: impl Fn(&Server),
    ) -> Server {
        for _ in 0..5 {
            let mut server = Server::spawn(address, command, dir, flags);
            if server.wait_ready(&found_or_join) {
                return server;
            }
            // Another process may have taken the port in between: try another.
        }
        panic!("the server did not become ready");
    }

    /// A node over no other server, which waits for the others; see [`ready`](Self::ready).
    pub fn start_waiting(address: Option<SocketAddr>, dir: &Path, flags: &[&str]) -> Server {
        for _ in 0..5 {
            let server = Server::spawn(address, &[], dir, flags);
            if matches!(server.told(PATIENCE), Ok(LogEvent::Waits)) {
                return server;
            }
            eprintln!("the node does not wait for others:\n{}", server.log().join("\n"));
        }
        panic!("the node did not start");
    }

    /// Waits until it serves.
    pub fn ready(mut self) -> Server {
        assert!(self.wait_ready(|_| ()), "the node did not become ready: {:#?}", self.log());
        self
    }

    fn spawn(address: Option<SocketAddr>, command: &[&str], dir: &Path, flags: &[&str]) -> Server {
        let mut words = command.iter().copied().chain([program_path()]);
        let program = words.next().expect("at least the server");
        let address = address.unwrap_or_else(|| ([127, 0, 0, 1], free_port()).into());
        let mut child = Command::new(program)
            .args(words)
            .args(["serve", "--data", dir.to_str().unwrap()])
            .args(["--listen", &address.to_string()])
            .args(flags)
            .env_remove("WELLSPRING_URL")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let (lines, dir, tls) = (Arc::default(), dir.to_owned(), flags.contains(&"--tls-cert"));
        let told = Mutex::new(keep_log(&mut child, &lines));
        Server { child, tls, address, dir, lines, told, _owned: None }
    }

    fn told(&self, patience: Duration) -> Result<LogEvent, RecvTimeoutError> {
        self.told.lock().unwrap().recv_timeout(patience)
    }

    fn wait_ready(&mut self, found_or_join: impl Fn(&Server)) -> bool {
        // Not before it says so itself: on a port that was free a moment ago, the server of
        // another test may listen by now, and answer.
        let mut said = self.told(PATIENCE);
        if matches!(said, Ok(LogEvent::Waits)) {
            found_or_join(self);
            said = self.told(PATIENCE);
        }
        if !matches!(said, Ok(LogEvent::Listens)) {
            // Its end, unless the test has its log written elsewhere.
            let end = Instant::now() + Duration::from_secs(1);
            while Instant::now() < end && self.child.try_wait().unwrap().is_none() {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                let _ = self.told(Duration::from_secs(2));
                eprintln!("the server ended with {status}:\n{}", self.log().join("\n"));
                return false;
            }
            let ready = Client::connect(self.address)
                .and_then(|mut client| client.get("/health/ready"))
                .is_ok_and(|answer| answer.status == if self.tls { 400 } else { 200 });
            if ready {
                return true;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        false
    }

    /// The first lines of its log so far.
    pub fn log(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    /// Waits for a line of its log that contains all these texts.
    pub fn logged(&self, texts: &[&str]) -> String {
        let mut patience = Patience::new();
        loop {
            let holds = |line: &&String| texts.iter().all(|text| line.contains(text));
            if let Some(line) = self.log().iter().find(holds) {
                return line.clone();
            }
            patience.pause(format_args!("no line with {texts:?}: {:#?}", self.log()));
        }
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address).expect("the server accepts")
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// `kill -9`, for a test that keeps the `Server` until it starts another.
    pub fn kill_here(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// `kill -9`.
    pub fn kill(mut self) -> PathBuf {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.dir.clone()
    }

    /// Sends a signal, for example `STOP`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid().to_string()]).status();
        assert!(sent.unwrap().success());
    }

    /// SIGTERM, then waits for the exit.
    pub fn terminate(&mut self) -> ExitStatus {
        self.signal("TERM");
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        panic!("the server did not stop");
    }
}

/// Reads a child's log for as long as it lives, otherwise it would block.
fn keep_log(child: &mut Child, kept: &Arc<Mutex<Vec<String>>>) -> Receiver<LogEvent> {
    let stderr = child.stderr.take().expect("piped");
    let (tell, told) = std::sync::mpsc::channel();
    let kept = Arc::clone(kept);
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if line.contains("listens for the other nodes") {
                let _ = tell.send(LogEvent::Waits);
            } else if line.contains("wellspring listens") {
                let _ = tell.send(LogEvent::Listens);
            }
            let mut lines = kept.lock().unwrap();
            if lines.len() < 200 {
                lines.push(line);
            }
        }
        let _ = tell.send(LogEvent::Ended);
    });
    told
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self._owned.is_some() {
            following::forget(&self.dir);
        }
    }
}
