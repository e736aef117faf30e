//! The API's JSON: the only reader of events, queries, conditions and appends, and the only writer
//! of events.

use super::consumers::{Settlement, is_of_consumers, read_settlement};
use super::disclosure::Disclosure;
use super::sealing::{EventSealer, PlainEvent, SubjectFields, read_personal};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use std::borrow::Cow;
use wellspring_host::clock::{MOMENT_RULE, parse_rfc3339, push_rfc3339};
use wellspring_host::kept_types::KeptInLog;
use wellspring_host::subjects::SUBJECT_ERASED;
use wellspring_host::wire::json::{
    Cursor, Fault, FaultKind, ReadResult, base64_fault, document, missing, once, push_string,
    push_tags, push_u64, rule, unknown,
};
use wellspring_json::read_query;
use wellspring_log::{Ack, Append, EncodedEvents, LeaseProof, RecordView};
use wellspring_types::{AppendCondition, DataKind, EventId, EventRef, Position, Query, limits};

/// Name of the metadata entry for the time at which another log recorded an event.
pub(crate) const RECORDED_AT: &str = "recorded_at";

/// The dialect of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// `/v1`.
    Native,
    /// `/v1/import`: as native, and events as `/v1/events` writes them. Repeated tags count once; a
    /// position and a history are ignored; of the recording time becomes what
    /// `RecordedTimes` says.
    Import,
    /// The DCB project's and go-crablet's: `data` is a string, `events` may be one
    /// object, `after` may be a string of digits.
    Dialect,
}

impl Style {
    fn is_dialect(self) -> bool {
        self == Style::Dialect
    }

    /// The fields of an event.
    fn known_fields(self) -> &'static str {
        match self {
            Style::Native => "type, tags, data, data_base64, id, metadata, subject, personal",
            Style::Import => {
                "type, tags, data, data_base64, id, metadata, subject, personal, erased, \
                 recorded_at, position, history"
            }
            Style::Dialect => "type, tags, data",
        }
    }
}

/// What becomes of the time at which an event of an import was recorded (decision 0039).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum RecordedTimes {
    /// It is the event's time in this log, too.
    Kept,
    /// It is kept in the metadata as `recorded_at`, unless the event has metadata of that name.
    #[default]
    Metadata,
    Dropped,
}

/// The fault of a field that excludes another one.
fn beside<T>(at: usize, other: &'static str) -> ReadResult<T> {
    Err(Fault::new(at, FaultKind::Beside(other)))
}

/// A parsed body of `POST …/append`.
#[derive(Debug)]
pub struct AppendBody {
    /// The append without its key and its fence.
    pub append: Append,
    /// The lease by which it is fenced.
    pub fence: Option<LeaseProof>,
    /// The delivery that it settles.
    pub(crate) settles: Option<Settlement>,
}

/// A body of `POST …/append`.
pub fn read_append(
    body: &[u8],
    style: Style,
    kept: KeptInLog,
    sealer: &mut EventSealer<'_>,
) -> ReadResult<AppendBody> {
    const KNOWN: &str = "events, condition, ack, fence, settles";
    document(body, |cursor| {
        let start = cursor.at();
        let mut events = None;
        let (mut condition, mut ack, mut fence, mut settles) = (None, None, None, None);
        let room = body.len() + body.len() / 4 + 64;
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "events" => once(&mut events, at, read_events(value, style, kept, room, sealer)?),
                "condition" if !value.null()? => {
                    once(&mut condition, at, read_condition(value, style)?)
                }
                "ack" if style == Style::Native && !value.null()? => {
                    once(&mut ack, at, (at, read_ack(value)?))
                }
                "fence" if style == Style::Native && !value.null()? => {
                    once(&mut fence, at, (at, read_fence(value)?))
                }
                "settles" if style == Style::Native && !value.null()? => {
                    once(&mut settles, at, read_settlement(value)?)
                }
                "condition" => Ok(()),
                "ack" | "fence" | "settles" if style == Style::Native => Ok(()),
                _ => unknown(at, KNOWN),
            }
        })?;
        let Some(events) = events else { return missing("events", start) };
        match (&settles, &ack, &fence) {
            (Some(_), Some((at, Ack::Accepted)), _) => {
                let rule = "must be \"durable\" beside settles";
                return Err(Fault::of("ack", *at, FaultKind::Rule(rule.into())));
            }
            (Some(_), _, Some((at, _))) => {
                return Err(Fault::of("fence", *at, FaultKind::Beside("settles")));
            }
            _ => {}
        }
        let ack = ack.map(|(_, ack)| ack).unwrap_or_default();
        let fence = fence.map(|(_, fence)| fence);
        let append = Append { events, condition, ack, ..Append::default() };
        Ok(AppendBody { append, fence, settles })
    })
}

