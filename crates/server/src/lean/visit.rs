//! From the head of a request for a link to its answer. There is no body and nothing
//! to wait for: it is answered where it is read.

use super::answer;
use super::desk::{Asked, Desk, Family};
use super::head::{After, CODE_AT};
use super::seam::{Redirected, Serves};
use super::session::Session;
use super::state::State;
use crate::links::{Visiting, with_error};

impl<I: Serves> Session<I> {
    /// Answers a request for a link: bytes used, `None` if it is for the other stack after all.
    /// Its code is in `head` up to `code_end`, what it tells at the desk. `last`: nothing behind it has been read.
    pub(super) fn visit(
        &mut self,
        desk: &mut Desk<I>,
        head: &[u8],
        code_end: usize,
        last: bool,
    ) -> Option<usize> {
        let after = if desk.stopping && last { After::Close } else { desk.visited.after };
        let counted = self.count(desk, head, None);
        let out = self.replies.next(&mut desk.out);
        let before = out.len();
        // In one piece with the location: nothing is put together elsewhere and copied.
        out.extend_from_slice(answer::FOUND);
        let visiting = Visiting {
            code: &head[CODE_AT..code_end],
            visit: &desk.visited.visit,
            visitor: &mut self.visitor,
            now_us: desk.now_us,
        };
        let redirected = match counted {
            Ok(()) => desk.serving.redirect(visiting, out),
            Err(problem) => Redirected::Refused(with_error(problem)),
        };
        let refused = match redirected {
            Redirected::Found => {
                out.extend_from_slice(desk.found_ends.of(after));
                None
            }
            Redirected::Refused(problem) => {
                out.truncate(before);
                answer::push_problem(out, &problem, after);
                Some(problem)
            }
            Redirected::Foreign => {
                out.truncate(before);
                self.state = State::Leaving;
                return None;
            }
        };
        self.begun = self.begun.wrapping_add(1);
        if refused.is_none() && !desk.tally.logs {
            desk.tally.found += 1;
        } else {
            let asked = Asked { at_us: desk.now_us, logged: self.logged(desk, head, None) };
            match refused {
                None => desk.tally.answered(Family::Link, answer::FOUND_STATUS, asked),
                Some(problem) => desk.tally.refused(Family::Link, &problem, asked),
            }
        }
        self.state = if after == After::Close { State::Ended } else { State::IDLE };
        Some(head.len())
    }
}
