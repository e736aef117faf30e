//! `POST /v1/project`: one read for all projections of a request.

use super::count_only::count;
use super::disclosure::Disclosure;
use super::fold::{Folding, fold};
use super::times::PositionsOfTimes;
use crate::view::{FoldEvent, Projections};
use std::sync::Arc;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::history;
use wellspring_host::http::idempotency::named_key;
use wellspring_host::http::required_freshness::freshen;
use wellspring_host::http::work::{Cost, Job};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::problem::of_fault;
use wellspring_log::{RecordView, StoredRequest};
use wellspring_types::{DataKind, limits};

/// Folds the requested projections.
pub(crate) async fn project(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    expect_json(&request)?;
    let body = request.body.read(limits::MAX_REQUEST_BYTES).await?;
    // Waits with the body, which is charged, and not with its parsed form.
    freshen(&request, request.log()?).await?;
    let cost = Cost::of_bytes(body.len());
    let parse =
        move || Projections::parse(&body).map(Arc::new).map_err(|fault| of_fault(&fault, &body));
    let mut job = Job::begin(&host, &request.payer)?;
    let projections = job.brief(cost, parse).await??;
    let log = request.log()?;
    history::check_reached(log, projections.after().unwrap_or(0)).await?;
    job.hold(2 * projections.memory_bytes())?;
    let cost = cost.max(Cost::of_terms(projections.term_count()));
    // Before the snapshot, which so shows what the earlier request has appended.
    let appended = match projections.key() {
        None => None,
        Some(key) => {
            let (log, key) = (log.clone(), named_key(&request, key.to_owned(), "key")?);
            job.brief(Cost::Cheap, move || log.request_with_key(&key)).await??
        }
    };
    let snapshot = log.snapshot();
    let head = snapshot.head();
    let times = PositionsOfTimes::find(&mut job, &snapshot, projections.times()).await?;
    let snapshot = times.of(snapshot);
    let after = times.after(projections.after());
    let counted = count(&mut job, &snapshot, after.unwrap_or(0), &projections, cost).await?;
    let mut answer = if let Some(answer) = counted {
        // It may be thousands of strings.
        job.brief(cost, move || drop(projections)).await?;
        answer
    } else {
        let parts = move || (projections.union_query(), projections);
        let (query, projections) = job.brief(cost, parts).await?;
        // The count has dropped its reference.
        let running = Running(Arc::unwrap_or_clone(projections), Disclosure::of(&host, &request));
        let folded = fold(&mut job, &snapshot, query, after, running).await?;
        let position = snapshot.head();
        let finish = move || folded.0.finish(position).map_err(|fault| of_fault(&fault, b""));
        job.brief(cost, finish).await??
    };
    push_facts(&mut answer, times, appended);
    Ok(Response::json(200, answer).at(head))
}

/// Adds to an answer the positions of its times, and what was appended under its key.
fn push_facts(answer: &mut Vec<u8>, times: PositionsOfTimes, appended: Option<StoredRequest>) {
    let end = answer.pop();
    times.push(answer);
    if let Some(StoredRequest { first, events, .. }) = appended {
        answer.extend_from_slice(b",\"appended\":{\"first\":");
        push_u64(answer, first);
        answer.extend_from_slice(b",\"last\":");
        push_u64(answer, first + events - 1);
        answer.push(b'}');
    }
    answer.extend(end);
}

/// Bytes of JSON that are checked and searched in about the time of one step.
const JSON_BYTES_PER_STEP: usize = 64;

/// The projections being folded.
struct Running(Projections, Disclosure);

impl Folding for Running {
    fn fold(&mut self, event: &RecordView<'_>) -> u64 {
        let mut tags = [""; limits::MAX_TAGS];
        let mut count = 0;
        for (slot, tag) in tags.iter_mut().zip(event.tags()) {
            *slot = tag;
            count += 1;
        }
        let disclosed = self.1.of_event(event);
        self.0.fold(&FoldEvent {
            position: event.position(),
            event_type: event.event_type(),
            tags: &tags[..count],
            data: &disclosed.data,
            is_json: disclosed.kind == DataKind::Json,
            recorded_at_us: event.recorded_at_us(),
        });
        // One pass over its data finds the values of all pointers.
        let searched = if self.0.reads_data() { disclosed.data.len() } else { 0 };
        (self.0.item_count() + searched / JSON_BYTES_PER_STEP) as u64
    }

    fn is_done(&self) -> bool {
        self.0.failure().is_some()
    }
}
