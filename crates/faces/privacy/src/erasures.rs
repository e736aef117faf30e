//! Requests about erasures.

use crate::carry_out::{Cancellation, Eraser};
use crate::erasure::{self, Erasure, ErasureStage};
use crate::facts::ErasedInLog;
use crate::problems::{ERASURE_BEGUN, SUBJECT_UNKNOWN};
use crate::subject::SUBJECT_TAG;
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::contract::Segment;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::random;
use wellspring_host::wire::json::{
    Cursor, ReadResult, Rfc3339, document, missing, once, rule, unknown,
};
use wellspring_host::wire::param::{IntegerOr, Param, Text, Values};
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_types::{Position, hex};

/// Most subjects of one erasure.
pub(crate) const MAX_SUBJECTS: usize = 10_000;
const MAX_BODY_BYTES: usize = 2 << 20;
const MAX_GRACE_S: u64 = 366 * 86_400;

pub(crate) static CONFIRM: Param<Text> = Param::text(
    "confirm",
    "The data subject again, as confirmation: nothing brings its data back.",
);
pub(crate) static GRACE_S: Param<IntegerOr> = Param::integer(
    "grace_s",
    "How long the erasure can be cancelled, in seconds; nothing shows the data meanwhile.",
    0..=MAX_GRACE_S,
)
.or(0);
pub(crate) static ERASURE: Segment<String> = Segment {
    name: "erasure",
    what: "Id of the erasure.",
    values: Values::Matching("^[0-9a-f]{16}$"),
    read: |text| {
        let is_id = text.len() == 16 && hex::read::<8>(text).is_some();
        let no_id = || problem::NOT_FOUND.because(format!("{text:?} is not the id of an erasure"));
        is_id.then(|| text.to_owned()).ok_or_else(no_id)
    },
};

/// An erasure.
#[derive(Serialize)]
struct ErasureDocument<'a> {
    erasure: &'a str,
    state: &'static str,
    subjects: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<&'a str>,
    requested_at: Rfc3339,
    erases_at: Rfc3339,
    #[serde(skip_serializing_if = "Option::is_none")]
    completed_at: Option<Rfc3339>,
    /// Ids of the keys that were destroyed; each commits to its key.
    keys: Vec<String>,
    logs: &'a [ErasedInLog],
}

/// Several.
#[derive(Serialize)]
struct ErasuresDocument<'a> {
    erasures: Vec<ErasureDocument<'a>>,
}

impl<'a> ErasureDocument<'a> {
    fn of(id: &'a str, erasure: &'a Erasure) -> ErasureDocument<'a> {
        ErasureDocument {
            erasure: id,
            state: erasure.stage.word(),
            subjects: &erasure.subjects,
            by: erasure.by.as_deref(),
            requested_at: Rfc3339(erasure.requested_at_us),
            erases_at: Rfc3339(erasure.erases_at_us),
            completed_at: erasure.completed_at_us.map(Rfc3339),
            keys: erasure.keys.iter().map(|key| hex::digits(&key.0)).collect(),
            logs: &erasure.logs,
        }
    }
}

/// `DELETE /v1/subjects/{subject}`.
pub(crate) async fn erase_one(eraser: Arc<Eraser>, request: Box<Request>) -> Answer {
    let subject = request.segment(&SUBJECT_TAG)?;
    if request.query(&CONFIRM)? != Some(&*subject) {
        let detail = format!(
            "this erases everything that is sealed for {subject}, in backups too; add \
             ?confirm={subject} to confirm"
        );
        return Err(problem::INVALID.because(detail).field("confirm"));
    }
    let grace_s = request.query(&GRACE_S)?;
    erase(eraser, &request, vec![subject], grace_s).await
}

/// `POST /v1/erasures`.
pub(crate) async fn erase_many(eraser: Arc<Eraser>, mut request: Box<Request>) -> Answer {
    expect_json(&request)?;
    let body = request.body.read(MAX_BODY_BYTES).await?;
    let read = document(&body, read_request);
    let (subjects, grace_s) = read.map_err(|fault| of_fault(&fault, &body))?;
    erase(eraser, &request, subjects, grace_s).await
}

fn read_request(cursor: &mut Cursor<'_>) -> ReadResult<(Vec<String>, u64)> {
    let start = cursor.at();
    let (mut subjects, mut grace_s) = (None, None);
    cursor.object(|key, value| {
        let at = value.at();
        match key {
            "subjects" => once(&mut subjects, at, read_subjects(value)?),
            "grace_s" => match value.u64()? {
                seconds @ ..=MAX_GRACE_S => once(&mut grace_s, at, seconds),
                _ => rule(at, format!("must be at most {MAX_GRACE_S}")),
            },
            _ => unknown(at, "subjects, grace_s"),
        }
    })?;
    match subjects {
        Some(subjects) => Ok((subjects, grace_s.unwrap_or(0))),
        None => missing("subjects", start),
    }
}

