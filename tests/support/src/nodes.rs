//! A cluster of several nodes: real processes, over a real PostgreSQL or by themselves.

use crate::client::{Answer, Client};
use crate::following::{flags_of, new_key};
use crate::postgres::{self, Postgres, schema_of};
use crate::program::run;
use crate::server::Server;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wellspring_patience::PATIENCE;
pub use wellspring_patience::until;

pub const NAMES: [&str; 3] = ["a", "b", "c"];

/// The journal of nodes that order their logs themselves.
pub const RAFT: &str = "raft";

/// What orders the logs of the nodes of a test.
#[derive(Clone, Copy)]
pub enum TestEngine {
    Postgres(&'static Postgres),
    Raft,
}

impl TestEngine {
    /// `None` where it is not installed: the test is then skipped with a message.
    pub fn over_postgres(test: &str) -> Option<TestEngine> {
        postgres::shared(test).map(TestEngine::Postgres)
    }

    /// Three nodes with these additional flags.
    pub fn nodes(self, flags: &[&str]) -> Nodes {
        let journal = match self {
            TestEngine::Postgres(postgres) => postgres.new_journal(),
            TestEngine::Raft => RAFT.to_owned(),
        };
        Nodes::start(journal, flags)
    }

    /// Waits until the log `main` has so many rows in SQL, if this engine has rows.
    pub fn until_rows(self, nodes: &Nodes, count: usize) {
        if let TestEngine::Postgres(postgres) = self {
            let rows = || postgres.sql(&nodes.rows_of("main"));
            until("a row for each event", || rows() == count.to_string());
        }
    }
}

/// Runs each of these tests over PostgreSQL and over nodes that order their logs themselves.
#[macro_export]
macro_rules! over_each_engine {
    ($($test:ident)*) => { $(mod $test {
        use wellspring_test_support::nodes::TestEngine;

        #[test]
        fn over_postgres() {
            let Some(engine) = TestEngine::over_postgres(stringify!($test)) else { return };
            super::$test(engine);
        }

        #[test]
        fn over_raft() {
            super::$test(TestEngine::Raft);
        }
    })* };
}

/// Nodes, any of which may be down. Stopped when dropped.
pub struct Nodes {
    pub journal: String,
    pub key: PathBuf,
    dir: tempfile::TempDir,
    nodes: Vec<Option<Server>>,
    addresses: Vec<SocketAddr>,
    flags: Vec<String>,
}

impl Nodes {
    /// Three nodes over this journal, with these additional flags.
    pub fn start(journal: String, flags: &[&str]) -> Nodes {
        let dir = tempfile::tempdir().unwrap();
        let key = new_key(dir.path());
        let flags = flags.iter().map(|&flag| flag.to_owned()).collect();
        let (nodes, addresses) = (Vec::new(), Vec::new());
        let mut all = Nodes { journal, key, dir, nodes, addresses, flags };
        if all.journal == RAFT {
            all.found();
            return all;
        }
        for node in 0..NAMES.len() {
            let server = all.started(node, None);
            all.addresses.push(server.address);
            all.nodes.push(Some(server));
        }
        all
    }

    /// Starts nodes that order their logs themselves, and makes a cluster of them.
    fn found(&mut self) {
        let waiting: Vec<Server> = (0..NAMES.len()).map(|node| self.waiting(node, None)).collect();
        let urls: Vec<String> = waiting.iter().map(Server::url).collect();
        let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
        run(&[&["cluster", "init", "--wait", "60s"], &urls[..]].concat()).done();
        for server in waiting {
            self.addresses.push(server.address);
            self.nodes.push(Some(server.ready()));
        }
    }

    /// A node that waits for others.
    pub fn waiting(&self, node: usize, address: Option<SocketAddr>) -> Server {
        let own = flags_of(NAMES[node], &self.journal, &self.key);
        let flags: Vec<&str> = own.iter().chain(&self.flags).map(String::as_str).collect();
        Server::start_waiting(address, &self.data(node), &flags)
    }

    /// The same at another address.
    pub fn start_elsewhere(&mut self, node: usize) {
        self.put(node, self.started(node, None));
    }

    /// Starts nodes at these addresses after all were down.
    pub fn start_all_again(&mut self, addresses: [Option<SocketAddr>; 3]) {
        let waiting = (0..NAMES.len()).map(|node| self.waiting(node, addresses[node]));
        let waiting: Vec<Server> = waiting.collect();
        for (node, server) in waiting.into_iter().enumerate() {
            self.put(node, server.ready());
        }
    }

