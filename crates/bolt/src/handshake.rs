//! The first bytes of a connection, which choose the version: four words of the client in the
//! order of its preference, or the manifest, in which the server lists what it speaks.

use crate::version::{SERVED, Version};
use std::fmt;

/// The first bytes that a client sends. No request of HTTP and no TLS begins with them.
pub const MAGIC: [u8; 4] = [0x60, 0x60, 0xB0, 0x17];

/// The word that asks for the manifest, and begins the answer to it.
const MANIFEST: [u8; 4] = [0x00, 0x00, 0x01, 0xFF];
/// The answer to a client that speaks no served version.
const NO_VERSION: [u8; 4] = [0; 4];
/// Bytes of the first message: the magic and four words.
const OFFER_BYTES: usize = 20;
/// Longest form of a number of 64 bits in groups of 7.
const MAX_VARINT_BYTES: usize = 10;

/// What client and server agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreement {
    /// The version of everything that follows.
    pub version: Version,
    /// Bytes of the input that belong to the handshake; the rest belongs to the session.
    pub used: usize,
}

/// Why a handshake failed. The connection is closed, after what the output holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeFault {
    /// The input does not begin with [`MAGIC`].
    NotBolt,
    /// The client offers no version that is served.
    NoCommonVersion,
    /// The reply to the manifest names no offered version, or capabilities that were not offered.
    BadReply,
}

impl fmt::Display for HandshakeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HandshakeFault::NotBolt => "the client does not speak Bolt",
            HandshakeFault::NoCommonVersion => "the client offers no Bolt version that is served",
            HandshakeFault::BadReply => "the client chose a Bolt version that was not offered",
        })
    }
}

impl std::error::Error for HandshakeFault {}

/// A handshake in progress.
#[derive(Debug, Default)]
pub struct Handshake {
    /// Whether the manifest was sent, and the client's choice is awaited.
    has_manifest: bool,
}

