//! The nodes of a demo: processes of this program.

use crate::exit::{Code, Failure};
use crate::interrupt::Interrupts;
use crate::server::endpoint;
use rustix::process::{Pid, Signal, kill_process};
use std::env;
use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use wellspring_client::trust::Trust;
use wellspring_client::{Client, Request};

/// Time between two looks at whether a node is ready, or has ended, and how many there are.
const LOOK: Duration = Duration::from_millis(50);
const READY_LOOKS: u32 = 1_200;
const END_LOOKS: u32 = 200;
/// Lines of its log that are shown of a node that does not start.
const SHOWN_LINES: usize = 12;

/// The journal and the key that the nodes share.
pub(super) struct Journal {
    pub(super) url: String,
    pub(super) key: PathBuf,
}

/// One node. It is ended when this is dropped.
pub(super) struct DemoNode {
    name: &'static str,
    port: u16,
    dir: PathBuf,
    /// Length of its log when it was started, in bytes: before that are earlier runs.
    log_begin: usize,
    child: Child,
    ended: bool,
}

/// Whether a node has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NodeEnd {
    /// It has not.
    Runs,
    /// It has, since the last check, and how.
    JustNow(String),
    /// It has, and that was reported.
    Ended,
}

impl DemoNode {
    /// Starts it on a free port of loopback, with its folder below `demo`.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn start(
        name: &'static str,
        demo: &Path,
        journal: &Journal,
    ) -> Result<DemoNode, Failure> {
        let port = free_port()?;
        let dir = demo.join(name);
        let log_begin = fs::read(log_file(&dir)).unwrap_or_default().len();
        let child = spawn(name, port, &dir, journal)?;
        Ok(DemoNode { name, port, dir, log_begin, child, ended: false })
    }

    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its URL for clients and the other nodes.
    pub(super) fn url(&self) -> String {
        url(self.port)
    }

    /// Has it found a cluster with the others, unless that was done before.
    ///
    /// # Errors
    /// As [`wait_ready`](Self::wait_ready).
    pub(super) fn found(&self, nodes: &[DemoNode], interrupts: &Interrupts) -> Result<(), Failure> {
        let urls: Vec<String> = nodes.iter().map(DemoNode::url).collect();
        let body = serde_json::json!({ "nodes": urls }).to_string();
        let headers = &[("Content-Type", "application/json")];
        let path = "/v1/cluster/init";
        let request = Request { method: "POST", path, headers, body: Some(body.as_bytes()) };
        let client = Client::new(endpoint(&self.url())?, &Trust::default());
        let mut client = client.map_err(Failure::usage)?.with_patience(Duration::from_secs(5));
        for _ in 0..READY_LOOKS {
            // A node of an earlier demo says no more than that, and the others become ready.
            let answer = client.call(&request);
            if answer.is_ok_and(|answer| matches!(answer.head.status, 200 | 401 | 409)) {
                return Ok(());
            }
            if interrupts.came_within(LOOK) {
                return Err(Failure::new(Code::Interrupted, ""));
            }
        }
        Err(self.failed("does not found a cluster within a minute"))
    }

    /// Waits until it accepts writes.
    ///
    /// # Errors
    /// It ends, is not ready within a minute, or Ctrl-C comes.
    pub(super) fn wait_ready(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        let endpoint = endpoint(&self.url())?;
        let client = Client::new(endpoint, &Trust::default()).map_err(Failure::usage)?;
        let mut client = client.with_patience(Duration::from_secs(5));
        for _ in 0..READY_LOOKS {
            let ready = client.call(&Request::get("/health/ready?for=writes", &[]));
            // The answer may be that of another program, which took the port first.
            if ready.is_ok_and(|answer| answer.head.status == 200) && self.says_it_listens() {
                return Ok(());
            }
            if let NodeEnd::JustNow(how) = self.has_ended() {
                return Err(self.failed(&format!("has ended ({how})")));
            }
            if interrupts.came_within(LOOK) {
                return Err(Failure::new(Code::Interrupted, ""));
            }
        }
        Err(self.failed("is not ready after a minute"))
    }

    /// Whether its log says that it listens.
    fn says_it_listens(&self) -> bool {
        let log = fs::read(log_file(&self.dir)).unwrap_or_default();
        let since = log.get(self.log_begin..).unwrap_or_default();
        String::from_utf8_lossy(since).contains("wellspring listens")
    }

    /// Whether it has ended; the exit status only once.
    pub(super) fn has_ended(&mut self) -> NodeEnd {
        if self.ended {
            return NodeEnd::Ended;
        }
        match self.child.try_wait() {
            Ok(Some(status)) => {
                self.ended = true;
                NodeEnd::JustNow(status.to_string())
            }
            Ok(None) | Err(_) => NodeEnd::Runs,
        }
    }

    /// Starts one that has ended again, at the same address.
    ///
    /// # Errors
    /// The system refuses.
    pub(super) fn start_again(&mut self, journal: &Journal) -> Result<(), Failure> {
        self.child = spawn(self.name, self.port, &self.dir, journal)?;
        self.ended = false;
        Ok(())
    }

    fn failed(&self, what: &str) -> Failure {
        let log = fs::read(log_file(&self.dir)).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = log.lines().collect();
        let shown = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n  ");
        Failure::new(
            Code::Unavailable,
            format!("node {} {what}; its log ends with\n  {shown}", self.name),
        )
    }
}

impl Drop for DemoNode {
    fn drop(&mut self) {
        if self.ended {
            return;
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        for _ in 0..END_LOOKS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn url(port: u16) -> String {
    format!("http://127.0.0.1:{port}")
}

fn log_file(dir: &Path) -> PathBuf {
    dir.with_extension("log")
}

/// A port that was free a moment ago.
///
/// # Errors
/// No port is free.
pub(super) fn free_port() -> Result<u16, Failure> {
    let bound = TcpListener::bind(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0));
    let address = bound.and_then(|listener| listener.local_addr());
    let failed = |error| Failure::new(Code::Unavailable, format!("no port is free: {error}"));
    address.map(|address| address.port()).map_err(failed)
}

fn spawn(name: &str, port: u16, dir: &Path, journal: &Journal) -> Result<Child, Failure> {
    let failed = |error| Failure::new(Code::Unavailable, format!("starting node {name}: {error}"));
    let mut options = OpenOptions::new();
    let log = options.create(true).append(true).mode(0o600).open(log_file(dir)).map_err(failed)?;
    let mut command = Command::new(env::current_exe().map_err(failed)?);
    for (variable, _) in env::vars_os() {
        if variable.to_string_lossy().starts_with("WELLSPRING_") {
            command.env_remove(variable);
        }
    }
    command
        .arg("serve")
        .arg("--data")
        .arg(dir)
        .args(["--listen", &format!("127.0.0.1:{port}"), "--node", name])
        .arg("--cluster-key")
        .arg(&journal.key)
        // Not among the arguments: every user of the machine can read those, and there is a
        // password in it.
        .env("WELLSPRING_JOURNAL", &journal.url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(log)
        // The terminal's Ctrl-C is for the demo, which ends its nodes one by one.
        .process_group(0);
    command.spawn().map_err(failed)
}
