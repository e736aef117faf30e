//! Puts the chunks of a client together into messages, and keeps those that wait.

use crate::message::jumps_ahead;
use std::collections::VecDeque;

/// Most messages that wait behind the one under way, before reading stops.
const MAX_WAITING: usize = 64;
/// Most bytes that wait, before reading stops.
const MAX_WAITING_BYTES: usize = 1 << 20;
/// Most bytes of a message behind others that wait, whatever the limit is now: once those are acted
/// on, another one may hold. At most two reads' worth.
const MAX_UNJUDGED_BYTES: usize = 128 << 10;
/// Memory that is kept while nothing waits, in bytes.
const KEPT_BYTES: usize = 1 << 10;

/// The next byte of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// The first byte of a chunk's header.
    Header,
    /// The second byte of a chunk's header.
    HeaderRest(u8),
    /// So many bytes of a chunk.
    Data(usize),
    /// Nothing: a message is too long, and whatever follows is discarded.
    Nothing,
}

/// Chunks in, messages out. All messages are in one buffer: a message costs its bytes and a few
/// more, however short its chunks.
#[derive(Debug)]
pub(crate) struct Dechunker {
    /// The waiting messages, and the one that is still incomplete.
    bytes: Vec<u8>,
    /// Start of the first waiting message.
    start: usize,
    /// Lengths of the waiting messages.
    waiting: VecDeque<usize>,
    /// Their sum.
    waiting_bytes: usize,
    expected: Expected,
    /// Most bytes of a message.
    limit: usize,
    /// Waiting messages that jump ahead.
    ahead: usize,
}

impl Dechunker {
    /// Refuses messages of more than `limit` bytes.
    pub(crate) fn new(limit: usize) -> Dechunker {
        Dechunker {
            bytes: Vec::new(),
            start: 0,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            expected: Expected::Header,
            limit,
            ahead: 0,
        }
    }

    /// Changes the limit, for chunks that begin from now on.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// The limit, in bytes.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Takes bytes from the client. Returns how many belong to the messages so far: fewer only if a
    /// message is too long, see [`Dechunker::is_broken`].
    pub(crate) fn receive(&mut self, mut input: &[u8]) {
        while let Some((&first, rest)) = input.split_first() {
            match self.expected {
                Expected::Header => {
                    self.expected = Expected::HeaderRest(first);
                    input = rest;
                }
                Expected::HeaderRest(high) => {
                    self.chunk(usize::from(u16::from_be_bytes([high, first])));
                    input = rest;
                }
                Expected::Data(left) => {
                    let (data, rest) = input.split_at(left.min(input.len()));
                    self.bytes.extend_from_slice(data);
                    self.expected = match left - data.len() {
                        0 => Expected::Header,
                        left => Expected::Data(left),
                    };
                    input = rest;
                }
                Expected::Nothing => return,
            }
        }
    }

    /// A chunk of this length begins; an empty one ends a message, or means nothing between two.
    fn chunk(&mut self, length: usize) {
        let begun = self.begun();
        self.expected = Expected::Header;
        if length == 0 && begun > 0 {
            let message = &self.bytes[self.bytes.len() - begun..];
            self.ahead += usize::from(jumps_ahead(message));
            self.waiting.push_back(begun);
            self.waiting_bytes += begun;
        } else if length > 0 {
            let is_next = self.waiting.is_empty();
            let limit = if is_next { self.limit } else { self.limit.max(MAX_UNJUDGED_BYTES) };
            let fits = begun + length <= limit;
            self.expected = if fits { Expected::Data(length) } else { Expected::Nothing };
        }
    }

    /// Bytes of the incomplete message.
    fn begun(&self) -> usize {
        self.bytes.len() - self.start - self.waiting_bytes
    }

    /// The first waiting message, which stays; none if it is too long.
    pub(crate) fn first(&self) -> Option<&[u8]> {
        let length = self.waiting.front().copied().filter(|length| *length <= self.limit)?;
        Some(&self.bytes[self.start..self.start + length])
    }

    /// Takes the first waiting message.
    pub(crate) fn take(&mut self) -> Option<Vec<u8>> {
        // A long message that is alone is not copied.
        if self.start == 0 && self.waiting.front() == Some(&self.bytes.len()) {
            self.waited();
            return Some(std::mem::take(&mut self.bytes));
        }
        let message = self.first()?.to_vec();
        self.pass();
        Some(message)
    }

