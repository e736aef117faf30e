//! Clients that write down what they asked and were told.

mod appends;
mod ingest;
mod orders;
mod registers;

pub(crate) use orders::{Item, add_items};

use crate::arguments::Arguments;
use crate::cluster::Cluster;
use crate::dice::Dice;
use crate::history::{History, Kind, Operation, Outcome};
use crate::http::{Answer, Client, Failure, Request};
use crate::node::Node;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;
use std::time::Duration;

/// Everything that clients share.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) arguments: Arguments,
    pub(crate) cluster: Cluster,
    pub(crate) history: History,
    pub(crate) items: Vec<Item>,
    pub(crate) ended: AtomicBool,
    /// From when to when this machine did not even let a sleeper go on: nobody is to blame for what
    /// took longer then.
    pub(crate) stalls: Mutex<Vec<(u64, u64)>>,
}

impl World {
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }
}

/// How many clients of each kind there are for a node.
const REGISTERS: u64 = 3;

/// Starts all clients. They go on until the world has ended.
pub(crate) fn start<'scope>(scope: &'scope Scope<'scope, '_>, world: &'scope World) {
    let nodes = world.cluster.nodes.len() as u64;
    for index in 0..REGISTERS * nodes {
        scope.spawn(move || registers::run(Desk::new(world, 1000 + index)));
    }
    for index in 0..nodes {
        scope.spawn(move || appends::run(Desk::new(world, 2000 + index), index as usize));
        scope.spawn(move || ingest::run(Desk::new(world, 3000 + index), index as usize));
        scope.spawn(move || orders::run(Desk::new(world, 4000 + index)));
    }
    scope.spawn(move || appends::newcomers(scope, world));
}

/// One client with its connections.
struct Desk<'a> {
    world: &'a World,
    dice: Dice,
    http: Client,
    /// As who it goes through the history.
    who: u64,
}

/// What an answer says of a write.
enum Told {
    Done(Answer),
    Conflict(Answer),
    Refused(String),
    Unknown(String),
}

impl<'a> Desk<'a> {
    fn new(world: &'a World, thrower: u64) -> Desk<'a> {
        let who = world.history.number();
        let dice = Dice::new(world.arguments.seed, thrower);
        Desk { world, dice, http: Client::default(), who }
    }

    fn pause(&mut self) {
        let pace = self.world.arguments.pace.as_micros() as u64;
        std::thread::sleep(Duration::from_micros(self.dice.below(2 * pace)));
    }

    fn any_node(&mut self) -> &'a Node {
        let nodes = &self.world.cluster.nodes;
        &nodes[self.dice.below(nodes.len() as u64) as usize]
    }

    fn ask(&mut self, node: &Node, request: &Request<'_>) -> Result<Answer, Failure> {
        self.http.ask(node.address, request)
    }

    /// Asks for a write, and says what is known of it then. Who is told that another leads asks
    /// there.
    fn write(&mut self, node: &Node, request: &Request<'_>) -> Told {
        let mut answer = self.ask(node, request);
        let elsewhere = answer.as_ref().ok().and_then(|answer| self.leader_named(answer));
        if let Some(leader) = elsewhere {
            answer = self.ask(leader, request);
        }
        match answer {
            Ok(answer) => read(answer),
            Err(Failure::NotSent(why)) => Told::Refused(why),
            Err(Failure::NoAnswer(why)) => Told::Unknown(why),
        }
    }

    /// The leader that a definite refusal names.
    fn leader_named(&self, answer: &Answer) -> Option<&'a Node> {
        if answer.status != 503 || answer.problem() != "not-leading" {
            return None;
        }
        let json = answer.json();
        let name = json["leader"].as_str()?;
        self.world.cluster.nodes.iter().find(|node| node.name == name)
    }

    /// Asks one node after another until it is known what came of it, `tries` times at most. Only
    /// for what nodes know again when it is repeated.
    fn write_again(
        &mut self,
        first: &'a Node,
        request: &Request<'_>,
        tries: u32,
    ) -> (&'a Node, Told) {
        let (mut node, mut in_doubt) = (first, None);
        for tried in 1.. {
            match self.write(node, request) {
                Told::Unknown(why) => in_doubt = Some(why),
                // What was asked before may still come, whatever is refused now.
                Told::Refused(why) if in_doubt.is_none() => {
                    if tried >= tries {
                        return (node, Told::Refused(why));
                    }
                }
                Told::Refused(_) => {}
                told => return (node, told),
            }
            if tried >= tries {
                break;
            }
            std::thread::sleep(Duration::from_millis(self.dice.between(20, 200)));
            node = self.any_node();
        }
        (node, Told::Unknown(in_doubt.unwrap_or_default()))
    }

    /// A line that is still to be told its outcome.
    fn line(&self, kind: Kind, node: &Node) -> Operation {
        let now = self.world.history.now();
        Operation {
            kind,
            client: self.who,
            node: node.name.clone(),
            life: node.life(),
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

    /// Writes down what came of it.
    fn note(&mut self, mut line: Operation, told: Told) {
        line.end_ns = self.world.history.now();
        match told {
            Told::Done(answer) => {
                line.outcome = Outcome::Done;
                line.position = line.position.or(answer.json()["first"].as_u64());
            }
            Told::Conflict(answer) => {
                (line.outcome, line.told) = (Outcome::Conflict, answer.problem())
            }
            Told::Refused(why) => (line.outcome, line.told) = (Outcome::Refused, why),
            Told::Unknown(why) => {
                (line.outcome, line.told) = (Outcome::Unknown, why);
                self.who = self.world.history.number();
            }
        }
        self.world.history.add(line);
    }
}

/// What an answer to a write says.
fn read(answer: Answer) -> Told {
    let problem = answer.problem();
    let text = format!("{} {problem}", answer.status);
    match answer.status {
        200..=299 => Told::Done(answer),
        // It is done, but a view does not show it yet.
        503 if problem == "not-yet" => Told::Unknown(text),
        409 if ["append-condition-failed", "sold-out"].contains(&problem.as_str()) => {
            Told::Conflict(answer)
        }
        503 => Told::Refused(text),
        500.. | 408 => Told::Unknown(text),
        _ => Told::Refused(text),
    }
}

/// An event id made of a number and of its part, from 0.
fn event_id(number: u64, part: u64) -> String {
    format!("00000000-0000-4000-8{part:03x}-{number:012x}")
}
