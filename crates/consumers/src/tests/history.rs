//! Random histories of a consumer, with a model beside it.

use super::invariants::assert_invariants;
use super::model::{Model, SavedState, SettlingAppend, Sign};
use crate::{
    Backoff, Checkpoint, Consumer, Definition, DeliveryId, DeliveryRefusal, FailureRule, KeyName,
    KeyedEvent, LookUp, OrderKey, ParkedSelection, RunState, ScanFrom, ScanNeed, ScanVerdict,
    TakeRefusal, TurnVerdict,
};
use std::collections::{BTreeSet, HashSet, VecDeque};
use wellspring_types::Position;
use wellspring_types::random::SplitMix64;

const WORKERS: [&str; 3] = ["ann", "bob", "cyd"];

pub(super) struct History {
    random: SplitMix64,
    model: Model,
    consumer: Consumer,
    /// How many values the key has.
    names: u64,
    now: u64,
    /// The time at which silence was last judged.
    judged: u64,
    /// Every id that was ever given.
    ids: Vec<DeliveryId>,
    scans: Vec<ScanFrom>,
    look_ups: Vec<LookUp>,
    chain: Vec<Checkpoint>,
    kept: Option<SavedState>,
    /// The checkpoints that are being appended: of each generation at most one. With each, what it
    /// keeps, and what it replays.
    appending: VecDeque<(Checkpoint, SavedState, BTreeSet<Position>)>,
}

fn definition(random: &mut SplitMix64) -> Definition {
    let rules = [FailureRule::ParkKey, FailureRule::ParkEvent, FailureRule::Stop];
    Definition {
        key: OrderKey::Tag("k".into()),
        hold_us: 50,
        max_hold_us: 80 + random.below(80),
        max_in_flight: 1 + random.below(6) as usize,
        run: [1, 2, 5][random.below(3) as usize],
        max_tries: 2 + random.below(4) as u8,
        backoff: Backoff { first_us: 4, most_us: 30 },
        on_failure: rules[random.below(3) as usize],
        max_open_keys: 3 + random.below(20) as usize,
    }
}

impl History {
    fn new(seed: u64) -> History {
        let mut random = SplitMix64::new(seed);
        let definition = definition(&mut random);
        let names = [2, 4, 10][random.below(3) as usize];
        let mut history = History {
            random,
            names,
            consumer: Consumer::new(definition.clone(), 1, 0),
            model: Model::new(definition),
            now: 1_000,
            judged: 0,
            ids: Vec::new(),
            scans: Vec::new(),
            look_ups: Vec::new(),
            chain: Vec::new(),
            kept: None,
            appending: VecDeque::new(),
        };
        history.begin_checkpoint();
        history.end_checkpoint(true);
        history
    }

    /// Runs a history, and then everything that it left open.
    pub(super) fn run(seed: u64) {
        let mut history = History::new(seed);
        for _ in 0..160 {
            history.step();
            history.model.check(&history.consumer);
            assert_invariants(&history.consumer);
        }
        history.finish();
    }

    /// A number below `bound`.
    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn pick<T: Clone>(&mut self, list: &[T]) -> Option<T> {
        let at = self.random.below(list.len() as u64) as usize;
        list.get(at).cloned()
    }

    fn step(&mut self) {
        match self.below(100) {
            0..10 => self.append(),
            10..20 => self.scan(),
            20..34 => self.look_up(),
            34..60 => self.turn(),
            60..66 => self.begin_settling(),
            66..74 => self.end_settling(),
            74..80 => self.pass_time(),
            80..94 => self.checkpoint(),
            94 => self.extend(),
            95 => self.crash(),
            96 => self.crash_twice(),
            _ => self.operate(),
        }
    }

    fn append(&mut self) {
        for _ in 0..=self.below(3) {
            let names = self.names;
            let keys = (self.below(5) > 0).then(|| {
                let few = [0, 1, 1, 1, 1, 2, 3][self.below(7) as usize];
                let keys: BTreeSet<String> =
                    (0..few).map(|_| format!("key {}", self.below(names))).collect();
                keys.into_iter().collect()
            });
            self.model.log.push(keys);
        }
    }

    /// Asks for a scan, or answers one that was asked for at any time.
    fn scan(&mut self) {
        if let ScanNeed::From(from) = self.consumer.scan_need(4) {
            self.scans.push(from);
        }
        if self.below(3) > 0
            && let Some(from) = self.pick(&self.scans.clone())
        {
            self.answer_scan(from);
        }
    }

