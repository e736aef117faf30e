//! Health, figures, head, types and tags.

use super::elsewhere::elsewhere;
use super::json::{push_string, push_u64};
use super::params::{Params, freshen, negotiate, page_limit};
use super::problem::{self, Problem};
use super::{Answer, JSON, Request, Response, Shell};
use crate::stats::{self, prometheus};
use crate::view::{Progress, State};
use std::sync::Arc;
use wellspring_log::{Snapshot, TermCount};

/// Tags and types in an answer if the client does not say, and at most.
const DEFAULT_TAGS: u64 = 100;
const DEFAULT_TYPES: u64 = 1_000;
const MAX_TERMS: u64 = 10_000;

/// `GET /health`, `GET /health/live`.
pub(crate) async fn health(_shell: Arc<Shell>, _request: Request) -> Answer {
    Ok(Response::json(200, &b"{\"status\":\"healthy\"}"[..]))
}

/// `GET /health/ready`.
pub(crate) async fn ready(shell: Arc<Shell>, _request: Request) -> Answer {
    if shell.is_stopping() {
        return Err(problem::SHUTTING_DOWN.because("the server is stopping"));
    }
    for (name, log) in shell.node.all() {
        if let Some(reason) = log.closed_reason() {
            return Err(problem::LOG_CLOSED.because(format!("{name} takes no appends: {reason}")));
        }
        if shell.node.account(&name).is_some_and(|account| account.full) {
            let detail = format!("{name} takes nothing in: no room left on the device");
            return Err(problem::STORAGE_FULL.because(detail));
        }
    }
    for (log, view, progress) in shell.node.views() {
        if progress.state != State::Live {
            let Progress { position, head, .. } = progress;
            let detail = format!(
                "the view {view} of {log} does not answer yet: {position} of {head} events"
            );
            return Err(problem::VIEW_NOT_READY.because(detail));
        }
    }
    Ok(Response::json(200, &b"{\"status\":\"ready\"}"[..]))
}

/// `GET /metrics`.
pub(crate) async fn metrics(shell: Arc<Shell>, _request: Request) -> Answer {
    let text = elsewhere(move || prometheus::page(&stats::gather(&shell)));
    Ok(Response::text("text/plain; version=0.0.4; charset=utf-8", text.await?))
}

/// `GET /problems/{slug}`.
pub(crate) async fn problem(_shell: Arc<Shell>, request: Request) -> Answer {
    let Some(kind) = problem::ALL.iter().find(|kind| kind.slug == request.param) else {
        return Err(
            problem::NOT_FOUND.because(format!("{} is not a problem's name", request.param))
        );
    };
    let mut out = b"{\"type\":\"/problems/".to_vec();
    out.extend_from_slice(kind.slug.as_bytes());
    out.extend_from_slice(b"\",\"status\":");
    push_u64(&mut out, kind.status.into());
    out.extend_from_slice(b",\"title\":");
    push_string(&mut out, kind.title);
    out.push(b'}');
    Ok(Response::json(200, out))
}

async fn fresh(request: &Request, known: &[&str]) -> Result<(Params, Snapshot), Box<Problem>> {
    let params = Params::of(request, known)?;
    negotiate(request, &[JSON])?;
    let log = request.log()?;
    freshen(request, &params, log).await?;
    Ok((params, log.snapshot()))
}

/// `GET /v1/head`.
pub(crate) async fn head(_shell: Arc<Shell>, request: Request) -> Answer {
    let (_, snapshot) = fresh(&request, &[]).await?;
    let mut out = b"{\"head\":".to_vec();
    push_u64(&mut out, snapshot.head());
    out.push(b'}');
    Ok(Response::json(200, out).at(snapshot.head()))
}

/// `GET /v1/types`.
pub(crate) async fn types(_shell: Arc<Shell>, request: Request) -> Answer {
    let reads = request.payer.reads()?;
    let (params, snapshot) = fresh(&request, &["after", "limit"]).await?;
    let limit = page_limit(params.number("limit")?, DEFAULT_TYPES, MAX_TERMS)? as usize;
    let after = params.one("after")?.map(str::to_owned);
    let head = snapshot.head();
    // One more is asked for, so that `next` is null exactly at the end.
    let types = move || snapshot.types_page(after.as_deref(), limit + 1);
    let types = elsewhere(move || reads.timed(types)).await??;
    Ok(Response::json(200, page_of(("types", "type"), &types, limit)).at(head))
}

/// `GET /v1/tags`.
pub(crate) async fn tags(_shell: Arc<Shell>, request: Request) -> Answer {
    let reads = request.payer.reads()?;
    let (params, snapshot) = fresh(&request, &["prefix", "after", "limit"]).await?;
    let limit = page_limit(params.number("limit")?, DEFAULT_TAGS, MAX_TERMS)? as usize;
    let prefix = params.one("prefix")?.unwrap_or_default().to_owned();
    let after = params.one("after")?.map(str::to_owned);
    let head = snapshot.head();
    let tags = move || snapshot.tags(&prefix, after.as_deref(), limit + 1);
    let tags = elsewhere(move || reads.timed(tags)).await??;
    Ok(Response::json(200, page_of(("tags", "tag"), &tags, limit)).at(head))
}

/// The first `limit` terms, and the `after` of the next page if there are more.
fn page_of((all, one): (&str, &str), terms: &[TermCount], limit: usize) -> Vec<u8> {
    let shown = &terms[..terms.len().min(limit)];
    let mut out = b"{".to_vec();
    push_string(&mut out, all);
    out.push(b':');
    push_counts(&mut out, one, shown);
    out.extend_from_slice(b",\"next\":");
    match shown.last().filter(|_| terms.len() > limit) {
        Some(last) => push_string(&mut out, &last.term),
        None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
    out
}

fn push_counts(out: &mut Vec<u8>, name: &str, terms: &[TermCount]) {
    out.push(b'[');
    for (i, term) in terms.iter().enumerate() {
        out.extend_from_slice(if i > 0 { b",{" } else { b"{" });
        push_string(out, name);
        out.push(b':');
        push_string(out, &term.term);
        out.extend_from_slice(b",\"count\":");
        push_u64(out, term.count);
        out.push(b'}');
    }
    out.push(b']');
}
