//! The same tests against a follower: with `WELLSPRING_TEST_JOURNAL=follower`, every server that a
//! test starts is one of two nodes over PostgreSQL, and the other node leads. Nothing else in a
//! test depends on it.
//!
//! A restart on the same folder is a restart of the same node. The leader keeps running meanwhile,
//! unless its settings change.

use crate::postgres::{self, Postgres};
use crate::program::program_path;
use crate::server::Server;
use std::cell::RefCell;
use std::collections::HashMap;
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
}

thread_local! {
    /// The leader for the servers on each folder. They end with the test's thread.
    static LEADERS: RefCell<HashMap<PathBuf, Leader>> = RefCell::default();
}

/// Whether servers follow.
pub fn is_asked_for() -> bool {
    match std::env::var("WELLSPRING_TEST_JOURNAL") {
        Err(_) => false,
        Ok(value) if value == "follower" => true,
        Ok(value) => panic!("WELLSPRING_TEST_JOURNAL may be follower, not {value}"),
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
/// this folder follows it.
pub fn behind_a_leader(command: &[&str], dir: &Path, flags: &[&str]) -> Vec<String> {
    LEADERS.with_borrow_mut(|leaders| {
        let leader = leaders.entry(dir.to_owned()).or_insert_with(|| {
            let shared: &Postgres =
                postgres::shared("a server that follows").expect("PostgreSQL is installed");
            let data = tempfile::tempdir().unwrap();
            let key = new_key(data.path());
            Leader { journal: shared.new_journal(), key, data, flags: Vec::new(), server: None }
        });
        leader.lead(command, flags);
        let mut follows = flags_of("follower", &leader.journal, &leader.key);
        follows.extend(["--lead-timeout-ms", NEVER_MS].map(str::to_owned));
        follows
    })
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
        self.server = Some(Server::start_alone(None, command, &data, &words));
    }
}
