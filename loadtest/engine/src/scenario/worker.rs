//! A scenario on one worker thread: what its users do next.

use super::data::Order;
use super::distinct::{Distinct, Hash};
use super::plan::{Body, RequestPlan, Shortfall};
use super::run::{Shared, StepPlan};
use super::setup::run_text;
use super::value::{Counters, Moment, Unfilled};
use crate::random::SplitMix64;
use crate::workload::{Answer, Judgement, Next, Request, Workload};
use std::sync::Arc;

/// The requests of one worker.
pub(crate) struct ScenarioWorkload {
    shared: Arc<Shared>,
    seed: u64,
    /// By number; users of other workers are `None`.
    users: Vec<Option<Box<User>>>,
    worker: WorkerState,
}

/// What belongs to one worker and all its users.
struct WorkerState {
    worker: u32,
    workers: u32,
    /// By slot; `None` where values are the users' own.
    pools: Vec<Option<Pool>>,
    counters: Counters,
    /// By table: how many rows this worker has dealt.
    dealt: Vec<u64>,
    /// By request: its parts.
    buffers: Vec<RequestBuffer>,
    distinct: Distinct,
    run: String,
    captured: String,
}

/// One user: its generator, and where in a step it is. What it draws depends on
/// the seed and its number only, not on how users take turns.
struct User {
    random: SplitMix64,
    step: usize,
    /// Requests of the step that have been answered; 0 before a step is chosen.
    done: u16,
    /// The request that was prepared last.
    request: u16,
    slots: Vec<Option<String>>,
    rows: Vec<u32>,
    counted: Vec<Option<u64>>,
}

/// Captured values from which others draw: the latest so many.
struct Pool {
    values: Vec<String>,
    most: usize,
    oldest: usize,
}

/// A request's parts, kept from one time to the next so that nothing is allocated.
struct RequestBuffer {
    constant: bool,
    path: String,
    headers: Vec<(String, String)>,
    text: String,
    bytes: Vec<u8>,
    /// Whether a constant request has been counted among the different ones.
    counted: bool,
}

impl Pool {
    fn new(most: u32, first: &[String]) -> Self {
        let most = most.max(1) as usize;
        let values = first[first.len().saturating_sub(most)..].to_vec();
        Pool { values, most, oldest: 0 }
    }

    fn put(&mut self, value: &str) {
        if self.values.len() < self.most {
            self.values.push(value.to_owned());
            return;
        }
        let there = &mut self.values[self.oldest];
        there.clear();
        there.push_str(value);
        self.oldest = (self.oldest + 1) % self.most;
    }

    fn draw(&self, random: &mut SplitMix64) -> Option<&str> {
        let at = usize::try_from(random.below(self.values.len() as u64)).unwrap_or(0);
        self.values.get(at).map(String::as_str)
    }
}

impl RequestBuffer {
    fn new(plan: &RequestPlan) -> Self {
        let text = |template: &super::template::Template| {
            template.constant().unwrap_or_default().to_owned()
        };
        let headers = plan.headers.iter().map(|h| (h.name.clone(), text(&h.value))).collect();
        let bytes = match &plan.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Text(template) => text(template).into_bytes(),
        };
        RequestBuffer {
            constant: plan.is_constant(),
            path: text(&plan.path),
            headers,
            text: String::new(),
            bytes,
            counted: false,
        }
    }

    /// Lays out what changes.
    fn fill(&mut self, plan: &RequestPlan, moment: &mut Moment<'_>) -> Result<Hash, Unfilled> {
        let mut hash = Hash::new(0);
        if plan.path.constant().is_none() {
            self.path.clear();
            plan.path.fill(moment, &mut self.path)?;
            if !self.path.starts_with('/') {
                return Err(Unfilled(format!("{:?} does not begin with \"/\"", self.path)));
            }
            hash.add(self.path.as_bytes());
        }
        for (header, (_, value)) in plan.headers.iter().zip(&mut self.headers) {
            if header.value.constant().is_none() {
                value.clear();
                header.value.fill(moment, value)?;
                hash.add(value.as_bytes());
            }
        }
        if let Body::Text(template) = &plan.body
            && template.constant().is_none()
        {
            self.text.clear();
            template.fill(moment, &mut self.text)?;
            hash.add(self.text.as_bytes());
        }
        Ok(hash)
    }

    fn body<'l>(&'l self, plan: &RequestPlan) -> &'l [u8] {
        match &plan.body {
            Body::Text(template) if template.constant().is_none() => self.text.as_bytes(),
            _ => &self.bytes,
        }
    }
}

/// Which step a user takes.
enum Choice {
    Step(usize),
    /// None can be taken now; the one that was drawn.
    NotNow(usize),
    /// All data that is used once is used up.
    Never,
}

