//! A model of several nodes over a log that delays, loses, repeats and reorders offers, with nodes
//! that pause, crash and restart: checks that the rule keeps its promises, and that bugs planted in
//! it, or in a leader, are found.

use super::*;
use crate::plants::plant;
use crate::shared::entry::{Claim, batch_entries};
use std::collections::{BTreeMap, BTreeSet};
use wellspring_format::record::read_u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    InRule(Plant),
    /// A leader assigns a position to another batch once it has waited long enough for the first.
    ReusesPositions,
    /// A leader judges as soon as its claim is in flight.
    Eager,
    /// A leader answers once the engine has accepted its batch.
    AnswersEarly,
}

struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        ((mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb) >> 20) as usize % n
    }
}

/// A request: "create the key unless it exists". Its body is a separate batch.
type Op = u32;

struct Staged {
    op: Op,
    key: u32,
    batch: BatchId,
    entries: Vec<Arc<[u8]>>,
}

#[derive(Default)]
struct Node {
    rule: Rule,
    /// Number of log entries read.
    read: usize,
    /// Accepted batches: op and key, and the number of entries read by then.
    accepted: Vec<(Op, u32, usize, BatchId)>,
    claiming: Option<u64>,
    leading: Option<u64>,
    /// Judged in the epoch it led in, not delivered yet.
    staged: Vec<Staged>,
    start: u64,
}

struct World {
    dice: Dice,
    bug: Bug,
    log: Vec<Arc<[u8]>>,
    under_way: Vec<(Arc<[u8]>, Option<Op>)>,
    nodes: Vec<Node>,
    answered: BTreeSet<Op>,
    refused: BTreeSet<Op>,
    truth: BTreeMap<usize, Op>,
    next_op: Op,
    starts: u64,
}

type CheckResult = Result<(), String>;

fn body_of(op: Op, key: u32) -> Vec<u8> {
    let mut body = vec![0u8; 40];
    body[..4].copy_from_slice(&op.to_le_bytes());
    body[4..8].copy_from_slice(&key.to_le_bytes());
    body
}

impl World {
    fn new(seed: u64, bug: Bug) -> World {
        let founded = Entry::Founded { cluster: ClusterId([1; 16]), log: "m" }.encode();
        World {
            dice: Dice(seed),
            bug,
            log: vec![founded.into()],
            under_way: Vec::new(),
            nodes: (0..3).map(|start| Node { start, ..Node::default() }).collect(),
            answered: BTreeSet::new(),
            refused: BTreeSet::new(),
            truth: BTreeMap::new(),
            next_op: 0,
            starts: 3,
        }
    }

    fn run(mut self) -> CheckResult {
        for _ in 0..400 {
            let node = self.dice.below(3);
            match self.dice.below(20) {
                0..5 => self.request(node),
                5..12 => self.deliver(node)?,
                12..15 => self.land(),
                15 => self.lose(),
                16 | 17 => self.offer_again(node),
                18 => self.claim_or_crash(node),
                _ => self.step_down(node),
            }
        }
        while !self.under_way.is_empty() {
            self.land();
        }
        for node in 0..3 {
            while self.nodes[node].read < self.log.len() {
                self.deliver(node)?;
            }
        }
        let ops: BTreeSet<Op> = self.truth.values().copied().collect();
        match self.answered.difference(&ops).next() {
            Some(op) => Err(format!("{op} was answered and is lost")),
            None => Ok(()),
        }
    }

    fn request(&mut self, node: usize) {
        let key = self.next_op / 4;
        let node = &mut self.nodes[node];
        let Some(epoch) = node.leading else { return };
        let taken = node.accepted.iter().any(|(_, k, ..)| *k == key)
            || node.staged.iter().any(|staged| staged.key == key);
        let op = self.next_op;
        self.next_op += 1;
        if taken {
            return;
        }
        let body = body_of(op, key);
        let last = node.staged.last().map(|staged| staged.batch);
        let batch = BatchId {
            epoch,
            first: last.map_or(node.rule.head(), |batch| batch.last()) + 1,
            count: 1 + op % 3,
            recorded_at_us: 1,
            begins_segment: false,
            body_bytes: body.len() as u32,
            body_crc: crc32c::crc32c(&body),
            previous: last.map_or(node.rule.chain(), |batch| batch.chain()),
        };
        let entries =
            batch_entries(&batch, &body, if op.is_multiple_of(3) { 64 + 15 } else { 4096 });
        self.under_way.extend(entries.iter().map(|entry| (Arc::clone(entry), Some(op))));
        node.staged.push(Staged { op, key, batch, entries });
    }

    fn offer_again(&mut self, node: usize) {
        let node = &mut self.nodes[node];
        if node.leading.is_none() || node.staged.is_empty() {
            return;
        }
        if self.bug == Bug::ReusesPositions && self.dice.below(2) == 0 {
            self.refused.extend(node.staged.drain(..).map(|staged| staged.op));
            return;
        }
        for staged in &node.staged {
            self.under_way.extend(staged.entries.iter().map(|entry| (Arc::clone(entry), None)));
        }
    }