    /// Passes over the first waiting message.
    pub(crate) fn pass(&mut self) {
        self.start += self.waited();
        if self.start == self.bytes.len() {
            self.start = 0;
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_BYTES);
            self.waiting.shrink_to(KEPT_BYTES / size_of::<usize>());
        } else if self.start > self.bytes.len() / 2 {
            // So every byte is moved once at most for each time that as many were passed.
            self.bytes.drain(..std::mem::take(&mut self.start));
        }
    }

    /// The first message waits no longer; its length.
    fn waited(&mut self) -> usize {
        let jumped = self.first().is_some_and(jumps_ahead);
        self.ahead -= usize::from(jumped);
        let length = self.waiting.pop_front().unwrap_or_default();
        self.waiting_bytes -= length;
        length
    }

    /// Whether a message waits that jumps ahead of the others.
    pub(crate) fn has_one_ahead(&self) -> bool {
        self.ahead > 0
    }

    /// Whether nothing waits and no message has begun.
    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.expected == Expected::Header
    }

    /// Whether a message is too long: nothing more is read.
    pub(crate) fn is_broken(&self) -> bool {
        self.expected == Expected::Nothing || self.next_bytes() > self.limit
    }

    /// Bytes of the next message, as far as its chunks have been announced.
    fn next_bytes(&self) -> usize {
        let announced = match self.expected {
            Expected::Data(left) => left,
            _ => 0,
        };
        self.waiting.front().copied().unwrap_or_else(|| self.begun() + announced)
    }

    /// Whether there is room for more. A client that may send short messages only sends one at a
    /// time.
    pub(crate) fn has_room(&self) -> bool {
        let is_early = self.limit < MAX_UNJUDGED_BYTES;
        if is_early && !self.waiting.is_empty() {
            return false;
        }
        let is_full = self.waiting.len() >= MAX_WAITING || self.waiting_bytes >= MAX_WAITING_BYTES;
        !is_full && !self.is_broken()
    }

    /// Memory of what waits and of what is incomplete, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.waiting.capacity() * size_of::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn taken(input: &mut Dechunker) -> Vec<Vec<u8>> {
        std::iter::from_fn(|| input.take()).collect()
    }

    #[test]
    fn an_empty_chunk_between_messages_means_nothing() {
        let mut input = Dechunker::new(100);
        input.receive(&[0, 0, 0, 0, 0, 2, 1, 2, 0, 1, 3, 0, 0, 0, 0, 0, 1, 4, 0, 0]);
        assert_eq!(taken(&mut input), [vec![1, 2, 3], vec![4]]);
        assert!(input.is_empty());
    }

    #[test]
    fn a_message_beyond_the_limit_breaks_the_input_before_it_is_kept() {
        let mut input = Dechunker::new(10);
        input.receive(&[0, 8, 1, 2, 3, 4, 5, 6, 7, 8, 0, 3]);
        assert!(input.is_broken() && !input.has_room());
        input.receive(&[1, 2, 3, 0, 0]);
        assert!(taken(&mut input).is_empty());
    }

    #[test]
    fn a_message_behind_another_is_judged_by_the_limit_that_holds_then() {
        for (limit, is_broken) in [(10, true), (20, false)] {
            let mut input = Dechunker::new(10);
            input.receive(&[0, 1, 9, 0, 0, 0, 15, 1, 2, 3]);
            assert!(!input.is_broken() && !input.has_room(), "the first one has to be acted on");
            assert_eq!(input.take(), Some(vec![9]));
            input.set_limit(limit);
            assert_eq!(input.is_broken(), is_broken);
        }
        let mut input = Dechunker::new(10);
        input.receive(&[0, 1, 9, 0, 0]);
        input.receive(&[0xFF, 0xFF]);
        input.receive(&[1; 65_535]);
        input.receive(&[0xFF, 0xFF]);
        input.receive(&[1; 65_535]);
        assert!(!input.is_broken());
        input.receive(&[0xFF, 0xFF, 1]);
        assert!(input.is_broken() && input.memory_bytes() <= 2 * MAX_UNJUDGED_BYTES);
    }

    #[test]
    fn reading_stops_while_too_much_waits() {
        let mut input = Dechunker::new(16 << 20);
        for _ in 0..MAX_WAITING {
            assert!(input.has_room());
            input.receive(&[0, 1, 1, 0, 0]);
        }
        assert!(!input.has_room());
        input.pass();
        assert!(input.has_room());
        while input.take().is_some() {}
        for _ in 0..17 {
            input.receive(&[0xFF, 0xFF]);
            input.receive(&[1; 65_535]);
        }
        assert!(input.has_room(), "one message may be longer");
        input.receive(&[0, 0]);
        assert!(!input.has_room());
        assert_eq!(input.take().map(|message| message.len()), Some(17 * 65_535));
        assert!(input.is_empty() && input.memory_bytes() <= 2 * KEPT_BYTES);
    }

    #[test]
    fn a_reset_or_a_goodbye_is_noticed_behind_others() {
        for tag in [0x0F, 0x02] {
            let mut input = Dechunker::new(100);
            input.receive(&[0, 2, 0xB1, tag, 0, 0, 0, 1, 0xB0]);
            assert!(!input.has_one_ahead());
            input.receive(&[0, 1, tag, 0, 0]);
            assert!(input.has_one_ahead());
            input.pass();
            assert!(input.has_one_ahead());
            input.pass();
            assert!(!input.has_one_ahead());
        }
    }

    proptest! {
        #[test]
        fn chunks_and_pieces_of_any_size_give_the_same_messages(
            messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..8),
            chunk in 1_usize..20,
            piece in 1_usize..30,
            early in any::<bool>(),
        ) {
            let mut bytes = Vec::new();
            for message in &messages {
                for data in message.chunks(chunk) {
                    bytes.extend_from_slice(&(data.len() as u16).to_be_bytes());
                    bytes.extend_from_slice(data);
                }
                bytes.extend_from_slice(&[0, 0]);
            }
            let (mut input, mut read) = (Dechunker::new(40), Vec::new());
            for piece in bytes.chunks(piece) {
                input.receive(piece);
                if early {
                    read.extend(taken(&mut input));
                }
            }
            read.extend(taken(&mut input));
            prop_assert_eq!(read, messages);
            prop_assert!(input.is_empty());
        }
    }
}
