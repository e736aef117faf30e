//! Head, types and tags of a log.

use super::params::{PREFIX, TAGS_AFTER, TAGS_LIMIT, TYPES_AFTER, TYPES_LIMIT};
use std::sync::Arc;
use wellspring_host::http::fresh::freshen;
use wellspring_host::http::work::Job;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::json::{push_string, push_u64};
use wellspring_host::wire::problem::Problem;
use wellspring_log::{Snapshot, TermCount};

async fn fresh(request: &Request) -> Result<Snapshot, Box<Problem>> {
    let log = request.log()?;
    freshen(request, log).await?;
    Ok(log.snapshot())
}

/// `GET /v1/head`.
pub(crate) async fn head(_host: Arc<Host>, request: Box<Request>) -> Answer {
    let snapshot = fresh(&request).await?;
    let mut out = b"{\"head\":".to_vec();
    push_u64(&mut out, snapshot.head());
    out.push(b'}');
    Ok(Response::json(200, out).at(snapshot.head()))
}

/// `GET /v1/types`.
pub(crate) async fn types(host: Arc<Host>, request: Box<Request>) -> Answer {
    let mut job = Job::begin(&host, &request.payer)?;
    let snapshot = fresh(&request).await?;
    let limit = request.query(&TYPES_LIMIT)? as usize;
    let after = request.query(&TYPES_AFTER)?.map(str::to_owned);
    let head = snapshot.head();
    // One more is read, so that `next` is null exactly at the end.
    let types =
        job.long(move |mut work| snapshot.types_page(after.as_deref(), limit + 1, &mut work));
    let types = types.await??;
    Ok(Response::json(200, page_of(("types", "type"), &types, limit)).at(head))
}

/// `GET /v1/tags`.
pub(crate) async fn tags(host: Arc<Host>, request: Box<Request>) -> Answer {
    let mut job = Job::begin(&host, &request.payer)?;
    let snapshot = fresh(&request).await?;
    let limit = request.query(&TAGS_LIMIT)? as usize;
    let prefix = request.query(&PREFIX)?.unwrap_or_default().to_owned();
    let after = request.query(&TAGS_AFTER)?.map(str::to_owned);
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
