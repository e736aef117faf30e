//! `POST /api/urls`.

use super::LinkFace;
use super::body::{self, LinkRequest};
use super::sealed::{LinkOpener, LinkSealer};
use super::{Allowance, bulk, host_of, json, refusal, target};
use crate::view::event::CREATED;
use crate::view::{Code, Command, Create, Folded, LinkOutcome, Naming};
use std::sync::Arc;
use wellspring_host::http::content::{content_type, expect_identity, expect_json};
use wellspring_host::http::idempotency::digest;
use wellspring_host::http::idempotency::{KeyUse, idempotency_key};
use wellspring_host::http::subjects::subject_of;
use wellspring_host::http::{Answer, NDJSON, Request, Response};
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_log::{Log, RequestKey};

/// Creates a link, or hands over to the bulk.
pub(crate) async fn create(links: Arc<LinkFace>, mut request: Box<Request>) -> Answer {
    if content_type(&request) == NDJSON {
        expect_identity(&request)?;
        // Each batch gets a key of its own: this one with a numeric suffix.
        let key = idempotency_key(&request, KeyUse::Batches)?;
        return bulk::create(links, request, key).await;
    }
    let key = idempotency_key(&request, KeyUse::Request)?;
    let body = request.body.read(body::MAX_BODY_BYTES).await?;
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(target::url_required());
    }
    expect_json(&request)?;
    let host = host_of(&request)?;
    let asked = parse(&body)?;
    let mut sealer = LinkSealer::new(&links.host, subject_of(&request)?)?;
    let key = key.map(|key| RequestKey { key, digest: sealer.digest(digest(&body)) });
    let live = links.live()?;
    let allowance = Allowance { links: &links, client: request.client };
    let again = seen(&request.effects, request.log()?, key.as_ref())?;
    // A retry is independent of the time and of the settings, and it is free.
    let commands = if again {
        Vec::new()
    } else {
        let create = judge(&links, host, &asked, &mut sealer)?;
        if asked.naming() == Naming::Deterministic {
            // Its search is charged; finding an existing link counts as no link.
            request.payer.reads()?;
        }
        allowance.take(1)?;
        sealer.persist(&links.host).await?;
        vec![Command::Create(create)]
    };
    let executed =
        live.execute(&request.effects, &commands, key, links.host.commit_on(&request)).await?;
    request.payer.work(executed.decided_us);
    if let Some(refused) = executed.refused {
        return Err(refusal::of_refusal(refused));
    }
    let replayed = executed.appended.is_some_and(|appended| appended.replayed);
    let made = executed.outcomes.last().and_then(|outcome| made(*outcome));
    if !again && (replayed || matches!(made, Some(CreateOutcome::Before(_)))) {
        allowance.put_back(1);
    }
    let (status, code) = match made {
        Some(CreateOutcome::Now(code)) => (201, code),
        Some(CreateOutcome::Before(code)) => (200, code),
        None => return Err(another_request()),
    };
    let mut out = Vec::with_capacity(256);
    let opener = LinkOpener::of(&links, &request)?;
    push(&mut out, live.folded(), code, &links.settings.base(host), &opener)?;
    let answer = Response::json(status, out).with("location", format!("/api/urls/{code}"));
    Ok(answer.at(live.position()))
}

/// Parses one link to create.
pub(super) fn parse(body: &[u8]) -> Result<LinkRequest, Box<Problem>> {
    body::read_create(body).map_err(|fault| of_fault(&fault, body))
}

/// Checks one link to create against the current time and settings, and seals it.
pub(super) fn judge(
    links: &LinkFace,
    host: Option<&str>,
    asked: &LinkRequest,
    sealer: &mut LinkSealer,
) -> Result<Create, Box<Problem>> {
    target::check(&links.settings, host, asked.url())?;
    target::check_nodes(&links.host.node, asked.url())?;
    if asked.naming() == Naming::Deterministic && sealer.has_subject() {
        let detail = "deterministic cannot be combined with Wellspring-Subject: the code would be \
                      a digest of the URL, and stay";
        return Err(problem::INVALID.because(detail).field("deterministic"));
    }
    let mut create = asked.at(links.host.clock.wall_us())?;
    create.sealed = sealer.seal(CREATED, &create.url, &create.tags)?;
    Ok(create)
}

/// Whether a request with this key has been executed: then this one is a retry.
pub(super) fn seen(
    effects: &Effects,
    log: &Log,
    key: Option<&RequestKey>,
) -> Result<bool, Box<Problem>> {
    let Some(key) = key else { return Ok(false) };
    let found = log.find_request(key).map_err(|error| effects.refused(error))?;
    Ok(found.is_some())
}

/// The link of a create.
#[derive(Debug, Clone, Copy)]
pub(super) enum CreateOutcome {
    /// It is new.
    Now(Code),
    /// It existed.
    Before(Code),
}

/// The link of a create's outcome; `None` for another outcome.
pub(super) fn made(outcome: LinkOutcome) -> Option<CreateOutcome> {
    match outcome {
        LinkOutcome::Created(code) => Some(CreateOutcome::Now(code)),
        LinkOutcome::Existing(code) => Some(CreateOutcome::Before(code)),
        LinkOutcome::Changed(_) | LinkOutcome::Deleted(_) | LinkOutcome::Clicked(_) => None,
    }
}

/// The answer to a key that was used for something other than links.
pub(super) fn another_request() -> Box<Problem> {
    problem::KEY_REUSED.because("the idempotency key was used with a request that created no link")
}

/// Appends a newly created link.
pub(super) fn push(
    out: &mut Vec<u8>,
    folded: Option<&Folded>,
    code: Code,
    base: &str,
    opener: &LinkOpener,
) -> Result<(), Box<Problem>> {
    let details = folded.and_then(|folded| folded.details(code));
    let details = details.ok_or_else(|| problem::INTERNAL.because("the link is not folded"))?;
    json::push_link(out, &opener.disclose(details)?, base);
    Ok(())
}
