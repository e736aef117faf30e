//! Clients that record their requests and answers.

mod appends;
mod bulks;
mod ingest;
mod orders;
mod registers;

pub(crate) use orders::{Item, add_items};

use crate::arguments::Arguments;
use crate::cluster::{Cluster, MAIN};
use crate::dice::Dice;
use crate::history::{History, Kind, Operation, Outcome};
use crate::http::{Answer, Client, Failure, Request};
use crate::node::Node;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

/// The state shared by all clients.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) arguments: Arguments,
    pub(crate) cluster: Cluster,
    pub(crate) history: History,
    pub(crate) items: Vec<Item>,
    pub(crate) ended: AtomicBool,
    /// Periods in which this machine did not even wake sleeping threads, so that delays are
    /// excused.
    pub(crate) stalls: Mutex<Vec<(u64, u64)>>,
}

impl World {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
}

/// Number of register clients per node.
const REGISTERS: u64 = 3;

/// Starts all clients, which run until the world has ended.
pub(crate) fn start<'scope>(scope: &'scope Scope<'scope, '_>, world: &'scope World) {
    let nodes = world.cluster.nodes.len() as u64;
    for index in 0..REGISTERS * nodes {
        scope.spawn(move || registers::run(TrialClient::new(world, 1000 + index)));
    }
    for index in 0..nodes {
        scope.spawn(move || appends::run(TrialClient::new(world, 2000 + index), index as usize));
        scope.spawn(move || ingest::run(TrialClient::new(world, 3000 + index), index as usize));
        scope.spawn(move || orders::run(TrialClient::new(world, 4000 + index)));
        scope.spawn(move || bulks::run(TrialClient::new(world, 5000 + index)));
        scope.spawn(move || bulks::statements(TrialClient::new(world, 6000 + index)));
        scope.spawn(move || bulks::leases(TrialClient::new(world, 7000 + index)));
    }
    scope.spawn(move || appends::newcomers(scope, world));
}

/// One client with its connections.
struct TrialClient<'a> {
    world: &'a World,
    dice: Dice,
    http: Client,
    /// Its number in the history.
    who: u64,
}

/// The outcome of a write according to its answer.
enum WriteAnswer {
    Done(Answer),
    Conflict(Answer),
    Refused(String),
    Unknown(String),
}

impl<'a> TrialClient<'a> {
    fn new(world: &'a World, thrower: u64) -> TrialClient<'a> {
        let who = world.history.number();
        let dice = Dice::new(world.arguments.seed, thrower);
        TrialClient { world, dice, http: Client::default(), who }
    }

    fn pause(&mut self) {
        let pace = self.world.arguments.pace.as_micros() as u64;
        std::thread::sleep(Duration::from_micros(self.dice.below(2 * pace)));
    }

    fn any_node(&mut self) -> &'a Node {
        let nodes = &self.world.cluster.nodes;
        &nodes[self.dice.below(nodes.len() as u64) as usize]
    }

    fn any_log(&mut self) -> &'a str {
        self.dice.one(&self.world.cluster.logs.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn ask(&mut self, node: &Node, request: &Request<'_>) -> Result<Answer, Failure> {
        self.http.ask(node.address, request)
    }

    /// Sends a write and returns its outcome. If the answer names another leader, sends it there.
    fn write(&mut self, node: &Node, request: &Request<'_>) -> WriteAnswer {
        let mut answer = self.ask(node, request);
        let elsewhere = answer.as_ref().ok().and_then(|answer| self.leader_named(answer));
        if let Some(leader) = elsewhere {
            answer = self.ask(leader, request);
        }
        match answer {
            Ok(answer) => read(answer),
            Err(Failure::NotSent(why)) => WriteAnswer::Refused(why),
            Err(Failure::NoAnswer(why)) => WriteAnswer::Unknown(why),
        }
    }

    /// The leader named by a definite refusal.
    fn leader_named(&self, answer: &Answer) -> Option<&'a Node> {
        if answer.status != 503 || answer.problem() != "not-leading" {
            return None;
        }
        let json = answer.json();
        let name = json["leader"].as_str()?;
        self.world.cluster.nodes.iter().find(|node| node.name == name)
    }

    /// Sends a write to one node after another until its outcome is known, at most `tries` times.
    /// Only for writes that nodes recognize when repeated.
    fn write_again(
        &mut self,
        first: &'a Node,
        request: &Request<'_>,
        tries: u32,
    ) -> (&'a Node, WriteAnswer) {
        let (mut node, mut in_doubt) = (first, None);
        for tried in 1.. {
            match self.write(node, request) {
                WriteAnswer::Unknown(why) => in_doubt = Some(why),
                // An earlier attempt may still take effect, whatever is refused now.
                WriteAnswer::Refused(why) if in_doubt.is_none() => {
                    if tried >= tries {
                        return (node, WriteAnswer::Refused(why));
                    }
                }
                WriteAnswer::Refused(_) => {}
                told => return (node, told),
            }
            if tried >= tries {
                break;
            }
            std::thread::sleep(Duration::from_millis(self.dice.between(20, 200)));
            node = self.any_node();
        }
        (node, WriteAnswer::Unknown(in_doubt.unwrap_or_default()))
    }

    /// A history line without an outcome yet.
    fn line(&self, kind: Kind, node: &Node) -> Operation {
        let now = self.world.history.now();
        Operation {
            kind,
            client: self.who,
            node: node.name.clone(),
            life: node.life(),
            log: MAIN.to_owned(),
            key: String::new(),
            old: 0,
            new: 0,
            outcome: Outcome::Unknown,
            start_ns: now,
            end_ns: now,
            position: None,
            head: None,
            told: String::new(),
        }
    }

    /// Records the outcome.
    fn note(&mut self, mut line: Operation, told: WriteAnswer) {
        line.end_ns = self.world.history.now();
        match told {
            WriteAnswer::Done(answer) => {
                line.outcome = Outcome::Done;
                line.position = line.position.or(answer.json()["first"].as_u64());
            }
            WriteAnswer::Conflict(answer) => {
                (line.outcome, line.told) = (Outcome::Conflict, answer.problem())
            }
            WriteAnswer::Refused(why) => (line.outcome, line.told) = (Outcome::Refused, why),
            WriteAnswer::Unknown(why) => {
                (line.outcome, line.told) = (Outcome::Unknown, why);
                self.who = self.world.history.number();
            }
        }
        self.world.history.add(line);
    }
}

/// Interprets the answer to a write.
fn read(answer: Answer) -> WriteAnswer {
    let problem = answer.problem();
    let text = format!("{} {problem}", answer.status);
    match answer.status {
        200..=299 => WriteAnswer::Done(answer),
        // It is done, but a view does not show it yet.
        503 if problem == "not-yet" => WriteAnswer::Unknown(text),
        409 if ["append-condition-failed", "sold-out", "lease-held"]
            .contains(&problem.as_str()) =>
        {
            WriteAnswer::Conflict(answer)
        }
        503 => WriteAnswer::Refused(text),
        500.. | 408 => WriteAnswer::Unknown(text),
        _ => WriteAnswer::Refused(text),
    }
}

/// An event id made of a number and a part, from 0.
fn event_id(number: u64, part: u64) -> String {
    format!("00000000-0000-4000-8{part:03x}-{number:012x}")
}
