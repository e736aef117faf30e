//! Questions for the end of a shared log. A request made during a round waits for the next one: an
//! answer counts only for requests made before its question was asked. (The stale reads of
//! <https://github.com/etcd-io/etcd/issues/20418> came from matching an answer to the wrong round.)

use crate::error::NotConfirmed;
use crate::feed::Feed;
use crate::plants::{Plant, planted};
use crate::shared::{AskId, Place};
use crate::threads::lock;
use std::sync::{Arc, Mutex, OnceLock};

/// The rounds of a log; see the module's documentation.
#[derive(Debug, Default)]
pub(crate) struct Confirmations {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The requests since the last question.
    gathering: Option<Arc<Round>>,
    /// The first question of a round, and the requests that wait for its answer. Where that takes
    /// long it is asked again, and any of the answers counts.
    asked: Option<(AskId, Arc<Round>)>,
    /// Answered rounds whose waiters have not been woken.
    answered: Vec<Arc<Round>>,
    /// Why no question is asked any more.
    ended: Option<NotConfirmed>,
}

/// The requests that wait for one answer.
#[derive(Debug, Default)]
pub(crate) struct Round {
    answer: OnceLock<Result<Place, NotConfirmed>>,
    /// Closed when the answer is available.
    done: Feed,
}

impl Round {
    /// Waiters are woken separately.
    fn tell(&self, answer: Result<Place, NotConfirmed>) {
        let _ = self.answer.set(answer);
    }

    /// The place that covers everything acknowledged before this round was joined.
    ///
    /// # Errors
    /// [`NotConfirmed`].
    pub(crate) async fn answer(&self) -> Result<Place, NotConfirmed> {
        loop {
            if let Some(answer) = self.answer.get() {
                return answer.clone();
            }
            self.done
                .past(0)
                .await
                .map_err(|refused| NotConfirmed::Unreachable { reason: refused.to_string() })?;
        }
    }
}

impl Confirmations {
    /// Joins the round of the next question. The caller must wake the journal.
    pub(crate) fn join(&self) -> Arc<Round> {
        let mut state = lock(&self.state);
        if let Some(ended) = &state.ended {
            let round = Arc::new(Round::default());
            round.tell(Err(ended.clone()));
            return round;
        }
        if planted(Plant::OldAnswer)
            && let Some((_, round)) = &state.asked
        {
            return Arc::clone(round);
        }
        Arc::clone(state.gathering.get_or_insert_default())
    }

    /// Whether a question should be asked: requests wait, and no question is pending.
    pub(super) fn wants_question(&self) -> bool {
        let state = lock(&self.state);
        state.asked.is_none() && state.gathering.is_some()
    }

    /// Asks the question for the gathered requests, or again for those of a question that was lost
    /// or is late.
    pub(super) fn ask(&self, id: AskId) {
        let mut state = lock(&self.state);
        if state.asked.is_none() {
            state.asked = state.gathering.take().map(|round| (id, round));
        }
    }

    /// Whether requests wait for an answer.
    pub(super) fn waits(&self) -> bool {
        lock(&self.state).asked.is_some()
    }

    /// Processes an answer; one to a question from before the pending round is ignored.
    pub(super) fn answer(&self, id: AskId, end: Place) {
        let mut state = lock(&self.state);
        if state.asked.as_ref().is_some_and(|(first, _)| *first <= id)
            && let Some((_, round)) = state.asked.take()
        {
            round.tell(Ok(end));
            state.answered.push(round);
        }
    }

    /// Wakes the requests whose answer is available. Called without a lock held.
    pub(crate) fn wake(&self) {
        let answered = std::mem::take(&mut lock(&self.state).answered);
        answered.into_iter().for_each(|round| round.done.close());
    }

    /// Tells all current and future requests that there are no more answers; they must be
    /// [woken](Self::wake).
    pub(crate) fn end(&self, why: &NotConfirmed) {
        let mut state = lock(&self.state);
        state.ended.get_or_insert(why.clone());
        let rounds = [state.gathering.take(), state.asked.take().map(|(_, round)| round)];
        for round in rounds.into_iter().flatten() {
            round.tell(Err(why.clone()));
            state.answered.push(round);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_comes_after_the_question_was_asked_again_counts_for_its_round_alone() {
        let all = Confirmations::default();
        let first = all.join();
        all.ask(AskId(1));
        let second = all.join();
        all.ask(AskId(2));
        assert!(all.waits() && !all.wants_question(), "the second round waits for its turn");
        all.answer(AskId(1), Place(7));
        assert_eq!(first.answer.get(), Some(&Ok(Place(7))));
        assert!(all.wants_question() && second.answer.get().is_none());
        all.ask(AskId(3));
        all.answer(AskId(2), Place(8));
        assert_eq!(second.answer.get(), None, "it was asked before the second round joined");
        all.answer(AskId(3), Place(9));
        assert_eq!(second.answer.get(), Some(&Ok(Place(9))));
    }
}
