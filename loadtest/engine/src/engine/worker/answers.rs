//! The part of a worker that reads: what arrives, what it completes, and what its user does next.

use super::{Phase, Worker};
use crate::engine::conn::State;
use crate::engine::tally::Tally;
use crate::engine::tls::Unread;
use crate::engine::wire::Advance;
use crate::plan::Load;
use crate::workload::Judgement;
use rustix::event::epoll;

impl Worker {
    /// Handles what the sockets have to say.
    pub(super) fn handle(&mut self, events: &[epoll::Event], tally: &mut Tally) {
        for event in events {
            let token = event.data.u64();
            let index = usize::try_from(token & 0xFFFF_FFFF).unwrap_or(usize::MAX);
            let current = self.conns.get(index).is_some_and(|conn| conn.token(index) == token);
            if !current {
                continue;
            }
            let flags = event.flags;
            match self.conns[index].state {
                State::Connecting => self.connected(index, tally),
                State::Secure | State::Open | State::Ending => {
                    if flags.contains(epoll::EventFlags::OUT) {
                        self.flush(index, tally);
                    }
                    let readable = epoll::EventFlags::IN
                        | epoll::EventFlags::HUP
                        | epoll::EventFlags::RDHUP
                        | epoll::EventFlags::ERR;
                    if flags.intersects(readable) && self.conns[index].token(index) == token {
                        let hung_up = flags.contains(epoll::EventFlags::RDHUP);
                        self.readable(index, hung_up, tally);
                    }
                }
                State::Broken { .. } => {}
            }
        }
    }

    /// Reads what there is. Where the server has ended its side, or ends connections without saying
    /// so before, reading goes on until nothing is left, and only then the next request is written:
    /// so it is not sent over a connection that is known to have ended.
    fn readable(&mut self, index: usize, hung_up: bool, tally: &mut Tally) {
        let hold = self.setup.streams == 1 && (hung_up || self.ends_unannounced);
        let mut buffer = std::mem::take(&mut self.buffer);
        loop {
            let read = self.conns[index].read(&mut buffer);
            if self.conns[index].state == State::Secure
                && matches!(read, Ok(1..) | Err(Unread::Later))
                && self.secured(index, tally).is_err()
            {
                break;
            }
            match read {
                Ok(0) => {
                    self.peer_closed(index, tally);
                    break;
                }
                Ok(count) => {
                    let full = count == buffer.len();
                    if self.feed(index, &buffer[..count], hold, tally).is_err() || !(full || hold) {
                        break;
                    }
                }
                Err(Unread::Later) => {
                    // TLS may have something to say without anything to be read.
                    self.flush(index, tally);
                    break;
                }
                Err(unread) => {
                    self.unreadable(index, unread, tally);
                    break;
                }
            }
        }
        self.buffer = buffer;
    }

    /// Gives bytes to the wire and acts on every answer they complete. `Err` if the connection is
    /// gone. With `hold` nothing is written in return yet.
    fn feed(
        &mut self,
        index: usize,
        mut bytes: &[u8],
        hold: bool,
        tally: &mut Tally,
    ) -> Result<(), ()> {
        let done_ns = self.setup.clock.now_ns();
        self.count_received(index, bytes.len(), tally);
        let generation = self.conns[index].generation;
        loop {
            let conn = &mut self.conns[index];
            let advance = conn.wire.advance(bytes, &mut self.heads, &mut self.seen, &mut conn.out);
            match advance {
                Ok(Advance::More) => break,
                Ok(Advance::Begun { used, place }) => {
                    bytes = &bytes[used..];
                    let number = self.number(index, place);
                    self.places[number as usize].times.begun_ns = done_ns;
                }
                Ok(Advance::Answered { used, place }) => {
                    bytes = &bytes[used..];
                    self.answered(index, place, done_ns, tally);
                    if self.conns[index].generation != generation {
                        return Err(());
                    }
                    // HTTP/1.1 has nothing more to say until the next request is under way.
                    if bytes.is_empty() {
                        break;
                    }
                }
                Ok(Advance::Lost { used, place, kind }) => {
                    bytes = &bytes[used..];
                    self.explain(index, kind);
                    let number = self.number(index, place);
                    self.lose(number, kind, tally);
                    self.released(index, number, tally);
                    if self.conns[index].generation != generation {
                        return Err(());
                    }
                }
                Ok(Advance::Unprocessed { used, place }) => {
                    bytes = &bytes[used..];
                    let number = self.number(index, place);
                    self.take_back(number, tally);
                    self.released(index, number, tally);
                    if self.conns[index].generation != generation {
                        return Err(());
                    }
                }
                Err(kind) => {
                    self.explain(index, kind);
                    self.broken(index, kind, tally);
                    return Err(());
                }
            }
        }
        if self.conns[index].wire.going_away() {
            self.wind_up(index, tally);
        } else if self.conns[index].said_goodbye() {
            self.peer_closed(index, tally);
        } else if !hold {
            self.flush(index, tally);
        }
        if self.conns[index].generation == generation { Ok(()) } else { Err(()) }
    }

    pub(super) fn answered(&mut self, index: usize, place: u32, done_ns: u64, tally: &mut Tally) {
        let number = self.number(index, place);
        let at = self.places[number as usize];
        debug_assert_eq!(at.phase, Phase::UnderWay);
        self.places[number as usize].phase = Phase::Ready;
        self.in_flight -= 1;
        let conn = &mut self.conns[index];
        conn.is_used = true;
        let answer = conn.wire.answer(place, at.endpoint);
        let status = answer.status;
        let user = self.setup.first_place_of(self.index) + number;
        let judgement = self.workload.judge(user, &answer);
        if let Judgement::FailedCheck(check) = judgement {
            let text = self.workload.check_text(check);
            tally.failed_check(at.endpoint, at.times.due_ns, text);
        }
        tally.answered(at.endpoint, status, judgement, &at.times, done_ns);
        self.released(index, number, tally);
    }

    /// The request of a place is over: its user goes on, here or on the next connection.
    pub(super) fn released(&mut self, index: usize, number: u32, tally: &mut Tally) {
        let conn = &self.conns[index];
        if conn.state == State::Open && conn.wire.reusable() {
            self.free(number, tally);
        } else {
            self.pause(number, tally);
            self.wind_up(index, tally);
        }
    }

    /// The place may send its next request; its connection is open.
    fn free(&mut self, place: u32, tally: &mut Tally) {
        match self.pause(place, tally) {
            Phase::Asleep => {}
            _ if tally.is_open() || !self.started => self.rest(place),
            _ => self.send(place, None, tally),
        }
    }

    /// Lets a user think, if users do.
    fn pause(&mut self, place: u32, tally: &mut Tally) -> Phase {
        let Load::Closed { think_min_us, think_max_us } = self.setup.load else {
            return Phase::Ready;
        };
        if think_max_us == 0 || !self.started {
            return Phase::Ready;
        }
        let think_ns = self.random.between(think_min_us * 1000, think_max_us * 1000);
        let now_ns = self.setup.clock.now_ns();
        if tally.measures(now_ns) {
            self.think_ns += think_ns;
        }
        self.sleep(place, now_ns + think_ns);
        Phase::Asleep
    }
}
