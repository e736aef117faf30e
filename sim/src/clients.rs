//! The clients: their requests to the nodes, and the answers.

use crate::facts::{AttemptId, BASE, FACTS, LEASE, News, OpId, SOURCE, UNIQUE};
use crate::node::{Node, Running};
use crate::reads::PendingRead;
use crate::rights::{EpochRight, work_beside_turns};
use crate::world::World;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use wellspring_log::{
    Ack, Append, AppendError, Appended, Basis, CommitOn, Completion, Fence, LeaseProof, Order,
    ReadOptions, RequestKey, Staged,
};
use wellspring_types::{AppendCondition, Event, EventId, Position, Query, QueryItem};

type Answer = (AttemptId, Result<Appended, AppendError>);

/// Answers of one process, as they arrive.
#[derive(Clone, Default)]
pub struct Mailbox(Arc<Mutex<Vec<Answer>>>);

impl Mailbox {
    fn completion(&self, attempt: AttemptId) -> Completion {
        let mailbox = self.clone();
        Box::new(move |answer| {
            mailbox.0.lock().unwrap_or_else(PoisonError::into_inner).push((attempt, answer));
        })
    }

    fn drain(&self) -> Vec<Answer> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The goal of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Want {
    /// Events.
    Plain,
    /// Appends events, answered once they are staged.
    Accepted,
    /// Appends the only event with this tag.
    Unique(String),
    /// Appends events exactly once, however often they are requested with this key.
    Keyed(String),
    /// Appends events exactly once, however often they are requested with these ids.
    WithIds,
    /// Appends the next piece of a source.
    Piece(String, u64),
    /// Creates a link.
    Link(String),
    /// Appends events while holding a lease.
    Fenced(String),
    /// Appends an event that another will depend on.
    Base(String),
    /// Appends an event decided on top of a staged one and useless without it.
    Resting(String),
}

/// The state of an operation.
#[derive(Debug)]
pub struct Op {
    /// The goal.
    pub want: Want,
    /// Number of events.
    pub events: u64,
    /// Size of each event's data in bytes.
    pub bytes: usize,
    /// The first attempt.
    pub first: AttemptId,
    /// Whether it is over: no further attempts will be made.
    pub over: bool,
}

/// The state of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptState {
    /// It has not been answered.
    Waiting,
    /// It has been answered.
    Answered,
    /// Its process is dead.
    Orphaned,
}

/// One attempt at an operation.
#[derive(Debug)]
pub struct Attempt {
    /// The operation.
    pub op: OpId,
    /// The node.
    pub node: usize,
    /// The node's process.
    pub life: u64,
    /// Its state.
    pub state: AttemptState,
    /// The right that it is fenced by, if it ends with the epoch.
    pub right: Option<Arc<EpochRight>>,
}

/// How far the reader of a source knows the log.
#[derive(Debug, Default, Clone, Copy)]
struct SourceKnown {
    next: u64,
    after: Position,
    busy: bool,
}

/// All clients.
#[derive(Default)]
pub struct Clients {
    /// Their operations.
    pub ops: Vec<Op>,
    /// Their attempts.
    pub attempts: Vec<Attempt>,
    /// Reads waiting for confirmation.
    pub reads: Vec<PendingRead>,
    /// The last position reported as durable to any client.
    pub floor: Position,
    /// Links reported as created.
    pub links: Vec<String>,
    /// Lease tokens in the order granted.
    pub tokens: Vec<u64>,
    /// Events that others may depend on: tag, node, process, setback count when they were staged.
    bases: Vec<(String, usize, u64, u64)>,
    /// The grant that a client holds from a process of a node.
    grants: BTreeMap<(usize, u64, String), u64>,
    sources: BTreeMap<String, SourceKnown>,
}

const SOURCES: u64 = 2;

