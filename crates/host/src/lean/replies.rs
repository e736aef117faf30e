//! Pending answers: a client gets its answers in the order of its requests, and a durable one is
//! not ready before its barrier.

use super::answer;
use super::head::Persistence;
use super::loop_state::{Arrival, LoopState};
use super::seam::Guards;
use crate::fast::{AnyTicket, TicketState};
use std::collections::VecDeque;

/// Most answers of one connection that may wait for a barrier.
const MOST_WAITING: usize = 64;
/// Once this many bytes of ready answers wait for earlier ones, no more requests are accepted.
const MOST_READY_BYTES: usize = 32 << 10;

enum Reply {
    /// Ready, but waits for earlier answers.
    Ready(Vec<u8>),
    /// Waits for a barrier.
    Durable(Durable),
}

/// A request whose answer waits for a barrier.
pub(crate) struct Durable {
    /// The index of its fast path.
    pub(crate) path_index: usize,
    pub(crate) ticket: AnyTicket,
    pub(crate) after: Persistence,
    pub(crate) came: Arrival,
}

/// The pending answers, oldest first.
pub(crate) struct Replies {
    queue: VecDeque<Reply>,
    durable: usize,
}

impl Replies {
    /// Without pending answers.
    pub(crate) fn new() -> Replies {
        Replies { queue: VecDeque::new(), durable: 0 }
    }

    /// Whether none are pending.
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether no more may be pending.
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

    /// The buffer for the next answer: sent at once, or after the pending ones.
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

    /// Moves out what is ready. `last` is what the answer says about the connection if none follows
    /// it.
    pub(crate) fn settle<G: Guards>(&mut self, shared: &mut LoopState<G>, last: Persistence) {
        while let Some(reply) = self.queue.pop_front() {
            let durable = match reply {
                Reply::Ready(bytes) => {
                    shared.out.extend_from_slice(&bytes);
                    continue;
                }
                Reply::Durable(durable) => durable,
            };
            let closes = durable.after == Persistence::Close
                || (self.queue.is_empty() && last == Persistence::Close);
            let said = if closes { Persistence::Close } else { Persistence::Keep };
            let served = &mut shared.paths[durable.path_index];
            served.varying.clear();
            let answered = match served.path.settled(&durable.ticket, &mut served.varying) {
                TicketState::Pending => {
                    self.queue.push_front(Reply::Durable(durable));
                    return;
                }
                TicketState::Reply(form) => {
                    let form = &served.forms[form];
                    let pushed = form.push(&mut shared.out, &served.varying, said);
                    pushed.map(|()| Some(form.status)).map_err(Into::into)
                }
                TicketState::Answered(answer) => {
                    let held = answer::push_whole(&mut shared.out, answer, said);
                    shared.held.push(held);
                    Ok(None)
                }
                TicketState::Failed(problem) => Err(problem),
            };
            match answered {
                Ok(None) => {}
                Ok(Some(status)) => shared.tally.answered(durable.path_index, status, durable.came),
                Err(problem) => {
                    let problem = served.path.render(problem);
                    answer::push_problem(&mut shared.out, &problem, said);
                    shared.tally.refused(Some(durable.path_index), &problem, durable.came);
                }
            }
            self.durable -= 1;
        }
    }
}
