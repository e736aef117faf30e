//! Messages as bytes.
//!
//! ```text
//! header, 32 bytes:
//!   0  u32 "WSRM"      4  version u8, 1   5  kind u8   6  lane u8, 0   7  zero
//!   8  length of the body u32            12  CRC-32C of the body u32
//!  16  request u64, of a question or an answer, else 0
//!  24  zero u32                          28  CRC-32C of the 28 bytes before u32
//! body, by kind:
//!   1 append      vote | entry before | committed | count u32 | count × (entry | length u32, bytes)
//!   2 elect       vote | last entry           3 would elect   last entry      4 end   nothing
//!   5 appended    outcome u8 (0 all, 1 up to, 2 conflict, 3 later vote) | entry | vote
//!   6 elected     vote | granted u8 | last entry      7 would elect   u8     8 end   u8 | index u64
//!   9 offers      a frame (see `frame`)      10 not ordering   start u64 | numbers of offers u64
//!  11 install     vote | the checkpoint      12 installed     vote
//!  13 hand over   term u64                   14 stand         term u64
//! vote: term u64 | node u64, 0 for none | committed u8. entry: term u64 | index u64
//! ```
//!
//! Numbers are little-endian. A message has one encoding; anything else is refused.

use crate::frame;
use crate::message::{Answer, AppendOutcome, Message, Offer, Question};
use crate::wal::{Entry, EntryId, MAX_ENTRY_BYTES, Vote};
use bytes::{Buf as _, BufMut as _, Bytes};
use std::fmt;

/// Length of a header.
pub const HEADER_BYTES: usize = 32;
/// Longest body: an entry of the greatest length, or several that are short.
pub const MAX_BODY_BYTES: usize = MAX_ENTRY_BYTES + (1 << 20);
const MAGIC: u32 = u32::from_le_bytes(*b"WSRM");
const VERSION: u8 = 1;
/// Bytes of a header that its checksum is over.
const CHECKED: usize = 28;

/// Why bytes are no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFault {
    /// They begin with something else, or are damaged.
    Header,
    /// They are of another version, or of a lane that this one does not have.
    Version,
    /// The body is damaged, or is none of its kind.
    Body,
}

impl fmt::Display for WireFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            WireFault::Header => "not the header of a message between nodes",
            WireFault::Version => "a message of another version of the group's protocol",
            WireFault::Body => "a damaged message between nodes",
        })
    }
}

impl std::error::Error for WireFault {}

impl Message {
    /// Whether it carries data, behind which nothing small should wait.
    #[must_use]
    pub fn is_bulk(&self) -> bool {
        match self {
            Message::Ask { question: Question::Append { entries, .. }, .. } => !entries.is_empty(),
            Message::Ask { question: Question::Install { .. }, .. } | Message::Offers(_) => true,
            _ => false,
        }
    }