fn read_ack(value: &mut Cursor<'_>) -> ReadResult<Ack> {
    let at = value.at();
    match &*value.string()? {
        "durable" => Ok(Ack::Durable),
        "accepted" => Ok(Ack::Accepted),
        _ => rule(at, "must be \"durable\" or \"accepted\""),
    }
}

/// The lease by which a request is fenced.
pub(crate) fn read_fence(value: &mut Cursor<'_>) -> ReadResult<LeaseProof> {
    let start = value.at();
    let (mut lease, mut token) = (None, None);
    value.object(|key, value| {
        let at = value.at();
        match key {
            "lease" => once(&mut lease, at, value.string()?.into_owned()),
            "token" => once(&mut token, at, value.u64()?),
            _ => unknown(at, "lease, token"),
        }
    })?;
    match (lease, token) {
        (Some(lease), Some(token)) => Ok(LeaseProof { lease, token }),
        (None, _) => missing("lease", start),
        (_, None) => missing("token", start),
    }
}

fn read_events<'a>(
    value: &mut Cursor<'a>,
    style: Style,
    kept: KeptInLog,
    room: usize,
    sealer: &mut EventSealer<'_>,
) -> ReadResult<EncodedEvents> {
    let at = value.at();
    let mut encoded = EncodedEvents::with_capacity(room);
    let mut reader = EventReader::keeping(kept);
    if style == Style::Dialect && value.next_is(b'{') {
        reader.read(value, style, sealer, &mut encoded)?;
        return Ok(encoded);
    }
    let mut too_many = false;
    let read = value.array(|i, value| {
        too_many = i == limits::MAX_EVENTS;
        if too_many {
            let detail = format!("contains more than {} events", limits::MAX_EVENTS);
            let kind = FaultKind::TooLarge { detail, limit: limits::MAX_EVENTS as u64 };
            return Err(Fault::new(at, kind));
        }
        reader.read(value, style, sealer, &mut encoded)
    });
    read.map_err(|mut fault| {
        if too_many {
            fault.field.clear();
        }
        fault
    })?;
    if encoded.is_empty() { rule(at, "must contain at least one event") } else { Ok(encoded) }
}

/// Reads events one by one, reusing its buffers.
#[derive(Default)]
pub(crate) struct EventReader<'a> {
    tags: Vec<Cow<'a, str>>,
    metadata: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Repeated tags of an event that were dropped ([`Style::Import`]).
    pub(crate) folded: u64,
    /// Types that clients may not append.
    kept: KeptInLog,
    /// What becomes of recording times ([`Style::Import`]).
    times: RecordedTimes,
    /// What the last event counts as, if it is not how it was added: with the time at which it was
    /// recorded among its metadata.
    pub(crate) content: Option<EncodedEvents>,
    /// The id of the last event.
    pub(crate) id: Option<EventId>,
    /// Whether the last event is not imported ([`Style::Import`]).
    pub(crate) is_passed_over: bool,
}

