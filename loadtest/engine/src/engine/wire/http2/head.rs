//! What a header block of an answer says (RFC 9113 section 8).

use super::Broken;
use super::hpack::decode;
use crate::engine::wire::ServerFacts;
use crate::workload::Head;

/// How many different blocks are remembered.
const REMEMBERED: usize = 4;
/// Larger blocks are not remembered.
const LARGEST_REMEMBERED: usize = 4096;

/// What one head said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed {
    /// 100 to 599 as a rule; up to 999 is taken.
    pub(super) status: u16,
    pub(super) content_length: Option<u64>,
    pub(super) from_cache: bool,
}

/// A head that breaks the rules of HTTP hurts its own stream only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Head(Parsed),
    Malformed(&'static str),
}

/// The last blocks and what they said. Servers repeat themselves, and a block
/// always means the same as long as there is no dynamic table.
#[derive(Debug, Default)]
pub(crate) struct BlockCache {
    known: Vec<(Vec<u8>, Parsed)>,
    next: usize,
}

impl BlockCache {
    /// Reads a block.
    ///
    /// # Errors
    /// It is not HPACK: the connection is of no further use.
    #[inline]
    pub(super) fn read(&mut self, block: &[u8], seen: &mut ServerFacts) -> Result<Reading, Broken> {
        if let Some((_, parsed)) = self.known.iter().find(|(bytes, _)| bytes == block) {
            return Ok(Reading::Head(*parsed));
        }
        let reading = parse(block, seen)?;
        if let Reading::Head(parsed) = reading
            && block.len() <= LARGEST_REMEMBERED
        {
            self.remember(block, parsed);
        }
        Ok(reading)
    }

    fn remember(&mut self, block: &[u8], parsed: Parsed) {
        if self.known.len() < REMEMBERED {
            self.known.push((block.to_vec(), parsed));
            return;
        }
        let (bytes, there) = &mut self.known[self.next];
        bytes.clear();
        bytes.extend_from_slice(block);
        *there = parsed;
        self.next = (self.next + 1) % REMEMBERED;
    }
}

const NOT_HPACK: Broken = Broken::protocol("a header block that is not HPACK");

fn parse(block: &[u8], seen: &mut ServerFacts) -> Result<Reading, Broken> {
    let (mut status, mut content_length, mut from_cache) = (None, None, false);
    let (mut fields, mut wrong) = (0u32, None);
    decode(block, |name, value| {
        if name.first() == Some(&b':') {
            if name != b":status" || status.is_some() || fields > 0 {
                wrong = Some("a pseudo-header that does not belong in an answer");
            }
            status = Some(value.to_vec());
            return;
        }
        fields += 1;
        wrong = wrong.or(fault(name, value));
        match name {
            b"content-length" => match number(value) {
                Some(length) if content_length.is_none_or(|before| before == length) => {
                    content_length = Some(length);
                }
                _ => wrong = Some("a content-length that is not one number"),
            },
            b"age" => from_cache |= value != b"0",
            b"x-cache" => {
                from_cache |= value.len() >= 3 && value[..3].eq_ignore_ascii_case(b"hit");
            }
            b"server" if seen.server.is_none() => {
                seen.server = Some(String::from_utf8_lossy(value).into_owned());
            }
            _ => {}
        }
    })
    .map_err(|_| NOT_HPACK)?;
    let three = status.filter(|digits| digits.len() == 3);
    let status = three.and_then(|digits| number(&digits)).and_then(|s| u16::try_from(s).ok());
    Ok(match (status.filter(|status| *status >= 100), wrong) {
        (Some(status), None) => Reading::Head(Parsed {
            status,
            content_length,
            from_cache: from_cache || status == 304,
        }),
        (_, Some(why)) => Reading::Malformed(why),
        (None, None) => Reading::Malformed("an answer without a valid :status"),
    })
}

/// What is wrong with trailers, if anything.
///
/// # Errors
/// They are not HPACK: the connection is of no further use.
pub(super) fn trailers_fault(block: &[u8]) -> Result<Option<&'static str>, Broken> {
    let mut wrong = None;
    decode(block, |name, value| {
        if name.first() == Some(&b':') {
            wrong = Some("a pseudo-header in trailers");
        }
        wrong = wrong.or(fault(name, value));
    })
    .map_err(|_| NOT_HPACK)?;
    Ok(wrong)
}

