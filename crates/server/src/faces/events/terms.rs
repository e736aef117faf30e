//! Head, types and tags of a log.

use crate::http::content::{freshen, negotiate};
use crate::http::work::Job;
use crate::http::{Answer, Host, JSON, Request, Response};
use crate::wire::json::{push_string, push_u64};
use crate::wire::params::{Params, page_limit};
use crate::wire::problem::Problem;
use std::sync::Arc;
use wellspring_log::{Snapshot, TermCount};

/// Tags and types in an answer if the client does not say, and at most.
const DEFAULT_TAGS: u64 = 100;
const DEFAULT_TYPES: u64 = 1_000;
pub(crate) const MAX_TERMS: u64 = 10_000;

async fn fresh(request: &Request, known: &[&str]) -> Result<(Params, Snapshot), Box<Problem>> {
    let params = request.params(known)?;
    negotiate(request, &[JSON])?;
    let log = request.log()?;
    freshen(request, &params, log).await?;
    Ok((params, log.snapshot()))
}

/// `GET /v1/head`.
pub(crate) async fn head(_host: Arc<Host>, request: Box<Request>) -> Answer {
    let (_, snapshot) = fresh(&request, &[]).await?;
    let mut out = b"{\"head\":".to_vec();
    push_u64(&mut out, snapshot.head());
    out.push(b'}');
    Ok(Response::json(200, out).at(snapshot.head()))
}

/// `GET /v1/types`.
pub(crate) async fn types(host: Arc<Host>, request: Box<Request>) -> Answer {
    let mut job = Job::begin(&host, &request.payer)?;
    let (params, snapshot) = fresh(&request, &["after", "limit"]).await?;
    let limit = page_limit(params.number("limit")?, DEFAULT_TYPES, MAX_TERMS)? as usize;
    let after = params.one("after")?.map(str::to_owned);
    let head = snapshot.head();
    // One more is asked for, so that `next` is null exactly at the end.
    let types =
        job.long(move |mut work| snapshot.types_page(after.as_deref(), limit + 1, &mut work));
    let types = types.await??;
    Ok(Response::json(200, page_of(("types", "type"), &types, limit)).at(head))
}

/// `GET /v1/tags`.
pub(crate) async fn tags(host: Arc<Host>, request: Box<Request>) -> Answer {
    let mut job = Job::begin(&host, &request.payer)?;
    let (params, snapshot) = fresh(&request, &["prefix", "after", "limit"]).await?;
    let limit = page_limit(params.number("limit")?, DEFAULT_TAGS, MAX_TERMS)? as usize;
    let prefix = params.one("prefix")?.unwrap_or_default().to_owned();
    let after = params.one("after")?.map(str::to_owned);
    let head = snapshot.head();
    let tags =
        job.long(move |mut work| snapshot.tags(&prefix, after.as_deref(), limit + 1, &mut work));
    let tags = tags.await??;
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