impl<'a> EventReader<'a> {
    /// A reader that refuses events of these types.
    pub(crate) fn keeping(kept: KeptInLog) -> EventReader<'a> {
        EventReader { kept, ..EventReader::default() }
    }

    /// A reader of an import.
    pub(crate) fn importing(kept: KeptInLog, times: RecordedTimes) -> EventReader<'a> {
        EventReader { times, ..EventReader::keeping(kept) }
    }

    /// Reads one event and adds it to `out`.
    pub(crate) fn read(
        &mut self,
        value: &mut Cursor<'a>,
        style: Style,
        sealer: &mut EventSealer<'_>,
        out: &mut EncodedEvents,
    ) -> ReadResult<()> {
        let (start, kept) = (value.at(), self.kept);
        let mut subjects = SubjectFields::default();
        self.tags.clear();
        self.metadata.clear();
        self.is_passed_over = false;
        let (mut event_type, mut data, mut id) = (None, None, None);
        let (mut tags, mut metadata) = (None, None);
        let (mut recorded_at, mut recorded_at_us) = (None, 0);
        value.object(|key, value| {
            let at = value.at();
            match key {
                "type" => {
                    let text = value.string()?;
                    self.is_passed_over = style == Style::Import && is_passed_over(&text);
                    match kept.fault(&text).filter(|_| !self.is_passed_over) {
                        None => once(&mut event_type, at, text),
                        Some(fault) => rule(at, fault),
                    }
                }
                "tags" => {
                    once(&mut tags, at, ())?;
                    self.read_tags(style, value)
                }
                "data" | "data_base64" if !style.is_dialect() => read_data(key, value, &mut data),
                "data" if value.next_is(b'"') => once(&mut data, at, read_text_data(value)?),
                "data" => once(&mut data, at, (Cow::Borrowed(value.raw()?), DataKind::Json)),
                "id" if !style.is_dialect() => {
                    if value.null()? {
                        Ok(())
                    } else {
                        once(&mut id, at, read_id(value)?)
                    }
                }
                "metadata" if !style.is_dialect() => {
                    once(&mut metadata, at, ())?;
                    self.read_metadata(value)
                }
                "subject" if !style.is_dialect() => {
                    if style == Style::Import && value.null()? {
                        Ok(())
                    } else {
                        once(&mut subjects.subject, at, value.string()?)
                    }
                }
                "personal" if !style.is_dialect() => read_personal(value, &mut subjects.personal),
                "erased" if style == Style::Import => {
                    subjects.is_erased = true;
                    value.raw().map(drop)
                }
                "withheld" if style == Style::Import => rule(
                    at,
                    "says that personal data is missing: export again with a role that sees it",
                ),
                "unavailable" if style == Style::Import => rule(
                    at,
                    "says that personal data is missing: put the keys of its server back and \
                     export again",
                ),
                "position" | "history" if style == Style::Import => value.raw().map(drop),
                "recorded_at" if style == Style::Import => {
                    let (time, us) = EventReader::read_time(self.times, value)?;
                    recorded_at_us = us;
                    once(&mut recorded_at, at, time)
                }
                _ => unknown(at, style.known_fields()),
            }
        })?;
        let Some(event_type) = event_type else { return missing("type", start) };
        let (data, kind) = match data {
            Some(data) => data,
            None if style == Style::Dialect => (Cow::Borrowed(&b""[..]), DataKind::Binary),
            None => return missing("data", start),
        };
        let is_timed = recorded_at.is_some();
        let given = self.metadata.len();
        if let Some(time) = recorded_at
            && !self.metadata.iter().any(|(name, _)| name == RECORDED_AT)
        {
            self.metadata.push((Cow::Borrowed(RECORDED_AT), time));
        }
        if subjects.is_erased && subjects.subject.is_some() && *data != *b"null" {
            return rule(start, "has data, although erased says that nothing is left of it");
        }
        if subjects.subject.is_some() && !subjects.personal.is_empty() {
            return beside(start, "subject").map_err(|fault| fault.within("personal"));
        }
        self.content = None;
        self.id = id;
        let event_type = &*event_type;
        let event = PlainEvent { event_type, data: &data, kind, id, metadata: &self.metadata };
        let content = &mut self.content;
        let keeps_time = is_timed && self.times != RecordedTimes::Metadata;
        let number = (out.len() as u64, start);
        sealer.seal(&subjects, &mut self.tags, event, number, |event, parts| {
            let invalid = |invalid| Fault::of_invalid(invalid, start);
            if !keeps_time {
                return out.push_sealed(event, parts, 0).map_err(invalid);
            }
            let stored = EventRef { metadata: &event.metadata[..given], ..*event };
            out.push_sealed(&stored, parts, recorded_at_us).map_err(invalid)?;
            let mut counted = EncodedEvents::new();
            counted.push_unchecked(event, parts);
            *content = Some(counted);
            Ok(())
        })
    }

    /// Reads a recording time, and what of it an event is to be stored with: 0, unless it is kept.
    fn read_time(times: RecordedTimes, value: &mut Cursor<'a>) -> ReadResult<(Cow<'a, str>, u64)> {
        let at = value.at();
        let time = value.string()?;
        // A record with the time 0 wants none.
        let us = match times {
            RecordedTimes::Kept => parse_rfc3339(&time).filter(|&us| us > 0),
            RecordedTimes::Metadata | RecordedTimes::Dropped => Some(0),
        };
        match us.filter(|_| time.len() <= limits::MAX_METADATA_VALUE_BYTES) {
            Some(us) => Ok((time, us)),
            None => rule(at, MOMENT_RULE),
        }
    }

    /// Adds the tags of a list to those of the event.
    fn read_tags(&mut self, style: Style, value: &mut Cursor<'a>) -> ReadResult<()> {
        let (list, folded) = (&mut self.tags, &mut self.folded);
        value.array(|_, tag| {
            let tag = tag.string()?;
            if style == Style::Import && list.contains(&tag) {
                *folded += 1;
            } else if list.len() <= limits::MAX_TAGS {
                list.push(tag);
            }
            Ok(())
        })
    }

    fn read_metadata(&mut self, value: &mut Cursor<'a>) -> ReadResult<()> {
        if value.null()? {
            return Ok(());
        }
        let list = &mut self.metadata;
        value.object(|key, value| {
            // One more than allowed is kept, so that the check of the event finds it.
            let text = value.string()?;
            if list.len() <= limits::MAX_METADATA_ENTRIES {
                list.push((Cow::Owned(key.to_owned()), text));
            }
            Ok(())
        })
    }
}