impl World {
    /// Starts a new operation at a node.
    pub(crate) fn ask_something(&mut self, node: usize) {
        let wants = self.clients.ops.len() as u64;
        let want = match self.dice.weighted(&[20, 5, 25, 25, 10, 20, 15, 10, 15, 15]) {
            0 => Want::Plain,
            1 => Want::Accepted,
            2 => Want::Unique(format!("{UNIQUE}{}", self.dice.below(wants / 4 + 3))),
            3 => Want::Keyed(format!("request-{wants}")),
            4 => Want::WithIds,
            5 => {
                let source = format!("{SOURCE}{}", self.dice.below(SOURCES));
                let known = self.clients.sources.entry(source.clone()).or_default();
                if known.busy {
                    return;
                }
                known.busy = true;
                Want::Piece(source, known.next)
            }
            6 => Want::Link(format!("link{}", self.dice.below(wants / 4 + 3))),
            7 => Want::Fenced(format!("{LEASE}{}", self.dice.below(2))),
            8 => Want::Base(format!("{BASE}{wants}")),
            _ => {
                let life = self.nodes[node].life;
                let here = |(_, of, at, _): &(String, usize, u64, u64)| (*of, *at) == (node, life);
                match self.clients.bases.iter().find(|base| here(base)) {
                    Some((tag, ..)) => Want::Resting(tag.clone()),
                    None => return,
                }
            }
        };
        let events = match want {
            Want::Unique(_) | Want::Piece(..) | Want::Link(_) => 1,
            Want::Base(_) | Want::Resting(_) => 1,
            _ => 1 + self.dice.below(4),
        };
        let bytes = if self.dice.chance(self.mood.large) { self.dice.index(20_000) } else { 40 };
        let first = self.clients.attempts.len();
        self.clients.ops.push(Op { want, events, bytes, first, over: false });
        self.attempt(self.clients.ops.len() as OpId - 1, node);
    }

    /// Attempts an operation at a node.
    fn attempt(&mut self, op: OpId, node: usize) {
        let id = self.clients.attempts.len();
        let life = self.nodes[node].life;
        let state = AttemptState::Waiting;
        let Some(mut append) = self.append_of(op, id, node) else {
            self.clients.ops[op as usize].over = true;
            return;
        };
        let want = self.clients.ops[op as usize].want.clone();
        let right = self.right_for(op, &want, node);
        if let Some(right) = &right {
            append.fence = Some(Arc::clone(right) as Arc<dyn Fence>);
        }
        self.clients.attempts.push(Attempt { op, node, life, state, right });
        self.say(format_args!(
            "n{node}: attempt {id} at {want:?} ({} events)",
            append.events.len()
        ));
        if let Want::Link(_) = want {
            self.nodes[node].links.deciding = Some(id);
        }
        let done = self.nodes[node].mailbox.completion(id);
        self.submit(node, id, &want, append, done);
        self.collect(node);
    }

    /// A right of the present epoch for every second operation that wants something unique.
    fn right_for(&self, op: OpId, want: &Want, node: usize) -> Option<Arc<EpochRight>> {
        let is_fenced = matches!(want, Want::Unique(_)) && op.is_multiple_of(2);
        is_fenced.then(|| self.nodes[node].log.as_ref().map(EpochRight::of)).flatten()
    }

    fn submit(
        &mut self,
        node: usize,
        id: AttemptId,
        want: &Want,
        append: Append,
        done: Completion,
    ) {
        let Node { life, log: Some(log), .. } = &self.nodes[node] else { return };
        if let Some(right) = &self.clients.attempts[id].right {
            self.engine.show(node, 3);
            let staged = log.stage_within(append, &mut work_beside_turns(log), done);
            if let Staged::Placed { .. } = staged.expect("unbounded work") {
                right.placed_in(log.epoch());
            }
            log.commit(CommitOn::JournalThread);
            return;
        }
        match want {
            Want::Base(tag) => {
                if let Staged::Placed { setbacks, .. } = log.stage(append, done) {
                    self.clients.bases.push((tag.clone(), node, *life, setbacks));
                }
            }
            Want::Resting(tag) => {
                let at = self.clients.bases.iter().position(|(base, ..)| base == tag);
                let setbacks = at.map(|at| self.clients.bases.swap_remove(at).3);
                log.stage_on(Basis { setbacks, ..Basis::default() }, append, done);
            }
            _ => log.submit(append, done),
        }
    }

