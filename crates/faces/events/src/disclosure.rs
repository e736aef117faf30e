//! What is served of events: all of it, but for what passwords and keys were hashed to in the log
//! `system`. An admin sees who has which key; a leaked key of an admin must not give away all
//! hashes to guess passwords against.

use std::borrow::Cow;
use wellspring_host::http::Request;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_log::RecordView;
use wellspring_views::access::without_hashes;

/// What is served of the events of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disclosure {
    /// All of it.
    Whole,
    /// Everything but hashes of passwords and digests of keys.
    WithoutHashes,
}

impl Disclosure {
    /// That of the log that a request is about.
    pub(super) fn of(request: &Request) -> Disclosure {
        if request.log_name == SYSTEM_LOG { Disclosure::WithoutHashes } else { Disclosure::Whole }
    }

    /// What is served of an event's data.
    pub(super) fn data<'a>(self, event: &RecordView<'a>) -> Cow<'a, [u8]> {
        match self {
            Disclosure::Whole => Cow::Borrowed(event.data()),
            Disclosure::WithoutHashes => without_hashes(event.event_type(), event.data()),
        }
    }
}
