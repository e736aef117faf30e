//! Personal data of a request's events, sealed before they are staged.
//!
//! `subject` seals all of an event's data; `personal` seals one value for each of up to eight
//! subjects beside it. A subject is one of the event's tags, and becomes one if it is not there.

use std::borrow::Cow;
use std::sync::Arc;
use wellspring_format::sealed_parts::{MAX_PARTS, PartKind};
use wellspring_host::http::Host;
use wellspring_host::subjects::{SUBJECT_NAME, refusal};
use wellspring_host::wire::json::{Cursor, Fault, FaultKind, ReadResult, once, rule};
use wellspring_host::wire::problem::Problem;
use wellspring_subject_keys::{NonceSalt, PlainPart, SealRefusal, SealedWith, Sealer};
use wellspring_types::{DataKind, EventRef, Invalid, Reason, limits, only_tag_of};

/// What stays of data that is sealed as a whole.
const SEALED: &[u8] = b"null";

/// Whether events without an id are sealed alike each time.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Repetition<'b> {
    /// Equal events differ sealed.
    Differs,
    /// The same request has the same bytes: it is compared with what was stored of it.
    IsEqual,
    /// The same if this body of an append may settle a delivery.
    OfAppend(&'b [u8]),
}

impl Repetition<'_> {
    fn is_equal(self) -> bool {
        match self {
            Repetition::Differs => false,
            Repetition::IsEqual => true,
            Repetition::OfAppend(body) => {
                // A name may be escaped.
                let says = |word: &[u8]| body.windows(word.len()).any(|window| window == word);
                says(b"settles") || says(b"\\u00")
            }
        }
    }
}

/// Seals the events of one request. Without a data subject it costs nothing.
#[derive(Debug)]
pub struct EventSealer<'b> {
    /// None: it refuses.
    host: Option<HostOfRequest<'b>>,
    /// Made with the first subject.
    sealer: Option<Sealer>,
    /// The subject of all events that name none.
    subject: Option<Cow<'b, str>>,
    /// The key of tags that name one: `student` of `student:8f14e45f`.
    tag_key: Option<Cow<'b, str>>,
    repetition: Repetition<'b>,
    /// Events that it has sealed.
    pub(crate) sealed: u64,
    /// Why the last event could not be sealed, and for which subject.
    refused: Option<(SealRefusal, String)>,
}

/// What an event says about subjects, while it is parsed.
#[derive(Debug, Default)]
pub(crate) struct SubjectFields<'a> {
    pub(crate) subject: Option<Cow<'a, str>>,
    pub(crate) personal: Vec<(String, &'a [u8])>,
    /// It was exported after its erasure: nothing is left to seal, and its subject may not be
    /// sealed for.
    pub(crate) is_erased: bool,
}

/// The host, for as long as a request is read.
#[derive(Clone)]
pub(crate) enum HostOfRequest<'b> {
    /// Of one that is read at once.
    Borrowed(&'b Host),
    /// Of one that is read as it comes.
    Shared(Arc<Host>),
}

impl std::fmt::Debug for HostOfRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostOfRequest")
    }
}

impl<'b> EventSealer<'b> {
    /// A sealer for an append whose header names this subject. One that may settle a delivery is
    /// sealed alike each time.
    pub(crate) fn new(host: &'b Host, subject: Option<&'b str>, body: &'b [u8]) -> EventSealer<'b> {
        let (host, subject) = (Some(HostOfRequest::Borrowed(host)), subject.map(Cow::Borrowed));
        let repetition = Repetition::OfAppend(body);
        EventSealer { host, subject, repetition, ..EventSealer::refusing() }
    }

    /// A sealer for a request whose header names this subject, and that is read as it comes.
    pub(crate) fn streaming(
        host: &Arc<Host>,
        subject: Option<&str>,
        repetition: Repetition<'b>,
    ) -> EventSealer<'b> {
        let host = Some(HostOfRequest::Shared(Arc::clone(host)));
        let subject = subject.map(|subject| Cow::Owned(subject.to_owned()));
        EventSealer { host, subject, repetition, ..EventSealer::refusing() }
    }

