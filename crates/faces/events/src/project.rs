//! `POST /v1/project`: one read for all projections of a request.

use super::count_only::count;
use super::disclosure::Disclosure;
use super::fold::{Folding, fold};
use crate::view::{FoldEvent, Projections};
use std::sync::Arc;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::history;
use wellspring_host::http::required_freshness::freshen;
use wellspring_host::http::work::{Cost, Job};
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::problem::of_fault;
use wellspring_log::RecordView;
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
    history::check_reached(request.log()?, projections.after().unwrap_or(0)).await?;
    job.hold(2 * projections.memory_bytes())?;
    let cost = cost.max(Cost::of_terms(projections.term_count()));
    if let Some((answer, head)) = count(&mut job, &request, &projections, cost).await? {
        // It may be thousands of strings.
        job.brief(cost, move || drop(projections)).await?;
        return Ok(Response::json(200, answer).at(head));
    }
    let parts = move || (projections.union_query(), projections.after(), projections);
    let (query, after, projections) = job.brief(cost, parts).await?;
    // The count has dropped its reference.
    let running = Running(Arc::unwrap_or_clone(projections), Disclosure::of(&request));
    let (folded, head) = fold(&mut job, &request, query, after, running).await?;
    let answer = job
        .brief(cost, move || folded.0.finish(head).map_err(|fault| of_fault(&fault, b"")))
        .await??;
    Ok(Response::json(200, answer).at(head))
}

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
        self.0.fold(&FoldEvent {
            position: event.position(),
            event_type: event.event_type(),
            tags: &tags[..count],
            data: &self.1.data(event),
            is_json: event.kind() == DataKind::Json,
            recorded_at_us: event.recorded_at_us(),
        });
        self.0.item_count() as u64
    }

    fn is_done(&self) -> bool {
        self.0.failure().is_some()
    }
}