/// What makes a field malformed (sections 8.2.1 and 8.2.2).
fn fault(name: &[u8], value: &[u8]) -> Option<&'static str> {
    let bad_name = |byte: &u8| byte.is_ascii_uppercase() || *byte <= b' ' || *byte >= 0x7f;
    if name.is_empty() || name.iter().any(bad_name) {
        return Some("a header name that HTTP/2 does not allow");
    }
    if value.iter().any(|byte| matches!(byte, b'\0' | b'\r' | b'\n')) {
        return Some("a header value with a line break or a zero");
    }
    let of_connection: [&[u8]; 5] =
        [b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"];
    if of_connection.contains(&name) {
        return Some("a header of HTTP/1.1 connections");
    }
    None
}

fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// The header fields of a block that was read before.
pub(super) fn fields(block: &[u8]) -> Head<'static> {
    let mut fields = Vec::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned().into();
    // It was read before, so it can be read now.
    let _ = decode(block, |name, value| {
        if name.first() != Some(&b':') {
            fields.push((text(name), text(value)));
        }
    });
    Head(fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::wire::http2::encoder::{Encoder, Index};

    /// A block of literals only: nothing is sent twice.
    fn block(fields: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, value) in fields {
            Encoder::new().field(name, value, Index::Repeated, &mut out);
        }
        out
    }

    fn read(fields: &[(&str, &str)]) -> Reading {
        BlockCache::default().read(&block(fields), &mut ServerFacts::default()).unwrap()
    }

    #[test]
    fn an_ordinary_head_is_read() {
        let mut seen = ServerFacts::default();
        let mut cache = BlockCache::default();
        let head =
            block(&[(":status", "200"), ("content-length", "5"), ("server", "s/1"), ("age", "3")]);
        let parsed = Parsed { status: 200, content_length: Some(5), from_cache: true };
        for _ in 0..2 {
            assert_eq!(cache.read(&head, &mut seen), Ok(Reading::Head(parsed)));
        }
        assert_eq!((seen.server.as_deref(), cache.known.len()), (Some("s/1"), 1));
        assert_eq!(fields(&head).get("Server"), Some("s/1"));
        assert_eq!(fields(&head).0.len(), 3);
    }

    #[test]
    fn many_different_heads_need_no_more_memory() {
        let (mut seen, mut cache) = (ServerFacts::default(), BlockCache::default());
        for number in 0..100u16 {
            let head = block(&[(":status", "201"), ("x-id", &number.to_string())]);
            for _ in 0..2 {
                let Ok(Reading::Head(parsed)) = cache.read(&head, &mut seen) else { panic!() };
                assert_eq!(parsed.status, 201);
            }
        }
        assert_eq!(cache.known.len(), REMEMBERED);
    }

    #[test]
    fn what_http_forbids_is_malformed() {
        let bad: [&[(&str, &str)]; 12] = [
            &[],
            &[("server", "x")],
            &[(":status", "20")],
            &[(":status", "2000")],
            &[(":status", "099")],
            &[(":status", "200"), (":status", "200")],
            &[("server", "x"), (":status", "200")],
            &[(":status", "200"), (":path", "/")],
            &[(":status", "200"), ("content-length", "1"), ("content-length", "2")],
            &[(":status", "200"), ("content-length", "-1")],
            &[(":status", "200"), ("X-A", "1")],
            &[(":status", "200"), ("connection", "close")],
        ];
        for fields in bad {
            assert!(matches!(read(fields), Reading::Malformed(_)), "{fields:?}");
        }
        assert!(matches!(read(&[(":status", "200"), ("a", "b\nc")]), Reading::Malformed(_)));
        assert!(matches!(read(&[(":status", "404"), ("content-length", "0")]), Reading::Head(_)));
        let mut cache = BlockCache::default();
        assert!(cache.read(b"\xbe", &mut ServerFacts::default()).is_err());
    }

    #[test]
    fn trailers_have_no_pseudo_headers() {
        assert_eq!(trailers_fault(&block(&[("grpc-status", "0")])), Ok(None));
        assert!(trailers_fault(&block(&[(":status", "200")])).unwrap().is_some());
        assert!(trailers_fault(b"\xff").is_err());
    }
}
