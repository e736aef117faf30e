//! Commands: decided on the fold and the pending decisions, appended under a condition, and
//! answered when they are durable and folded.
//!
//! A decision takes its place in the log's order under the same lock, so that decisions follow each
//! other as their events do; no thread waits for the device there, so commands gather into one
//! group commit.
//!
//! Besides the fold, a decision depends on pending decisions that have positions and are not
//! durable (`deciding.rs`). An append without positions, because it met a foreign staged event, is
//! never built upon.

use super::deciding::{FinishedAppend, Guard, OpenDecision, PendingDecisions};
use super::freshness::NotFresh;
use super::stored_record::StoredRecord;
use super::{Live, lock};
use crate::view::contract::{Decision, Ticket, View};
use crate::wire::effects::{Effects, StepRefusal};
use std::time::Duration;
use tokio::sync::oneshot;
use wellspring_log::{
    Append, AppendError, Appended, Basis, CommitOn, EncodedEvents, ReadError, ReadOptions,
    RequestKey, Staged,
};
use wellspring_types::{AppendCondition, Invalid, Position, Query, QueryItem, limits};

/// Attempts at a decision that foreign events keep overtaking.
const ATTEMPTS: usize = 16;
/// How long an answer waits for its own events to be folded.
const FOLD_WAIT: Duration = Duration::from_secs(30);
/// How long a decision waits for a view that is being rebuilt.
const REBUILD_WAIT: Duration = Duration::from_secs(5);
/// Time that commands without a key may take under one lock, in µs.
const DECIDE_US: u64 = 500;
/// The result of commands.
pub struct CommandResults<V: View> {
    /// The answers to the first commands, in order; as many as were executed.
    pub outcomes: Vec<V::Outcome>,
    /// Why the next one was refused, if not all were executed. Later ones were not examined.
    pub refused: Option<V::Refusal>,
    /// What stopped the execution after the first of several appends, if anything did.
    pub stopped: Option<ExecuteError>,
    /// The last append, if anything had to be appended.
    pub appended: Option<Appended>,
    /// CPU time of deciding, in µs.
    pub decided_us: u64,
}

/// Why commands were not executed.
#[derive(Debug)]
pub enum ExecuteError {
    /// The log refused the events.
    Append(StepRefusal<AppendError>),
    /// The log could not be read. Nothing was appended by this command.
    Read(ReadError),
    /// The view is not fresh enough.
    NotFresh(NotFresh),
    /// The events are durable, but the view does not show them yet. Repeating the command would
    /// execute it twice.
    DurableNotShown(Appended, NotFresh),
}

impl From<StepRefusal<AppendError>> for ExecuteError {
    fn from(refused: StepRefusal<AppendError>) -> ExecuteError {
        ExecuteError::Append(refused)
    }
}

impl From<ReadError> for ExecuteError {
    fn from(error: ReadError) -> ExecuteError {
        ExecuteError::Read(error)
    }
}

impl From<NotFresh> for ExecuteError {
    fn from(error: NotFresh) -> ExecuteError {
        ExecuteError::NotFresh(error)
    }
}

/// A request key that was looked up.
#[derive(Clone)]
struct KeyedRequest {
    key: RequestKey,
    /// No durable event up to here has it.
    absent_through: Position,
}

type Answer = oneshot::Receiver<Result<Appended, AppendError>>;

/// Pending decisions.
struct Batch<V: View> {
    ticket: Ticket,
    outcomes: Vec<V::Outcome>,
    /// Nothing, if nothing has to be appended.
    answer: Option<Answer>,
}

/// The result of deciding.
enum DecideOutcome<V: View> {
    /// This many commands are decided and staged.
    Batch(Batch<V>),
    /// The first is refused.
    Refused(V::Refusal),
    /// An event breaks a limit of the log.
    Invalid(Invalid),
    /// Depends on decisions up to this one that may still fail.
    DependsOn(Ticket),
}

