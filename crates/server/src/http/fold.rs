//! Folding a whole read into something small: short reads on the serving thread,
//! long ones elsewhere in slices, so that a client that has gone stops its work.

use super::elsewhere::{Price, PricedQuery, elsewhere, long_read};
use super::problem::{self, Problem};
use super::{Request, Shell};
use std::borrow::Borrow;
use std::sync::Arc;
use wellspring_log::{Clock, Events, ReadError, ReadOptions, RecordView, Work};
use wellspring_types::{Position, Query};

/// What a fold may cost on a serving thread: events and time.
const SHORT_EVENTS: u64 = 512;
pub(super) const SHORT_US: u64 = 1_000;
/// Time of one slice elsewhere.
pub(super) const SLICE_US: u64 = 20_000;

/// Something events are folded into.
pub(crate) trait Folding: Send + 'static {
    /// Takes the next event.
    fn fold(&mut self, event: &RecordView<'_>);

    /// Whether further events can change nothing.
    fn is_done(&self) -> bool {
        false
    }
}

/// Folds all events of the request's log that match after a position; gives also the position the result reflects.
/// Bounded in time; over it, a problem and not a part of the answer.
pub(crate) async fn fold<F: Folding>(
    shell: &Arc<Shell>,
    request: &Request,
    query: impl Borrow<Query> + Send + 'static,
    after: Option<Position>,
    into: F,
) -> Result<(F, Position), Box<Problem>> {
    let reads = request.payer.reads()?;
    let permit = match Price::of_terms(query.borrow().term_count()) {
        Price::Short => None,
        Price::Dear => Some(long_read(shell)?),
    };
    let PricedQuery { query, price } = PricedQuery::compile(query, &reads).await?;
    let snapshot = request.log()?.snapshot();
    let head = snapshot.head();
    let events = snapshot.read_compiled(query, ReadOptions { after, ..ReadOptions::default() });
    let mut state = (events, into);
    let clock = Arc::clone(&shell.clock);
    let started_us = clock.monotonic_us();
    let mut short = || reads.timed(|| slice(&mut state, &clock, SHORT_EVENTS, SHORT_US));
    if price == Price::Short && short()? {
        return Ok((state.1, head));
    }
    let _permit = match permit {
        Some(permit) => permit,
        None => long_read(shell)?,
    };
    let limit_ms = shell.config.max_fold_ms;
    loop {
        let (clock, reads) = (Arc::clone(&shell.clock), reads.clone());
        let done;
        (state, done) = elsewhere(move || {
            let done = reads.timed(|| slice(&mut state, &clock, u64::MAX, SLICE_US));
            (state, done)
        })
        .await?;
        if done? {
            return Ok((state.1, head));
        }
        if shell.clock.monotonic_us() - started_us > limit_ms * 1000 {
            return Err(too_costly(limit_ms));
        }
    }
}

/// The problem of a read that took longer than it may.
pub(super) fn too_costly(limit_ms: u64) -> Box<Problem> {
    problem::TOO_COSTLY
        .because(format!(
            "the read took longer than {limit_ms} ms; narrow the query or begin after a later position"
        ))
        .limit(limit_ms)
}

fn slice<F: Folding>(
    (events, into): &mut (Events, F),
    clock: &Arc<dyn Clock>,
    most: u64,
    us: u64,
) -> Result<bool, ReadError> {
    let deadline_us = clock.monotonic_us() + us;
    // Between events: a search that finds none must end as well, and goes on where it was.
    events.bound(Work::unbounded().with_deadline(Arc::clone(clock), deadline_us));
    for i in 0..most {
        if into.is_done() {
            return Ok(true);
        }
        // The clock is asked rarely; between, events are cheap.
        if i % 32 == 31 && clock.monotonic_us() > deadline_us {
            return Ok(false);
        }
        match events.next() {
            Ok(Some(event)) => into.fold(&event),
            Ok(None) => return Ok(true),
            Err(ReadError::Stopped(_)) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}
