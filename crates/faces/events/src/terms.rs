//! Head, types and tags of a log.

use super::params::{PREFIX, TAGS_AFTER, TAGS_LIMIT, TYPES_AFTER, TYPES_LIMIT};
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::http::required_freshness::freshen;
use wellspring_host::http::work::Job;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::problem::Problem;
use wellspring_log::{Snapshot, TermCount};
use wellspring_types::Position;

/// The head of a log.
#[derive(Serialize)]
struct HeadDocument {
    head: Position,
    /// Position of the first event, 1 unless the beginning was removed.
    first: Position,
}

/// A type, and of how many events it is.
#[derive(Serialize)]
struct TypeCount<'a> {
    #[serde(rename = "type")]
    name: &'a str,
    count: u64,
}

/// Some types, and after which the next page begins.
#[derive(Serialize)]
struct TypesPage<'a> {
    types: Vec<TypeCount<'a>>,
    next: Option<&'a str>,
}

/// A tag, and how many events have it.
#[derive(Serialize)]
struct TagCount<'a> {
    tag: &'a str,
    count: u64,
}

/// Some tags, and after which the next page begins.
#[derive(Serialize)]
struct TagsPage<'a> {
    tags: Vec<TagCount<'a>>,
    next: Option<&'a str>,
}

async fn fresh(request: &Request) -> Result<Snapshot, Box<Problem>> {
    let log = request.log()?;
    freshen(request, log).await?;
    Ok(log.snapshot())
}

/// `GET /v1/head`.
pub(crate) async fn head(_host: Arc<Host>, request: Box<Request>) -> Answer {
    let snapshot = fresh(&request).await?;
    let (head, first) = (snapshot.head(), snapshot.first());
    Ok(Response::of(200, &HeadDocument { head, first }).at(head))
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
    let (shown, next) = page_of(&types, limit);
    let counts = shown.iter().map(|term| TypeCount { name: &term.term, count: term.count });
    Ok(Response::of(200, &TypesPage { types: counts.collect(), next }).at(head))
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
    let (shown, next) = page_of(&tags, limit);
    let counts = shown.iter().map(|term| TagCount { tag: &term.term, count: term.count });
    Ok(Response::of(200, &TagsPage { tags: counts.collect(), next }).at(head))
}

/// The first `limit` terms, and the `after` of the next page if there are more.
fn page_of(terms: &[TermCount], limit: usize) -> (&[TermCount], Option<&str>) {
    let shown = &terms[..terms.len().min(limit)];
    (shown, shown.last().filter(|_| terms.len() > limit).map(|last| &*last.term))
}