impl<V: View> Live<V> {
    /// Executes commands in order, as many as possible in one append. With a key, all of them must
    /// fit into one, and a retry gets the first answer. `effects` are those of the request that the
    /// commands are a part of.
    ///
    /// # Errors
    /// [`ExecuteError`], if none was executed; otherwise it is in the results.
    pub async fn execute(
        &self,
        effects: &Effects,
        commands: &[V::Command],
        key: Option<RequestKey>,
        on: CommitOn,
    ) -> Result<CommandResults<V>, ExecuteError> {
        let mut executed = CommandResults {
            outcomes: Vec::new(),
            refused: None,
            stopped: None,
            appended: None,
            decided_us: 0,
        };
        match self.execute_into(&mut executed, effects, commands, key, on).await {
            Err(error) if executed.outcomes.is_empty() => return Err(error),
            Err(error) => executed.stopped = Some(error),
            Ok(()) => {}
        }
        Ok(executed)
    }

    async fn execute_into(
        &self,
        executed: &mut CommandResults<V>,
        effects: &Effects,
        commands: &[V::Command],
        key: Option<RequestKey>,
        on: CommitOn,
    ) -> Result<(), ExecuteError> {
        // Looked up here in the whole log, and not again while decisions wait.
        let key_absent_through = self.log.head();
        if let Some(key) = &key
            && let Some(appended) = self.find(effects, key)?
        {
            return self.replay(executed, appended).await;
        }
        let key = key.map(|key| KeyedRequest { key, absent_through: key_absent_through });
        let mut attempts = 0;
        while executed.outcomes.len() < commands.len() {
            let rest = &commands[executed.outcomes.len()..];
            self.caught_up(self.position(), REBUILD_WAIT).await?;
            let begun_us = self.clock.monotonic_us();
            let decided = self.decide(rest, key.clone(), on);
            executed.decided_us += self.clock.monotonic_us().saturating_sub(begun_us);
            let batch = match decided {
                DecideOutcome::Batch(batch) => batch,
                DecideOutcome::DependsOn(ticket) => {
                    self.settled(ticket).await?;
                    continue;
                }
                DecideOutcome::Invalid(invalid) => {
                    return Err(effects.refused(AppendError::Invalid(invalid)).into());
                }
                DecideOutcome::Refused(refusal) => {
                    executed.refused = Some(refusal);
                    return Ok(());
                }
            };
            if batch.answer.is_none() {
                // No waiting here: others get their turn.
                tokio::task::yield_now().await;
            }
            if let Some(answer) = batch.answer {
                let lost = AppendError::Unknown { reason: "the log gave no answer".into() };
                match answer.await.unwrap_or(Err(lost)) {
                    Ok(appended) if appended.replayed => {
                        return self.replay(executed, appended).await;
                    }
                    Ok(appended) => {
                        effects.begin();
                        let shown = self.caught_up(appended.last, FOLD_WAIT).await;
                        shown.map_err(|e| ExecuteError::DurableNotShown(appended, e))?;
                        executed.appended = Some(appended);
                    }
                    // A foreign event: fold it, then decide again.
                    Err(AppendError::Conflict(conflict)) if attempts < ATTEMPTS => {
                        attempts += 1;
                        self.caught_up(conflict.position, FOLD_WAIT).await?;
                        continue;
                    }
                    // Its basis has failed: once that is known, decide again.
                    Err(AppendError::SetBack) if attempts < ATTEMPTS => {
                        attempts += 1;
                        self.settled(batch.ticket).await?;
                        continue;
                    }
                    Err(error @ AppendError::KeyReused { .. }) => {
                        // Of two concurrent attempts the other came first.
                        let other = match &key {
                            Some(request) => self.find(effects, &request.key)?,
                            None => None,
                        };
                        return match other {
                            Some(appended) => self.replay(executed, appended).await,
                            None => Err(effects.refused(error).into()),
                        };
                    }
                    Err(error) => return Err(effects.refused(error).into()),
                }
            }
            executed.outcomes.extend(batch.outcomes);
        }
        Ok(())
    }