impl ScenarioWorkload {
    pub(crate) fn new(shared: Arc<Shared>, worker: u32, workers: u32, seed: u64) -> Self {
        let pool = |(slot, first): (&super::names::Slot, &Vec<String>)| {
            slot.keep.map(|most| Pool::new(most, first))
        };
        let worker = WorkerState {
            worker,
            workers: workers.max(1),
            pools: shared.slots.iter().zip(&shared.first_kept).map(pool).collect(),
            counters: Counters::new(&shared.counter_starts, worker, workers),
            dealt: vec![0; shared.tables.len()],
            buffers: shared.requests.iter().map(RequestBuffer::new).collect(),
            distinct: Distinct::new(),
            run: run_text(shared.clock),
            captured: String::new(),
        };
        ScenarioWorkload { shared, seed, users: Vec::new(), worker }
    }

    /// Makes room for a user that has not been seen.
    fn meet(&mut self, user: u32) {
        let at = user as usize;
        if self.users.len() <= at {
            self.users.resize_with(at + 1, || None);
        }
        if self.users[at].is_none() {
            let shared = &self.shared;
            self.users[at] = Some(Box::new(User {
                random: SplitMix64::stream(self.seed, u64::from(user)),
                step: 0,
                done: 0,
                request: 0,
                slots: shared.first_values.clone(),
                rows: vec![0; shared.tables.len()],
                counted: vec![None; shared.counter_starts.len()],
            }));
        }
    }
}

impl WorkerState {
    /// The number of the next row of a table that is dealt to workers.
    fn next_row(&self, table: usize) -> u64 {
        u64::from(self.worker) + self.dealt[table] * u64::from(self.workers)
    }

    fn is_used_up(&self, shared: &Shared, step: &StepPlan) -> bool {
        step.tables.iter().any(|&table| {
            let at = usize::from(table);
            shared.is_once(table) && self.next_row(at) >= u64::from(shared.tables[at].rows())
        })
    }

    fn can_take(&self, shared: &Shared, step: &StepPlan, user: &User) -> bool {
        let has = |slot: &u16| match &self.pools[usize::from(*slot)] {
            Some(pool) => !pool.values.is_empty(),
            None => user.slots[usize::from(*slot)].is_some(),
        };
        step.requires.iter().all(has) && !self.is_used_up(shared, step)
    }

    /// Draws a step by weight; if it cannot be taken, one of those that can.
    fn choose(&self, shared: &Shared, user: &mut User) -> Choice {
        let steps = &shared.steps;
        if let [only] = steps.as_slice()
            && only.requires.is_empty()
            && only.tables.is_empty()
        {
            return Choice::Step(0);
        }
        let drawn = by_weight(&mut user.random, shared.total_weight, steps.iter());
        if self.can_take(shared, &steps[drawn], user) {
            return Choice::Step(drawn);
        }
        let possible: Vec<usize> =
            (0..steps.len()).filter(|&at| self.can_take(shared, &steps[at], user)).collect();
        let weight = possible.iter().map(|&at| steps[at].weight).sum();
        if possible.is_empty() {
            let never = steps.iter().all(|step| self.is_used_up(shared, step));
            return if never { Choice::Never } else { Choice::NotNow(drawn) };
        }
        let among = possible.iter().map(|&at| &steps[at]);
        Choice::Step(possible[by_weight(&mut user.random, weight, among)])
    }

    /// Draws what the step needs once: rows, kept values, `let`.
    fn begin(&mut self, shared: &Shared, number: u32, user: &mut User) -> Result<(), Unfilled> {
        let step = &shared.steps[user.step];
        if step.counts {
            user.counted.fill(None);
        }
        for &table in &step.tables {
            let at = usize::from(table);
            let rows = shared.tables[at].rows();
            user.rows[at] = match shared.tables[at].order {
                Order::Random => u32::try_from(user.random.below(u64::from(rows))).unwrap_or(0),
                Order::User => number % rows,
                Order::Sequential | Order::Once => {
                    let row = self.next_row(at) % u64::from(rows);
                    self.dealt[at] += 1;
                    u32::try_from(row).unwrap_or(0)
                }
            };
        }
        for &slot in &step.drawn {
            let at = usize::from(slot);
            let drawn = self.pools[at].as_ref().and_then(|pool| pool.draw(&mut user.random));
            if let Some(drawn) = drawn {
                put(&mut user.slots[at], drawn);
            }
        }
        let mut now_ns = None;
        for (slot, template) in &step.lets {
            let mut value = std::mem::take(&mut self.captured);
            value.clear();
            let mut moment = self.moment(shared, number, user, now_ns);
            let filled = template.fill(&mut moment, &mut value);
            now_ns = moment.now_ns;
            put(&mut user.slots[usize::from(*slot)], &value);
            self.captured = value;
            filled?;
        }
        Ok(())
    }