impl Handshake {
    /// Looks at everything that was received so far, at most a few dozen bytes of which are the
    /// handshake's, and appends to `output` what is to be sent now, in one write: a driver takes
    /// the manifest out of the first read. `None`: more input is needed; call again with the same
    /// bytes and more.
    ///
    /// # Errors
    /// The connection is to be closed after what `output` holds is sent.
    pub fn advance(
        &mut self,
        input: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<Option<Agreement>, HandshakeFault> {
        let begins = input.len().min(MAGIC.len());
        if input[..begins] != MAGIC[..begins] {
            return Err(HandshakeFault::NotBolt);
        }
        let Some((offer, reply)) = input.split_at_checked(OFFER_BYTES) else { return Ok(None) };
        if self.has_manifest {
            return chosen(reply);
        }
        for word in offer[MAGIC.len()..].as_chunks().0 {
            if *word == MANIFEST {
                self.has_manifest = true;
                push_manifest(output);
                return chosen(reply);
            }
            if let Some(version) = best_of(*word) {
                output.extend_from_slice(&[0, 0, version.minor(), version.major()]);
                return Ok(Some(Agreement { version, used: OFFER_BYTES }));
            }
        }
        output.extend_from_slice(&NO_VERSION);
        Err(HandshakeFault::NoCommonVersion)
    }
}

/// The newest served version of a word: a version, and how many minor versions below it the client
/// speaks as well.
fn best_of([_, range, minor, major]: [u8; 4]) -> Option<Version> {
    (minor.saturating_sub(range)..=minor).rev().find_map(|minor| Version::new(major, minor))
}

/// The mark, the number of words, the words, no capabilities.
fn push_manifest(output: &mut Vec<u8>) {
    output.extend_from_slice(&MANIFEST);
    output.push(SERVED.len() as u8);
    for (major, highest, lowest) in SERVED {
        output.extend_from_slice(&[0, highest - lowest, highest, major]);
    }
    output.push(0);
}

/// The reply to the manifest: a version, and the capabilities of those offered.
fn chosen(reply: &[u8]) -> Result<Option<Agreement>, HandshakeFault> {
    let Some((&[_, range, minor, major], rest)) = reply.split_first_chunk() else {
        return Ok(None);
    };
    let version = Version::new(major, minor).filter(|_| range == 0);
    let version = version.ok_or(HandshakeFault::BadReply)?;
    // None is offered, so the number is 0, perhaps in a longer form than necessary.
    for (index, byte) in rest.iter().take(MAX_VARINT_BYTES).enumerate() {
        match byte {
            0x00 => {
                let used = OFFER_BYTES + 4 + index + 1;
                return Ok(Some(Agreement { version, used }));
            }
            0x80 => {}
            _ => return Err(HandshakeFault::BadReply),
        }
    }
    if rest.len() < MAX_VARINT_BYTES { Ok(None) } else { Err(HandshakeFault::BadReply) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offer(words: [u32; 4]) -> Vec<u8> {
        let words = words.into_iter().flat_map(u32::to_be_bytes);
        MAGIC.into_iter().chain(words).collect()
    }

    /// The result of a handshake whose bytes come one by one, and the answers to it.
    fn shake(input: &[u8]) -> (Result<Option<Agreement>, HandshakeFault>, Vec<u8>) {
        let (mut handshake, mut output) = (Handshake::default(), Vec::new());
        for end in 0..=input.len() {
            match handshake.advance(&input[..end], &mut output) {
                Ok(None) => {}
                ended => return (ended, output),
            }
        }
        (Ok(None), output)
    }

    fn agreed(input: &[u8]) -> (String, usize, Vec<u8>) {
        let (result, output) = shake(input);
        let Agreement { version, used } = result.expect("no fault").expect("an agreement");
        (version.to_string(), used, output)
    }

    #[test]
    fn the_first_word_with_a_served_version_wins() {
        let cases = [
            ([0x0004_0405, 0x0002_0404, 0x0000_0003, 0], "5.4"),
            ([0x0008_0805, 0x0002_0404, 0x0000_0003, 0], "5.8"),
            ([0x0000_0404, 0x0004_0405, 0, 0], "4.4"),
            ([0x0000_0106, 0x0001_0505, 0, 0], "5.4"),
            ([0x0000_0006, 0x0003_0304, 0x0002_0504, 0], "4.4"),
        ];
        for (words, version) in cases {
            let (agreed, used, output) = agreed(&offer(words));
            assert_eq!((agreed.as_str(), used), (version, OFFER_BYTES));
            let minor_major = version.split_once('.').expect("two numbers");
            let [major, minor] = [minor_major.0, minor_major.1].map(|part| part.parse().unwrap());
            assert_eq!(output, [0, 0, minor, major]);
        }
    }

    #[test]
    fn a_client_without_a_served_version_gets_zeros() {
        for words in [[0x0000_0505, 0x0003_0304, 3, 2], [0x0000_0006, 0, 0, 0], [0x02FF, 0, 0, 0]] {
            assert_eq!(shake(&offer(words)), (Err(HandshakeFault::NoCommonVersion), vec![0; 4]));
        }
    }

    #[test]
    fn the_manifest_is_sent_whole_and_its_reply_may_have_a_message_behind_it() {
        let mut input = offer([0x0000_01FF, 0x0008_0805, 0x0002_0404, 0x0000_0003]);
        let manifest =
            [0, 0, 1, 0xFF, 3, 0, 2, 8, 5, 0, 4, 4, 5, 0, 0, 4, 4, 0].map(|byte: u8| byte);
        assert_eq!(shake(&input), (Ok(None), manifest.to_vec()));
        input.extend_from_slice(&[0, 0, 7, 5, 0x00, 0x00, 0x42]);
        assert_eq!(agreed(&input), ("5.7".to_owned(), 25, manifest.to_vec()));
        // All at once, and a longer form of 0.
        input.splice(24..25, [0x80, 0x80, 0x00]);
        let mut output = Vec::new();
        let agreement = Handshake::default().advance(&input, &mut output);
        let version = Version::new(5, 7).expect("served");
        assert_eq!(agreement, Ok(Some(Agreement { version, used: 27 })));
        assert_eq!(output, manifest);
    }

    #[test]
    fn a_reply_to_the_manifest_chooses_only_what_was_offered() {
        let bad: [&[u8]; 5] = [
            &[0, 0, 5, 5, 0],
            &[0, 1, 4, 5, 0],
            &[0, 0, 0, 0, 0],
            &[0, 0, 4, 5, 1],
            &[0, 0, 4, 5, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80],
        ];
        for reply in bad {
            let mut input = offer([0x0000_01FF, 0, 0, 0]);
            input.extend_from_slice(reply);
            assert_eq!(shake(&input).0, Err(HandshakeFault::BadReply), "{reply:?}");
        }
    }

    #[test]
    fn another_protocol_is_refused_at_its_first_byte() {
        assert_eq!(shake(b"GET / HTTP/1.1"), (Err(HandshakeFault::NotBolt), Vec::new()));
        assert_eq!(shake(&[0x60, 0x60, 0xB0, 0x16]).0, Err(HandshakeFault::NotBolt));
        assert_eq!(shake(&[0x60, 0x60, 0xB0]).0, Ok(None));
    }
}
