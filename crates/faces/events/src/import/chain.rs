//! How a chunk of an import is recognised: by the events before it, whatever batches, files,
//! compression or connections they came in (decision 0017).
//!
//! The request key of a chunk names its *place* in the content; the digest stored with the key
//! covers the content up to the chunk's end. So the same content finds its key and digest, changed
//! content its key with another digest, and other content nothing.

use sha2::{Digest as _, Sha256};
use wellspring_types::hex;

/// Half a SHA-256: enough to rule out collisions.
pub(super) type Digest = [u8; 16];

/// Events of the first chunk. Its name depends on the first event only, that of the next chunk on
/// the second only: so a file in which one of the two was changed is still recognised by the other.
pub(super) const OPENING_EVENTS: u64 = 2;

fn digest_of(parts: &[&[u8]]) -> Digest {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part);
    }
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.finalize()[..16]);
    digest
}

/// The digest of one encoded event.
pub(super) fn event_digest(encoded: &[u8]) -> Digest {
    digest_of(&[encoded])
}

/// What a name depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    /// The first chunk: its first event.
    First(Digest),
    /// The chunk after the opening: the second event.
    Second(Digest),
    /// Any other: all events before it.
    After(Digest),
}

/// Separates imports of the same content as new content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Scope {
    /// Empty by default.
    pub(super) label: String,
}

impl Scope {
    /// The name of the chunk at an anchor.
    pub(super) fn name(&self, anchor: Anchor) -> Digest {
        let (kind, digest): (&[u8], _) = match &anchor {
            Anchor::First(digest) => (b"f", digest),
            Anchor::Second(digest) => (b"s", digest),
            Anchor::After(digest) => (b"a", digest),
        };
        let label = self.label.as_bytes();
        let label_bytes = (label.len() as u64).to_le_bytes();
        digest_of(&[b"wellspring import 1", kind, &label_bytes, label, digest])
    }
}

/// A position in a content, with a digest of everything before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain {
    /// Events so far.
    pub(super) events: u64,
    /// Digest of all of them, in the chunks in which the log holds them.
    content: Digest,
    /// Digest of the second event, if the first chunk contains it.
    second: Option<Digest>,
}

impl Chain {
    /// Before the first event.
    pub(super) const START: Chain = Chain { events: 0, content: [0; 16], second: None };

    /// The digest of a chunk that begins here, including everything before it.
    pub(super) fn digest(&self, chunk: &[u8]) -> Digest {
        digest_of(&[&self.content, chunk])
    }

    /// After a chunk of this many events with this [`digest`](Self::digest). `second` is that of
    /// the content's second event, if the chunk contains it.
    pub(super) fn behind(&self, digest: Digest, events: u64, second: Option<Digest>) -> Chain {
        let second = second.or(self.second);
        Chain { events: self.events + events, content: digest, second }
    }

    /// The anchor of the chunk that begins here; its first event's digest is needed only at the
    /// start.
    pub(super) fn anchor(&self, first: impl FnOnce() -> Digest) -> Anchor {
        match (self.events, self.second) {
            (0, _) => Anchor::First(first()),
            (OPENING_EVENTS, Some(second)) => Anchor::Second(second),
            _ => Anchor::After(self.content),
        }
    }

    /// As text, which the client returns with the next part of the same content.
    pub(super) fn token(&self) -> String {
        format!(
            "{:x}.{}.{}",
            self.events,
            hex::digits(&self.content),
            self.second.as_ref().map(|digest| hex::digits(digest)).unwrap_or_default()
        )
    }

    /// Parses a [`token`](Self::token); `None` if it is invalid.
    pub(super) fn of_token(text: &str) -> Option<Chain> {
        // Rules out a sign, and numbers so large that counting on would overflow.
        let plain = text.bytes().all(|byte| byte == b'.' || byte.is_ascii_hexdigit());
        let mut parts = text.split('.').filter(|_| plain);
        let events = u64::from_str_radix(parts.next()?, 16).ok().filter(|&n| n < 1 << 62)?;
        let content = hex::read(parts.next()?)?;
        let second = match parts.next()? {
            "" => None,
            digits => Some(hex::read(digits)?),
        };
        parts.next().is_none().then_some(Chain { events, content, second })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_log::EncodedEvents;
    use wellspring_types::Event;

    #[test]
    fn names_are_the_same_for_ever() {
        // Logs contain them: a new version must recognise what an old one imported.
        let mut events = EncodedEvents::new();
        events.push(&Event::json("T", &["a:1"], "{\"n\":1}").as_ref()).unwrap();
        let scope = Scope { label: String::new() };
        let name = scope.name(Anchor::First(event_digest(events.bytes())));
        let chain = Chain::START.behind(Chain::START.digest(events.bytes()), 1, None);
        let next = scope.name(chain.anchor(|| unreachable!("not at the start")));
        let hex = |digest: Digest| format!("{:032x}", u128::from_be_bytes(digest));
        assert_eq!(hex(name), "53003a973b9b2cb17624592e7edea4d0");
        assert_eq!(hex(next), "8e0c02acc1394a1d50b716b1d78b9bec");
    }

    #[test]
    fn labels_and_anchors_keep_names_apart() {
        let digest = [7; 16];
        let mut names = Vec::new();
        for label in ["", "a", "b"] {
            let scope = Scope { label: label.to_owned() };
            for anchor in [Anchor::First(digest), Anchor::Second(digest), Anchor::After(digest)] {
                names.push(scope.name(anchor));
            }
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn a_token_is_read_back_and_nothing_else() {
        let chain = Chain { events: 300, content: [1; 16], second: Some([255; 16]) };
        for chain in [chain, Chain { second: None, ..chain }] {
            assert_eq!(Chain::of_token(&chain.token()), Some(chain));
        }
        let token = chain.token();
        let digest = "a".repeat(31);
        let (signed, large) = (format!("1.+{digest}."), format!("{}.a{digest}.", "f".repeat(16)));
        for bad in ["", "1", "1..", &token[1..token.len() - 1], &format!("{token}.0"), "x.y.z"]
            .into_iter()
            .chain([&format!("+{token}"), &signed, &large].map(String::as_str))
        {
            assert_eq!(Chain::of_token(bad), None, "{bad}");
        }
    }
}
