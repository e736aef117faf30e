//! All nodes and their PostgreSQL, if they have one.

use crate::arguments::Arguments;
use crate::dice::Dice;
use crate::http::{Answer, Client, Request};
use crate::node::Node;
use crate::postgres::Postgres;
use crate::proxy::Proxy;
use serde_json::json;
use std::fs;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// The log of those requests that name none.
pub(crate) const MAIN: &str = "main";

/// The system under test.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Node>,
    /// The logs, of which `main` is the first.
    pub(crate) logs: Vec<String>,
    /// The primary; `None` with files, and by themselves.
    primary: Option<Mutex<Postgres>>,
    standby: Mutex<Option<Postgres>>,
}

/// An address that a killed node finds free when it comes back.
fn free_address() -> SocketAddr {
    ([127, 0, 0, 1], wellspring_patience::free_port()).into()
}

fn until(is_so: impl Fn() -> bool) {
    while !is_so() {
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn write_key(path: &Path, seed: u64) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    let mut dice = Dice::new(seed, 77);
    let bytes: Vec<u8> = (0..32).map(|_| dice.below(256) as u8).collect();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    writeln!(file, "{hex}")
}

impl Cluster {
    /// Starts PostgreSQL and all nodes, and waits until they serve.
    pub(crate) fn start(arguments: &Arguments) -> io::Result<Cluster> {
        let folder = &arguments.folder;
        let has_postgres = !arguments.files && !arguments.raft;
        let start = || Postgres::up(folder.join("postgres"));
        let primary = has_postgres.then(start).transpose()?;
        let standby = match &primary {
            Some(primary) if arguments.standby => Some(primary.standby(folder.join("standby"))?),
            _ => None,
        };
        let key = folder.join("cluster-key");
        write_key(&key, arguments.seed)?;
        let mut nodes = Vec::new();
        for index in 0..arguments.nodes {
            let address = free_address();
            let at = primary.as_ref().map(|primary| primary.address);
            let at = at.or(arguments.raft.then_some(address));
            let link = at.map(Proxy::new).transpose()?;
            nodes.push(new_node(arguments, index, address, link, &key));
        }
        let logs = (1..=arguments.logs).map(|number| match number {
            1 => MAIN.to_owned(),
            _ => format!("log-{number}"),
        });
        let cluster = Cluster {
            nodes,
            logs: logs.collect(),
            primary: primary.map(Mutex::new),
            standby: Mutex::new(standby),
        };
        for node in &cluster.nodes {
            node.start()?;
        }
        if arguments.raft {
            let urls: Vec<_> =
                cluster.nodes.iter().map(|node| format!("http://{}", node.address)).collect();
            let nodes = json!({ "nodes": urls });
            until(|| cluster.is_done(Request::post("/v1/cluster/init", &nodes)));
        }
        let is_ready = |node: &Node| {
            let answer = cluster.look(node, "/health/ready?for=writes");
            answer.is_some_and(|answer| answer.status == 200)
        };
        cluster.nodes.iter().for_each(|node| until(|| is_ready(node)));
        // By then each has been asked whether it takes leads.
        std::thread::sleep(arguments.lead_timeout / 2);
        for log in &cluster.logs {
            let target = format!("/v1/logs/{log}");
            until(|| cluster.is_done(Request { method: "PUT", ..Request::get(&target) }));
        }
        cluster.writable(Duration::from_secs(60)).map_err(io::Error::other)?;
        // With half of the seeds each log returns to a node of its own, with the others it stays.
        if Dice::new(arguments.seed, 6).percent(50) && !arguments.files {
            for (log, node) in cluster.logs.iter().zip(&cluster.nodes) {
                let (target, to) = (format!("/v1/cluster/leads/{log}"), json!({"to": node.name}));
                until(|| cluster.is_done(Request { method: "PUT", ..Request::post(&target, &to) }));
            }
        }
        println!("{}", cluster.leads());
        Ok(cluster)
    }

    fn is_done(&self, request: Request<'_>) -> bool {
        let answer = Client::default().ask(self.nodes[0].address, &request);
        answer.is_ok_and(|answer| answer.status < 300)
    }

    /// Who leads which log, in words.
    pub(crate) fn leads(&self) -> String {
        let leader = |log: &String| self.leader_of(log).map_or("nobody", |node| &node.name);
        let leads = self.logs.iter().map(|log| format!("{log}: {}", leader(log)));
        leads.collect::<Vec<_>>().join(", ")
    }

    /// The node that most recently took the lead of a log, according to any running node.
    pub(crate) fn leader_of(&self, log: &str) -> Option<&Node> {
        if self.nodes.len() == 1 {
            return self.nodes.first();
        }
        let up = self.nodes.iter().filter(|node| node.is_up());
        let told = up.filter_map(|node| {
            let json = self.look(node, "/v1/cluster")?.json();
            let state = json["logs"].as_array()?.iter().find(|state| state["log"] == *log)?;
            Some((state["epoch"].as_u64()?, state["leader"].as_str()?.to_owned()))
        });
        let (_, name) = told.max()?;
        self.nodes.iter().find(|node| node.name == name)
    }

    pub(crate) fn primary(&self) -> Option<Postgres> {
        self.primary.as_ref().map(|primary| primary.lock().expect("the primary").clone())
    }

    /// The standby, until it has been promoted.
    pub(crate) fn standby(&self) -> Option<Postgres> {
        self.standby.lock().expect("the standby").clone()
    }

    /// Promotes the standby and redirects all links to it.
    pub(crate) fn fail_over(&self) -> io::Result<()> {
        let Some(promoted) = self.standby.lock().expect("the standby").take() else {
            return Ok(());
        };
        if let Some(primary) = &self.primary {
            let mut primary = primary.lock().expect("the primary");
            primary.crash()?;
            promoted.promote()?;
            // It was cloned after the primary began to wait for a standby, but has none itself.
            promoted.rows("ALTER SYSTEM RESET synchronous_standby_names")?;
            promoted.rows("SELECT pg_reload_conf()")?;
            for link in self.nodes.iter().filter_map(|node| node.link.as_ref()) {
                link.lead_to(promoted.address);
            }
            *primary = promoted;
        }
        Ok(())
    }

    /// A quick request without effects.
    pub(crate) fn look(&self, node: &Node, target: &str) -> Option<Answer> {
        let request = Request::get(target).wait(Duration::from_secs(3));
        Client::default().ask(node.address, &request).ok()
    }

    /// The node that most recently took the lead, according to any running node.
    pub(crate) fn leader(&self) -> Option<&Node> {
        if self.nodes.len() == 1 {
            return self.nodes.first();
        }
        let up = self.nodes.iter().filter(|node| node.is_up());
        let told = up.filter_map(|node| {
            let answer = self.look(node, "/v1/cluster")?;
            let leader = answer.json()["leader"].take();
            Some((leader["epoch"].as_u64()?, leader["node"].as_str()?.to_owned()))
        });
        let (_, name) = told.max()?;
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Waits until an append to each running node succeeds; returns how long that took, or which
    /// node fails.
    pub(crate) fn writable(&self, wait: Duration) -> Result<Duration, String> {
        let begun = Instant::now();
        let up = self.nodes.iter().filter(|node| node.is_up());
        for (node, log) in up.flat_map(|node| self.logs.iter().map(move |log| (node, log))) {
            let event = json!({"events": [{"type": "Tried", "data": {}}]});
            let target = format!("/v1/logs/{log}/append");
            let request = Request::post(&target, &event);
            loop {
                let answer = Client::default().ask(node.address, &request);
                let told = match answer {
                    Ok(answer) if answer.status == 200 => break,
                    Ok(answer) => {
                        format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))
                    }
                    Err(failure) => failure.to_string(),
                };
                if begun.elapsed() > wait {
                    return Err(format!(
                        "node {} took no append to {log} within {} s: {told}",
                        node.name,
                        wait.as_secs()
                    ));
                }
                if let Some(status) = node.fell() {
                    return Err(format!("node {} ended by itself: {status}", node.name));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(begun.elapsed())
    }
}

fn new_node(
    arguments: &Arguments,
    index: usize,
    address: SocketAddr,
    link: Option<Proxy>,
    key: &Path,
) -> Node {
    let name = char::from(b'a' + index as u8).to_string();
    let mut node = Node::new(&name, address, &arguments.folder, link, arguments.program.clone());
    let mut words = vec!["serve".to_owned(), "--data".into(), node.data.display().to_string()];
    words.extend(["--listen".into(), address.to_string()]);
    if let Some(link) = &node.link {
        let (journal, advertised) = if arguments.raft {
            ("raft".to_owned(), link.address)
        } else {
            (format!("postgres://postgres@{}/postgres", link.address), address)
        };
        let timeout = arguments.lead_timeout.as_millis().to_string();
        words.extend(["--journal".into(), journal, "--node".into(), name]);
        words.extend(["--advertise".into(), format!("http://{advertised}")]);
        words.extend(["--cluster-key".into(), key.display().to_string()]);
        words.extend(["--lead-timeout-ms".into(), timeout]);
        // One node redirects its clients to the leader; the others forward requests.
        if index == 1 && Dice::new(arguments.seed, 5).percent(50) {
            words.extend(["--follower-writes".into(), "redirect".into()]);
        }
    }
    node.arguments = words;
    node
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for node in &self.nodes {
            node.kill();
        }
        if let Some(primary) = self.primary() {
            primary.down();
        }
        if let Some(standby) = self.standby.lock().expect("the standby").take() {
            standby.down();
        }
    }
}
