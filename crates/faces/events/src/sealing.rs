//! Personal data of a request's events, sealed before they are staged.
//!
//! `subject` seals all of an event's data; `personal` seals one value for each of up to eight
//! subjects beside it. A subject is one of the event's tags, and becomes one if it is not there.

use std::borrow::Cow;
use wellspring_format::sealed_parts::{MAX_PARTS, PartKind};
use wellspring_host::http::Host;
use wellspring_host::subjects::{SUBJECT_NAME, refusal};
use wellspring_host::wire::json::{Cursor, Fault, FaultKind, ReadResult, once, rule};
use wellspring_host::wire::problem::Problem;
use wellspring_subject_keys::{NonceSalt, PlainPart, SealRefusal, SealedWith, Sealer};
use wellspring_types::{DataKind, EventRef, Invalid, Reason, limits};

/// What stays of data that is sealed as a whole.
const SEALED: &[u8] = b"null";

/// Whether events without an id are sealed alike each time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repetition {
    /// Equal events differ sealed.
    Differs,
    /// The same request has the same bytes: it is compared with what was stored of it.
    IsEqual,
}

/// Seals the events of one request.
#[derive(Debug)]
pub struct EventSealer {
    sealer: Sealer,
    /// The subject of all events that name none.
    subject: Option<Box<str>>,
    /// The key of tags that name one: `student` of `student:8f14e45f`.
    tag_key: Option<Box<str>>,
    repetition: Repetition,
    /// Why the last event could not be sealed.
    refused: Option<SealRefusal>,
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

impl EventSealer {
    /// A sealer for an append whose header names this subject. One that may settle a delivery is
    /// sealed alike each time.
    pub(crate) fn new(host: &Host, subject: Option<&str>, body: &[u8]) -> EventSealer {
        const SETTLES: &[u8] = br#""settles""#;
        let settles = body.windows(SETTLES.len()).any(|window| window == SETTLES);
        let repetition = if settles { Repetition::IsEqual } else { Repetition::Differs };
        EventSealer::repeating(host, subject, repetition)
    }

    /// A sealer for a request whose header names this subject.
    pub(crate) fn repeating(
        host: &Host,
        subject: Option<&str>,
        repetition: Repetition,
    ) -> EventSealer {
        let (sealer, subject) = (host.sealer(), subject.map(Box::from));
        EventSealer { sealer, subject, tag_key: None, repetition, refused: None }
    }

    /// The same; the subject of an event that names none is its only tag with this key, if it has
    /// exactly one.
    pub(crate) fn finding(self, tag_key: Option<&str>) -> EventSealer {
        EventSealer { tag_key: tag_key.map(Box::from), ..self }
    }

    /// The only tag with the key of subjects.
    fn only_subject(&self, tags: &[Cow<'_, str>]) -> Option<String> {
        let key = self.tag_key.as_deref()?;
        let is_subject =
            |tag: &&Cow<'_, str>| tag.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
        let mut found = tags.iter().filter(is_subject);
        let only = found.next().filter(|_| found.next().is_none());
        only.map(|tag| tag.clone().into_owned())
    }

    /// One that refuses to seal.
    #[must_use]
    pub fn refusing() -> EventSealer {
        let (sealer, repetition) = (Sealer::new(None, 0), Repetition::Differs);
        EventSealer { sealer, subject: None, tag_key: None, repetition, refused: None }
    }

    /// The problem of an event that was not read.
    pub(crate) fn problem(&mut self, fault: &Fault, worded: Box<Problem>) -> Box<Problem> {
        match self.refused.take() {
            Some(refused) if fault.field.ends_with(SUBJECT_NAME) => refusal(&refused, SUBJECT_NAME),
            Some(refused) => refusal(&refused, &fault.field),
            None => worded,
        }
    }

    /// The keys that it has used, to be kept until the events are stored.
    pub(crate) fn into_used(self) -> SealedWith {
        self.sealer.into_used()
    }

    /// The same; the sealer begins anew.
    pub(crate) fn take_used(&mut self, host: &Host) -> SealedWith {
        std::mem::replace(&mut self.sealer, host.sealer()).into_used()
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
        let check = event.check().and_then(|()| check_lengths(&parts));
        check.map_err(|invalid| Fault::of_invalid(invalid, at))?;
        let plain =
            |&(tag, kind, subject, plaintext): &_| PlainPart { tag, kind, subject, plaintext };
        let plain: Vec<PlainPart<'_>> = parts.iter().map(plain).collect();
        let salt = match (id, self.repetition) {
            (Some(id), _) => NonceSalt::Id(id),
            (None, Repetition::IsEqual) => NonceSalt::Number(number),
            (None, Repetition::Differs) => NonceSalt::Random,
        };
        match self.sealer.seal(event_type, salt, &plain) {
            Ok(sealed) if parts[0].1 == PartKind::Personal => then(&event, sealed),
            Ok(sealed) => then(&EventRef { data: SEALED, kind: DataKind::Json, ..event }, sealed),
            Err((part, refused)) => {
                let field = match of_data {
                    Some(_) => "subject".to_owned(),
                    None if parts[part].1 == PartKind::Personal => {
                        format!("personal.{}", parts[part].2)
                    }
                    None => SUBJECT_NAME.to_owned(),
                };
                let kind = FaultKind::Rule(refused.to_string());
                self.refused = Some(refused);
                Err(Fault::of(&field, at, kind))
            }
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
            return rule(at, format!("is one of more than {MAX_PARTS} subjects"));
        }
        if into.iter().any(|(known, _)| known == subject) {
            return once(&mut Some(()), at, ());
        }
        into.push((subject.to_owned(), value.raw()?));
        Ok(())
    })
}
