//! `GET /v1/views`: the progress of each view.

use std::sync::Arc;
use wellspring_host::http::fresh::freshen_all;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::view::State;
use wellspring_host::wire::json::{push_string, push_u64};

/// Every view of a log that the caller may read, with its state, position and lag.
pub(crate) async fn list(host: Arc<Host>, request: Box<Request>) -> Answer {
    let logs = host.node.all().into_iter();
    let readable: Vec<_> = logs.filter(|(log, _)| request.principal.may_read(log)).collect();
    freshen_all(&request, &readable).await?;
    let mut out = b"{\"views\":[".to_vec();
    let views = host.node.views().into_iter();
    let visible = views.filter(|(log, ..)| request.principal.may_read(log));
    for (i, (log, view, progress)) in visible.enumerate() {
        out.extend_from_slice(if i > 0 { b",{\"view\":" } else { b"{\"view\":" });
        push_string(&mut out, view);
        out.extend_from_slice(b",\"log\":");
        push_string(&mut out, &log);
        out.extend_from_slice(b",\"state\":");
        push_string(&mut out, name(progress.state));
        let figures: [(&[u8], u64); 4] = [
            (b",\"position\":", progress.position),
            (b",\"head\":", progress.head),
            (b",\"lag\":", progress.head.saturating_sub(progress.position)),
            (b",\"snapshot\":", progress.snapshot),
        ];
        for (field, number) in figures {
            out.extend_from_slice(field);
            push_u64(&mut out, number);
        }
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    Ok(Response::json(200, out))
}

fn name(state: State) -> &'static str {
    match state {
        State::Rebuilding => "rebuilding",
        State::Live => "live",
        State::Failed => "failed",
    }
}
