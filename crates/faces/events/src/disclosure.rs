//! What is served of events: everything except hashes of passwords and keys in the log `system`. An
//! administrator sees which keys each account has; an administrator's leaked key must not reveal
//! all hashes to offline guessing.

use std::borrow::Cow;
use wellspring_host::access::view::without_hashes;
use wellspring_host::http::Request;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_log::RecordView;

/// The served part of a log's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Disclosure {
    /// Everything.
    Whole,
    /// Everything except hashes of passwords and digests of keys.
    WithoutHashes,
}

impl Disclosure {
    /// The disclosure for a request's log.
    pub(super) fn of(request: &Request) -> Disclosure {
        if request.log_name == SYSTEM_LOG { Disclosure::WithoutHashes } else { Disclosure::Whole }
    }

    /// The served part of an event's data.
    pub(super) fn data<'a>(self, event: &RecordView<'a>) -> Cow<'a, [u8]> {
        match self {
            Disclosure::Whole => Cow::Borrowed(event.data()),
            Disclosure::WithoutHashes => without_hashes(event.event_type(), event.data()),
        }
    }
}
