//! Creating, listing and dropping logs.

use super::params::{CONFIRM, LOG};
use std::sync::Arc;
use wellspring_host::http::fresh::{freshen, freshen_all};
use wellspring_host::http::work::{Job, elsewhere};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::node::NodeError;
use wellspring_host::wire::json::{push_string, push_u64};
use wellspring_host::wire::problem;
use wellspring_log::{Log, ReadError, Work};

/// Types and tags are counted up to this number: a list of logs must not read them all.
const MOST_TERMS: usize = 10_000;

/// `GET /v1/logs`: those that the caller may read.
pub(crate) async fn list(host: Arc<Host>, request: Box<Request>) -> Answer {
    let mut job = Job::begin(&host, &request.payer)?;
    let all = host.node.all().into_iter();
    let visible: Vec<_> = all.filter(|(name, _)| request.principal.may_read(name)).collect();
    freshen_all(&request, &visible).await?;
    let out = job.long(move |mut work| -> Result<Vec<u8>, ReadError> {
        let mut out = b"{\"logs\":[".to_vec();
        for (i, (name, log)) in visible.into_iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            push_log(&mut out, &name, &log, &mut work)?;
        }
        out.extend_from_slice(b"]}");
        Ok(out)
    });
    Ok(Response::json(200, out.await??))
}

/// `GET /v1/logs/{log}`.
pub(crate) async fn get(host: Arc<Host>, request: Box<Request>) -> Answer {
    let name = request.segment(&LOG)?;
    let log = host.node.get(&name).ok_or(NodeError::NotFound)?;
    freshen(&request, &log).await?;
    let job = Job::begin(&host, &request.payer)?;
    describe(job, name, log, 200).await
}

/// `PUT /v1/logs/{log}`.
pub(crate) async fn create(host: Arc<Host>, request: Box<Request>) -> Answer {
    let name = request.segment(&LOG)?;
    let wanted = name.clone();
    let node = Arc::clone(&host);
    let is_new = elsewhere(move || node.node.create(&wanted)).await??;
    let log = host.node.get(&name).ok_or(NodeError::NotFound)?;
    let job = Job::uncharged(&host);
    describe(job, name, log, if is_new { 201 } else { 200 }).await
}

/// `DELETE /v1/logs/{log}?confirm={log}`.
pub(crate) async fn delete(host: Arc<Host>, request: Box<Request>) -> Answer {
    let name = request.segment(&LOG)?;
    if host.node.get(&name).is_none() {
        return Err(NodeError::NotFound.into());
    }
    if request.query(&CONFIRM)? != Some(&name) {
        return Err(problem::INVALID
            .because(format!("this deletes every event of {name}; add ?confirm={name} to confirm"))
            .field("confirm"));
    }
    let mut out = b"{\"dropped\":".to_vec();
    push_string(&mut out, &name);
    out.push(b'}');
    elsewhere(move || host.node.drop_log(&name)).await??;
    Ok(Response::json(200, out))
}

async fn describe(mut job: Job, name: String, log: Log, status: u16) -> Answer {
    let head = log.head();
    let out = job.long(move |mut work| {
        let mut out = Vec::new();
        push_log(&mut out, &name, &log, &mut work).map(|()| out)
    });
    Ok(Response::json(status, out.await??).at(head))
}

fn push_log(out: &mut Vec<u8>, name: &str, log: &Log, work: &mut Work) -> Result<(), ReadError> {
    let (stats, snapshot) = (log.stats(), log.snapshot());
    let types = snapshot.types_page(None, MOST_TERMS + 1, work)?.len();
    let tags = snapshot.tags("", None, MOST_TERMS + 1, work)?.len();
    out.extend_from_slice(b"{\"name\":");
    push_string(out, name);
    let figures: [(&[u8], u64); 5] = [
        (b",\"head\":", snapshot.head()),
        (b",\"disk_bytes\":", stats.disk_bytes),
        (b",\"segments\":", stats.segments),
        (b",\"types\":", types.min(MOST_TERMS) as u64),
        (b",\"tags\":", tags.min(MOST_TERMS) as u64),
    ];
    for (field, number) in figures {
        out.extend_from_slice(field);
        push_u64(out, number);
    }
    for (field, more) in
        [(&b",\"more_types\":"[..], types > MOST_TERMS), (b",\"more_tags\":", tags > MOST_TERMS)]
    {
        out.extend_from_slice(field);
        out.extend_from_slice(if more { b"true" } else { b"false" });
    }
    out.push(b'}');
    Ok(())
}