/// Whether an import passes over events of this type: positions in those of consumers are those of
/// another log, and what a data subject's erasure has taken is gone where it was exported.
fn is_passed_over(event_type: &str) -> bool {
    is_of_consumers(event_type) || event_type == SUBJECT_ERASED
}

/// A payload as JSON or as base64, according to the field's name; not both.
fn read_data<'a>(
    field: &str,
    value: &mut Cursor<'a>,
    data: &mut Option<(Cow<'a, [u8]>, DataKind)>,
) -> ReadResult<()> {
    let at = value.at();
    let was = data.as_ref().map(|(_, kind)| *kind);
    match (field, was) {
        ("data", Some(DataKind::Binary)) => return beside(at, "data_base64"),
        ("data_base64", Some(DataKind::Json)) => return beside(at, "data"),
        _ => {}
    }
    let read = match field {
        "data_base64" => read_base64(value)?,
        _ => (Cow::Borrowed(value.raw()?), DataKind::Json),
    };
    once(data, at, read)
}

/// A payload given as a string: its bytes are kept, and whether they are JSON.
fn read_text_data<'a>(value: &mut Cursor<'a>) -> ReadResult<(Cow<'a, [u8]>, DataKind)> {
    let bytes = match value.string()? {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    };
    // Surrounding space would pass as JSON but is not part of the value.
    let exact = |cursor: &mut Cursor<'_>| cursor.raw().map(<[u8]>::len);
    let is_json = document(&bytes, exact) == Ok(bytes.len());
    Ok((bytes, if is_json { DataKind::Json } else { DataKind::Binary }))
}

