//! What a request has changed so far, and so what its refusal may claim.
//!
//! Whoever is told "nothing was done" sends the request again: another node, a client, a loop here.
//! So [`NothingDone`] is a value that only [`Effects`] makes, and only before the first effect.
//! There is no other way from an error of the log to a [`Problem`] than [`Effects::settle`].

use super::problem::{INTERRUPTED, Problem, Retry};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use wellspring_log::{AppendError, LeaseError, TrimError};

/// Proof that a refused request has changed nothing, so that it may be sent again elsewhere.
#[derive(Debug)]
pub struct NothingDone(());

/// Whether the same request may be sent again after it may have taken effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    /// A repeat finds what an earlier attempt has done: the request has a key that its route reads,
    /// or its content is its own key.
    Safe,
    /// A repeat would do it twice.
    Unsafe,
}

/// Whether a request has changed anything yet, and under its key. Clones share this.
#[derive(Debug, Clone, Default)]
pub struct Effects(Arc<EffectFlags>);

/// While this lives, a step is at the log whose outcome is not known yet.
#[derive(Debug)]
pub struct StepAtLog(Effects);

impl Drop for StepAtLog {
    fn drop(&mut self) {
        self.0.0.at_log.store(false, Relaxed);
    }
}

#[derive(Debug, Default)]
struct EffectFlags {
    begun: AtomicBool,
    key_read: AtomicBool,
    at_log: AtomicBool,
}

/// A refused step of a request.
#[derive(Debug)]
pub struct StepRefusal<E> {
    /// Why.
    pub error: E,
    /// Present if the request has changed nothing, neither by this step nor before.
    pub(crate) nothing_done: Option<NothingDone>,
}

/// An error of a step that may change something.
pub trait StepError {
    /// Whether the step itself had no effect.
    fn had_no_effect(&self) -> bool;
}

impl StepError for AppendError {
    fn had_no_effect(&self) -> bool {
        !matches!(self, AppendError::Unknown { .. })
    }
}

impl StepError for LeaseError {
    fn had_no_effect(&self) -> bool {
        true
    }
}

impl StepError for TrimError {
    fn had_no_effect(&self) -> bool {
        true
    }
}

impl Effects {
    /// Takes note of a step that may change something, and says of a refused one what it may claim.
    ///
    /// # Errors
    /// The step was refused.
    pub fn settle<T, E: StepError>(&self, outcome: Result<T, E>) -> Result<T, StepRefusal<E>> {
        match outcome {
            Ok(done) => {
                self.begin();
                Ok(done)
            }
            Err(error) => Err(self.refused(error)),
        }
    }

    /// Takes note that a step has taken effect, or may have.
    pub fn begin(&self) {
        self.0.begun.store(true, Relaxed);
    }

    /// Takes note that a step goes to the log, which decides it whether or not anyone waits.
    #[must_use]
    pub fn go_to_log(&self) -> StepAtLog {
        self.0.at_log.store(true, Relaxed);
        StepAtLog(self.clone())
    }

    /// Whether a step is at the log.
    #[must_use]
    pub fn are_at_log(&self) -> bool {
        self.0.at_log.load(Relaxed)
    }

    fn have_begun(&self) -> bool {
        self.0.begun.load(Relaxed)
    }

    /// Takes note that the handler has read the request's key, and finds what an earlier request
    /// with it has done.
    pub(crate) fn read_key(&self) {
        self.0.key_read.store(true, Relaxed);
    }

    /// Whether something was changed although the handler has not read the key.
    pub(crate) fn passed_over_key(&self) -> bool {
        self.have_begun() && !self.0.key_read.load(Relaxed)
    }

    /// What the refusal of a step may claim.
    pub fn refused<E: StepError>(&self, error: E) -> StepRefusal<E> {
        if !error.had_no_effect() {
            self.begin();
        }
        let nothing_done = (!self.have_begun()).then_some(NothingDone(()));
        StepRefusal { error, nothing_done }
    }

    /// The refusal of a request as its client gets it: after the first effect none invites the
    /// client to send the same request again, unless that is safe.
    pub(crate) fn refusal(&self, mut problem: Box<Problem>, repeat: Repeat) -> Box<Problem> {
        if !self.have_begun() {
            return problem;
        }
        debug_assert!(problem.nothing_done.is_none(), "something was done before it was made");
        if !matches!(problem.retry, Retry::Same | Retry::Seconds(_)) && !problem.is_interrupted() {
            return problem;
        }
        match repeat {
            Repeat::Safe if problem.is_interrupted() => problem.retry = Retry::Same,
            Repeat::Safe => {}
            Repeat::Unsafe => {
                problem.retry = Retry::No;
                if problem.kind.status == 503 {
                    problem.kind = &INTERRUPTED;
                }
            }
        }
        problem
    }
}

impl NothingDone {
    /// Of a request that no handler has seen.
    pub(crate) fn before_any_handler() -> NothingDone {
        NothingDone(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::problem::{NOT_LEADING, OVERLOADED, TOO_MANY_REQUESTS};
    use wellspring_log::Appended;

    fn not_leading() -> Result<Appended, AppendError> {
        Err(AppendError::NotLeading { leader: None })
    }

    fn appended() -> Result<Appended, AppendError> {
        Ok(Appended { first: 1, last: 1, head: 1, replayed: false })
    }

    #[test]
    fn only_a_request_without_effects_says_that_nothing_was_done() {
        let effects = Effects::default();
        for _ in 0..2 {
            let problem = Box::<Problem>::from(effects.settle(not_leading()).unwrap_err());
            assert!(problem.nothing_done.is_some());
            assert_eq!(problem.kind, &NOT_LEADING);
        }
        effects.settle(appended()).unwrap();
        let problem = Box::<Problem>::from(effects.settle(not_leading()).unwrap_err());
        assert!(problem.nothing_done.is_none());
        assert_eq!(problem.kind, &INTERRUPTED);
    }

    #[test]
    fn an_outcome_in_doubt_is_an_effect() {
        let effects = Effects::default();
        let unknown = AppendError::Unknown { reason: "the barrier failed".into() };
        assert!(effects.refused(unknown).nothing_done.is_none());
        let later = effects.settle(not_leading()).unwrap_err();
        assert!(later.nothing_done.is_none());
    }

    #[test]
    fn after_an_effect_no_refusal_invites_an_unsafe_repeat() {
        let effects = Effects::default();
        let told = |kind: &'static crate::wire::problem::Kind, repeat| {
            let problem = effects.refusal(kind.because("busy"), repeat);
            (problem.kind.slug, problem.retry)
        };
        let before = told(&OVERLOADED, Repeat::Unsafe);
        assert_eq!(before, (OVERLOADED.slug, OVERLOADED.retry));
        effects.begin();
        assert_eq!(told(&OVERLOADED, Repeat::Unsafe), ("interrupted", Retry::No));
        assert_eq!(told(&OVERLOADED, Repeat::Safe), before);
        let quota = told(&TOO_MANY_REQUESTS, Repeat::Unsafe);
        assert_eq!(quota, (TOO_MANY_REQUESTS.slug, Retry::No));
        assert_eq!(told(&INTERRUPTED, Repeat::Safe), ("interrupted", Retry::Same));
        assert_eq!(told(&INTERRUPTED, Repeat::Unsafe), ("interrupted", Retry::No));
    }
}