    /// The message as bytes.
    ///
    /// # Panics
    /// It is longer than [`MAX_BODY_BYTES`]: what the library asks is bounded below that.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut out = vec![0; HEADER_BYTES];
        let (kind, request) = match self {
            Message::Ask { request, question } => (put_question(question, &mut out), *request),
            Message::Answer { request, answer } => (put_answer(answer, &mut out), *request),
            Message::Offers(offers) => {
                let items: Vec<_> = offers.iter().map(|Offer(item)| item.clone()).collect();
                out.put_slice(&frame::encode(&items));
                (9, 0)
            }
            Message::NotOrdering { start, offers } => {
                out.put_u64_le(*start);
                offers.iter().for_each(|offer| out.put_u64_le(*offer));
                (10, 0)
            }
            Message::HandOver { term } => {
                out.put_u64_le(*term);
                (13, 0)
            }
            Message::Stand { term } => {
                out.put_u64_le(*term);
                (14, 0)
            }
        };
        let body = &out[HEADER_BYTES..];
        assert!(body.len() <= MAX_BODY_BYTES, "a message of {} bytes", body.len());
        let (length, check) = (body.len() as u32, crc32c::crc32c(body));
        let mut header = &mut out[..HEADER_BYTES];
        header.put_u32_le(MAGIC);
        header.put_slice(&[VERSION, kind, 0, 0]);
        header.put_u32_le(length);
        header.put_u32_le(check);
        header.put_u64_le(request);
        header.put_u32_le(0);
        let check = crc32c::crc32c(&out[..CHECKED]);
        out[CHECKED..HEADER_BYTES].copy_from_slice(&check.to_le_bytes());
        out.into()
    }

    /// The length of the body that belongs to a header.
    ///
    /// # Errors
    /// [`WireFault`].
    pub fn body_bytes(header: &[u8; HEADER_BYTES]) -> Result<usize, WireFault> {
        read_header(header).map(|header| header.length)
    }

    /// The message of these bytes; its entries share them.
    ///
    /// # Errors
    /// [`WireFault`].
    pub fn decode(header: &[u8; HEADER_BYTES], mut body: Bytes) -> Result<Message, WireFault> {
        let Header { kind, length, check, request } = read_header(header)?;
        if body.len() != length || crc32c::crc32c(&body) != check {
            return Err(WireFault::Body);
        }
        let is_alone = matches!(kind, 9 | 10 | 13 | 14);
        let message = match kind {
            1..=4 | 11 => {
                take_question(kind, &mut body).map(|question| Message::Ask { request, question })
            }
            5..=8 | 12 => {
                take_answer(kind, &mut body).map(|answer| Message::Answer { request, answer })
            }
            9 => frame::decode(std::mem::take(&mut body))
                .map(|items| Message::Offers(items.into_iter().map(Offer).collect())),
            10 => body.try_get_u64_le().ok().and_then(|start| {
                let offers = (1..length / 8).map(|_| body.try_get_u64_le().ok());
                Some(Message::NotOrdering { start, offers: offers.collect::<Option<_>>()? })
            }),
            13 => body.try_get_u64_le().ok().map(|term| Message::HandOver { term }),
            14 => body.try_get_u64_le().ok().map(|term| Message::Stand { term }),
            _ => None,
        };
        let is_sound = body.is_empty() && (request == 0 || !is_alone);
        message.filter(|_| is_sound).ok_or(WireFault::Body)
    }
}

struct Header {
    kind: u8,
    length: usize,
    check: u32,
    request: u64,
}

fn read_header(bytes: &[u8; HEADER_BYTES]) -> Result<Header, WireFault> {
    let mut rest = &bytes[..];
    let magic = rest.get_u32_le();
    let [version, kind, lane, zero] = [(); 4].map(|()| rest.get_u8());
    let (length, check, request) =
        (rest.get_u32_le() as usize, rest.get_u32_le(), rest.get_u64_le());
    let (more, own_check) = (rest.get_u32_le(), rest.get_u32_le());
    if magic != MAGIC || own_check != crc32c::crc32c(&bytes[..CHECKED]) {
        return Err(WireFault::Header);
    }
    if version != VERSION || lane != 0 {
        return Err(WireFault::Version);
    }
    if zero != 0 || more != 0 || length > MAX_BODY_BYTES {
        return Err(WireFault::Header);
    }
    Ok(Header { kind, length, check, request })
}

fn put_vote(vote: Vote, out: &mut Vec<u8>) {
    out.put_u64_le(vote.term);
    out.put_u64_le(vote.voted_for.unwrap_or_default());
    out.put_u8(vote.is_committed.into());
}

fn take_vote(body: &mut Bytes) -> Option<Vote> {
    let (term, node) = (body.try_get_u64_le().ok()?, body.try_get_u64_le().ok()?);
    Some(Vote { term, voted_for: (node != 0).then_some(node), is_committed: take_bool(body)? })
}