    fn moment<'m>(
        &'m mut self,
        shared: &'m Shared,
        number: u32,
        user: &'m mut User,
        now_ns: Option<u64>,
    ) -> Moment<'m> {
        Moment {
            user: number,
            random: &mut user.random,
            setup: &[],
            slots: &user.slots,
            tables: &shared.tables,
            rows: &user.rows,
            counters: &mut self.counters,
            counted: &mut user.counted,
            clock: shared.clock,
            now_ns,
            run: &self.run,
        }
    }

    /// Chooses and lays out the user's next request; its number.
    fn prepare(&mut self, shared: &Shared, number: u32, user: &mut User) -> PreparedRequest {
        if user.done == 0 {
            match self.choose(shared, user) {
                Choice::Step(step) => user.step = step,
                Choice::NotNow(step) => return PreparedRequest::Failed(shared.steps[step].first),
                Choice::Never => return PreparedRequest::Nothing,
            }
            if self.begin(shared, number, user).is_err() {
                return PreparedRequest::Failed(shared.steps[user.step].first);
            }
        }
        let request = shared.steps[user.step].first + user.done;
        user.request = request;
        let at = usize::from(request);
        if self.buffers[at].constant {
            if !self.buffers[at].counted {
                self.buffers[at].counted = true;
                self.distinct.add(crate::random::mix(u64::from(request) + 1));
            }
            return PreparedRequest::Ready(request);
        }
        let mut buffer = std::mem::replace(&mut self.buffers[at], RequestBuffer::empty());
        let filled =
            buffer.fill(&shared.requests[at], &mut self.moment(shared, number, user, None));
        self.buffers[at] = buffer;
        match filled {
            Ok(mut hash) => {
                hash.add(&request.to_le_bytes());
                self.distinct.add(hash.finish());
                PreparedRequest::Ready(request)
            }
            Err(_) => {
                user.done = 0;
                PreparedRequest::Failed(request)
            }
        }
    }
}

impl RequestBuffer {
    /// Stands in while the real one is being filled; allocates nothing.
    fn empty() -> Self {
        RequestBuffer {
            constant: false,
            path: String::new(),
            headers: Vec::new(),
            text: String::new(),
            bytes: Vec::new(),
            counted: false,
        }
    }
}

/// The outcome of preparing a request.
enum PreparedRequest {
    Ready(u16),
    Failed(u16),
    Nothing,
}

/// Puts a value into a slot, in the room of the old one.
fn put(slot: &mut Option<String>, value: &str) {
    let there = slot.get_or_insert_with(String::new);
    there.clear();
    there.push_str(value);
}

/// The place of a step drawn by weight.
fn by_weight<'s>(
    random: &mut SplitMix64,
    total: u64,
    steps: impl Iterator<Item = &'s StepPlan>,
) -> usize {
    let mut left = random.below(total);
    for (at, step) in steps.enumerate() {
        if left < step.weight {
            return at;
        }
        left -= step.weight;
    }
    0
}

impl Workload for ScenarioWorkload {
    fn next(&mut self, user: u32) -> Next<'_> {
        self.meet(user);
        let Some(mut state) = self.users[user as usize].take() else { return Next::Done };
        let prepared = self.worker.prepare(&self.shared, user, &mut state);
        self.users[user as usize] = Some(state);
        match prepared {
            PreparedRequest::Nothing => Next::Done,
            PreparedRequest::Failed(endpoint) => Next::Failed { endpoint },
            PreparedRequest::Ready(request) => {
                let buffer = &self.worker.buffers[usize::from(request)];
                let plan = &self.shared.requests[usize::from(request)];
                Next::Send(Request {
                    endpoint: request,
                    fixed: buffer.constant.then_some(u32::from(request)),
                    method: &plan.method,
                    path: &buffer.path,
                    headers: &buffer.headers,
                    body: buffer.body(plan),
                })
            }
        }
    }

    fn judge(&mut self, user: u32, answer: &Answer<'_>) -> Judgement {
        let Some(Some(state)) = self.users.get_mut(user as usize) else {
            return Judgement::WrongStatus;
        };
        let at = usize::from(state.request);
        let plan = &self.shared.requests[at];
        let first_check = self.shared.first_check[at];
        let failed = |check: usize| {
            Judgement::FailedCheck(first_check.saturating_add(u16::try_from(check).unwrap_or(0)))
        };
        // Whatever fails ends the step: what follows was meant for a success.
        let done = std::mem::take(&mut state.done);
        match plan.judge(answer.status, &answer.head, answer.body) {
            Err(Shortfall::Status) => return Judgement::WrongStatus,
            Err(Shortfall::Check(check)) => return failed(check),
            Ok(()) => {}
        }
        for (number, capture) in plan.captures.iter().enumerate() {
            if capture.take(&answer.head, answer.body, &mut self.worker.captured) {
                let Some(slot) = capture.slot.map(usize::from) else { continue };
                put(&mut state.slots[slot], &self.worker.captured);
                if let Some(pool) = &mut self.worker.pools[slot] {
                    pool.put(&self.worker.captured);
                }
            } else if !capture.optional {
                return failed(plan.checks.len() + number);
            }
        }
        if done + 1 < self.shared.steps[state.step].count {
            state.done = done + 1;
        }
        Judgement::Success
    }

    fn lost(&mut self, user: u32) {
        if let Some(Some(state)) = self.users.get_mut(user as usize) {
            state.done = 0;
        }
    }

    fn distinct_requests(&self) -> Option<u64> {
        Some(self.worker.distinct.estimate())
    }

    fn check_text(&self, check: u16) -> String {
        self.shared.check_text(check)
    }
}
