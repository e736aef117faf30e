//! From a whole request to its answer: a session that hands over, keeps or refuses.

use super::answer;
use super::desk::{Asked, Desk, Family};
use super::head::{After, Framing};
use super::seam::{Serves, Taken};
use super::session::Session;
use super::state::{Asking, Kept, Refused, Rest, State};
use crate::http::body_memory::Charge;
use crate::wire::problem::Problem;

/// Rest of a refused body that is read and thrown away so that the connection can go on.
const SKIP_BYTES: u64 = 2 << 20;

impl<I: Serves> Session<I> {
    /// Hands a whole request over and answers it. Gives it back if there is no room.
    /// `follows`: whether bytes behind it have been read.
    pub(super) fn place(
        &mut self,
        desk: &mut Desk<I>,
        asking: Asking<I::Target>,
        body: &[u8],
        follows: bool,
    ) -> Option<Asking<I::Target>> {
        // Whoever waits for the same room was here before.
        if desk.is_full(&asking.target) {
            return Some(asking);
        }
        let taken = desk.serving.take(&asking.target, asking.media, body);
        let Asking { target, media, after, asked } = asking;
        let said = if desk.stopping && !follows { After::Close } else { after };
        let ends = match taken {
            Taken::Accepted => {
                self.replies.next(&mut desk.out).extend_from_slice(answer::accepted(said));
                if asked.at_us == desk.now_us && asked.logged.is_none() {
                    desk.tally.accepted += 1;
                } else {
                    desk.tally.answered(Family::Ingest, answer::ACCEPTED_STATUS, asked);
                }
                said
            }
            Taken::Pending(ticket) => {
                self.replies.wait_for(ticket, after, asked);
                after
            }
            Taken::Refused(problem) => {
                answer::push_problem(self.replies.next(&mut desk.out), &problem, said);
                desk.tally.refused(Family::Ingest, &problem, asked);
                said
            }
            Taken::Full => {
                desk.full.push(target.clone());
                return Some(Asking { target, media, after, asked });
            }
        };
        self.state = if ends == After::Close { State::Ended } else { State::IDLE };
        None
    }

    /// Keeps a request that found no room, of which only `body` is here and `behind` bytes follow.
    pub(super) fn keep(
        &mut self,
        desk: &mut Desk<I>,
        asking: Asking<I::Target>,
        body: &[u8],
        behind: usize,
    ) {
        let mut charge = Charge::default();
        if let Err(problem) = charge.raise(&desk.memory, body.len()) {
            let Asking { asked, after, .. } = asking;
            let framing = Framing::Length(0);
            let refused = Refused { asked, after, framing, rest: Rest::Length(0) };
            return self.refuse(desk, &problem, refused, behind);
        }
        let mut kept = desk.spare.take();
        kept.extend_from_slice(body);
        self.state = State::Stalled(Box::new(Kept { asking, body: kept, _charge: charge }));
    }

    /// Answers a request with a problem and sees to the rest of its body, of which
    /// `here` bytes, perhaps with requests behind it, have been read.
    pub(super) fn refuse(
        &mut self,
        desk: &mut Desk<I>,
        problem: &Problem,
        refused: Refused,
        here: usize,
    ) {
        let Refused { asked, after, framing, rest } = refused;
        let (skippable, last) = match (framing, &rest) {
            (Framing::Length(length), Rest::Length(left)) => {
                (length <= SKIP_BYTES, here as u64 <= *left)
            }
            _ => (true, here == 0),
        };
        let closes = after == After::Close || !skippable || (desk.stopping && last);
        let said = if closes { After::Close } else { After::Keep };
        answer::push_problem(self.replies.next(&mut desk.out), problem, said);
        desk.tally.refused(Family::Ingest, problem, asked);
        self.state = match (said, rest) {
            (After::Close, _) => State::Ended,
            (After::Keep, Rest::Length(0)) => State::IDLE,
            (After::Keep, rest) => State::Skip { rest, allowance: SKIP_BYTES },
        };
    }

    /// Answers with a problem after which nothing can be understood.
    pub(super) fn give_up(&mut self, desk: &mut Desk<I>, problem: &Problem) {
        answer::push_problem(self.replies.next(&mut desk.out), problem, After::Close);
        let asked = Asked { at_us: desk.now_us, logged: None };
        desk.tally.refused(Family::Ingest, problem, asked);
        self.state = State::Ended;
    }
}
