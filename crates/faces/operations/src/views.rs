//! `GET /v1/views`: the progress of each view.

use serde::Serialize;
use std::sync::Arc;
use wellspring_host::http::required_freshness::freshen_all;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::view::State;

/// How far a view is.
#[derive(Serialize)]
struct ViewDocument<'a> {
    view: &'a str,
    log: &'a str,
    state: &'static str,
    position: u64,
    head: u64,
    lag: u64,
    snapshot: u64,
}

/// Views, in the order of their logs.
#[derive(Serialize)]
struct ViewsDocument<'a> {
    views: Vec<ViewDocument<'a>>,
}

/// Every view of a log that the caller may read, with its state, position and lag.
pub(crate) async fn list(host: Arc<Host>, request: Box<Request>) -> Answer {
    let logs = host.node.all().into_iter();
    let readable: Vec<_> = logs.filter(|(log, _)| request.principal.may_read(log)).collect();
    freshen_all(&request, &readable).await?;
    let views = host.node.views();
    let visible = views.iter().filter(|(log, ..)| request.principal.may_read(log));
    let documents = visible.map(|(log, view, progress)| ViewDocument {
        view,
        log,
        state: name(progress.state),
        position: progress.position,
        head: progress.head,
        lag: progress.head.saturating_sub(progress.position),
        snapshot: progress.snapshot,
    });
    Ok(Response::of(200, &ViewsDocument { views: documents.collect() }))
}

fn name(state: State) -> &'static str {
    match state {
        State::Rebuilding => "rebuilding",
        State::Live => "live",
        State::Failed => "failed",
    }
}
