//! `GET /v1/subjects/{subject}`: what is stored about a data subject.

use crate::carry_out::Eraser;
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::http::contract::Segment;
use wellspring_host::http::work::Job;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::subjects::SUBJECT_ERASED;
use wellspring_host::wire::json::Rfc3339;
use wellspring_host::wire::param::Values;
use wellspring_host::wire::problem;
use wellspring_log::{Log, Order, ReadError, Work};
use wellspring_subject_keys::{KeyState, MAX_SUBJECT_BYTES};
use wellspring_types::valid::check_text;
use wellspring_types::{Position, Query};

pub(crate) static SUBJECT_TAG: Segment<String> = Segment {
    name: "subject",
    what: "The data subject: a tag such as student:8f14e45f.",
    values: Values::Text(None),
    read: |text| {
        let is_name = check_text(text, MAX_SUBJECT_BYTES).is_ok();
        let no_name = || {
            let detail = format!("a data subject is a tag of 1 to {MAX_SUBJECT_BYTES} bytes");
            problem::INVALID.because(detail).field("subject")
        };
        is_name.then(|| text.to_owned()).ok_or_else(no_name)
    },
};

/// What is stored about a data subject.
#[derive(Serialize)]
struct SubjectDocument<'a> {
    subject: &'a str,
    /// `live`, `withdrawn`, `erased`; without a key `unavailable` if something is sealed for it,
    /// else `unknown`.
    state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    erases_at: Option<Rfc3339>,
    /// Until when nothing is stored about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<Rfc3339>,
    logs: Vec<SubjectInLog>,
}

/// Its events in one log.
#[derive(Serialize)]
struct SubjectInLog {
    log: String,
    events: u64,
    /// With a part that is sealed for it.
    sealed: u64,
    /// With its tag alone: they stay as they are when it is erased.
    clear: u64,
    first: Position,
    last: Position,
}

/// `GET /v1/subjects/{subject}`.
pub(crate) async fn get(eraser: Arc<Eraser>, request: Box<Request>) -> Answer {
    let subject = request.segment(&SUBJECT_TAG)?;
    let (state, erases_at, until) = match eraser.keys()?.state_of(&subject) {
        None => ("unknown", None, None),
        Some((_, KeyState::Live)) => ("live", None, None),
        Some((_, KeyState::Withdrawn { erases_at_us })) => {
            ("withdrawn", Some(Rfc3339(erases_at_us)), None)
        }
        Some((_, KeyState::Erased { fence_until_us })) => {
            ("erased", None, Some(Rfc3339(fence_until_us)))
        }
    };
    let all = eraser.host.node.all().into_iter().filter(|(name, _)| name != SYSTEM_LOG);
    let (all, named): (Vec<_>, String) = (all.collect(), subject.clone());
    let mut job = Job::begin(&eraser.host, &request.payer)?;
    let counted = job.long(move |mut work| {
        let in_logs = all.into_iter().map(|(name, log)| count(name, &log, &named, &mut work));
        in_logs.collect::<Result<Vec<_>, ReadError>>()
    });
    let logs: Vec<SubjectInLog> = counted.await??.into_iter().flatten().collect();
    let has_lost_its_key = state == "unknown" && logs.iter().any(|log| log.sealed > 0);
    let state = if has_lost_its_key { "unavailable" } else { state };
    let subject = &subject;
    Ok(Response::of(200, &SubjectDocument { subject, state, erases_at, until, logs }))
}

fn count(
    name: String,
    log: &Log,
    subject: &str,
    work: &mut Work,
) -> Result<Option<SubjectInLog>, ReadError> {
    let snapshot = log.snapshot();
    let mut events = snapshot.read_kept(&Query::item(&[], &[subject]), Order::Ascending);
    events.bound(std::mem::take(work));
    let mut counted = SubjectInLog { log: name, events: 0, sealed: 0, clear: 0, first: 0, last: 0 };
    while let Some(event) = events.next()? {
        if event.event_type() == SUBJECT_ERASED {
            continue;
        }
        let number = event.tags().position(|tag| tag == subject);
        let is_sealed = event.sealed_parts().any(|part| Some(usize::from(part.tag)) == number);
        counted.events += 1;
        counted.sealed += u64::from(is_sealed);
        counted.clear += u64::from(!is_sealed);
        counted.last = event.position();
        if counted.first == 0 {
            counted.first = counted.last;
        }
    }
    *work = events.work().clone();
    Ok((counted.events > 0).then_some(counted))
}
