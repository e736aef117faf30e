//! Questions for the end of a shared log. Whoever asks while a round is under way waits for the
//! next one: an answer counts only for those that asked before its question was put. (The stale
//! reads of <https://github.com/etcd-io/etcd/issues/20418> were an answer matched to the wrong
//! round.)

use crate::error::NotConfirmed;
use crate::feed::Feed;
use crate::plants::{Plant, planted};
use crate::shared::{AskId, Place};
use crate::threads::lock;
use std::sync::{Arc, Mutex, OnceLock};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Confirmations {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// For those that asked since the last question was put.
    gathering: Option<Arc<Round>>,
    /// The question that was put last, and those that wait for it.
    asked: Option<(AskId, Arc<Round>)>,
    /// Rounds that have their answer, and whose waiters have not been woken.
    answered: Vec<Arc<Round>>,
    /// Why no question is put any more.
    ended: Option<NotConfirmed>,
}

/// Those that wait for one answer.
#[derive(Debug, Default)]
pub(crate) struct Round {
    answer: OnceLock<Result<Place, NotConfirmed>>,
    /// Closed when the answer is there.
    done: Feed,
}

impl Round {
    /// Who waits is woken apart from this.
    fn tell(&self, answer: Result<Place, NotConfirmed>) {
        let _ = self.answer.set(answer);
    }

    /// The place at which everything is that was acknowledged before this round was joined.
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
    /// Joins the round for which the next question is put. The journal is to be woken.
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

    /// Whether a question is to be put: somebody waits, and none is under way.
    pub(super) fn wants_question(&self) -> bool {
        let state = lock(&self.state);
        state.asked.is_none() && state.gathering.is_some()
    }

    /// Puts the question for those that have gathered, or again for those of a question that was
    /// lost.
    pub(super) fn ask(&self, id: AskId) {
        let mut state = lock(&self.state);
        let round = state.asked.take().map(|(_, round)| round).or_else(|| state.gathering.take());
        state.asked = round.map(|round| (id, round));
    }

    /// The question under way.
    pub(super) fn asked(&self) -> Option<AskId> {
        lock(&self.state).asked.as_ref().map(|(id, _)| *id)
    }

    /// The answer to a question; one that is not under way any more counts for nobody.
    pub(super) fn answer(&self, id: AskId, end: Place) {
        let mut state = lock(&self.state);
        if state.asked.as_ref().is_some_and(|(asked, _)| *asked == id)
            && let Some((_, round)) = state.asked.take()
        {
            round.tell(Ok(end));
            state.answered.push(round);
        }
    }

    /// Wakes those whose answer is there. With no lock held.
    pub(crate) fn wake(&self) {
        let answered = std::mem::take(&mut lock(&self.state).answered);
        answered.into_iter().for_each(|round| round.done.close());
    }

    /// Tells everyone that waits, and everyone to come, that there are no answers any more; to be
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
