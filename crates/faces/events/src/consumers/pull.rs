//! `POST …/next`: a worker settles what it has done and waits for more.
//!
//! Pulls that wait stand in line for the scanner. The first reads ahead and watches the clock; when
//! something is ready it takes its share and lets the next one come. So pulls are served in order,
//! and without one nothing is read and no clock is watched.

use super::deliveries::DeliveryTask;
use super::interrupted::Interrupted;
use super::open::OpenConsumer;
use super::scan::Advance;
use super::stored::ParkedEvent;
use super::turn::{DeliveryName, FailedDelivery, WorkerTurn, read_turn};
use crate::EventFace;
use crate::disclosure::Disclosure;
use crate::params::CONSUMER;
use crate::problems::TURN_PASSED;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wellspring_consumers::{
    Consumer, Delivery, DeliveryId, DeliveryRefusal, RunState, TakeRefusal, TurnVerdict,
};
use wellspring_host::http::content::expect_json;
use wellspring_host::http::work::{Cost, Job};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::json::{document, push_list, push_string, push_u64};
use wellspring_host::wire::problem::{self, Problem, of_fault};

/// Largest body, in bytes.
const MAX_BODY_BYTES: usize = 4 << 20;
/// Most workers of a consumer.
pub(crate) const MAX_WORKERS: usize = 1_000;
/// Most events that are made ready ahead of the pulls that wait.
const MAX_AHEAD: usize = 1_024;
/// How often a consumer that was closed meanwhile is opened again.
const ATTEMPTS: usize = 8;

/// A delivery that is not what the worker took it for.
struct RefusedItem {
    id: DeliveryId,
    refusal: DeliveryRefusal,
}

/// `POST /v1/consumers/{name}/next`.
pub(crate) async fn next(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&CONSUMER)?;
    expect_json(&request)?;
    let body = request.body.read(MAX_BODY_BYTES).await?;
    let mut job = Job::begin(&face.host, &request.payer)?;
    let cost = Cost::of_bytes(body.len());
    let read = move || document(&body, read_turn).map_err(|fault| of_fault(&fault, &body));
    let turn = job.brief(cost, read).await??;
    let account = request.principal.holder();
    let deadline_us = face.host.clock.monotonic_us() + turn.wait_ms * 1_000;
    let pull = Pull {
        host: &face.host,
        request: &request,
        worker: worker_name(account, &turn.worker),
        turn,
        deadline_us,
        call: AtomicU64::new(0),
    };
    for _ in 0..ATTEMPTS {
        let consumers = face.consumers.of_log(&request)?;
        let consumer = consumers.open(&face.host, &mut job, &name).await?;
        match pull.serve(&consumer, &mut job).await {
            Ok(answer) => return Ok(answer),
            Err(Interrupted::Closed) => {}
            Err(Interrupted::NotSaved(error)) => return Err(request.effects.refused(error).into()),
            Err(Interrupted::Problem(problem)) => return Err(problem),
        }
    }
    Err(problem::OVERLOADED.because(format!("the consumer {name:?} is being changed")))
}

/// A worker of an account, which no other account can name: names have no control characters.
pub(super) fn worker_name(account: impl std::fmt::Display, worker: &str) -> String {
    format!("{account}\0{worker}")
}

/// A place in line, given up when it is dropped.
struct WaitingPull<'a>(&'a OpenConsumer);

impl<'a> WaitingPull<'a> {
    /// There are as many as workers at most: another call of a worker takes the place of the one
    /// that waits.
    fn enter(consumer: &'a OpenConsumer) -> WaitingPull<'a> {
        consumer.waiting.fetch_add(1, Relaxed);
        WaitingPull(consumer)
    }
}

impl Drop for WaitingPull<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Relaxed);
    }
}

/// A request for deliveries.
struct Pull<'a> {
    host: &'a Arc<Host>,
    request: &'a Request,
    /// The worker's name with its account's.
    worker: String,
    turn: WorkerTurn,
    deadline_us: u64,
    /// The number of this call: another one of the worker takes its place.
    call: AtomicU64,
}