fn read_base64<'a>(value: &mut Cursor<'a>) -> ReadResult<(Cow<'a, [u8]>, DataKind)> {
    let at = value.at();
    match BASE64.decode(value.string()?.as_bytes()) {
        Ok(bytes) => Ok((Cow::Owned(bytes), DataKind::Binary)),
        Err(error) => rule(at, format!("is not Base64: {}", base64_fault(error))),
    }
}

fn read_id(value: &mut Cursor<'_>) -> ReadResult<EventId> {
    let at = value.at();
    match EventId::parse(&value.string()?) {
        Some(id) => Ok(id),
        None => rule(at, "must be a UUID, e.g. \"018f5c3e-9b2a-7c11-8d3e-0123456789ab\""),
    }
}

/// A condition. Without any clause no event of the log may match; with only `failIfExists` only
/// that is judged, unless `after` is given.
pub(crate) fn read_condition(value: &mut Cursor<'_>, style: Style) -> ReadResult<AppendCondition> {
    let (mut matching, mut after, mut existing) = (None, None, None);
    value.object(|key, value| {
        let at = value.at();
        match key {
            "failIfEventsMatch" => {
                if value.null()? {
                    Ok(())
                } else {
                    once(&mut matching, at, read_query(value)?)
                }
            }
            "after" => {
                if value.null()? {
                    Ok(())
                } else {
                    once(&mut after, at, read_after(value, style)?)
                }
            }
            "failIfExists" => {
                if value.null()? {
                    Ok(())
                } else {
                    once(&mut existing, at, read_query(value)?)
                }
            }
            _ => unknown(at, "failIfEventsMatch, after, failIfExists"),
        }
    })?;
    if matching.is_none() && (existing.is_none() || after.is_some()) {
        matching = Some(Query::all());
    }
    // The limits of each query were checked when it was read.
    Ok(AppendCondition { fail_if_events_match: matching, after, fail_if_exists: existing })
}

/// A position; in the dialects it may be a string of digits.
pub(crate) fn read_after(value: &mut Cursor<'_>, style: Style) -> ReadResult<Position> {
    if style == Style::Native || !value.next_is(b'"') {
        return value.u64();
    }
    let at = value.at();
    match value.string()?.parse() {
        Ok(position) => Ok(position),
        Err(_) => rule(at, "must be a position"),
    }
}

/// Appends an event as one JSON object. A JSON payload is copied as it was sent, except undisclosed
/// parts.
pub(super) fn push_event(out: &mut Vec<u8>, event: &RecordView<'_>, disclosure: &Disclosure) {
    let disclosed = disclosure.of_event(event);
    out.extend_from_slice(b"{\"position\":");
    push_u64(out, event.position());
    out.extend_from_slice(b",\"type\":");
    push_string(out, event.event_type());
    push_tags(out, event.tags());
    match disclosed.kind {
        DataKind::Json => {
            out.extend_from_slice(b",\"data\":");
            out.extend_from_slice(&disclosed.data);
        }
        DataKind::Binary => {
            out.extend_from_slice(b",\"data_base64\":\"");
            out.extend_from_slice(BASE64.encode(&disclosed.data).as_bytes());
            out.push(b'"');
        }
    }
    disclosed.push_members(out);
    if let Some(id) = event.id() {
        out.extend_from_slice(b",\"id\":\"");
        out.extend_from_slice(id.to_string().as_bytes());
        out.push(b'"');
    }
    let mut separator: &[u8] = b",\"metadata\":{";
    for (key, value) in event.metadata() {
        out.extend_from_slice(separator);
        separator = b",";
        push_string(out, key);
        out.push(b':');
        push_string(out, value);
    }
    if separator == b"," {
        out.push(b'}');
    }
    out.extend_from_slice(b",\"recorded_at\":\"");
    push_rfc3339(out, event.recorded_at_us());
    out.extend_from_slice(b"\"}");
}

#[cfg(test)]
#[path = "event_json_tests.rs"]
mod tests;