fn read_subjects(value: &mut Cursor<'_>) -> ReadResult<Vec<String>> {
    let at = value.at();
    let mut subjects: Vec<String> = Vec::new();
    value.array(|number, value| {
        if number == MAX_SUBJECTS {
            return rule(value.at(), format!("is one of more than {MAX_SUBJECTS}"));
        }
        subjects.push(value.string()?.into_owned());
        Ok(())
    })?;
    subjects.sort_unstable();
    subjects.dedup();
    if subjects.is_empty() { rule(at, "must name at least one data subject") } else { Ok(subjects) }
}

async fn erase(
    eraser: Arc<Eraser>,
    request: &Request,
    mut subjects: Vec<String>,
    grace_s: u64,
) -> Answer {
    let keys = eraser.keys()?;
    if let Some(unknown) = subjects.iter().find(|subject| keys.state_of(subject).is_none()) {
        let detail = format!(
            "there is no key for {unknown}: nothing is sealed for it, or another store of keys is \
             in place; nothing was done"
        );
        return Err(SUBJECT_UNKNOWN.because(detail).field("subject"));
    }
    let erases_at_us = eraser.host.wall_us().saturating_add(grace_s * 1_000_000);
    let open = eraser.open_ones();
    let is_repeated = |erasure: &(&String, &Erasure)| {
        erasure.1.subjects == subjects && erasure.1.erases_at_us <= erases_at_us
    };
    if let Some((id, _)) = open.iter().find(is_repeated) {
        return accepted(eraser, id.clone()).await;
    }
    let is_erased =
        |subject: &String| keys.state_of(subject).is_some_and(|(_, state)| state.is_erased());
    subjects.retain(|subject| !is_erased(subject));
    if subjects.is_empty() {
        let detail = "everything that was sealed for what the request names is erased already; GET \
                      /v1/subjects/{subject} says until when nothing new is sealed for it";
        return Err(problem::SUBJECT_ERASED.because(detail).field("subject"));
    }
    let id = random::bytes::<8>().map_err(|error| problem::IO.because(error.to_string()))?;
    let digits = hex::digits(&id);
    let key_of = |subject: &String| keys.state_of(subject).map(|(id, _)| id);
    let erasure = Erasure {
        keys: subjects.iter().filter_map(key_of).collect(),
        subjects,
        by: request.principal.name().map(str::to_owned),
        requested_at_us: eraser.host.wall_us(),
        erases_at_us,
        ..Erasure::default()
    };
    let (doing, named, effects) = (Arc::clone(&eraser), digits.clone(), request.effects.clone());
    elsewhere(move || doing.request(&named, erasure, &effects)).await??;
    accepted(eraser, digits).await
}

async fn accepted(eraser: Arc<Eraser>, id: String) -> Answer {
    let mut response = answer(eraser, id).await?;
    response.status = 202;
    Ok(response)
}

/// The document of an erasure.
async fn answer(eraser: Arc<Eraser>, id: String) -> Answer {
    let (erasure, head) = find(&eraser, &id).await?;
    Ok(Response::of(200, &ErasureDocument::of(&id, &erasure)).at(head))
}

/// The erasure of this id, and a position up to which the log was read.
async fn find(eraser: &Eraser, id: &str) -> Result<(Erasure, Position), Box<Problem>> {
    let system = eraser.system()?;
    let head = system.head();
    let named = id.to_owned();
    let mut found = elsewhere(move || erasure::read(&system, Some(&named))).await??;
    let missing = || problem::NOT_FOUND.because(format!("there is no erasure {id}"));
    Ok((found.remove(id).ok_or_else(missing)?, head))
}

/// `GET /v1/erasures/{erasure}`.
pub(crate) async fn get(eraser: Arc<Eraser>, request: Box<Request>) -> Answer {
    let id = request.segment(&ERASURE)?;
    answer(eraser, id).await
}

/// `GET /v1/erasures`.
pub(crate) async fn list(eraser: Arc<Eraser>, _request: Box<Request>) -> Answer {
    let open = eraser.open_ones();
    let erasures = open.iter().map(|(id, erasure)| ErasureDocument::of(id, erasure)).collect();
    Ok(Response::of(200, &ErasuresDocument { erasures }))
}

/// `POST /v1/erasures/{erasure}/cancel`.
pub(crate) async fn cancel(eraser: Arc<Eraser>, request: Box<Request>) -> Answer {
    let id = request.segment(&ERASURE)?;
    let (doing, named, effects) = (Arc::clone(&eraser), id.clone(), request.effects.clone());
    let cancelled = elsewhere(move || doing.cancel(&named, &effects)).await??;
    let (erasure, head) = find(&eraser, &id).await?;
    if cancelled == Cancellation::TooLate && erasure.stage != ErasureStage::Cancelled {
        let state = erasure.stage.word();
        let detail = format!("the erasure {id} is {state}; it cannot be cancelled");
        return Err(ERASURE_BEGUN.because(detail));
    }
    Ok(Response::of(200, &ErasureDocument::of(&id, &erasure)).at(head))
}
