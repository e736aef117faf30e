//! From a complete request to its answer: executes, queues or refuses it.

use super::answer;
use super::desk::{Arrival, Desk};
use super::head::{Framing, Persistence};
use super::replies::Durable;
use super::seam::Guards;
use super::session::Session;
use super::state::{KeptHead, PendingRequest, RefusedRequest, Rest, State};
use crate::fast::{FastRequest, Outcome};
use crate::http::body_memory::Charge;
use crate::wire::problem::Problem;

/// Remainder of a refused body that is read and discarded to keep the connection open.
const SKIP_BYTES: u64 = 2 << 20;

/// The result of a complete request.
pub(super) enum Placement {
    /// It is answered, now or later.
    Done,
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
        desk: &mut Desk<G>,
        asking: PendingRequest,
        (word, content): (&[u8], &[u8]),
        follows: bool,
    ) -> Placement {
        // Requests that wait for the same room come first.
        if desk.is_full(asking.lane, &asking.order) {
            return Placement::Full(asking);
        }
        let lane = &mut desk.lanes[asking.lane];
        lane.varying.clear();
        let asked = FastRequest { word, content, client: asking.client, now_us: desk.now_us };
        let outcome = lane.path.answer(&asking.order, asked, &mut lane.varying);
        let said = if desk.stopping && !follows { Persistence::Close } else { asking.after };
        match outcome {
            Outcome::Reply(form) => {
                let sheet = &mut lane.sheets[form];
                let pushed = sheet.push(self.replies.next(&mut desk.out), &lane.varying, said);
                if let Err(misfit) = pushed {
                    self.answer_problem(desk, asking, misfit.into(), said);
                    return Placement::Done;
                }
                if asking.came.at_us == desk.now_us && asking.came.logged.is_none() {
                    sheet.prompt += 1;
                    desk.tally.prompt += 1;
                } else {
                    desk.tally.answered(asking.lane, sheet.status, asking.came);
                }
                self.go_on(said);
            }
            Outcome::Pending(ticket) => {
                let PendingRequest { lane, after, came, .. } = asking;
                self.replies.wait_for(Durable { lane, ticket, after, came });
                self.go_on(after);
            }
            Outcome::Refused(problem) => self.answer_problem(desk, asking, problem, said),
            Outcome::Full => {
                desk.full.push((asking.lane, lane.path.line(&asking.order)));
                return Placement::Full(asking);
            }
            Outcome::Elsewhere(problem) => return Placement::Elsewhere(asking, problem),
        }
        Placement::Done
    }

    /// Answers a complete request with a problem.
    pub(super) fn answer_problem<G: Guards>(
        &mut self,
        desk: &mut Desk<G>,
        asking: PendingRequest,
        problem: Box<Problem>,
        said: Persistence,
    ) {
        let PendingRequest { lane, came, .. } = asking;
        let problem = desk.render(Some(lane), problem);
        answer::push_problem(self.replies.next(&mut desk.out), &problem, said);
        desk.tally.refused(Some(lane), &problem, came);
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
        desk: &mut Desk<G>,
        asking: PendingRequest,
        (word, content): (&[u8], &[u8]),
        behind: usize,
    ) {
        let mut charge = Charge::default();
        if let Err(problem) = charge.raise(&desk.memory, content.len()) {
            let PendingRequest { lane, came, after, .. } = asking;
            let framing = Framing::Length(0);
            let refused = RefusedRequest { lane, came, after, framing, rest: Rest::Length(0) };
            return self.refuse(desk, problem, refused, behind);
        }
        let mut body = desk.spare.take();
        body.extend_from_slice(content);
        let kept = KeptHead { asking, word: word.to_vec(), body, _charge: charge };
        self.state = State::Stalled(Box::new(kept));
    }

    /// Answers a request with a problem and discards the rest of its body, of which `here` bytes,
    /// perhaps with further requests, have been read.
    pub(super) fn refuse<G: Guards>(
        &mut self,
        desk: &mut Desk<G>,
        problem: Box<Problem>,
        refused: RefusedRequest,
        here: usize,
    ) {
        let RefusedRequest { lane, came, after, framing, rest } = refused;
        let (skippable, last) = match (framing, &rest) {
            (Framing::Length(length), Rest::Length(left)) => {
                (length <= SKIP_BYTES, here as u64 <= *left)
            }
            _ => (true, here == 0),
        };
        let closes = after == Persistence::Close || !skippable || (desk.stopping && last);
        let said = if closes { Persistence::Close } else { Persistence::Keep };
        let problem = desk.render(Some(lane), problem);
        answer::push_problem(self.replies.next(&mut desk.out), &problem, said);
        desk.tally.refused(Some(lane), &problem, came);
        self.state = match (said, rest) {
            (Persistence::Close, _) => State::Ended,
            (Persistence::Keep, Rest::Length(0)) => State::IDLE,
            (Persistence::Keep, rest) => State::Skip { rest, allowance: SKIP_BYTES },
        };
    }

    /// Answers with a problem and closes, because the rest cannot be understood. `lane`: that of
    /// the request, if known.
    pub(super) fn give_up<G: Guards>(
        &mut self,
        desk: &mut Desk<G>,
        problem: Box<Problem>,
        lane: Option<usize>,
    ) {
        let problem = desk.render(lane, problem);
        answer::push_problem(self.replies.next(&mut desk.out), &problem, Persistence::Close);
        let came = Arrival { at_us: desk.now_us, logged: None };
        desk.tally.refused(lane, &problem, came);
        self.state = State::Ended;
    }
}
