//! From a complete request to its answer: executes, queues or refuses it.

use super::answer;
use super::head::{Framing, Persistence};
use super::loop_state::{Arrival, LoopState, PendingAnswers};
use super::replies::Durable;
use super::seam::Guards;
use super::session::Session;
use super::state::{KeptHead, PendingRequest, RefusedRequest, Rest, State};
use crate::fast::{FastAnswer, FastRequest, PipelineOrder};
use crate::http::body_memory::Charge;
use crate::wire::problem::Problem;

/// Remainder of a refused body that is read and discarded to keep the connection open.
const SKIP_BYTES: u64 = 2 << 20;

/// The result of a complete request.
pub(super) enum Placement {
    /// It is answered, now or later.
    Done,
    /// Others have their turn first.
    Later,
    /// There was no room.
    Full(PendingRequest),
    /// The other stack should answer; if that is no longer possible, this is the answer.
    Elsewhere(PendingRequest, Box<Problem>),
}

impl Session {
    /// Executes and answers a complete request. `word`: that of its target, if one varies.
    /// `follows`: whether bytes after it have been read.
    pub(super) fn place<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        asking: PendingRequest,
        word: &[u8],
        content: &[u8],
        follows: bool,
    ) -> Placement {
        // Requests that wait for the same room come first.
        if shared.is_full(asking.path_index, &asking.params) {
            return Placement::Full(asking);
        }
        let served = &mut shared.paths[asking.path_index];
        served.varying.clear();
        let payer = self.quota_keys.map(|keys| shared.guards.payer(keys)).unwrap_or_default();
        let (client, now_us) = (asking.client, shared.now_us);
        let caller = asking.principal.as_deref();
        let connection = shared.limited.then_some(&self.rate);
        let payer = &payer;
        let asked = FastRequest { word, content, client, connection, payer, caller, now_us };
        let outcome = served.path.answer(&asking.params, asked, &mut served.varying);
        let is_alone = served.path.order() == PipelineOrder::Alone;
        if is_alone && !matches!(outcome, FastAnswer::Later) {
            // The handler charges what it reads.
            self.quota_keys = None;
        }
        let said = if shared.stopping && !follows { Persistence::Close } else { asking.after };
        if matches!(outcome, FastAnswer::Reply(_) | FastAnswer::Pending(_)) {
            self.handed_in |= served.path.hands_in();
        }
        match outcome {
            FastAnswer::Reply(form) => {
                let form = &mut served.forms[form];
                let pushed = form.push(self.replies.next(&mut shared.out), &served.varying, said);
                if let Err(misfit) = pushed {
                    self.answer_problem(shared, asking, misfit.into(), said);
                    return Placement::Done;
                }
                if asking.came.at_us == shared.now_us && asking.came.logged.is_none() {
                    form.prompt += 1;
                    shared.tally.prompt += 1;
                } else {
                    shared.tally.answered(asking.path_index, form.status, asking.came);
                }
                self.go_on(said);
            }
            FastAnswer::Pending(ticket) => {
                let PendingRequest { path_index, after, came, .. } = asking;
                self.replies.wait_for(Durable { path_index, ticket, after, came });
                shared.pending = PendingAnswers::SinceThisTurn;
                self.go_on(after);
                self.at_handler = is_alone;
                if is_alone && after == Persistence::Keep {
                    self.state = State::Behind;
                }
            }
            FastAnswer::Answered(answer) => {
                let out = self.replies.next(&mut shared.out);
                shared.held.push(answer::push_whole(out, answer, said));
                self.go_on(said);
            }
            FastAnswer::Refused(problem) => self.answer_problem(shared, asking, problem, said),
            FastAnswer::Full => {
                shared.full.push((asking.path_index, served.path.line(&asking.params)));
                return Placement::Full(asking);
            }
            FastAnswer::Later => return Placement::Later,
            FastAnswer::Elsewhere(problem) => return Placement::Elsewhere(asking, problem),
        }
        Placement::Done
    }

    /// Answers a complete request with a problem.
    pub(super) fn answer_problem<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        asking: PendingRequest,
        problem: Box<Problem>,
        said: Persistence,
    ) {
        let PendingRequest { path_index, came, .. } = asking;
        let problem = shared.render(Some(path_index), problem);
        answer::push_problem(self.replies.next(&mut shared.out), &problem, said);
        shared.tally.refused(Some(path_index), &problem, came);
        self.go_on(said);
    }

    /// Ready for the next request, or at the end.
    fn go_on(&mut self, after: Persistence) {
        self.state = if after == Persistence::Close { State::Ended } else { State::IDLE };
    }

    /// Keeps a request that found no room, of which only word and `content` are here; `behind`
    /// bytes follow.
    pub(super) fn keep<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        asking: PendingRequest,
        word: &[u8],
        content: &[u8],
        behind: usize,
    ) {
        let mut charge = Charge::default();
        if let Err(problem) = charge.raise(&shared.memory, content.len()) {
            let PendingRequest { path_index, came, after, .. } = asking;
            let framing = Framing::Length(0);
            let refused =
                RefusedRequest { path_index, came, after, framing, rest: Rest::Length(0) };
            return self.refuse(shared, problem, refused, behind);
        }
        let mut body = shared.spare.take();
        body.extend_from_slice(content);
        let kept = KeptHead { asking, word: word.to_vec(), body, _charge: charge };
        self.state = State::Stalled(Box::new(kept));
    }

    /// Answers a request with a problem and discards the rest of its body, of which `here` bytes,
    /// perhaps with further requests, have been read.
    pub(super) fn refuse<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        problem: Box<Problem>,
        refused: RefusedRequest,
        here: usize,
    ) {
        let RefusedRequest { path_index, came, after, framing, rest } = refused;
        let (skippable, last) = match (framing, &rest) {
            (Framing::Length(length), Rest::Length(left)) => {
                (length <= SKIP_BYTES, here as u64 <= *left)
            }
            _ => (true, here == 0),
        };
        let closes = after == Persistence::Close || !skippable || (shared.stopping && last);
        let said = if closes { Persistence::Close } else { Persistence::Keep };
        let problem = shared.render(Some(path_index), problem);
        answer::push_problem(self.replies.next(&mut shared.out), &problem, said);
        shared.tally.refused(Some(path_index), &problem, came);
        self.state = match (said, rest) {
            (Persistence::Close, _) => State::Ended,
            (Persistence::Keep, Rest::Length(0)) => State::IDLE,
            (Persistence::Keep, rest) => State::Skip { rest, allowance: SKIP_BYTES },
        };
    }

    /// Answers with a problem and closes, because the rest cannot be understood. `path_index`: that
    /// of the request, if known.
    pub(super) fn give_up<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        problem: Box<Problem>,
        path_index: Option<usize>,
    ) {
        let problem = shared.render(path_index, problem);
        answer::push_problem(self.replies.next(&mut shared.out), &problem, Persistence::Close);
        let came = Arrival { at_us: shared.now_us, logged: None };
        shared.tally.refused(path_index, &problem, came);
        self.state = State::Ended;
    }
}
