//! The same tests against a follower: with `WELLSPRING_TEST_JOURNAL=follower-postgres`, every
//! server that a test starts is one of two nodes over PostgreSQL, and the other node leads. With
//! `follower-raft` it is a learner of a Raft group, whose only voter is the other node. Nothing
//! else in a test depends on it.
//!
//! A restart on the same folder is a restart of the same node. The leader keeps running meanwhile,
//! unless its settings change.

use crate::nodes::RAFT;
use crate::postgres::{self, Postgres};
use crate::program::{program_path, run};
use crate::server::Server;
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Leader timeout of the follower: longer than any test, so that it never leads.
const NEVER_MS: &str = "600000";
/// Leader timeout of the leader: longer than an overloaded machine delays its heartbeats. The first
/// leader starts at once.
const PATIENT_MS: &str = "10000";

/// The leading node, and how to reach it.
struct Leader {
    journal: String,
    key: PathBuf,
    data: tempfile::TempDir,
    /// Its settings, and the process itself.
    flags: Vec<String>,
    server: Option<Server>,
    /// Where it is again after a restart: the follower may be elsewhere by then.
    address: Option<SocketAddr>,
}

thread_local! {
    /// The leader for the servers on each folder. They end with the test's thread.
    static LEADERS: RefCell<HashMap<PathBuf, Leader>> = RefCell::default();
}

/// The journal of servers that follow; `None` if servers are single ones.
fn asked_for() -> Option<String> {
    match std::env::var("WELLSPRING_TEST_JOURNAL").ok()?.as_str() {
        "follower-postgres" => {
            let shared: Option<&Postgres> = postgres::shared("a server that follows");
            Some(shared.expect("PostgreSQL is installed").new_journal())
        }
        "follower-raft" => Some(RAFT.to_owned()),
        other => panic!("WELLSPRING_TEST_JOURNAL may be follower-postgres or -raft, not {other}"),
    }
}

/// A key for nodes, in this folder.
pub fn new_key(dir: &Path) -> PathBuf {
    let file = dir.join("cluster.key");
    let made = Command::new(program_path())
        .args(["cluster", "key", file.to_str().unwrap()])
        .output()
        .expect("the program runs");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    file
}

/// Settings of a node of a cluster.
pub fn flags_of(node: &str, journal: &str, key: &Path) -> Vec<String> {
    let key = key.to_str().unwrap();
    ["--node", node, "--journal", journal, "--cluster-key", key].map(str::to_owned).to_vec()
}

/// Starts another node that leads with the same settings; returns the flags with which a server on
/// this folder follows it. `None` if servers are single ones.
pub fn behind_a_leader(command: &[&str], dir: &Path, flags: &[&str]) -> Option<Vec<String>> {
    LEADERS.with_borrow_mut(|leaders| {
        if !leaders.contains_key(dir) {
            let (journal, data) = (asked_for()?, tempfile::tempdir().unwrap());
            let key = new_key(data.path());
            let flags = Vec::new();
            let leader = Leader { journal, key, data, flags, server: None, address: None };
            leaders.insert(dir.to_owned(), leader);
        }
        let leader = leaders.get_mut(dir)?;
        leader.lead(command, flags);
        let mut follows = flags_of("follower", &leader.journal, &leader.key);
        if leader.journal != RAFT {
            follows.extend(["--lead-timeout-ms", NEVER_MS].map(str::to_owned));
        }
        Some(follows)
    })
}

/// Makes the server at this address, which waits for a cluster, one that follows.
pub fn follow(dir: &Path, address: SocketAddr) {
    let leader = LEADERS.with_borrow(|leaders| Some(leaders.get(dir)?.server.as_ref()?.url()));
    if let Some(leader) = leader {
        let follower = format!("http://{address}");
        run(&["cluster", "join", "--learner", "--url", &leader, &follower]).done();
    }
}

/// Stops the leader for the server on a deleted folder.
pub fn forget(dir: &Path) {
    // The thread may be ending, and its locals gone.
    let _ = LEADERS.try_with(|leaders| leaders.borrow_mut().remove(dir));
}

impl Drop for Leader {
    fn drop(&mut self) {
        if let (true, Some(server)) = (std::thread::panicking(), &self.server) {
            eprintln!("of the one that leads:\n{}", server.log().join("\n"));
        }
    }
}

impl Leader {
    fn lead(&mut self, command: &[&str], flags: &[&str]) {
        if self.server.is_some() && self.flags == flags {
            return;
        }
        if let Some(mut server) = self.server.take() {
            server.terminate();
        }
        let mut words: Vec<&str> = flags.to_vec();
        let own = flags_of("leader", &self.journal, &self.key);
        words.extend(own.iter().map(String::as_str));
        words.extend(["--lead-timeout-ms", PATIENT_MS]);
        self.flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let data = self.data.path().join("data");
        let found = |node: &Server| drop(run(&["cluster", "init", &node.url()]).done());
        let server = Server::start_waiting_for(self.address, command, &data, &words, found);
        self.address = Some(server.address);
        self.server = Some(server);
    }
}
