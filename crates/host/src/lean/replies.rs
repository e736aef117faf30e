//! Answers that must wait for one before them: a client gets them in the order of
//! its requests, and a durable one is not ready before its barrier.

use super::answer;
use super::desk::{Came, Desk};
use super::head::After;
use super::seam::Guards;
use crate::fast::{AnyTicket, TicketState, Varying};
use std::collections::VecDeque;

/// Most answers of one connection that may wait for a barrier.
const MOST_WAITING: usize = 64;
/// Once so many bytes of answers are ready but for those before them, nothing more is taken.
const MOST_READY_BYTES: usize = 32 << 10;

enum Reply {
    /// Ready but for those before it.
    Ready(Vec<u8>),
    /// Waits for a barrier.
    Durable(Durable),
}

/// A request whose answer waits for a barrier.
pub(crate) struct Durable {
    /// Whose it is, by the lane's place.
    pub(crate) lane: usize,
    pub(crate) ticket: AnyTicket,
    pub(crate) after: After,
    pub(crate) came: Came,
}

/// The answers that wait, oldest first.
pub(crate) struct Replies {
    queue: VecDeque<Reply>,
    durable: usize,
}

impl Replies {
    /// None wait.
    pub(crate) fn new() -> Replies {
        Replies { queue: VecDeque::new(), durable: 0 }
    }

    /// Whether none wait.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether no more may wait.
    pub(crate) fn is_full(&self) -> bool {
        let ready = || {
            let bytes = self.queue.iter().map(|reply| match reply {
                Reply::Ready(bytes) => bytes.len(),
                Reply::Durable(_) => 0,
            });
            bytes.sum::<usize>() >= MOST_READY_BYTES
        };
        self.durable >= MOST_WAITING || (self.durable > 0 && ready())
    }

    /// Where the next answer goes: out at once, or behind those that wait.
    pub(crate) fn next<'a>(&'a mut self, out: &'a mut Vec<u8>) -> &'a mut Vec<u8> {
        if self.queue.is_empty() {
            return out;
        }
        if !matches!(self.queue.back(), Some(Reply::Ready(_))) {
            self.queue.push_back(Reply::Ready(Vec::new()));
        }
        match self.queue.back_mut() {
            Some(Reply::Ready(bytes)) => bytes,
            _ => out,
        }
    }

    /// Adds an answer that waits for a barrier.
    pub(crate) fn wait_for(&mut self, durable: Durable) {
        self.queue.push_back(Reply::Durable(durable));
        self.durable += 1;
    }

    /// Hands out what is ready. `last` is what the answer says about the connection if none follows
    /// it.
    pub(crate) fn settle<G: Guards>(&mut self, desk: &mut Desk<G>, last: After) {
        while let Some(reply) = self.queue.pop_front() {
            let durable = match reply {
                Reply::Ready(bytes) => {
                    desk.out.extend_from_slice(&bytes);
                    continue;
                }
                Reply::Durable(durable) => durable,
            };
            let closes =
                durable.after == After::Close || (self.queue.is_empty() && last == After::Close);
            let said = if closes { After::Close } else { After::Keep };
            let lane = &mut desk.lanes[durable.lane];
            let answered = match lane.path.settled(&durable.ticket) {
                TicketState::Pending => {
                    self.queue.push_front(Reply::Durable(durable));
                    return;
                }
                TicketState::Reply(form) => {
                    let sheet = &lane.sheets[form];
                    let pushed = sheet.push(&mut desk.out, &Varying::new(), said);
                    pushed.map(|()| sheet.status).map_err(Into::into)
                }
                TicketState::Failed(problem) => Err(problem),
            };
            match answered {
                Ok(status) => desk.tally.answered(durable.lane, status, durable.came),
                Err(problem) => {
                    let problem = lane.path.render(problem);
                    answer::push_problem(&mut desk.out, &problem, said);
                    desk.tally.refused(Some(durable.lane), &problem, durable.came);
                }
            }
            self.durable -= 1;
        }
    }
}
