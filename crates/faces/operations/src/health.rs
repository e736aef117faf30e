//! Liveness, readiness and metrics.

use std::sync::Arc;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::node::readiness::Purpose;
use wellspring_host::stats::prometheus;
use wellspring_host::wire::json::push_string;
use wellspring_host::wire::param::{Param, Words};
use wellspring_host::wire::problem::Problem;

/// The purpose of the requests that would be sent to the server.
pub(super) static FOR: Param<Words<Purpose>> = Param::words(
    "for",
    "Purpose of the requests: reads need a node that has caught up; writes also need a leader.",
    &[("both", Purpose::Both), ("reads", Purpose::Reads), ("writes", Purpose::Writes)],
    "both",
);

/// `GET /health`, `GET /health/live`.
pub(crate) async fn health(_host: Arc<Host>, _request: Box<Request>) -> Answer {
    Ok(Response::json(200, &b"{\"status\":\"healthy\"}"[..]))
}

/// `GET /health/ready`.
pub(crate) async fn ready(host: Arc<Host>, request: Box<Request>) -> Answer {
    let purpose = request.query(&FOR)?;
    let (reasons, warnings) = (host.reasons(purpose), host.warnings(purpose));
    let listed_warnings = (!warnings.is_empty()).then(|| listed(&warnings));
    let listed_reasons = listed(&reasons);
    match (reasons.into_iter().next(), listed_warnings) {
        (Some(worst), None) => Err(Box::new(worst).with("reasons", listed_reasons)),
        (Some(worst), Some(warnings)) => {
            Err(Box::new(worst).with("reasons", listed_reasons).with("warnings", warnings))
        }
        (None, None) => Ok(Response::json(200, &b"{\"status\":\"ready\"}"[..])),
        (None, Some(warnings)) => {
            Ok(Response::json(200, format!(r#"{{"status":"ready","warnings":{warnings}}}"#)))
        }
    }
}

/// `GET /metrics`.
pub(crate) async fn metrics(host: Arc<Host>, _request: Box<Request>) -> Answer {
    let text = elsewhere(move || prometheus::page(&host.figures()));
    Ok(Response::text("text/plain; version=0.0.4; charset=utf-8", text.await?))
}

/// `GET /v1/settings`.
pub(crate) async fn settings(host: Arc<Host>, _request: Box<Request>) -> Answer {
    Ok(Response::text("text/plain; charset=utf-8", host.settings.clone()))
}

/// All reasons, or warnings, as a JSON array of problems.
fn listed(reasons: &[Problem]) -> String {
    let documents = reasons.iter().map(|reason| {
        let log = reason.log.as_deref().unwrap_or_default();
        // No log's name contains anything to escape.
        format!(
            r#"{{"type":"/problems/{}","log":"{log}","detail":{}}}"#,
            reason.kind.slug,
            json_text(&reason.detail)
        )
    });
    format!("[{}]", documents.collect::<Vec<_>>().join(","))
}

fn json_text(text: &str) -> String {
    let mut out = Vec::new();
    push_string(&mut out, text);
    String::from_utf8(out).unwrap_or_default()
}