    /// The same; the subject of an event that names none is its only tag with this key, if it has
    /// exactly one.
    pub(crate) fn finding(self, tag_key: Option<&str>) -> EventSealer<'b> {
        let tag_key = tag_key.map(|key| Cow::Owned(key.to_owned()));
        EventSealer { tag_key, ..self }
    }

    /// The only tag with the key of subjects.
    fn only_subject(&self, tags: &[Cow<'_, str>]) -> Option<String> {
        let only = only_tag_of(tags, self.tag_key.as_deref()?);
        only.map(|tag| tag.clone().into_owned())
    }

    /// One that refuses to seal.
    #[must_use]
    pub fn refusing() -> EventSealer<'b> {
        let repetition = Repetition::Differs;
        let (host, sealer, refused) = (None, None, None);
        let tag_key = None;
        EventSealer { host, sealer, subject: None, tag_key, repetition, sealed: 0, refused }
    }

    /// The problem of an event that was not read.
    pub(crate) fn problem(&mut self, fault: &Fault, worded: Box<Problem>) -> Box<Problem> {
        match self.refused.take() {
            Some((refused, subject)) => {
                let is_of_request = fault.field.ends_with(SUBJECT_NAME);
                let field = if is_of_request { SUBJECT_NAME } else { &fault.field };
                refusal(&refused, field, &subject)
            }
            None => worded,
        }
    }

    /// The keys that it has used, to be kept until the events are stored.
    pub(crate) fn into_used(self) -> SealedWith {
        self.sealer.map(Sealer::into_used).unwrap_or_default()
    }

    /// The same of a request that has let go of them; the sealer begins anew.
    ///
    /// # Errors
    /// 409, 503: a data subject is erased meanwhile, or its key cannot be read.
    pub(crate) fn take_held(&mut self) -> Result<SealedWith, Box<Problem>> {
        let Some(sealer) = self.sealer.take() else { return Ok(SealedWith::default()) };
        let held = sealer.into_held();
        held.map_err(|refused| refusal(&refused, "a data subject of the request", ""))
    }

    /// Lets go of the keys, before a wait for the client.
    pub(crate) fn let_go(&mut self) {
        self.sealer.iter_mut().for_each(Sealer::let_go);
    }

    /// Seals what an event says about subjects, if anything: passes the event that stays and its
    /// sealed parts to `then`. `number` is that of the event in its request, `at` where it begins.
    pub(crate) fn seal<'a, R>(
        &mut self,
        fields: &SubjectFields<'a>,
        tags: &mut Vec<Cow<'a, str>>,
        event: PlainEvent<'_, 'a>,
        (number, at): (u64, usize),
        then: impl FnOnce(&EventRef<'_, Cow<'a, str>>, &[u8]) -> ReadResult<R>,
    ) -> ReadResult<R> {
        let of_data = fields.subject.as_deref().filter(|_| !fields.is_erased);
        let of_request = self.subject.as_deref().filter(|_| of_data.is_none() && !fields.is_erased);
        if of_request.is_some() && !fields.personal.is_empty() {
            let rule = "cannot be combined with Wellspring-Subject; name its subjects one way";
            return Err(Fault::of("personal", at, FaultKind::Rule(rule.to_owned())));
        }
        let is_plain = fields.personal.is_empty() && !fields.is_erased;
        let found = is_plain.then(|| self.only_subject(tags)).flatten();
        let subject = of_data.or(of_request).or(found.as_deref());
        let mut parts: Vec<(u8, PartKind, &str, &[u8])> = Vec::new();
        if let Some(subject) = subject {
            let kind = match event.kind {
                DataKind::Json => PartKind::Json,
                DataKind::Binary => PartKind::Binary,
            };
            parts.push((tag_of(tags, subject), kind, subject, event.data));
        }
        for (subject, value) in &fields.personal {
            parts.push((tag_of(tags, subject), PartKind::Personal, subject, value));
        }
        let PlainEvent { event_type, data, kind, id, metadata } = event;
        let event = EventRef { event_type, tags: &tags[..], data, kind, id, metadata };
        if parts.is_empty() {
            return then(&event, &[]);
        }
        let mut refuse = |part: usize, refused: SealRefusal| {
            let field = match of_data {
                Some(_) => "subject".to_owned(),
                None if parts[part].1 == PartKind::Personal => {
                    format!("personal.{}", parts[part].2)
                }
                None => SUBJECT_NAME.to_owned(),
            };
            let kind = FaultKind::Rule(refused.to_string());
            self.refused = Some((refused, parts[part].2.to_owned()));
            Fault::of(&field, at, kind)
        };
        // Before it is told of as one of the tags, which the client may not have sent.
        if let Some(part) = parts.iter().position(|(_, _, subject, _)| subject.is_empty()) {
            return Err(refuse(part, SealRefusal::NotASubject));
        }
        let check = event.check().and_then(|()| check_lengths(&parts));
        check.map_err(|invalid| Fault::of_invalid(invalid, at))?;
        let plain =
            |&(tag, kind, subject, plaintext): &_| PlainPart { tag, kind, subject, plaintext };
        let plain: Vec<PlainPart<'_>> = parts.iter().map(plain).collect();
        let salt = match id {
            Some(id) => NonceSalt::Id(id),
            None if self.repetition.is_equal() => NonceSalt::Number(number),
            None => NonceSalt::Random,
        };
        let sealer = self.sealer.get_or_insert_with(|| match &self.host {
            Some(HostOfRequest::Borrowed(host)) => host.sealer(),
            Some(HostOfRequest::Shared(host)) => host.sealer(),
            None => Sealer::new(None, 0),
        });
        match sealer.seal(event_type, salt, &plain) {
            Ok(sealed) => {
                self.sealed += 1;
                match parts[0].1 {
                    PartKind::Personal => then(&event, sealed),
                    _ => then(&EventRef { data: SEALED, kind: DataKind::Json, ..event }, sealed),
                }
            }
            Err((part, refused)) => Err(refuse(part, refused)),
        }
    }
}