    fn land(&mut self) {
        if self.under_way.is_empty() {
            return;
        }
        let at = self.dice.below(self.under_way.len().min(4));
        let (entry, op) = if self.dice.below(6) == 0 {
            self.under_way[at].clone()
        } else {
            self.under_way.remove(at)
        };
        self.log.push(entry);
        if self.bug == Bug::AnswersEarly {
            self.answered.extend(op);
        }
    }

    fn lose(&mut self) {
        if !self.under_way.is_empty() {
            let at = self.dice.below(self.under_way.len());
            self.under_way.remove(at);
        }
    }

    fn claim_or_crash(&mut self, node: usize) {
        if self.dice.below(3) == 0 {
            return self.crash(node);
        }
        let eager = self.bug == Bug::Eager;
        let node = &mut self.nodes[node];
        if node.leading.is_some() {
            return;
        }
        let epoch = node.rule.epoch() + 1;
        let claim = Claim { epoch, node: "n", start: node.start, url: "" };
        self.under_way.push((Entry::Claim(claim).encode().into(), None));
        node.claiming = Some(epoch);
        if eager && node.staged.is_empty() {
            node.leading = Some(epoch);
        }
    }

    /// The process dies; a new one starts with a part of the copy.
    fn crash(&mut self, node: usize) {
        let keep = self.dice.below(self.nodes[node].accepted.len() + 1);
        let old = std::mem::take(&mut self.nodes[node]);
        let mut accepted = old.accepted;
        accepted.truncate(keep);
        let (rule, read) = match accepted.last() {
            Some((_, _, read, batch)) => {
                (Rule::at(batch.epoch, batch.last(), batch.chain(), old.rule.cluster()), *read)
            }
            None => (Rule::default(), 0),
        };
        self.starts += 1;
        self.nodes[node] = Node { rule, read, accepted, start: self.starts, ..Node::default() };
    }

    /// It no longer believes that it leads; offers in flight stay open.
    fn step_down(&mut self, node: usize) {
        self.nodes[node].leading = None;
    }

    fn deliver(&mut self, index: usize) -> CheckResult {
        let node = &mut self.nodes[index];
        let Some(entry) = self.log.get(node.read) else { return Ok(()) };
        node.read += 1;
        let (epoch, head) = (node.rule.epoch(), node.rule.head());
        let verdict = node.rule.judge(Arc::clone(entry)).map_err(|fault| fault.to_string())?;
        if node.rule.epoch() < epoch || node.rule.head() < head {
            return Err(format!("{index} went back"));
        }
        match verdict {
            EntryEffect::Led(claimant) => {
                let mine = claimant.start == node.start;
                if !(mine && self.bug == Bug::Eager) {
                    // Whatever was judged before and has not been delivered never will be.
                    self.refused.extend(node.staged.drain(..).map(|staged| staged.op));
                }
                node.leading = mine.then_some(claimant.epoch);
                node.claiming = None;
            }
            EntryEffect::Accepted(accepted) => {
                let body: Vec<u8> = accepted.body_slices().flatten().copied().collect();
                let (op, key) = (read_u32(&body, 0), read_u32(&body, 4));
                if node.accepted.iter().any(|(_, k, ..)| *k == key) {
                    return Err(format!("two winners of key {key}"));
                }
                let at = node.accepted.len();
                node.accepted.push((op, key, node.read, accepted.batch));
                let mine = node.staged.first().is_some_and(|staged| staged.op == op);
                if mine {
                    node.staged.remove(0);
                    self.answered.insert(op);
                }
                if *self.truth.entry(at).or_insert(op) != op {
                    return Err(format!("two batches in place {at}"));
                }
                if self.refused.contains(&op) {
                    return Err(format!("{op} was refused and is there"));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The first seed that finds the bug.
fn found_by(bug: Bug, seeds: u64) -> Option<(u64, String)> {
    if let Bug::InRule(bug) = bug {
        plant(Some(bug));
    }
    let found = (0..seeds).find_map(|seed| match World::new(seed, bug).run() {
        Ok(()) => None,
        Err(what) => Some((seed, what)),
    });
    plant(None);
    found
}

#[test]
fn no_history_breaks_the_rule() {
    assert_eq!(found_by(Bug::None, 10_000), None);
}

#[test]
fn planted_bugs_are_found() {
    use Bug::{AnswersEarly, Eager, InRule, ReusesPositions};
    for bug in
        [InRule(Plant::NoEpoch), InRule(Plant::NoDense), ReusesPositions, Eager, AnswersEarly]
    {
        let found = found_by(bug, 200);
        assert!(found.is_some(), "{bug:?} was not found");
        println!("{bug:?}: {found:?}");
    }
}
