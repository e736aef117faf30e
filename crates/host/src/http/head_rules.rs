//! Rules for the head of every request, shared by the lean loop and the general stack and checked
//! before routing. A head that two readers (a proxy and this server, for example) could take for
//! different requests is refused.
//!
//! hyper drops the second of two equal `Content-Length` headers and one next to a
//! `Transfer-Encoding`: `framing` sees these before it.

use crate::cluster::node_auth;
use crate::wire::problem::{self, Problem};
use hyper::{HeaderMap, Version};

/// Headers that matter here and must not be repeated: proxies on the way may pick another value. In
/// the order of the bits of [`HeadRules::seen`].
const ONCE: [&str; 11] = [
    "Authorization",
    "X-API-Key",
    "Idempotency-Key",
    "Wellspring-Min-Position",
    "Last-Event-ID",
    "Content-Type",
    "Origin",
    "If-Match",
    "Wellspring-Min-System-Position",
    "Wellspring-History",
    "Wellspring-Subject",
];

/// Why it is ambiguous where a request ends or whom it is for: the connection ends with the answer.
/// In the order of precedence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HeadAmbiguity {
    /// No `Host`, or more than one.
    Hosts,
    /// A `Transfer-Encoding` that is not one `chunked`.
    TransferEncoding,
    /// A `Content-Length` beside a `Transfer-Encoding`.
    LengthAndCoding,
    /// More than one `Content-Length`.
    Lengths,
    /// A `Content-Length` that is no number, or has more than 19 digits.
    Length,
}

impl From<HeadAmbiguity> for Box<Problem> {
    fn from(unsound: HeadAmbiguity) -> Box<Problem> {
        let (detail, field) = match unsound {
            HeadAmbiguity::Hosts => ("HTTP/1.1 requires exactly one Host header", "Host"),
            HeadAmbiguity::TransferEncoding => {
                ("the only supported Transfer-Encoding is a single chunked", "Transfer-Encoding")
            }
            HeadAmbiguity::LengthAndCoding => (
                "Content-Length and Transfer-Encoding exclude each other; send one",
                "Content-Length",
            ),
            HeadAmbiguity::Lengths => {
                ("Content-Length is repeated; send it once", "Content-Length")
            }
            HeadAmbiguity::Length => {
                ("Content-Length is not a number of at most 19 digits", "Content-Length")
            }
        };
        problem::BAD_REQUEST.because(detail).field(field)
    }
}

/// The headers of one request as far as the rules concern them. Pass every header to
/// [`note`](HeadRules::note), then ask.
#[derive(Debug, Default)]
pub(crate) struct HeadRules<'a> {
    host: Option<&'a [u8]>,
    hosts: usize,
    transfer_encodings: usize,
    is_chunked: bool,
    /// The first expectation that the server cannot meet.
    expects: Option<&'a [u8]>,
    content_encodings: usize,
    names_node: bool,
    /// The bits of the headers of [`ONCE`] seen so far.
    seen: u16,
    /// The first repeated header of [`ONCE`].
    twice: Option<&'static str>,
}

impl<'a> HeadRules<'a> {
    /// The rules applied to parsed headers.
    pub(crate) fn of(headers: &'a HeaderMap) -> HeadRules<'a> {
        let mut rules = HeadRules::default();
        headers.iter().for_each(|(name, value)| rules.note(name.as_str(), value.as_bytes()));
        rules
    }

    /// Records a header; its name may be in any case.
    pub(crate) fn note(&mut self, name: &str, value: &'a [u8]) {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let value = value.trim_ascii();
        match name.len() {
            4 if is("host") => {
                self.hosts += 1;
                self.host = self.host.or(Some(value));
            }
            6 if is("expect") && !value.eq_ignore_ascii_case(b"100-continue") => {
                self.expects = self.expects.or(Some(value));
            }
            6 if is("origin") => self.note_once(6),
            8 if is("if-match") => self.note_once(7),
            9 if is("x-api-key") => self.note_once(1),
            12 if is("content-type") => self.note_once(5),
            13 if is("authorization") => self.note_once(0),
            13 if is("last-event-id") => self.note_once(4),
            15 if is("idempotency-key") => self.note_once(2),
            15 if is(node_auth::HEADER) => self.names_node = true,
            16 if is("content-encoding") => self.content_encodings += 1,
            17 if is("transfer-encoding") => {
                self.transfer_encodings += 1;
                self.is_chunked = value.eq_ignore_ascii_case(b"chunked");
            }
            18 if is("wellspring-history") => self.note_once(9),
            18 if is("wellspring-subject") => self.note_once(10),
            23 if is("wellspring-min-position") => self.note_once(3),
            30 if is("wellspring-min-system-position") => self.note_once(8),
            _ => {}
        }
    }

    fn note_once(&mut self, at: usize) {
        let bit = 1 << at;
        if self.seen & bit != 0 {
            self.twice = self.twice.or(Some(ONCE[at]));
        }
        self.seen |= bit;
    }

    /// Whether a node claims to have forwarded the request.
    pub(crate) fn names_node(&self) -> bool {
        self.names_node
    }

    /// The first `Host`.
    pub(crate) fn host(&self) -> Option<&'a [u8]> {
        self.host
    }

