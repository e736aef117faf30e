//! One node: a process that can be started, paused and killed.

use crate::proxy::Proxy;
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How a process of a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LifeEnd {
    /// By `kill -9`, or another way that loses its memory.
    Killed,
    /// Regularly, with everything accepted stored.
    Stopped,
    /// It has not ended.
    Lives,
}

/// A node of the cluster.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    pub(crate) data: PathBuf,
    /// Its log file.
    pub(crate) log: PathBuf,
    /// The link to PostgreSQL; by themselves, that of the other nodes to this one.
    pub(crate) link: Option<Proxy>,
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    process: Mutex<Option<Child>>,
    life: AtomicU64,
    ends: Mutex<Vec<LifeEnd>>,
}

impl Node {
    pub(crate) fn new(
        name: &str,
        address: SocketAddr,
        folder: &std::path::Path,
        link: Option<Proxy>,
        program: PathBuf,
    ) -> Node {
        Node {
            name: name.to_owned(),
            address,
            data: folder.join(format!("data-{name}")),
            log: folder.join(format!("{name}.log")),
            link,
            program,
            arguments: Vec::new(),
            process: Mutex::default(),
            life: AtomicU64::new(0),
            ends: Mutex::default(),
        }
    }

    /// The number of its current or last process, from 1.
    pub(crate) fn life(&self) -> u64 {
        self.life.load(Ordering::SeqCst)
    }

    /// How a process ended.
    pub(crate) fn end_of(&self, life: u64) -> LifeEnd {
        let ends = self.ends.lock().expect("ends");
        ends.get(life as usize - 1).copied().unwrap_or(LifeEnd::Lives)
    }

    pub(crate) fn is_up(&self) -> bool {
        self.process.lock().expect("a process").is_some()
    }

    /// Starts it. It ends with the thread that starts it, whatever happens to this process.
    pub(crate) fn start(&self) -> io::Result<()> {
        let mut process = self.process.lock().expect("a process");
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program).args(&self.arguments);
        command.env_remove("WELLSPRING_BIN");
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        *process = Some(command.spawn()?);
        self.life.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        if let Some(child) = self.process.lock().expect("a process").as_ref() {
            let _ = kill_process(Pid::from_child(child), signal);
        }
    }

    /// Kills it. What it accepted but has not been stored is lost.
    pub(crate) fn kill(&self) {
        let taken = self.process.lock().expect("a process").take();
        if let Some(mut child) = taken {
            let _ = child.kill();
            let _ = child.wait();
            self.ends.lock().expect("ends").push(LifeEnd::Killed);
        }
    }

    /// Stops it regularly, or kills it if it does not end within `wait`.
    pub(crate) fn stop(&self, wait: Duration) -> LifeEnd {
        self.signal(Signal::TERM);
        let deadline = Instant::now() + wait;
        loop {
            let mut process = self.process.lock().expect("a process");
            let Some(child) = process.as_mut() else { return LifeEnd::Killed };
            if let Ok(Some(status)) = child.try_wait() {
                *process = None;
                let end = if status.success() { LifeEnd::Stopped } else { LifeEnd::Killed };
                self.ends.lock().expect("ends").push(end);
                return end;
            }
            drop(process);
            if Instant::now() > deadline {
                self.kill();
                return LifeEnd::Killed;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Detects an unexpected end; returns how it ended.
    pub(crate) fn fell(&self) -> Option<String> {
        let mut process = self.process.lock().expect("a process");
        let status = process.as_mut()?.try_wait().ok()??;
        *process = None;
        self.ends.lock().expect("ends").push(LifeEnd::Killed);
        Some(status.to_string())
    }

    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
    }

    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Removes its data. It must not be running.
    pub(crate) fn wipe(&self) -> io::Result<()> {
        std::fs::remove_dir_all(&self.data)
    }

    /// Its log.
    pub(crate) fn told(&self) -> String {
        let mut text = String::new();
        let read = File::open(&self.log)
            .and_then(|mut file| io::Read::read_to_string(&mut file, &mut text));
        read.map_or(String::new(), |_| text)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}