/// An event as it was parsed, without its tags.
pub(crate) struct PlainEvent<'e, 'a> {
    pub(crate) event_type: &'e str,
    pub(crate) data: &'e [u8],
    pub(crate) kind: DataKind,
    pub(crate) id: Option<wellspring_types::EventId>,
    pub(crate) metadata: &'e [(Cow<'a, str>, Cow<'a, str>)],
}

/// The number of a subject among the tags, to which it is added if it is not there. One tag too
/// many is found by the event's check.
fn tag_of<'a>(tags: &mut Vec<Cow<'a, str>>, subject: &str) -> u8 {
    let at = tags.iter().position(|tag| tag == subject).unwrap_or_else(|| {
        tags.push(Cow::Owned(subject.to_owned()));
        tags.len() - 1
    });
    at.min(usize::from(u8::MAX)) as u8
}

fn check_lengths(parts: &[(u8, PartKind, &str, &[u8])]) -> Result<(), Invalid> {
    let too_long = |&&(_, _, _, value): &&(_, _, _, &[u8])| value.len() > limits::MAX_DATA_BYTES;
    match parts.iter().find(too_long) {
        None => Ok(()),
        Some((_, _, subject, value)) => Err(Invalid {
            field: format!("personal.{subject}"),
            reason: Reason::TooLong { bytes: value.len(), limit: limits::MAX_DATA_BYTES },
        }),
    }
}

/// Reads `personal`: an object with a value for each subject. One that is null, as an erased one is
/// exported, is left out.
pub(crate) fn read_personal<'a>(
    value: &mut Cursor<'a>,
    into: &mut Vec<(String, &'a [u8])>,
) -> ReadResult<()> {
    if value.null()? {
        return Ok(());
    }
    value.object(|subject, value| {
        let at = value.at();
        if value.null()? {
            return Ok(());
        }
        if into.len() == MAX_PARTS {
            return rule(at, format!("exceeds the maximum of {MAX_PARTS} data subjects"));
        }
        if into.iter().any(|(known, _)| known == subject) {
            return once(&mut Some(()), at, ());
        }
        into.push((subject.to_owned(), value.raw()?));
        Ok(())
    })
}