    /// Whether the body is chunked. Only for a sound head.
    pub(crate) fn is_chunked(&self) -> bool {
        self.transfer_encodings == 1 && self.is_chunked
    }

    /// Why the request is ambiguous, if it is.
    pub(crate) fn unsound(&self, version: Version) -> Option<HeadAmbiguity> {
        // HTTP/2 uses `:authority`; HTTP/1.0 does not require it.
        if self.hosts > 1 || (self.hosts == 0 && version == Version::HTTP_11) {
            return Some(HeadAmbiguity::Hosts);
        }
        let is_known = self.transfer_encodings == 0 || self.is_chunked();
        (!is_known).then_some(HeadAmbiguity::TransferEncoding)
    }

    /// Why a sound request is refused, whatever it asks for, if it is.
    pub(crate) fn refusal(&self) -> Option<Box<Problem>> {
        if let Some(expects) = self.expects {
            let detail = format!(
                "the server cannot meet the expectation {:?}",
                String::from_utf8_lossy(expects)
            );
            return Some(problem::EXPECTATION_FAILED.because(detail).field("Expect"));
        }
        if self.content_encodings > 1 {
            let detail = "Content-Encoding is repeated; send it at most once";
            return Some(problem::UNSUPPORTED_MEDIA.because(detail).field("Content-Encoding"));
        }
        let twice = self.twice?;
        let is_credential = ONCE[..2].contains(&twice);
        let kind =
            if is_credential { &problem::MALFORMED_CREDENTIALS } else { &problem::BAD_REQUEST };
        Some(kind.because(format!("{twice} is repeated; send it once")).field(twice))
    }
}

/// The answer to a head with more than `most` headers.
pub(crate) fn too_many_headers(most: usize) -> Box<Problem> {
    problem::HEADERS_TOO_LARGE
        .because(format!("there are more than {most} headers"))
        .limit(most as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules<'a>(lines: &[(&'a str, &'a str)]) -> HeadRules<'a> {
        let mut rules = HeadRules::default();
        lines.iter().for_each(|(name, value)| rules.note(name, value.as_bytes()));
        rules
    }

    #[test]
    fn a_head_has_one_host_and_one_known_framing() {
        let host = ("hOST", "l");
        let chunked = ("Transfer-Encoding", " Chunked ");
        for (lines, unsound) in [
            (&[host][..], None),
            (&[], Some(HeadAmbiguity::Hosts)),
            (&[host, host], Some(HeadAmbiguity::Hosts)),
            (&[host, chunked], None),
            (&[host, chunked, chunked], Some(HeadAmbiguity::TransferEncoding)),
            (
                &[host, ("Transfer-Encoding", "gzip, chunked")],
                Some(HeadAmbiguity::TransferEncoding),
            ),
            (&[host, ("Transfer-Encoding", "")], Some(HeadAmbiguity::TransferEncoding)),
        ] {
            assert_eq!(rules(lines).unsound(Version::HTTP_11), unsound, "{lines:?}");
        }
        assert_eq!(rules(&[]).unsound(Version::HTTP_10), None);
        assert_eq!(rules(&[]).unsound(Version::HTTP_2), None);
        assert_eq!(rules(&[host, host]).unsound(Version::HTTP_2), Some(HeadAmbiguity::Hosts));
    }

    #[test]
    fn what_may_stand_once_is_named_when_it_stands_twice() {
        for name in ONCE {
            let small = name.to_ascii_lowercase();
            assert!(rules(&[(name, "a")]).refusal().is_none());
            let refusal = rules(&[(name, "a"), (&small, "a")]).refusal().unwrap();
            assert_eq!((refusal.kind.status, refusal.field.as_deref()), (400, Some(name)));
        }
        assert!(rules(&[("Accept", "a"), ("Accept", "b")]).refusal().is_none());
    }

    #[test]
    fn expectations_and_encodings_are_looked_at_in_every_line() {
        let met = ("Expect", "100-Continue");
        assert!(rules(&[met, met]).refusal().is_none());
        for lines in [[met, ("Expect", "tea")], [("Expect", "tea"), met]] {
            assert_eq!(rules(&lines).refusal().unwrap().kind.status, 417);
        }
        let coding = ("Content-Encoding", "identity");
        assert!(rules(&[coding]).refusal().is_none());
        assert_eq!(rules(&[coding, coding]).refusal().unwrap().kind.status, 415);
    }
}