    fn answer_scan(&mut self, from: ScanFrom) {
        let head = self.model.head();
        if from.after > head {
            return;
        }
        let up_to = from.after + self.below(head - from.after + 1);
        let events = self.model.read(&self.consumer, from.after, up_to);
        self.consumer.leave_out(self.model.runs.borrow().clone());
        let kept = &self.model.kept;
        let is_next = from == ScanFrom { generation: kept.generation, after: kept.scanned };
        let scanned = match self.consumer.scanned(from, &events, up_to) {
            ScanVerdict::Stale => kept.scanned,
            ScanVerdict::Taken => up_to,
            ScanVerdict::Cut(at) => at,
        };
        assert!(is_next || scanned == kept.scanned, "a stale scan");
        self.model.kept.scanned = scanned;
    }

    fn look_up(&mut self) {
        self.look_ups.extend(self.consumer.wanted_look_ups(4, 2));
        if self.below(4) > 0
            && let Some(look_up) = self.pick(&self.look_ups.clone())
        {
            self.answer_look_up(&look_up);
        }
    }

    fn answer_look_up(&mut self, look_up: &LookUp) {
        let read = self.model.read(&self.consumer, look_up.after, look_up.up_to);
        let has_key = |event: &&KeyedEvent<'_>| match &look_up.key {
            KeyName::Value(value) => event.keys.contains(&&**value),
            KeyName::Event(position) => event.position == *position,
        };
        let all: Vec<_> = read.iter().filter(has_key).cloned().collect();
        let some = all.len().min(look_up.limit);
        self.consumer.leave_out(self.model.runs.borrow().clone());
        self.consumer.found(look_up, &all[..some], some == all.len());
    }

    fn expire(&mut self) {
        self.model.expire(self.now);
        self.judged = self.now;
    }

    /// Signs the worker in the model.
    fn sign(&mut self, worker: &'static str) {
        if let Some(sign) = self.model.workers.get_mut(worker) {
            sign.last = self.now;
        }
    }

    fn turn(&mut self) {
        let worker = WORKERS[self.below(3) as usize];
        self.expire();
        let known = self.model.workers.get(worker).cloned();
        let turn =
            known.as_ref().map_or(5, |sign| sign.turn + [0, 1, 1, 1][self.below(4) as usize])
                - u64::from(self.below(20) == 0);
        let verdict = self.consumer.begin_turn(worker, turn, self.now);
        match known {
            Some(known) if turn < known.turn => {
                assert_eq!(verdict, TurnVerdict::Passed { turn: known.turn });
                return;
            }
            Some(known) if turn == known.turn => {
                let TurnVerdict::Again { deliveries, refused } = verdict else {
                    panic!("{verdict:?}, not the same turn again")
                };
                assert_eq!(refused, known.refused);
                let again: Vec<DeliveryId> = deliveries.iter().map(|again| again.id).collect();
                let held = known.taken.iter().filter(|id| self.model.held.contains_key(id));
                assert!(again.iter().eq(held), "W7: {again:?}");
                for again in deliveries {
                    assert_eq!(again.positions, self.model.held[&again.id].positions);
                }
                self.sign(worker);
            }
            _ => {
                assert_eq!(verdict, TurnVerdict::New);
                let (taken, refused) = (Vec::new(), Vec::new());
                let sign = Sign { last: self.now, turn, taken, refused };
                self.model.workers.insert(worker, sign);
                for _ in 0..self.below(4) {
                    self.end_one(worker);
                }
            }
        }
        self.take(worker);
    }

    fn take(&mut self, worker: &'static str) {
        self.expire();
        let call = self.consumer.latest_call(worker).expect("it has begun a turn");
        let earlier = self.consumer.take(worker, call - 1, 1, self.now, || 0);
        assert_eq!(earlier, Err(TakeRefusal::Passed), "W7");
        let want = self.below(4) as usize;
        let random = &mut self.random;
        let taken = self.consumer.take(worker, call, want, self.now, || random.next_u64());
        let taken = taken.expect("its turn");
        assert!(taken.len() <= want);
        for delivery in taken {
            self.ids.push(delivery.id);
            self.model.given(worker, &delivery, self.now);
        }
    }

    /// An id: of this worker's deliveries, or any that was ever given.
    fn any_id(&mut self, worker: &str) -> Option<DeliveryId> {
        let own = self.model.held.iter().filter(|(_, hold)| hold.worker == worker);
        let own: Vec<DeliveryId> = own.map(|(id, _)| *id).collect();
        let from = if self.below(4) == 0 || own.is_empty() { self.ids.clone() } else { own };
        self.pick(&from)
    }

    /// What the model expects of a call about a delivery.
    fn expected(&mut self, worker: &str, id: DeliveryId) -> Result<(), DeliveryRefusal> {
        match self.model.held.get(&id) {
            Some(hold) if hold.worker == worker && hold.staged > 0 => Err(DeliveryRefusal::Staged),
            Some(hold) if hold.worker == worker => Ok(()),
            _ => {
                if let Some(sign) = self.model.workers.get_mut(worker) {
                    sign.refused.push(id);
                }
                Err(DeliveryRefusal::Lost)
            }
        }
    }

    /// Up to where to settle, and how many events that is.
    fn part(&mut self, id: DeliveryId) -> (Option<Position>, usize) {
        let positions = self.model.held.get(&id).map(|hold| hold.positions.clone());
        let positions = positions.unwrap_or_default();
        if self.below(2) == 0 || positions.is_empty() {
            return (None, positions.len());
        }
        let at = self.below(positions.len() as u64) as usize;
        (Some(positions[at]), at + 1)
    }

    /// Settles, fails, parks or gives back a delivery.
    fn end_one(&mut self, worker: &'static str) {
        let Some(id) = self.any_id(worker) else { return };
        let expected = self.expected(worker, id);
        let (up_to, count) = self.part(id);
        let first = self.model.held.get(&id).map(|hold| hold.positions[0]);
        let now = self.now;
        match self.below(10) {
            0..6 => {
                assert_eq!(self.consumer.settle(worker, id, up_to), expected, "W4");
                if expected.is_ok() {
                    self.model.settle(id, count);
                }
                return;
            }
            6 | 7 => {
                let pause = (self.below(2) == 0).then(|| self.random.below(30));
                assert_eq!(self.consumer.fail(worker, id, pause, now).map(drop), expected, "W4");
                if let (Ok(()), Some(first)) = (expected, first) {
                    let tries = u32::from(self.model.kept.tries[&first]);
                    let pause = pause.unwrap_or(30.min(4 << (tries - 1)));
                    self.model.try_again(first, Some(now + pause));
                }
            }
            8 => {
                assert_eq!(self.consumer.park(worker, id).map(drop), expected, "W4");
                if let (Ok(()), Some(first)) = (expected, first) {
                    self.model.parking.insert(first);
                }
            }
            _ => {
                assert_eq!(self.consumer.give_back(worker, id), expected, "W4");
                if let (Ok(()), Some(first)) = (expected, first) {
                    *self.model.kept.tries.get_mut(&first).expect("tried") -= 1;
                }
            }
        }
        if expected.is_ok() {
            self.model.held.remove(&id);
        }
    }

    fn begin_settling(&mut self) {
        let worker = WORKERS[self.below(3) as usize];
        let Some(id) = self.any_id(worker) else { return };
        self.expire();
        self.sign(worker);
        let expected = self.expected(worker, id);
        let (up_to, count) = self.part(id);
        let positions = self.consumer.begin_settling(worker, id, up_to, self.now);
        match expected {
            Err(refusal) => assert_eq!(positions, Err(refusal), "W4"),
            Ok(()) => {
                let hold = self.model.held.get_mut(&id).expect("held");
                hold.staged = count;
                assert_eq!(positions.as_deref(), Ok(&hold.positions[..count]));
            }
        }
    }

    /// An append that settles is durable, or taken back.
    fn end_settling(&mut self) {
        let staged = self.model.held.iter().filter(|(_, hold)| hold.staged > 0);
        let staged: Vec<DeliveryId> = staged.map(|(id, _)| *id).collect();
        let Some(id) = self.pick(&staged) else {
            // An append of before a reset: nothing.
            if let Some(id) = self.pick(&self.ids.clone()) {
                self.consumer.settled(id);
            }
            return;
        };
        if self.below(3) > 0 {
            self.record_settlement(id);
            self.consumer.settled(id);
            let staged = self.model.held[&id].staged;
            self.model.settle(id, staged);
        } else {
            self.consumer.set_back(id);
            self.model.held.get_mut(&id).expect("held").staged = 0;
        }
        self.model.after_outcome(id, self.judged);
        self.model.forget(self.judged);
    }

    /// The append itself: an event that does not match, found by the first event that it settles.
    fn record_settlement(&mut self, id: DeliveryId) {
        self.model.log.push(None);
        let (at, hold) = (self.model.head(), &self.model.held[&id]);
        let (generation, events) = (id.generation, hold.positions[..hold.staged].to_vec());
        self.model.appended.push(SettlingAppend { generation, events, at });
    }

    fn pass_time(&mut self) {
        self.now += [1, 5, 20, 49, 60][self.below(5) as usize];
        if self.below(2) == 0 {
            self.expire();
            self.consumer.expire(self.now);
        }
    }

    fn extend(&mut self) {
        let worker = WORKERS[self.below(3) as usize];
        self.expire();
        self.sign(worker);
        let held = self.model.held.values().filter(|hold| hold.worker == worker).count();
        assert_eq!(self.consumer.extend(worker, self.now), held);
    }

    fn checkpoint(&mut self) {
        match self.below(20) {
            0..10 => self.begin_checkpoint(),
            10..19 => self.end_checkpoint(true),
            _ => self.end_checkpoint(false),
        }
    }

    fn begin_checkpoint(&mut self) {
        let built = self.consumer.checkpoint(self.model.head());
        let generation = self.model.kept.generation;
        let is_busy = self.appending.iter().any(|(built, ..)| built.generation == generation);
        assert_eq!(built.is_none(), is_busy);
        if let Some(built) = built {
            let mut kept = self.model.kept.clone();
            self.park(&mut kept, &built);
            let replayed = self.model.replaying.clone();
            kept.parked.retain(|position| !replayed.contains(position));
            self.appending.push_back((built, kept, replayed));
        }
    }

    /// Parks events in what a checkpoint keeps: with their keys, or alone.
    fn park(&self, kept: &mut SavedState, built: &Checkpoint) {
        for &position in &self.model.parking {
            kept.parked.insert(position);
            let name = KeyName::Event(position);
            let is_alone = built.open.iter().any(|open| open.key == name);
            if is_alone && !self.model.keys(position).is_empty() {
                assert_eq!(self.model.definition.on_failure, FailureRule::ParkEvent);
                kept.alone.insert(position);
            }
        }
    }

    fn end_checkpoint(&mut self, is_durable: bool) {
        let Some((built, kept, replayed)) = self.appending.pop_front() else { return };
        if !is_durable {
            self.consumer.checkpoint_failed(built.generation);
            return;
        }
        self.consumer.checkpoint_recorded(built.generation);
        if built.generation != self.model.kept.generation {
            self.keep(built, kept);
            return;
        }
        for position in &replayed {
            self.model.replaying.remove(position);
            self.model.kept.parked.remove(position);
        }
        let parked: Vec<Position> = kept.parked.iter().copied().collect();
        for position in parked.iter().filter(|position| self.model.parking.remove(position)) {
            self.model.kept.parked.insert(*position);
            if kept.alone.contains(position) {
                self.model.kept.alone.insert(*position);
            }
        }
        self.keep(built, kept);
    }

    fn keep(&mut self, built: Checkpoint, kept: SavedState) {
        if built.is_full {
            self.chain.clear();
        }
        self.chain.push(built);
        self.kept = Some(kept);
    }

    /// A crash while much is not saved, and another one as soon as the restart has saved what it
    /// has read.
    fn crash_twice(&mut self) {
        self.resume();
        self.append();
        self.scan();
        self.begin_checkpoint();
        self.end_checkpoint(true);
        for _ in 0..self.below(10) {
            self.append();
            self.scan();
            self.turn();
            self.begin_settling();
        }
        self.crash();
        for _ in 0..8 {
            self.look_up();
        }
        for _ in 0..self.below(3) {
            self.scan();
        }
        self.begin_checkpoint();
        self.end_checkpoint(true);
        self.crash();
    }

    /// Everything but the log is gone. What was being appended is durable or not.
    fn crash(&mut self) {
        let staged = self.model.held.iter().filter(|(_, hold)| hold.staged > 0);
        let staged: Vec<DeliveryId> = staged.map(|(id, _)| *id).collect();
        for id in staged {
            if self.below(2) == 0 {
                self.record_settlement(id);
            }
        }
        while let Some((built, kept, _)) = self.appending.pop_front()
            && self.below(2) == 0
        {
            self.keep(built, kept);
        }
        self.appending.clear();
        // A delta may be read twice.
        let mut chain = self.chain.clone();
        if self.below(2) == 0 {
            chain.extend(self.chain.last().cloned());
        }
        let head = self.model.head();
        let definition = self.model.definition.clone();
        self.consumer = Consumer::restore(definition, &chain, head).expect("a chain");
        let model = &mut self.model;
        model.kept = self.kept.clone().expect("kept");
        let generation = model.kept.generation;
        let appends = model.appended.iter().filter(|append| append.generation == generation);
        for event in appends.flat_map(|append| &append.events) {
            // What lies behind `scanned` is not open, so it is as good as settled.
            model.kept.settled.insert(*event);
            model.kept.tries.remove(event);
            model.kept.parked.remove(event);
        }
        model.held.clear();
        model.workers.clear();
        model.retries.clear();
        model.parking.clear();
        model.replaying.clear();
        model.runs.take();
        self.scans.clear();
        self.look_ups.clear();
    }

    fn operate(&mut self) {
        match self.below(8) {
            0 => {
                self.consumer.pause();
                self.model.kept.state = RunState::Paused;
            }
            1..4 => self.resume(),
            4 => self.reset(),
            5 | 6 => self.replay(),
            _ => self.skip(),
        }
    }

    fn resume(&mut self) {
        self.consumer.resume();
        self.model.kept.state = RunState::Running;
    }

    fn reset(&mut self) {
        let after = self.below(self.model.head() + 1);
        self.consumer.reset(after);
        let fresh = Model::new(self.model.definition.clone());
        let kept = &mut self.model.kept;
        let state = if kept.state == RunState::Paused { kept.state } else { RunState::Running };
        let generation = kept.generation + 1;
        *kept = SavedState { generation, from: after, scanned: after, state, ..fresh.kept };
        self.model.held.clear();
        self.model.retries.clear();
        self.model.parking.clear();
        self.model.replaying.clear();
        self.model.forget(self.judged);
    }

    /// One parked event, or all.
    fn parked(&mut self) -> Option<Vec<Position>> {
        let parked = self.model.kept.parked.difference(&self.model.replaying);
        let parked: Vec<Position> = parked.copied().collect();
        let one = self.pick(&parked)?;
        Some(if self.below(2) == 0 { parked } else { vec![one] })
    }

    fn replay(&mut self) {
        let Some(parked) = self.parked() else { return };
        let replayed = self.consumer.replay(ParkedSelection::Positions(&chosen(&parked)));
        assert_eq!(replayed, parked.len());
        for position in parked {
            self.model.replaying.insert(position);
            self.model.kept.tries.remove(&position);
        }
    }

    fn skip(&mut self) {
        let Some(parked) = self.parked() else { return };
        let skipped = self.consumer.skip(ParkedSelection::Positions(&chosen(&parked)));
        assert_eq!(skipped, parked.len());
        for position in parked {
            self.model.kept.parked.remove(&position);
            self.model.kept.tries.remove(&position);
            self.model.kept.settled.insert(position);
        }
    }

    /// One diligent worker settles everything: nothing that is not parked is left.
    fn finish(&mut self) {
        for _ in 0..400 {
            self.end_settling();
            self.end_checkpoint(true);
            self.begin_checkpoint();
            if self.model.kept.state != RunState::Running {
                self.resume();
            }
            while self.model.kept.parked.len() > self.model.replaying.len() {
                self.skip();
            }
            self.now += 30;
            if let ScanNeed::From(from) = self.consumer.scan_need(9) {
                self.answer_scan(from);
            }
            for look_up in self.consumer.wanted_look_ups(9, 9) {
                self.answer_look_up(&look_up);
            }
            self.settle_all();
            self.model.check(&self.consumer);
            let is_done = self.model.kept.scanned == self.model.head();
            if is_done && self.consumer.status().open_keys == 0 {
                assert_eq!(self.model.open().next(), None, "W1");
                return;
            }
        }
        panic!("not finished: {:?}", self.consumer.status());
    }

    fn settle_all(&mut self) {
        self.expire();
        let turn = self.model.workers.get("ann").map_or(1, |sign| sign.turn + 1);
        assert_eq!(self.consumer.begin_turn("ann", turn, self.now), TurnVerdict::New);
        let (taken, refused) = (Vec::new(), Vec::new());
        self.model.workers.insert("ann", Sign { last: self.now, turn, taken, refused });
        let held = self.model.held.iter().filter(|(_, h)| h.worker == "ann" && h.staged == 0);
        let held: Vec<DeliveryId> = held.map(|(id, _)| *id).collect();
        for id in held {
            assert_eq!(self.consumer.settle("ann", id, None), Ok(()));
            let count = self.model.held[&id].positions.len();
            self.model.settle(id, count);
        }
        self.take("ann");
    }
}

fn chosen(positions: &[Position]) -> HashSet<Position> {
    positions.iter().copied().collect()
}