    /// An earlier attempt.
    fn find(
        &self,
        effects: &Effects,
        key: &RequestKey,
    ) -> Result<Option<Appended>, StepRefusal<AppendError>> {
        self.log.find_request(key).map_err(|error| effects.refused(error))
    }

    /// The answer to an earlier attempt.
    async fn replay(
        &self,
        executed: &mut CommandResults<V>,
        appended: Appended,
    ) -> Result<(), ExecuteError> {
        self.caught_up(appended.last, FOLD_WAIT).await?;
        let options = ReadOptions {
            after: Some(appended.first - 1),
            limit: Some(appended.last + 1 - appended.first),
            ..ReadOptions::default()
        };
        let mut events = self.log.snapshot().read(&Query::all(), options);
        let mut outcomes = Vec::new();
        while let Some(record) = events.next()? {
            outcomes.extend(V::outcome(&StoredRecord(record)));
        }
        executed.outcomes = outcomes;
        executed.appended = Some(Appended { replayed: true, ..appended });
        Ok(())
    }

    /// Decides as many commands as fit into one append, and stages it.
    fn decide(
        &self,
        commands: &[V::Command],
        key: Option<KeyedRequest>,
        on: CommitOn,
    ) -> DecideOutcome<V> {
        let Some(folded) = self.folded() else { return DecideOutcome::DependsOn(0) };
        let mut deciding = lock(&self.deciding);
        // Before reading the fold: everything up to here is in it.
        let position = self.sweep(&mut deciding);
        let ticket = deciding.ticket();
        let (mut outcomes, mut events) = (Vec::new(), EncodedEvents::new());
        let mut unless = Vec::new();
        // Commands with a key must fit into one append.
        let until_us = key.is_none().then(|| self.clock.monotonic_us() + DECIDE_US);
        for command in commands {
            if !outcomes.is_empty() && until_us.is_some_and(|us| self.clock.monotonic_us() > us) {
                break;
            }
            match V::decide(folded, &deciding.staged, &self.context, command) {
                Ok(mut decision) => {
                    match add(&mut events, &mut unless, &mut decision, V::sealed_parts(command)) {
                        Ok(AddOutcome::Fits) => {}
                        Ok(AddOutcome::Full) => break,
                        Err(invalid) => {
                            V::settle(&mut deciding.staged, ticket);
                            return DecideOutcome::Invalid(invalid);
                        }
                    }
                    V::stage(&mut deciding.staged, &decision, ticket);
                    outcomes.push(decision.outcome);
                }
                Err(_) if !outcomes.is_empty() => break,
                Err(refusal) => return self.refused(&deciding, folded, command, refusal),
            }
        }
        if events.is_empty() {
            // No decision is based on one without a place.
            V::settle(&mut deciding.staged, ticket);
            // An existing value may be a pending decision only.
            if let Some(last) = deciding.open.last()
                && self.hangs(&deciding, folded, &commands[..outcomes.len()])
            {
                return DecideOutcome::DependsOn(last.ticket);
            }
            // A retry with the same key gets this answer, whatever has happened since.
            for event in key.iter().flat_map(|_| outcomes.iter().filter_map(V::remember)) {
                if let Err(invalid) = events.push(&event.as_ref()) {
                    return DecideOutcome::Invalid(invalid);
                }
            }
            if events.is_empty() {
                return DecideOutcome::Batch(Batch { ticket, outcomes, answer: None });
            }
        }
        // No items would mean every event.
        let guard = Guard::of::<V>(&unless);
        let after = deciding.after(position, &guard);
        let condition = (!unless.is_empty())
            .then(|| AppendCondition::no_match_after(Query { items: unless }, after));
        let basis = Basis {
            setbacks: deciding.setbacks(),
            key_absent_through: key.as_ref().map_or(0, |request| request.absent_through),
            ids_absent_through: 0,
        };
        let key = key.map(|request| request.key);
        let append = Append { events, condition, key, ..Append::default() };
        let answer = self.stage(deciding, basis, append, (ticket, guard), on);
        DecideOutcome::Batch(Batch { ticket, outcomes, answer: Some(answer) })
    }

