//! Timeouts without timers: every connection is checked a few times per shortest timeout, some
//! hundred of them each time the loop wakes.

use super::Settings;
use super::conn::{AwaitedEvent, Input};
use super::seam::Guards;
use super::slab::Token;
use super::worker::Worker;
use crate::stats::RefusalReason;

/// Connections checked each time the loop wakes, so that many late ones do not delay the others.
const PLACES: usize = 512;
/// Checks per shortest timeout.
const LOOKS: u64 = 4;
const MOST_OFTEN_US: u64 = 50_000;
const LEAST_OFTEN_US: u64 = 5_000_000;
/// How long a client may take to read its last answer, also at shutdown.
const LINGER_US: u64 = 3_000_000;
const LINGER_STOPPING_US: u64 = 250_000;

/// When connections are checked, and which are next.
pub(super) struct Sweep {
    tick_us: u64,
    linger_us: u64,
    next_us: u64,
    place: usize,
}

impl Sweep {
    /// The first check is one tick from now.
    pub(super) fn new(settings: &Settings, now_us: u64) -> Sweep {
        let Settings { header_us, body_us, idle_us, write_us, .. } = *settings;
        let shortest = [header_us, body_us, idle_us, write_us, LINGER_US].into_iter().min();
        let tick_us = (shortest.unwrap_or_default() / LOOKS).clamp(MOST_OFTEN_US, LEAST_OFTEN_US);
        Sweep { tick_us, linger_us: LINGER_US, next_us: now_us + tick_us, place: 0 }
    }

    /// When the next look is due.
    pub(super) fn due_us(&self) -> u64 {
        if self.place > 0 { 0 } else { self.next_us }
    }

    /// The server is shutting down: check often, and wait less for clients that have their answer.
    pub(super) fn hurry(&mut self, now_us: u64) {
        self.tick_us = MOST_OFTEN_US;
        self.linger_us = LINGER_STOPPING_US;
        self.next_us = now_us + self.tick_us;
    }
}

impl<G: Guards> Worker<G> {
    /// Checks the next connections, if it is time to.
    pub(super) fn sweep(&mut self) {
        let now_us = self.shared.now_us;
        if self.sweep.due_us() > now_us {
            return;
        }
        let end = (self.sweep.place + PLACES).min(self.conns.places());
        for place in self.sweep.place..end {
            if let Some(token) = self.conns.at(place) {
                self.look_at(token);
            }
        }
        self.sweep.place = end;
        if end == self.conns.places() {
            self.sweep.place = 0;
            self.sweep.next_us = now_us + self.sweep.tick_us;
        }
    }

    fn look_at(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let settings = &self.parts.settings;
        let most_us = match conn.waiting {
            AwaitedEvent::Idle => settings.idle_us,
            AwaitedEvent::Head => settings.header_us,
            AwaitedEvent::Body => settings.body_us,
            AwaitedEvent::Write => settings.write_us,
            AwaitedEvent::Linger => self.sweep.linger_us,
            AwaitedEvent::Handler if conn.is_left(self.shared.now_us) => 0,
            AwaitedEvent::Ours | AwaitedEvent::Handler => return,
        };
        if self.shared.now_us.saturating_sub(conn.since_us) < most_us {
            return;
        }
        let slow = match conn.waiting {
            AwaitedEvent::Head => Some(RefusalReason::SlowHead),
            AwaitedEvent::Body => Some(RefusalReason::SlowBody),
            AwaitedEvent::Write => Some(RefusalReason::SlowReader),
            _ => None,
        };
        if let Some(slow) = slow {
            self.parts.stats.refusals.count(slow);
        }
        match conn.waiting {
            AwaitedEvent::Head | AwaitedEvent::Body => {
                let turn = conn.session.expire(&mut self.shared);
                self.proceed(token, turn);
            }
            _ => self.close(token),
        }
    }

    /// Closes an idle connection, after a last check.
    pub(super) fn end_if_idle(&mut self, token: Token) {
        let idle = |worker: &mut Worker<G>| {
            let conn = worker.conns.get_mut(token);
            conn.is_some_and(|c| c.waiting == AwaitedEvent::Idle && c.input == Input::Open)
        };
        if idle(self) {
            self.read(token);
        }
        if idle(self) {
            self.close(token);
        }
    }
}