    /// A node takes its place among these.
    pub fn put(&mut self, node: usize, server: Server) {
        self.addresses[node] = server.address;
        self.nodes[node] = Some(server);
    }

    fn started(&self, node: usize, address: Option<SocketAddr>) -> Server {
        let own = flags_of(NAMES[node], &self.journal, &self.key);
        let flags: Vec<&str> = own.iter().chain(&self.flags).map(String::as_str).collect();
        Server::start_alone(address, &[], &self.data(node), &flags)
    }

    /// The folder with everything.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The data folder of a node.
    pub fn data(&self, node: usize) -> PathBuf {
        self.dir.path().join(NAMES[node])
    }

    pub fn node(&self, node: usize) -> &Server {
        self.nodes[node].as_ref().expect("a node that is up")
    }

    pub fn address(&self, node: usize) -> SocketAddr {
        self.addresses[node]
    }

    pub fn client(&self, node: usize) -> Client {
        self.node(node).client()
    }

    pub fn kill(&mut self, node: usize) {
        self.nodes[node].take().expect("a node that is up").kill();
    }

    /// Stops a node gracefully.
    pub fn stop(&mut self, node: usize) {
        let mut server = self.nodes[node].take().expect("a node that is up");
        assert!(server.terminate().success(), "{:#?}", server.log());
    }

    /// Restarts a node and waits until it is ready.
    pub fn start_again(&mut self, node: usize) {
        self.nodes[node] = Some(self.started(node, Some(self.addresses[node])));
    }

    pub fn is_up(&self, node: usize) -> bool {
        self.nodes[node].is_some()
    }

    fn up(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|&node| self.is_up(node))
    }

    /// The node that reports itself as leader.
    pub fn leader(&self) -> usize {
        let leads = |&node: &usize| {
            let told = self.client(node).get("/v1/cluster").unwrap().expect(200);
            let name = told["node"].as_str().unwrap().to_owned();
            let nodes = told["nodes"].as_array().unwrap().iter();
            nodes.filter(|line| line["node"] == *name).any(|line| line["role"] == "leading")
        };
        let mut found = None;
        until("somebody leads", || {
            found = self.up().find(leads);
            found.is_some()
        });
        found.expect("just found")
    }

    /// The running nodes that do not lead.
    pub fn followers(&self) -> Vec<usize> {
        let leader = self.leader();
        self.up().filter(|&node| node != leader).collect()
    }

    /// The whole log as a node shows it, at least up to this position.
    pub fn events(&self, node: usize, position: u64) -> Vec<Value> {
        let mut client = self.client(node).patient();
        let at_least = position.to_string();
        let mut events = Vec::new();
        loop {
            let from = events.len();
            let path = format!("/v1/events?after={from}&limit=1000&wait_ms=30000");
            let headers = [("Wellspring-Min-Position", at_least.as_str())];
            let page = client.call("GET", &path, &headers, b"").unwrap().expect(200);
            let page = page["events"].as_array().expect("events");
            if page.is_empty() {
                return events;
            }
            events.extend(page.iter().cloned());
        }
    }

    /// The number of rows of the log in SQL.
    pub fn rows_of(&self, log: &str) -> String {
        let schema = schema_of(&self.journal);
        format!(r#"SELECT count(*) FROM "{schema}".ws_event WHERE log = '{log}'"#)
    }
}

/// An event with this data, for `POST /v1/append`.
pub fn event(data: impl Into<Value>) -> Value {
    json!({"events": [{"type": "T", "tags": ["t:1"], "data": data.into()}]})
}

/// Appends under a key, at any node that accepts it, until the outcome is known; returns the
/// position.
pub fn append_somewhere(addresses: &[SocketAddr], first: usize, key: &str, body: &Value) -> u64 {
    let body = body.to_string();
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
    let deadline = Instant::now() + PATIENCE;
    for at in first.. {
        let answer = Client::connect(addresses[at % addresses.len()])
            .and_then(|mut client| client.call("POST", "/v1/append", &headers, body.as_bytes()));
        match answer {
            Ok(answer) if answer.status == 200 => return position_of(&answer),
            Ok(answer) if !matches!(answer.status, 500 | 503) => {
                panic!("{}: {}", answer.status, answer.text())
            }
            refused => assert!(Instant::now() < deadline, "{key}: {refused:?}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    unreachable!("the loop ends")
}

/// The position of the appended event.
#[track_caller]
pub fn position_of(answer: &Answer) -> u64 {
    let appended = answer.expect(200);
    appended["last"].as_u64().unwrap_or_else(|| panic!("{appended}"))
}