    /// The request of an operation; `None` if there is nothing to request.
    fn append_of(&mut self, op: OpId, attempt: AttemptId, node: usize) -> Option<Append> {
        let Op { want, events, bytes, first, .. } = &self.clients.ops[op as usize];
        let (want, of, bytes) = (want.clone(), *events, *bytes);
        // A retry by ids is recognized by equal bytes.
        let attempt = if want == Want::WithIds { *first } else { attempt };
        let mut append = Append::default();
        let mut wanted: Vec<Event> = Vec::new();
        let mut offset = 0;
        let plain =
            |tags: &[&str]| Event::json("Happened", tags, &format!("{:?}", "x".repeat(bytes)));
        match &want {
            Want::Plain | Want::WithIds => wanted.extend((0..of).map(|_| plain(&[]))),
            Want::Accepted => {
                append.ack = Ack::Accepted;
                wanted.extend((0..of).map(|_| plain(&[])));
            }
            Want::Base(tag) | Want::Resting(tag) => wanted.push(plain(&[tag])),
            Want::Unique(tag) => {
                append.condition = Some(AppendCondition::not_exists(Query::item(&[], &[tag])));
                wanted.push(plain(&[tag]));
            }
            Want::Keyed(key) => {
                let mut digest = [0; 16];
                digest[..8].copy_from_slice(&op.to_le_bytes());
                append.key = Some(RequestKey { key: key.clone(), digest });
                wanted.extend((0..of).map(|_| plain(&[])));
            }
            Want::Piece(source, piece) => {
                offset = *piece;
                let after = self.clients.sources.get(source).map_or(0, |known| known.after);
                let query = Query { items: vec![QueryItem::new(&[], &[source])] };
                append.condition = Some(AppendCondition::no_match_after(query, after));
                wanted.push(plain(&[source]));
            }
            Want::Fenced(lease) => {
                let (grant, token) = self.grant_of(lease, node)?;
                offset = grant;
                let proof = LeaseProof { lease: lease.clone(), token };
                append.fence = Some(self.nodes[node].log.as_ref()?.leases().fence(proof));
                wanted.extend((0..of).map(|_| plain(&[lease])));
            }
            Want::Link(alias) => {
                let node = &mut self.nodes[node];
                let log = node.log.as_ref()?;
                if node.links.deciding.is_some() || node.links.catch_up(log).is_err() {
                    return None;
                }
                let (events, condition) = node.links.decide(alias, self.dice.draw()).ok()?;
                append.condition = Some(condition);
                wanted = events;
            }
        }
        let of = wanted.len();
        for (index, mut event) in wanted.into_iter().enumerate() {
            let facts = format!("{op} {attempt} {index} {of} {offset}");
            event.metadata.push((FACTS.to_owned(), facts));
            if want == Want::WithIds {
                let id = u128::from(op) << 64 | index as u128 | 1 << 127;
                event.id = Some(EventId(id.to_le_bytes()));
            }
            append.events.push(&event.as_ref()).expect("an event within the limits");
        }
        (!append.events.is_empty()).then_some(append)
    }

    /// A lease at a node, granted now or earlier.
    fn grant_of(&mut self, lease: &str, node: usize) -> Option<(u64, u64)> {
        let ttl_us = self.mood.lead_timeout.as_micros() as u64;
        let key = (node, self.nodes[node].life, lease.to_owned());
        if let Ok(granted) = self.nodes[node].log.as_ref()?.leases().acquire(lease, "c", ttl_us) {
            self.clients.grants.insert(key.clone(), self.clients.tokens.len() as u64);
            self.clients.tokens.push(granted.token);
        }
        let grant = *self.clients.grants.get(&key)?;
        Some((grant, self.clients.tokens[grant as usize]))
    }

    /// Retries a discarded or unanswered operation at any node.
    pub(crate) fn try_again(&mut self, node: usize) {
        let candidates: Vec<OpId> = (self.clients.ops.iter().enumerate())
            .filter(|(_, op)| {
                let repeatable = matches!(op.want, Want::Keyed(_) | Want::WithIds);
                // An impatient client tries another node while the first still works on it.
                repeatable && !op.over
            })
            .map(|(op, _)| op as OpId)
            .collect();
        if !candidates.is_empty() {
            let op = candidates[self.dice.index(candidates.len())];
            self.attempt(op, node);
        }
    }

    /// Collects the answers of a node.
    pub(crate) fn collect(&mut self, node: usize) {
        for (attempt, answer) in self.nodes[node].mailbox.drain() {
            self.answered(node, attempt, answer);
        }
    }

    fn answered(&mut self, node: usize, id: AttemptId, answer: Result<Appended, AppendError>) {
        let head = self.nodes[node].log.as_ref().map_or(0, |log| log.head());
        match &answer {
            Ok(done) => self.say(format_args!(
                "n{node}: attempt {id} is at {}..{}{}",
                done.first,
                done.last,
                if done.replayed { ", as before" } else { "" }
            )),
            Err(error) => self.say(format_args!("n{node}: attempt {id}: {error}")),
        }
        self.clients.attempts[id].state = AttemptState::Answered;
        let op = self.clients.attempts[id].op as usize;
        let want = self.clients.ops[op].want.clone();
        if self.nodes[node].links.deciding == Some(id) {
            self.nodes[node].links.deciding = None;
        }
        let is_over = match &answer {
            Ok(_) | Err(AppendError::Conflict(_)) => true,
            Err(_) => !matches!(want, Want::Keyed(_) | Want::WithIds),
        };
        self.clients.ops[op].over |= is_over;
        if let Ok(done) = &answer
            && want != Want::Accepted
        {
            self.clients.floor = self.clients.floor.max(done.last);
            if let Want::Link(alias) = &want {
                self.clients.links.push(alias.clone());
            }
        }
        if let Want::Piece(source, piece) = &want {
            match &answer {
                Ok(done) => {
                    let known = SourceKnown { next: piece + 1, after: done.last, busy: false };
                    self.clients.sources.insert(source.clone(), known);
                }
                Err(_) => self.look_up_source(source, node),
            }
        }
        self.news.push(News::Answered { node, attempt: id, answer, head });
    }

