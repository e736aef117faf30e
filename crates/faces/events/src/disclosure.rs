//! What is served of events: everything except what their reader must not see.
//!
//! - Hashes of passwords and keys in the log `system`: an administrator sees which keys each
//!   account has; an administrator's leaked key must not reveal all hashes to offline guessing.
//! - Personal data, for callers that may not see it. For others it is opened here and nowhere else,
//!   so nothing that is derived from events and kept can hold it.

use std::borrow::Cow;
use std::sync::Arc;
use wellspring_format::sealed_parts::PartKind;
use wellspring_host::access::view::without_hashes;
use wellspring_host::http::{Host, Request};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::json::{push_list, push_string};
use wellspring_log::RecordView;
use wellspring_subject_keys::{Closed, SubjectKeys};
use wellspring_types::DataKind;

/// The served part of a log's events.
#[derive(Debug, Clone, Default)]
pub(super) struct Disclosure {
    hides_hashes: bool,
    /// What opens personal data; none: it is withheld.
    keys: Option<Arc<SubjectKeys>>,
}

/// What is served of one event.
#[derive(Debug)]
pub(super) struct Disclosed<'a> {
    pub(super) kind: DataKind,
    pub(super) data: Cow<'a, [u8]>,
    /// Of an event with sealed parts.
    parts: Option<Box<DisclosedParts<'a>>>,
}

/// What became of the sealed parts of an event.
#[derive(Debug, Default)]
struct DisclosedParts<'a> {
    /// The subject of all of its data.
    subject: Option<&'a str>,
    personal: Vec<(&'a str, Option<Vec<u8>>)>,
    /// Those that are not opened, and why.
    closed: Vec<(Closed, &'a str)>,
}

impl Disclosure {
    /// The disclosure for a request's log.
    pub(super) fn of(host: &Host, request: &Request) -> Disclosure {
        let hides_hashes = request.log_name == SYSTEM_LOG;
        Disclosure { hides_hashes, keys: host.keys_for(request) }
    }

    /// Everything that these keys open.
    pub(super) fn by(keys: Option<Arc<SubjectKeys>>) -> Disclosure {
        Disclosure { hides_hashes: false, keys }
    }

    /// The served part of an event.
    pub(super) fn of_event<'a>(&self, event: &RecordView<'a>) -> Disclosed<'a> {
        let data = if self.hides_hashes {
            without_hashes(event.event_type(), event.data())
        } else {
            Cow::Borrowed(event.data())
        };
        let disclosed = Disclosed { kind: event.kind(), data, parts: None };
        if event.is_sealed() { self.open(event, disclosed) } else { disclosed }
    }

    #[cold]
    fn open<'a>(&self, event: &RecordView<'a>, mut disclosed: Disclosed<'a>) -> Disclosed<'a> {
        let mut parts = Box::<DisclosedParts<'a>>::default();
        for part in event.sealed_parts() {
            let subject = event.tags().nth(part.tag.into()).unwrap_or_default();
            // Withheld, as what waits for its erasure is.
            let opened = match &self.keys {
                None => Err(Closed::Withdrawn),
                Some(keys) => keys.open_part(&part, subject, event.event_type()),
            };
            let opened = opened.map_err(|closed| parts.closed.push((closed, subject))).ok();
            match part.kind {
                PartKind::Personal => parts.personal.push((subject, opened)),
                PartKind::Json | PartKind::Binary => {
                    parts.subject = Some(subject);
                    if let Some(plain) = opened {
                        disclosed.data = Cow::Owned(plain);
                        if part.kind == PartKind::Binary {
                            disclosed.kind = DataKind::Binary;
                        }
                    }
                }
            }
        }
        disclosed.parts = Some(parts);
        disclosed
    }
}

impl Disclosed<'_> {
    /// Writes the members that tell of sealed parts, if there are any.
    pub(super) fn push_members(&self, out: &mut Vec<u8>) {
        let Some(parts) = &self.parts else { return };
        if let Some(subject) = parts.subject {
            out.extend_from_slice(b",\"subject\":");
            push_string(out, subject);
        }
        let mut separator: &[u8] = b",\"personal\":{";
        for (subject, value) in &parts.personal {
            out.extend_from_slice(separator);
            separator = b",";
            push_string(out, subject);
            out.push(b':');
            out.extend_from_slice(value.as_deref().unwrap_or(b"null"));
        }
        if !parts.personal.is_empty() {
            out.push(b'}');
        }
        for closed in [Closed::Withdrawn, Closed::Erased, Closed::Unavailable] {
            let is_so = |part: &&(Closed, _)| part.0 == closed;
            let subjects: Vec<&str> =
                parts.closed.iter().filter(is_so).map(|part| part.1).collect();
            if subjects.is_empty() {
                continue;
            }
            out.extend_from_slice(format!(",\"{}\":", closed.member()).as_bytes());
            match closed {
                // To whom it may not be shown, that is all that is said.
                Closed::Withdrawn => out.extend_from_slice(b"true"),
                _ => push_list(out, &subjects, |out, subject| push_string(out, subject)),
            }
        }
    }
}
