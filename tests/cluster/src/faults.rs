//! The faults: what breaks, when, and for how long.

use crate::clients::World;
use crate::dice::Dice;
use crate::node::Node;
use crate::proxy::Link;
use serde::Serialize;
use serde_json::json;
use std::fs::File;
use std::io::{self, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9` of the leader, which is restarted later.
    KillLeader,
    /// The same for a follower.
    KillFollower,
    /// All nodes at once.
    KillAll,
    /// SIGSTOP of the leader for up to 10 s, then SIGCONT.
    PauseLeader,
    PauseFollower,
    /// The connections of a node's link are closed, and new ones refused. The link leads from the
    /// node to PostgreSQL, or else from the other nodes to it.
    DropLink,
    /// Nothing passes a node's link in either direction. By themselves, nodes connect twice: this
    /// one hears and is not heard.
    StallLink,
    /// What is asked over the leader's link arrives and no answer does: it does not learn what was
    /// committed. By themselves: it is heard and hears nothing.
    StallAnswers,
    /// The connections of a node's link are closed once.
    ResetLink,
    /// `pg_ctl stop -m immediate`, then a start.
    CrashPostgres,
    /// Another node is asked to lead the log `system`.
    Transfer,
    /// A log is pinned to another node, and then its pin is lifted.
    Pin,
    /// SIGTERM and a restart.
    Restart,
    /// `kill -9` of a follower; its data folder is removed before the restart. By themselves, nodes
    /// replace it.
    Wipe,
    /// Commits waiting for the synchronous standby are cancelled.
    CancelWait,
    /// The standby replaces a primary that has crashed; once.
    Promote,
}

impl Fault {
    pub(crate) const ALL: [Fault; 16] = [
        Fault::KillLeader,
        Fault::KillFollower,
        Fault::KillAll,
        Fault::PauseLeader,
        Fault::PauseFollower,
        Fault::DropLink,
        Fault::StallLink,
        Fault::StallAnswers,
        Fault::ResetLink,
        Fault::CrashPostgres,
        Fault::Transfer,
        Fault::Pin,
        Fault::Restart,
        Fault::Wipe,
        Fault::CancelWait,
        Fault::Promote,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::KillLeader => "kill-leader",
            Fault::KillFollower => "kill-follower",
            Fault::KillAll => "kill-all",
            Fault::PauseLeader => "pause-leader",
            Fault::PauseFollower => "pause-follower",
            Fault::DropLink => "drop-link",
            Fault::StallLink => "stall-link",
            Fault::StallAnswers => "stall-answers",
            Fault::ResetLink => "reset-link",
            Fault::CrashPostgres => "crash-postgres",
            Fault::Transfer => "transfer",
            Fault::Pin => "pin",
            Fault::Restart => "restart",
            Fault::Wipe => "wipe",
            Fault::CancelWait => "cancel-wait",
            Fault::Promote => "promote",
        }
    }

    pub(crate) fn needs_standby(self) -> bool {
        matches!(self, Fault::CancelWait | Fault::Promote)
    }

    /// The default faults: leaders die often.
    pub(crate) fn usual(files: bool, raft: bool, standby: bool) -> Vec<Fault> {
        if files {
            return vec![Fault::KillLeader, Fault::PauseLeader, Fault::Restart];
        }
        let mut usual = vec![Fault::KillLeader; 4];
        let all = Fault::ALL.into_iter().filter(|fault| !raft || *fault != Fault::CrashPostgres);
        usual.extend(all.filter(|fault| standby || !fault.needs_standby()));
        usual
    }
}

/// A fault that occurred, and when.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct FaultRecord {
    pub(crate) fault: &'static str,
    /// The affected node, if any.
    pub(crate) node: String,
    /// The log whose leader was drawn, if one was.
    pub(crate) log: String,
    /// Start and end of the fault, since the start of the trial.
    pub(crate) start_ns: u64,
    pub(crate) healed_ns: u64,
    /// Time from then until every node accepted an append.
    pub(crate) settled_ms: Option<u64>,
    /// Unexpected observations.
    pub(crate) trouble: String,
}

/// Maximum time until every node accepts appends again once nothing is broken.
const SETTLED: Duration = Duration::from_secs(30);

/// Injects one fault after another for the duration of the trial.
pub(crate) fn run(world: &World) -> io::Result<Vec<FaultRecord>> {
    let begun = Instant::now();
    let mut file = File::create(world.arguments.folder.join("faults.jsonl"))?;
    let dice = Dice::new(world.arguments.seed, 1);
    let mut hand = FaultInjector {
        world,
        dice,
        bag: Vec::new(),
        log: String::new(),
        broken_ns: 0,
        has_promoted: false,
    };
    let mut records = Vec::new();
    sleep(Duration::from_secs(1));
    while begun.elapsed() < world.arguments.length {
        let fault = hand.next();
        if fault.needs_standby() && hand.has_promoted {
            continue;
        }
        hand.broken_ns = world.history.now();
        hand.log.clear();
        let done = hand.inflict(fault);
        let (node, trouble) = match done {
            Ok(node) => (node, String::new()),
            Err(error) => (String::new(), error.to_string()),
        };
        let healed_ns = world.history.now();
        let settled = world.cluster.writable(SETTLED);
        let record = FaultRecord {
            fault: fault.name(),
            node,
            log: hand.log.clone(),
            start_ns: hand.broken_ns,
            healed_ns,
            settled_ms: settled.as_ref().ok().map(|took| took.as_millis() as u64),
            trouble: settled.err().unwrap_or(trouble),
        };
        println!("{}", line(&record));
        writeln!(file, "{}", serde_json::to_string(&record).expect("JSON"))?;
        records.push(record);
        hand.rest(300, 2000);
    }
    Ok(records)
}

fn line(record: &FaultRecord) -> String {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let settled =
        record.settled_ms.map_or("not settled".into(), |ms| format!("settled {ms} ms later"));
    format!(
        "{:7.2} s  {:14} {:3} {:6} for {:5.2} s, {settled} {}",
        seconds(record.start_ns),
        record.fault,
        record.node,
        record.log,
        seconds(record.healed_ns - record.start_ns),
        record.trouble,
    )
}

/// Injects faults. The thread that called [`run`] starts all nodes: they end with it.
struct FaultInjector<'a> {
    world: &'a World,
    dice: Dice,
    /// Faults still to occur before all are drawn again.
    bag: Vec<Fault>,
    /// The log whose leader was drawn for this one.
    log: String,
    /// When the last of them took effect.
    broken_ns: u64,
    has_promoted: bool,
}

impl<'a> FaultInjector<'a> {
    fn next(&mut self) -> Fault {
        if self.bag.is_empty() {
            self.bag.clone_from(&self.world.arguments.faults);
        }
        let at = self.dice.below(self.bag.len() as u64) as usize;
        self.bag.swap_remove(at)
    }

    fn rest(&mut self, least_ms: u64, most_ms: u64) {
        sleep(Duration::from_millis(self.dice.between(least_ms, most_ms)));
    }

    /// The leader of a drawn log.
    fn leader(&mut self) -> io::Result<&'a Node> {
        let logs = &self.world.cluster.logs;
        self.log.clone_from(&logs[self.dice.below(logs.len() as u64) as usize]);
        let leader = self.world.cluster.leader_of(&self.log);
        leader.ok_or_else(|| io::Error::other(format!("no node knows a leader of {}", self.log)))
    }

    /// A node that does not lead a drawn log; the leader, if there is no other node.
    fn follower(&mut self) -> io::Result<&'a Node> {
        let leader = self.leader()?;
        Ok(self.other_than(leader))
    }

    fn other_than(&mut self, node: &'a Node) -> &'a Node {
        let nodes = self.world.cluster.nodes.iter();
        let others: Vec<_> = nodes.filter(|other| other.name != node.name).collect();
        if others.is_empty() { node } else { self.dice.one(&others) }
    }

    fn any(&mut self) -> io::Result<&'a Node> {
        if self.dice.percent(60) { self.leader() } else { self.follower() }
    }

    /// Injects a fault, waits, and ends it; returns the name of the affected node.
    fn inflict(&mut self, fault: Fault) -> io::Result<String> {
        let lead_ms = self.world.arguments.lead_timeout.as_millis() as u64;
        match fault {
            Fault::KillLeader => self.leader().and_then(|node| self.kill(node, false)),
            Fault::KillFollower => self.follower().and_then(|node| self.kill(node, false)),
            Fault::Wipe => self.follower().and_then(|node| self.kill(node, true)),
            Fault::KillAll => self.kill_all(),
            Fault::PauseLeader => self.leader().map(|node| self.pause(node)),
            Fault::PauseFollower => self.follower().map(|node| self.pause(node)),
            Fault::DropLink => self.any().map(|node| self.break_link(node, Link::Dropped)),
            Fault::StallLink => self.any().map(|node| self.break_link(node, Link::Stalled)),
            Fault::StallAnswers if self.world.arguments.raft => {
                self.leader().map(|node| self.deafen(node))
            }
            Fault::StallAnswers => {
                self.leader().map(|node| self.break_link(node, Link::AnswersStalled))
            }
            Fault::ResetLink => {
                let node = self.any()?;
                node.link.iter().for_each(crate::proxy::Proxy::reset);
                Ok(node.name.clone())
            }
            Fault::CrashPostgres => {
                let primary = self.primary()?;
                primary.crash()?;
                self.rest(0, 2 * lead_ms);
                primary.start()?;
                Ok(String::new())
            }
            Fault::Transfer => self.transfer(),
            Fault::Pin => self.pin(),
            Fault::Restart => self.restart(),
            Fault::CancelWait => self.cancel_waits(),
            Fault::Promote => {
                self.has_promoted = true;
                self.breaks();
                self.world.cluster.fail_over()?;
                Ok(String::new())
            }
        }
    }

    fn primary(&self) -> io::Result<crate::postgres::Postgres> {
        self.world.cluster.primary().ok_or_else(|| io::Error::other("there is no PostgreSQL"))
    }

    /// The fault takes effect now; the time before was spent choosing its target.
    fn breaks(&mut self) {
        self.broken_ns = self.world.history.now();
    }

    fn kill(&mut self, node: &Node, wipe: bool) -> io::Result<String> {
        node.kill();
        self.breaks();
        let lead_ms = self.world.arguments.lead_timeout.as_millis() as u64;
        self.rest(0, 2 * lead_ms);
        if wipe {
            node.wipe()?;
        }
        node.start()?;
        if wipe && self.world.arguments.raft {
            self.replace(node)?;
        }
        Ok(node.name.clone())
    }

    /// Has an empty node take the place of the lost one of its name.
    fn replace(&self, node: &Node) -> io::Result<()> {
        let url = node.link.as_ref().map(|link| format!("http://{}", link.address));
        let request = json!({"node": url, "replace": true});
        let request = crate::http::Request::post("/v1/cluster/join", &request);
        let others = || self.world.cluster.nodes.iter().filter(|other| other.name != node.name);
        let deadline = Instant::now() + SETTLED;
        let mut told = String::new();
        while Instant::now() < deadline {
            for other in others() {
                match crate::http::Client::default().ask(other.address, &request) {
                    Ok(answer) if answer.json()["state"] == "voter" => return Ok(()),
                    Ok(answer) => told = String::from_utf8_lossy(&answer.body).into_owned(),
                    Err(failure) => told = failure.to_string(),
                }
            }
            sleep(Duration::from_millis(200));
        }
        Err(io::Error::other(format!("{} was not replaced: {told}", node.name)))
    }

    fn kill_all(&mut self) -> io::Result<String> {
        for node in &self.world.cluster.nodes {
            node.kill();
        }
        self.breaks();
        self.rest(0, 1000);
        for node in &self.world.cluster.nodes {
            node.start()?;
        }
        Ok(String::new())
    }

    fn pause(&mut self, node: &Node) -> String {
        node.pause();
        self.breaks();
        self.rest(100, 10_000);
        node.resume();
        node.name.clone()
    }

    fn break_link(&mut self, node: &Node, link: Link) -> String {
        if let Some(proxy) = &node.link {
            proxy.set(link);
            self.breaks();
            self.rest(100, 8000);
            proxy.set(Link::Whole);
        }
        node.name.clone()
    }

    fn deafen(&mut self, node: &Node) -> String {
        let others = self.world.cluster.nodes.iter().filter(|other| other.name != node.name);
        let links: Vec<_> = others.filter_map(|other| other.link.clone()).collect();
        links.iter().for_each(|link| link.deafen(Some(&node.name)));
        self.breaks();
        self.rest(100, 8000);
        links.iter().for_each(|link| link.deafen(None));
        node.name.clone()
    }

    fn transfer(&mut self) -> io::Result<String> {
        let nobody = || io::Error::other("no node knows a leader");
        let leader = self.world.cluster.leader().ok_or_else(nobody)?;
        let to = self.other_than(leader);
        self.breaks();
        let asked = if self.dice.percent(50) { leader } else { to };
        let request = json!({"to": to.name});
        let request = crate::http::Request::post("/v1/cluster/transfer", &request);
        let answer = crate::http::Client::default().ask(asked.address, &request);
        let answer = answer.map_err(|failure| io::Error::other(failure.to_string()))?;
        if answer.status == 200 {
            return Ok(to.name.clone());
        }
        let body = String::from_utf8_lossy(&answer.body);
        Err(io::Error::other(format!("transfer to {}: {} {body}", to.name, answer.status)))
    }

    /// Pins a drawn log to a node that does not lead it, and lifts the pin after a while.
    fn pin(&mut self) -> io::Result<String> {
        let leader = self.leader()?;
        let (to, log) = (self.other_than(leader), self.log.clone());
        let asked = self.any()?;
        self.log = log;
        self.breaks();
        let target = format!("/v1/cluster/leads/{}", self.log);
        let body = json!({"to": to.name});
        let pin =
            crate::http::Request { method: "PUT", ..crate::http::Request::post(&target, &body) };
        let lift = crate::http::Request { method: "DELETE", ..crate::http::Request::get(&target) };
        for request in [pin, lift] {
            let answer = crate::http::Client::default().ask(asked.address, &request);
            let answer = answer.map_err(|failure| io::Error::other(failure.to_string()))?;
            if !matches!(answer.status, 200 | 204) {
                let body = String::from_utf8_lossy(&answer.body);
                return Err(io::Error::other(format!("pin {}: {} {body}", to.name, answer.status)));
            }
            self.rest(0, 2000);
        }
        Ok(to.name.clone())
    }

    fn restart(&mut self) -> io::Result<String> {
        let node = self.any()?;
        self.breaks();
        let begun = Instant::now();
        let end = node.stop(Duration::from_secs(30));
        let took = begun.elapsed();
        node.start()?;
        if end != crate::node::LifeEnd::Stopped || took > Duration::from_secs(15) {
            let text =
                format!("node {} was {end:?} after {} ms of SIGTERM", node.name, took.as_millis());
            return Err(io::Error::other(text));
        }
        Ok(node.name.clone())
    }

    /// Stops the standby briefly and cancels the commits that wait for it, like an impatient
    /// operator.
    fn cancel_waits(&mut self) -> io::Result<String> {
        let primary = self.primary()?;
        let Some(standby) = self.world.cluster.standby() else { return Ok(String::new()) };
        standby.crash()?;
        self.breaks();
        let mut cancelled = 0;
        for _ in 0..self.dice.between(2, 6) {
            self.rest(50, 500);
            let rows = primary.rows(
                "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
            )?;
            cancelled += rows.len();
        }
        standby.start()?;
        Ok(format!("{cancelled} commits"))
    }
}