    /// The state of a source as far as a node knows. The condition of the next piece covers what it
    /// does not know.
    fn look_up_source(&mut self, source: &str, node: usize) {
        let mut known = SourceKnown::default();
        if let Some(log) = &self.nodes[node].log {
            let options =
                ReadOptions { order: Order::Descending, limit: Some(1), ..ReadOptions::default() };
            let mut events = log.snapshot().read(&Query::item(&[], &[source]), options);
            if let Ok(Some(record)) = events.next()
                && let Some(fact) = crate::facts::Fact::read(&record)
                && let Some((_, piece)) = fact.piece
            {
                known = SourceKnown { next: piece + 1, after: fact.position, busy: false };
            }
        }
        self.clients.sources.insert(source.to_owned(), known);
    }

    /// What a process has not answered.
    pub(crate) fn unanswered(&self, node: usize) -> Vec<String> {
        let life = self.nodes[node].life;
        let attempts = self.clients.attempts.iter().enumerate().filter(|(_, attempt)| {
            (attempt.node, attempt.life) == (node, life) && attempt.state == AttemptState::Waiting
        });
        let attempts = attempts.map(|(id, _)| format!("attempt {id}"));
        let reads = self.clients.reads.iter().filter(|read| read.node == node);
        attempts.chain(reads.map(|read| format!("a read that must show {}", read.floor))).collect()
    }

    /// A dead process will not answer any more.
    pub(crate) fn orphan(&mut self, node: usize) {
        let life = self.nodes[node].life;
        let orphans: Vec<AttemptId> = (self.clients.attempts.iter().enumerate())
            .filter(|(_, attempt)| {
                attempt.node == node
                    && attempt.life == life
                    && attempt.state == AttemptState::Waiting
            })
            .map(|(id, _)| id)
            .collect();
        for id in orphans {
            self.clients.attempts[id].state = AttemptState::Orphaned;
            let op = self.clients.attempts[id].op as usize;
            let want = self.clients.ops[op].want.clone();
            if !matches!(want, Want::Keyed(_) | Want::WithIds) {
                self.clients.ops[op].over = true;
            }
            if let Want::Piece(source, _) = want {
                let other = self.any_log().unwrap_or(node);
                self.look_up_source(&source, other);
            }
        }
        self.clients.reads.retain(|read| read.node != node);
    }

    /// Starts a read that must show everything acknowledged so far.
    pub(crate) fn ask_to_confirm(&mut self, node: usize) {
        let floor = self.clients.floor;
        let Node { life, log: Some(log), .. } = &self.nodes[node] else { return };
        let mut read = PendingRead::new(node, *life, log.clone(), floor);
        self.say(format_args!("n{node}: a read that must show {floor}"));
        match read.poll() {
            Some(answer) => self.confirmed(&read, answer),
            None => self.clients.reads.push(read),
        }
    }

    /// Checks whether reads at a node are confirmed.
    pub(crate) fn poll_reads(&mut self, node: usize) {
        let reads = std::mem::take(&mut self.clients.reads);
        for mut read in reads {
            match if read.node == node { read.poll() } else { None } {
                Some(answer) => self.confirmed(&read, answer),
                None => self.clients.reads.push(read),
            }
        }
    }

    fn confirmed(
        &mut self,
        read: &PendingRead,
        answer: Result<Position, wellspring_log::NotConfirmed>,
    ) {
        let node = read.node;
        match &answer {
            Ok(head) => {
                self.say(format_args!("n{node}: confirmed {head}, asked for {}", read.floor))
            }
            Err(error) => self.say(format_args!("n{node}: not confirmed: {error}")),
        }
        self.news.push(News::Confirmed { node, floor: read.floor, answer });
    }

    /// Follows a link that was reported as created.
    pub(crate) fn follow_a_link(&mut self, node: usize) {
        if self.clients.links.is_empty() {
            return;
        }
        let alias = self.clients.links[self.dice.index(self.clients.links.len())].clone();
        let at = &mut self.nodes[node];
        let Some(log) = &at.log else { return };
        if at.links.catch_up(log).is_err() {
            return;
        }
        let (led, folded, hash) = (at.links.follow(&alias), at.links.folded, at.links.hash());
        self.say(format_args!("n{node}: {alias} leads somewhere: {led}, folded up to {folded}"));
        self.news.push(News::Followed { node, alias, led, folded });
        self.news.push(News::Folded { node, position: folded, hash });
    }

    /// A node whose process lives.
    pub(crate) fn any_log(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.running != Running::Dead)
    }
}
