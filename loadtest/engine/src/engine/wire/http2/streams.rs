//! Streams: what is under way at each place, and which stream is whose.

use super::flow::{ReceiveWindow, SendWindow};
use crate::workload::Needs;
use std::collections::VecDeque;

/// The largest stream there can be on a connection.
const LAST_ID: u32 = 0x7fff_ffff;
/// No place.
const NOBODY: u32 = u32::MAX;

/// How far the answer at a place is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is under way.
    #[default]
    Free,
    /// The request waits until the peer allows another stream.
    Waiting,
    /// Sent, wholly or in part; no head has arrived, or only interim ones.
    Asked,
    /// The head has arrived.
    Body,
}

/// One place: its stream and the answer on it.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) stage: Stage,
    pub(super) id: u32,
    pub(super) needs: Needs,
    pub(super) to_head_request: bool,
    pub(super) begun: bool,
    pub(super) status: u16,
    pub(super) content_length: Option<u64>,
    pub(super) body_bytes: u64,
    /// The header block, if the workload needs the head.
    pub(super) head: Vec<u8>,
    pub(super) body: Vec<u8>,
    pub(super) send_window: SendWindow,
    pub(super) receive_window: ReceiveWindow,
    /// What of the request's body could not be sent yet, and how much of this has been since.
    pub(super) unsent: Vec<u8>,
    pub(super) unsent_from: usize,
}

impl Stream {
    pub(super) fn new() -> Self {
        Stream {
            stage: Stage::Free,
            id: 0,
            needs: Needs::default(),
            to_head_request: false,
            begun: false,
            status: 0,
            content_length: None,
            body_bytes: 0,
            head: Vec::new(),
            body: Vec::new(),
            send_window: SendWindow::new(0),
            receive_window: ReceiveWindow::default(),
            unsent: Vec::new(),
            unsent_from: 0,
        }
    }

    /// Forgets the last answer.
    #[inline]
    pub(super) fn prepare(&mut self, needs: Needs, to_head_request: bool) {
        self.needs = needs;
        self.to_head_request = to_head_request;
        self.begun = false;
        self.content_length = None;
        self.body_bytes = 0;
        self.head.clear();
        self.body.clear();
        self.receive_window = ReceiveWindow::default();
        self.unsent.clear();
        self.unsent_from = 0;
    }

    /// Whether the answer has no content, whatever its fields say (RFC 9110 section 6.4.1).
    #[inline]
    pub(super) fn without_body(&self) -> bool {
        self.to_head_request || matches!(self.status, 204 | 304)
    }

    /// Whether as much has arrived as was announced.
    #[inline]
    pub(super) fn length_is_right(&self) -> bool {
        match self.content_length {
            _ if self.without_body() => self.body_bytes == 0,
            Some(length) => self.body_bytes == length,
            None => true,
        }
    }
}

/// Whose a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The request at this place is under way on it.
    Place(u32),
    /// Nobody's any more: answered or given up.
    Gone,
    /// We never opened it.
    Never,
}

/// Which streams are open. They are numbered upwards, so a window over the numbers
/// in use is enough; it is as long as the slowest answer makes it.
#[derive(Debug)]
pub(super) struct Streams {
    next: u32,
    /// The lowest stream in `places`.
    first: u32,
    places: VecDeque<u32>,
    pub(super) open: u32,
}

impl Streams {
    pub(super) fn new() -> Self {
        Streams { next: 1, first: 1, places: VecDeque::new(), open: 0 }
    }

    /// Opens the next stream for a place.
    #[inline]
    pub(super) fn open(&mut self, place: u32) -> u32 {
        let id = self.next;
        self.next += 2;
        self.places.push_back(place);
        self.open += 1;
        id
    }

    /// Whether so many more can be opened.
    #[inline]
    pub(super) fn has_room_for(&self, more: u32) -> bool {
        (LAST_ID - self.next) / 2 > more
    }

    #[inline]
    pub(super) fn owner(&self, id: u32) -> Owner {
        if id.is_multiple_of(2) || id >= self.next {
            return Owner::Never;
        }
        let Some(past) = id.checked_sub(self.first) else { return Owner::Gone };
        match self.places.get((past / 2) as usize) {
            Some(place) if *place != NOBODY => Owner::Place(*place),
            _ => Owner::Gone,
        }
    }

    #[inline]
    pub(super) fn close(&mut self, id: u32) {
        if let Some(past) = id.checked_sub(self.first)
            && let Some(place) = self.places.get_mut((past / 2) as usize)
            && *place != NOBODY
        {
            *place = NOBODY;
            self.open -= 1;
            while self.places.front() == Some(&NOBODY) {
                self.places.pop_front();
                self.first += 2;
            }
        }
    }

    /// The places of open streams above `last`, in order.
    pub(super) fn above(&self, last: u32) -> Vec<u32> {
        let ids = (0u32..).map(|at| self.first + 2 * at);
        let above = ids.zip(&self.places).filter(|(id, place)| *id > last && **place != NOBODY);
        above.map(|(_, place)| *place).collect()
    }

    /// As if nearly all had been used.
    #[cfg(test)]
    pub(super) fn wear_out(&mut self, left: u32) {
        self.next = LAST_ID - 2 * left;
        self.first = self.next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn owners_are_those_of_a_plain_map(steps in prop::collection::vec(any::<(bool, u8)>(), 0..200)) {
            let mut streams = Streams::new();
            let mut plain = std::collections::BTreeMap::new();
            for (open, which) in steps {
                if open {
                    plain.insert(streams.open(u32::from(which)), u32::from(which));
                } else if let Some(id) = plain.keys().nth(usize::from(which)).copied() {
                    streams.close(id);
                    plain.remove(&id);
                }
                prop_assert_eq!(streams.open as usize, plain.len());
                for id in 0..streams.next + 4 {
                    let expected = match plain.get(&id) {
                        Some(place) => Owner::Place(*place),
                        None if id.is_multiple_of(2) || id >= streams.next => Owner::Never,
                        None => Owner::Gone,
                    };
                    prop_assert_eq!(streams.owner(id), expected);
                }
                let last = u32::from(which);
                let above: Vec<u32> = plain.range(last + 1..).map(|(_, place)| *place).collect();
                prop_assert_eq!(streams.above(last), above);
                prop_assert!(streams.places.len() <= 200);
            }
        }
    }

    #[test]
    fn numbers_run_out() {
        let mut streams = Streams::new();
        assert!(streams.has_room_for(1000));
        streams.wear_out(3);
        assert!(streams.has_room_for(2) && !streams.has_room_for(3));
        for _ in 0..3 {
            let id = streams.open(0);
            assert!(id < LAST_ID);
            assert_eq!(streams.owner(id), Owner::Place(0));
        }
    }
}