    /// Stages a decision. It becomes a basis of others only if it was given positions.
    fn stage(
        &self,
        mut deciding: std::sync::MutexGuard<'_, PendingDecisions<V>>,
        basis: Basis,
        append: Append,
        (ticket, guard): (Ticket, Guard),
        on: CommitOn,
    ) -> Answer {
        let (sender, answer) = oneshot::channel();
        let ended = std::sync::Arc::clone(&self.ended);
        let done = Box::new(move |outcome: Result<Appended, AppendError>| {
            lock(&ended).push(FinishedAppend::new(ticket, &outcome));
            let _ = sender.send(outcome);
        });
        let staged = self.log.stage_on(basis, append, done);
        match staged {
            // Outcomes are examined under this lock: not before the decision is recorded here.
            Staged::Placed { last, setbacks, .. } => {
                let open = OpenDecision { ticket, last, setbacks, guard, is_durable: false };
                deciding.open.push(open);
                V::placed(&mut deciding.staged, ticket, last);
            }
            Staged::WaitsFor { .. } | Staged::Answered => {
                V::settle(&mut deciding.staged, ticket);
            }
        }
        drop(deciding);
        if staged != Staged::Answered {
            self.log.commit(on);
        }
        answer
    }

    /// A refusal is final only if it does not depend on pending decisions.
    fn refused(
        &self,
        deciding: &PendingDecisions<V>,
        folded: &V::Folded,
        command: &V::Command,
        refusal: V::Refusal,
    ) -> DecideOutcome<V> {
        let Some(last) = deciding.open.last().filter(|_| V::is_final(&refusal)) else {
            return DecideOutcome::Refused(refusal);
        };
        let without_pending = V::without_pending(&deciding.staged);
        match V::decide(folded, &without_pending, &self.context, command) {
            Err(refusal) if V::is_final(&refusal) => DecideOutcome::Refused(refusal),
            Ok(_) | Err(_) => DecideOutcome::DependsOn(last.ticket),
        }
    }

    /// Whether these commands would have another result without the pending decisions.
    fn hangs(
        &self,
        deciding: &PendingDecisions<V>,
        folded: &V::Folded,
        commands: &[V::Command],
    ) -> bool {
        let without_pending = V::without_pending(&deciding.staged);
        commands.iter().any(|command| {
            match V::decide(folded, &without_pending, &self.context, command) {
                Ok(decision) => !decision.events.is_empty(),
                Err(_) => true,
            }
        })
    }
}

/// Whether a decision still fits into an append.
enum AddOutcome {
    Fits,
    Full,
}

/// Adds a decision to an append if it fits, taking its condition out of it. `sealed` are the parts
/// of its last event.
fn add<O>(
    events: &mut EncodedEvents,
    unless: &mut Vec<QueryItem>,
    decision: &mut Decision<O>,
    sealed: &[u8],
) -> Result<AddOutcome, Invalid> {
    let many = unless.len() + decision.unless.len() > limits::MAX_QUERY_ITEMS
        || events.len() + decision.events.len() > limits::MAX_EVENTS
        || events.byte_len() > limits::MAX_REQUEST_BYTES / 2;
    if many && !events.is_empty() {
        return Ok(AddOutcome::Full);
    }
    for (at, event) in decision.events.iter().enumerate() {
        let is_last = at + 1 == decision.events.len();
        events.push_sealed(&event.as_ref(), if is_last { sealed } else { &[] }, 0)?;
    }
    for item in decision.unless.drain(..) {
        // Decisions with the same condition share it.
        if unless.last() != Some(&item) {
            unless.push(item);
        }
    }
    Ok(AddOutcome::Fits)
}

#[cfg(test)]
#[path = "execute_tests.rs"]
mod tests;