impl Pull<'_> {
    async fn serve(
        &self,
        consumer: &Arc<OpenConsumer>,
        job: &mut Job,
    ) -> Result<Response, Interrupted> {
        let (mut deliveries, refused) = self.begin(consumer)?;
        if self.turn.is_durable {
            consumer.saved(consumer.next_save()).await?;
        }
        if deliveries.is_empty() && self.turn.want > 0 {
            deliveries = self.wait(consumer, job).await?;
        }
        self.answer(consumer, job, deliveries, refused).await
    }

    /// Begins the turn, and does what the worker says. Returns what it was given if this is the
    /// same turn again, and what it was refused.
    fn begin(
        &self,
        consumer: &Arc<OpenConsumer>,
    ) -> Result<(Vec<Delivery>, Vec<RefusedItem>), Interrupted> {
        let mut parked = Vec::new();
        let begun = consumer.with(|state, now_us| {
            state.expire(now_us);
            if !state.knows_worker(&self.worker)
                && state.worker_count() >= MAX_WORKERS
                && !state.forget_idle_worker()
            {
                return Err(problem::OVERLOADED
                    .because(format!("{MAX_WORKERS} workers hold deliveries, the maximum"))
                    .limit(MAX_WORKERS as u64));
            }
            let verdict = state.begin_turn(&self.worker, self.turn.turn, now_us);
            self.call.store(state.latest_call(&self.worker).unwrap_or(0), Relaxed);
            match verdict {
                TurnVerdict::New => Ok((Vec::new(), self.report(state, now_us, &mut parked))),
                TurnVerdict::Again { deliveries, refused } => {
                    let lost = |id| RefusedItem { id, refusal: DeliveryRefusal::Lost };
                    Ok((deliveries, refused.into_iter().map(lost).collect()))
                }
                TurnVerdict::Passed { turn } => Err(turn_passed(self.turn.turn, turn)),
            }
        })?;
        consumer.note_parked(parked);
        consumer.news.notify_one();
        consumer.save_if_due();
        Ok(begun?)
    }

    /// Does what the worker says of its deliveries. Returns what it is refused.
    fn report(
        &self,
        state: &mut Consumer,
        now_us: u64,
        parked: &mut Vec<ParkedEvent>,
    ) -> Vec<RefusedItem> {
        let (turn, worker) = (&self.turn, &*self.worker);
        let mut refused = Vec::new();
        let mut check = |id, result: Result<_, DeliveryRefusal>| match result {
            Ok(position) => position,
            Err(refusal) => {
                refused.push(RefusedItem { id, refusal });
                None
            }
        };
        for done in &turn.done {
            check(done.id, state.settle(worker, done.id, done.up_to).map(|()| None));
        }
        let mut park = |position: Option<_>, failed: &FailedDelivery| {
            parked.extend(position.map(|position| ParkedEvent {
                position,
                worker: turn.worker.clone(),
                reason: failed.reason.clone(),
            }));
        };
        for failed in &turn.failed {
            let retry_us = failed.retry_ms.map(|retry_ms| retry_ms * 1_000);
            park(check(failed.id, state.fail(worker, failed.id, retry_us, now_us)), failed);
        }
        for item in &turn.park {
            park(check(item.id, state.park(worker, item.id).map(Some)), item);
        }
        for &id in &turn.release {
            check(id, state.give_back(worker, id).map(|()| None));
        }
        refused
    }

    /// Waits until something is ready for the worker. Returns nothing when its time is up, when the
    /// server stops, or when its client has left.
    async fn wait(
        &self,
        consumer: &Arc<OpenConsumer>,
        job: &mut Job,
    ) -> Result<Vec<Delivery>, Interrupted> {
        let clock = &self.host.clock;
        let _waits = WaitingPull::enter(consumer);
        let mut scanner = None;
        let mut has_waited = false;
        loop {
            // What is taken for a client that has left is kept from others for the whole hold.
            if self.request.may_have_no_client() {
                return Ok(Vec::new());
            }
            if has_waited {
                self.request.still_may()?;
            }
            let waiting = consumer.waiting.load(Relaxed);
            if scanner.is_some() || waiting <= 1 {
                let taken = self.take(consumer, waiting)?;
                if !taken.is_empty() {
                    return Ok(taken);
                }
            }
            let left_us = self.deadline_us.saturating_sub(clock.monotonic_us());
            let Some(first) = &mut scanner else {
                scanner = consumer.scanner.try_lock().ok();
                if scanner.is_none() {
                    if left_us == 0 || self.host.is_stopping() {
                        return Ok(Vec::new());
                    }
                    has_waited = true;
                    scanner = self.within(left_us, consumer.scanner.lock()).await;
                }
                continue;
            };
            let enough = (self.turn.want * waiting).clamp(1, MAX_AHEAD);
            if first.advance(consumer, job, enough).await? == Advance::Advanced {
                continue;
            }
            if left_us == 0 || self.host.is_stopping() {
                return Ok(Vec::new());
            }
            has_waited = true;
            let due_us = consumer.with(|state, _| state.next_due())?;
            let due_in_us = due_us.map(|due_us| due_us.saturating_sub(clock.monotonic_us()));
            let patience_us = due_in_us.map_or(left_us, |due_in_us| left_us.min(due_in_us));
            let ready = poll_fn(|context| first.poll_ready(context));
            let ready = self.within(patience_us, async {
                tokio::select! {
                    ready = ready => ready,
                    () = consumer.news.notified() => Ok(()),
                }
            });
            if let Some(Err(refused)) = ready.await {
                return Err(Box::<Problem>::from(refused).into());
            }
            if consumer.log.feed().is_closed() {
                return Err(problem::LOG_CLOSED.because("the log was closed").into());
            }
        }
    }

    /// What a future gives, unless that takes too long or the server stops.
    async fn within<T>(&self, most_us: u64, future: impl Future<Output = T>) -> Option<T> {
        let mut stopping = self.host.stopping.clone();
        tokio::select! {
            result = tokio::time::timeout(Duration::from_micros(most_us + 1), future) => result.ok(),
            _ = stopping.wait_for(|&stopping| stopping) => None,
        }
    }

    /// Takes a share of what is ready.
    fn take(&self, consumer: &OpenConsumer, waiting: usize) -> Result<Vec<Delivery>, Interrupted> {
        let (worker, turn) = (&*self.worker, self.turn.turn);
        let call = self.call.load(Relaxed);
        let taken = consumer.with(|state, now_us| {
            state.expire(now_us);
            let share = state.ready_events().div_ceil(waiting.max(1));
            let want = share.clamp(1, self.turn.want);
            match state.take(worker, call, want, now_us, || consumer.nonce()) {
                // Silent while it waited, it was forgotten, and held nothing.
                Err(TakeRefusal::Unknown) => {
                    state.begin_turn(worker, turn, now_us);
                    let call = state.latest_call(worker).unwrap_or(0);
                    self.call.store(call, Relaxed);
                    state.take(worker, call, want, now_us, || consumer.nonce())
                }
                taken => taken,
            }
        })?;
        taken.map_err(|_| {
            let detail =
                format!("another request of the worker has taken the place of turn {turn}");
            Interrupted::Problem(TURN_PASSED.because(detail))
        })
    }

    async fn answer(
        &self,
        consumer: &Arc<OpenConsumer>,
        job: &mut Job,
        deliveries: Vec<Delivery>,
        refused: Vec<RefusedItem>,
    ) -> Result<Response, Interrupted> {
        let head = consumer.log.head();
        let mut out = Vec::with_capacity(512);
        out.extend_from_slice(b"{\"turn\":");
        push_u64(&mut out, self.turn.turn);
        out.extend_from_slice(b",\"state\":\"");
        let state = consumer.with(|state, _| state.state())?;
        out.extend_from_slice(state_name(state).as_bytes());
        out.extend_from_slice(b"\",\"refused\":");
        push_list(&mut out, refused.iter(), |out, item| {
            out.extend_from_slice(b"{\"delivery\":");
            push_string(out, &DeliveryName(item.id).to_string());
            out.extend_from_slice(b",\"problem\":");
            push_string(out, refusal_name(item.refusal));
            out.push(b'}');
        });
        out.extend_from_slice(b",\"hold_ms\":");
        push_u64(&mut out, consumer.definition.terms.hold_us / 1_000);
        out.extend_from_slice(b",\"head\":");
        push_u64(&mut out, head);
        out.extend_from_slice(b",\"deliveries\":[");
        if deliveries.is_empty() {
            out.extend_from_slice(b"]}");
            return Ok(Response::json(200, out).at(head));
        }
        let begun = out.len();
        let ids: Vec<DeliveryId> = deliveries.iter().map(|delivery| delivery.id).collect();
        // Whoever may pull may write there, and so sees personal data.
        let disclosure = Disclosure::by(self.host.subject_keys.clone());
        let most = self.host.config.max_page_bytes;
        let task = DeliveryTask::new(consumer, deliveries, out, most, disclosure);
        let task = match job.run(Cost::Cheap, task).await {
            Ok(task) => task,
            Err(problem) => {
                self.give_back(consumer, &ids)?;
                return Err(problem.into());
            }
        };
        self.give_back(consumer, &ids[task.written..])?;
        consumer.delivered_bytes.fetch_add((task.out.len() - begun) as u64, Relaxed);
        let mut out = task.out;
        out.extend_from_slice(b"]}");
        Ok(Response::json(200, out).at(head))
    }

    /// Gives back what the answer does not hold.
    fn give_back(&self, consumer: &OpenConsumer, ids: &[DeliveryId]) -> Result<(), Interrupted> {
        if ids.is_empty() {
            return Ok(());
        }
        consumer.with(|state, _| {
            for id in ids {
                // One that has expired meanwhile is back already.
                let _ = state.give_back(&self.worker, *id);
            }
        })?;
        consumer.news.notify_one();
        Ok(())
    }
}

fn turn_passed(asked: u64, latest: u64) -> Box<Problem> {
    let detail = format!("the worker has begun turn {latest} already, after turn {asked}");
    TURN_PASSED.because(detail).with("turn", latest.to_string())
}

/// What clients call a state.
pub(super) fn state_name(state: RunState) -> &'static str {
    match state {
        RunState::Running => "running",
        RunState::Paused => "paused",
        RunState::Stopped => "stopped",
    }
}

/// What clients call a refusal.
pub(super) fn refusal_name(refusal: DeliveryRefusal) -> &'static str {
    match refusal {
        DeliveryRefusal::Lost => "delivery-lost",
        DeliveryRefusal::Staged => "delivery-staged",
        DeliveryRefusal::NotInDelivery => "not-in-delivery",
    }
}