fn take_bool(body: &mut Bytes) -> Option<bool> {
    match body.try_get_u8().ok()? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn put_question(question: &Question, out: &mut Vec<u8>) -> u8 {
    match question {
        Question::Append { vote, before, entries, committed } => {
            put_vote(*vote, out);
            before.put(out);
            committed.put(out);
            out.put_u32_le(entries.len() as u32);
            for Entry { id, body } in entries {
                id.put(out);
                out.put_u32_le(body.len() as u32);
                out.put_slice(body);
            }
            1
        }
        Question::Elect { vote, last } => {
            put_vote(*vote, out);
            last.put(out);
            2
        }
        Question::WouldElect { last } => {
            last.put(out);
            3
        }
        Question::End => 4,
        Question::Install { vote, checkpoint } => {
            put_vote(*vote, out);
            out.put_slice(checkpoint);
            11
        }
    }
}

fn take_question(kind: u8, body: &mut Bytes) -> Option<Question> {
    Some(match kind {
        1 => {
            let (vote, before, committed) =
                (take_vote(body)?, EntryId::take(body)?, EntryId::take(body)?);
            let count = body.try_get_u32_le().ok()?;
            let entry = |_| {
                let id = EntryId::take(body)?;
                let length = body.try_get_u32_le().ok()? as usize;
                let body = frame::take_bytes(body, length)?;
                Some(Entry { id, body })
            };
            let entries = (0..count).map(entry).collect::<Option<_>>()?;
            Question::Append { vote, before, entries, committed }
        }
        2 => Question::Elect { vote: take_vote(body)?, last: EntryId::take(body)? },
        3 => Question::WouldElect { last: EntryId::take(body)? },
        4 => Question::End,
        _ => Question::Install { vote: take_vote(body)?, checkpoint: std::mem::take(body) },
    })
}

fn put_answer(answer: &Answer, out: &mut Vec<u8>) -> u8 {
    match answer {
        Answer::Appended(outcome) => {
            let none = (EntryId::default(), Vote::default());
            let (told, (id, vote)) = match *outcome {
                AppendOutcome::Appended => (0, none),
                AppendOutcome::AppendedUpTo(id) => (1, (id, none.1)),
                AppendOutcome::Conflict => (2, none),
                AppendOutcome::LaterVote(vote) => (3, (none.0, vote)),
            };
            out.put_u8(told);
            id.put(out);
            put_vote(vote, out);
            5
        }
        Answer::Elected { vote, is_granted, last } => {
            put_vote(*vote, out);
            out.put_u8((*is_granted).into());
            last.put(out);
            6
        }
        Answer::WouldElect(would) => {
            out.put_u8((*would).into());
            7
        }
        Answer::End(index) => {
            out.put_u8(index.is_some().into());
            out.put_u64_le(index.unwrap_or_default());
            8
        }
        Answer::Installed(vote) => {
            put_vote(*vote, out);
            12
        }
    }
}

fn take_answer(kind: u8, body: &mut Bytes) -> Option<Answer> {
    Some(match kind {
        5 => {
            let (told, id, vote) =
                (body.try_get_u8().ok()?, EntryId::take(body)?, take_vote(body)?);
            let (no_id, no_vote) = (id == EntryId::default(), vote == Vote::default());
            Answer::Appended(match told {
                0 if no_id && no_vote => AppendOutcome::Appended,
                1 if no_vote => AppendOutcome::AppendedUpTo(id),
                2 if no_id && no_vote => AppendOutcome::Conflict,
                3 if no_id => AppendOutcome::LaterVote(vote),
                _ => return None,
            })
        }
        6 => Answer::Elected {
            vote: take_vote(body)?,
            is_granted: take_bool(body)?,
            last: EntryId::take(body)?,
        },
        7 => Answer::WouldElect(take_bool(body)?),
        12 => Answer::Installed(take_vote(body)?),
        _ => {
            let (is_known, index) = (take_bool(body)?, body.try_get_u64_le().ok()?);
            if !is_known && index != 0 {
                return None;
            }
            Answer::End(is_known.then_some(index))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Item;
    use proptest::prelude::*;

    fn vote() -> impl Strategy<Value = Vote> {
        (any::<u64>(), proptest::option::of(1..u64::MAX), any::<bool>())
            .prop_map(|(term, voted_for, is_committed)| Vote { term, voted_for, is_committed })
    }

    fn id() -> impl Strategy<Value = EntryId> {
        (any::<u64>(), any::<u64>()).prop_map(|(term, index)| EntryId { term, index })
    }

    fn bytes() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from)
    }

    fn message() -> impl Strategy<Value = Message> {
        let entry = (id(), bytes()).prop_map(|(id, body)| Entry { id, body });
        let entries = proptest::collection::vec(entry, 0..5);
        let append =
            (vote(), id(), entries, id()).prop_map(|(vote, before, entries, committed)| {
                Question::Append { vote, before, entries, committed }
            });
        let question = prop_oneof![
            append,
            (vote(), id()).prop_map(|(vote, last)| Question::Elect { vote, last }),
            id().prop_map(|last| Question::WouldElect { last }),
            Just(Question::End),
            (vote(), bytes()).prop_map(|(vote, checkpoint)| Question::Install { vote, checkpoint }),
        ];
        let answer = prop_oneof![
            Just(Answer::Appended(AppendOutcome::Appended)),
            Just(Answer::Appended(AppendOutcome::Conflict)),
            id().prop_map(|id| Answer::Appended(AppendOutcome::AppendedUpTo(id))),
            vote().prop_map(|vote| Answer::Appended(AppendOutcome::LaterVote(vote))),
            (vote(), any::<bool>(), id()).prop_map(|(vote, is_granted, last)| {
                Answer::Elected { vote, is_granted, last }
            }),
            any::<bool>().prop_map(Answer::WouldElect),
            any::<Option<u64>>().prop_map(Answer::End),
            vote().prop_map(Answer::Installed),
        ];
        let item = (any::<u64>(), any::<u64>(), "[a-z.0-9]{0,9}", bytes()).prop_map(
            |(start, offer, log, entry)| Offer(Item { start, offer, log: log.into(), entry }),
        );
        prop_oneof![
            (any::<u64>(), question)
                .prop_map(|(request, question)| Message::Ask { request, question }),
            (any::<u64>(), answer)
                .prop_map(|(request, answer)| Message::Answer { request, answer }),
            proptest::collection::vec(item, 0..5).prop_map(Message::Offers),
            (any::<u64>(), proptest::collection::vec(any::<u64>(), 0..9))
                .prop_map(|(start, offers)| Message::NotOrdering { start, offers }),
            any::<u64>().prop_map(|term| Message::HandOver { term }),
            any::<u64>().prop_map(|term| Message::Stand { term }),
        ]
    }

    fn read(bytes: &Bytes) -> Result<Message, WireFault> {
        let header = bytes[..HEADER_BYTES].try_into().unwrap();
        let length = Message::body_bytes(header)?;
        assert_eq!(length, bytes.len() - HEADER_BYTES);
        Message::decode(header, bytes.slice(HEADER_BYTES..))
    }

    proptest! {
        #[test]
        fn a_message_is_read_as_it_was_written(message in message()) {
            prop_assert_eq!(read(&message.encode()), Ok(message));
        }

        #[test]
        fn a_changed_bit_is_refused(message in message(), at in any::<usize>(), bit in 0..8_u8) {
            let mut bytes = message.encode().to_vec();
            let at = at % bytes.len();
            bytes[at] ^= 1 << bit;
            let header = bytes[..HEADER_BYTES].try_into().unwrap();
            let body = Bytes::copy_from_slice(&bytes[HEADER_BYTES..]);
            prop_assert!(Message::decode(header, body).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_body_is_refused_or_written_as_it_was_read(
            kind in 0..16_u8,
            mut body in proptest::collection::vec(0..3_u8, 0..80),
            end in any::<Option<u8>>(),
        ) {
            body.extend(end);
            let mut header = [0; HEADER_BYTES];
            header[..4].copy_from_slice(b"WSRM");
            header[4..6].copy_from_slice(&[VERSION, kind]);
            header[8..12].copy_from_slice(&(body.len() as u32).to_le_bytes());
            header[12..16].copy_from_slice(&crc32c::crc32c(&body).to_le_bytes());
            let check = crc32c::crc32c(&header[..CHECKED]);
            header[CHECKED..].copy_from_slice(&check.to_le_bytes());
            if let Ok(message) = Message::decode(&header, Bytes::from(body.clone())) {
                prop_assert_eq!(&message.encode()[..], [&header[..], &body].concat());
            }
        }
    }

    #[test]
    fn another_version_or_lane_is_told_apart_from_damage() {
        for at in [4, 6] {
            let mut bytes = Message::Stand { term: 1 }.encode().to_vec();
            bytes[at] = 9;
            let header = &mut bytes[..HEADER_BYTES];
            let check = crc32c::crc32c(&header[..CHECKED]);
            header[CHECKED..].copy_from_slice(&check.to_le_bytes());
            let header: &[u8; HEADER_BYTES] = bytes[..HEADER_BYTES].try_into().unwrap();
            assert_eq!(Message::body_bytes(header), Err(WireFault::Version));
        }
    }
}
