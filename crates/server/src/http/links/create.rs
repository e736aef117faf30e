//! `POST /api/urls`.

use super::{admit, body, bulk, client_of, host_of, json, live, refusal, target};
use crate::http::append::{commit_on, digest, idempotency_key};
use crate::http::params::{Params, content_type, expect_identity, expect_json, negotiate};
use crate::http::problem::{self, Problem, of_fault};
use crate::http::{Answer, JSON, NDJSON, Request, Response, Shell};
use std::sync::Arc;
use wellspring_log::RequestKey;
use wellspring_types::limits;
use wellspring_views::links::{Code, Command, Create, Folded, Outcome};

/// Makes a link, or hands over to the bulk.
pub(crate) async fn create(shell: Arc<Shell>, mut request: Request) -> Answer {
    Params::of(&request, &[])?;
    negotiate(&request, &[JSON])?;
    if content_type(&request) == NDJSON {
        expect_identity(&request)?;
        // Each batch gets a key of its own: this one and a number behind it.
        let key = idempotency_key(&request, limits::MAX_REQUEST_KEY_BYTES - 15)?;
        return bulk::create(shell, request, key).await;
    }
    let key = idempotency_key(&request, limits::MAX_REQUEST_KEY_BYTES)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(target::url_required());
    }
    expect_json(&request)?;
    let host = host_of(&request);
    let create = parse(&shell, host, &body)?;
    admit(&shell, client_of(&shell, &request))?;
    let key = key.map(|key| RequestKey { key, digest: digest(&body) });
    let live = live(&shell)?;
    let commands = [Command::Create(create)];
    let executed = live.execute(&commands, key, commit_on(&shell, &request)).await?;
    if let Some(refused) = executed.refused {
        return Err(refusal::of_refusal(refused));
    }
    let (status, code) = match executed.outcomes.last().and_then(|outcome| made(*outcome)) {
        Some(Made::Now(code)) => (201, code),
        Some(Made::Before(code)) => (200, code),
        None => return Err(another_request()),
    };
    let mut out = Vec::with_capacity(256);
    push(&mut out, live.folded(), code, &shell.link_settings.base(host))?;
    let answer = Response::json(status, out).with("location", format!("/api/urls/{code}"));
    Ok(answer.at(live.position()))
}

/// Reads and checks one link to make.
pub(super) fn parse(
    shell: &Shell,
    host: Option<&str>,
    body: &[u8],
) -> Result<Create, Box<Problem>> {
    let create =
        body::read_create(body, shell.clock.wall_us()).map_err(|fault| of_fault(&fault, body))?;
    target::check(&shell.link_settings, host, &create.url)?;
    Ok(create)
}

/// A link that a create came to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Made {
    /// It is new.
    Now(Code),
    /// It was there.
    Before(Code),
}

/// The link of a create's outcome; `None` if it is the outcome of something else.
pub(super) fn made(outcome: Outcome) -> Option<Made> {
    match outcome {
        Outcome::Created(code) => Some(Made::Now(code)),
        Outcome::Existing(code) => Some(Made::Before(code)),
        Outcome::Changed(_) | Outcome::Deleted(_) => None,
    }
}

/// The answer to a key under which something else than links was appended.
pub(super) fn another_request() -> Box<Problem> {
    problem::KEY_REUSED.because("the key was used with a request that made no link")
}

/// Appends a link that has just been made.
pub(super) fn push(
    out: &mut Vec<u8>,
    folded: Option<&Folded>,
    code: Code,
    base: &str,
) -> Result<(), Box<Problem>> {
    let details = folded.and_then(|folded| folded.details(code));
    let details = details.ok_or_else(|| problem::INTERNAL.because("the link is not folded"))?;
    json::push_link(out, &details, base);
    Ok(())
}
