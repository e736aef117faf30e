//! Creating, listing and dropping logs.

use super::params::{CONFIRM, LOG};
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::http::required_freshness::{freshen, freshen_all};
use wellspring_host::http::work::{Job, elsewhere};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::problem;
use wellspring_log::{Log, ReadError, Work};
use wellspring_types::Position;

/// Types and tags are counted up to this number: a list of logs must not read them all.
const MOST_TERMS: usize = 10_000;

/// A log.
#[derive(Serialize)]
struct LogDocument {
    name: String,
    /// Which history it has; absent in a copy that does not know yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    history: Option<String>,
    /// Position of its first event, 1 unless the beginning was removed.
    first: Position,
    head: Position,
    disk_bytes: u64,
    segments: u64,
    types: usize,
    tags: usize,
    /// Whether there are more types than were counted.
    more_types: bool,
    /// Whether there are more tags than were counted.
    more_tags: bool,
}

/// Several logs.
#[derive(Serialize)]
struct LogsDocument {
    logs: Vec<LogDocument>,
}

/// A deleted log.
#[derive(Serialize)]
struct DroppedLog {
    dropped: String,
}

/// `GET /v1/logs`: those that the caller may read.
pub(crate) async fn list(host: Arc<Host>, request: Box<Request>) -> Answer {
    let mut job = Job::begin(&host, &request.payer)?;
    let all = host.node.all().into_iter();
    let visible: Vec<_> = all.filter(|(name, _)| request.principal.may_read(name)).collect();
    freshen_all(&request, &visible).await?;
    let documents = job.long(move |mut work| {
        let documents = visible.into_iter().map(|(name, log)| document_of(name, &log, &mut work));
        documents.collect::<Result<Vec<_>, ReadError>>()
    });
    Ok(Response::of(200, &LogsDocument { logs: documents.await?? }))
}

/// `GET /v1/logs/{log}`.
pub(crate) async fn get(host: Arc<Host>, request: Box<Request>) -> Answer {
    let name = request.segment(&LOG)?;
    let log = host.node.get(&name).ok_or_else(|| problem::no_such_log(&name))?;
    freshen(&request, &log).await?;
    let job = Job::begin(&host, &request.payer)?;
    describe(job, name, log, 200).await
}

/// `PUT /v1/logs/{log}`.
pub(crate) async fn create(host: Arc<Host>, request: Box<Request>) -> Answer {
    let name = request.segment(&LOG)?;
    let wanted = name.clone();
    let node = Arc::clone(&host);
    let is_new = request.effects.settle(elsewhere(move || node.node.create(&wanted)).await?)?;
    let log = host.node.get(&name).ok_or_else(|| problem::no_such_log(&name))?;
    let job = Job::uncharged(&host);
    describe(job, name, log, if is_new { 201 } else { 200 }).await
}

/// `DELETE /v1/logs/{log}?confirm={log}`.
pub(crate) async fn delete(host: Arc<Host>, request: Box<Request>) -> Answer {
    let name = request.segment(&LOG)?;
    if host.node.get(&name).is_none() {
        return Err(problem::no_such_log(&name));
    }
    if request.query(&CONFIRM)? != Some(&name) {
        return Err(problem::INVALID
            .because(format!("this deletes every event of {name}; add ?confirm={name} to confirm"))
            .field("confirm"));
    }
    let dropped = name.clone();
    request.effects.settle(elsewhere(move || host.node.drop_log(&name)).await?)?;
    Ok(Response::of(200, &DroppedLog { dropped }))
}

async fn describe(mut job: Job, name: String, log: Log, status: u16) -> Answer {
    let head = log.head();
    let document = job.long(move |mut work| document_of(name, &log, &mut work));
    Ok(Response::of(status, &document.await??).at(head))
}

fn document_of(name: String, log: &Log, work: &mut Work) -> Result<LogDocument, ReadError> {
    let (stats, snapshot) = (log.stats(), log.snapshot());
    let types = snapshot.types_page(None, MOST_TERMS + 1, work)?.len();
    let tags = snapshot.tags("", None, MOST_TERMS + 1, work)?.len();
    Ok(LogDocument {
        name,
        history: log.history().map(|history| history.to_string()),
        first: snapshot.first(),
        head: snapshot.head(),
        disk_bytes: stats.disk_bytes,
        segments: stats.segments,
        types: types.min(MOST_TERMS),
        tags: tags.min(MOST_TERMS),
        more_types: types > MOST_TERMS,
        more_tags: tags > MOST_TERMS,
    })
}
