//! What is recorded of an answer once it is known: figures, the access log, the audit, the trace.

use super::routes::TABLE;
use super::{Content, Request, Response, Shell};
use crate::access::Principal;
use crate::audit::Done;
use crate::otlp::{Told, Trace};
use hyper::{Method, Uri};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What is to be recorded of a request, taken down when it comes: its handler keeps the rest.
pub(super) struct Asked {
    method: Method,
    uri: Uri,
    client: Option<IpAddr>,
    request_id: String,
    started_us: u64,
    /// If it is recorded.
    trace: Option<Trace>,
}

/// What the way to the answer told.
pub(super) struct Way {
    /// Its place in the table; the table's length if it has none.
    pub(super) route: usize,
    /// Name of the log it is about; empty if it is about none.
    pub(super) log_name: Cow<'static, str>,
    /// Whom the gate let in.
    pub(super) principal: Arc<Principal>,
    /// Whether it was refused with credentials that do not count.
    pub(super) shows_credentials: bool,
}

impl Asked {
    /// A request that has just come.
    pub(super) fn of(shell: &Shell, request: &Request) -> Asked {
        let started_us = shell.clock.monotonic_us();
        Asked {
            method: request.method.clone(),
            uri: request.uri.clone(),
            client: request.client,
            request_id: request_id(shell, request),
            started_us,
            trace: shell.otlp.begin(&request.headers, started_us),
        }
    }

    /// Records the answer and gives it the request's id.
    pub(super) fn answered(self, shell: &Shell, way: &Way, response: Response) -> Response {
        let now_us = shell.clock.monotonic_us();
        let took_us = now_us.saturating_sub(self.started_us);
        shell.stats.answered(way.route, response.status, took_us);
        let done = Done {
            route: way.route,
            method: self.method.as_str(),
            path: self.uri.path(),
            log: &way.log_name,
            principal: &way.principal,
            caller: response.caller.as_ref(),
            shows_credentials: way.shows_credentials,
            status: response.status,
            client: self.client,
            request_id: &self.request_id,
        };
        shell.audit.note(&shell.node, &done, now_us);
        write_line(shell, &done, took_us, &response.content);
        if let Some(trace) = self.trace {
            let (position, commit_us) = (response.position, response.commit_us);
            let told = Told { done: &done, position, commit_us, now_us };
            shell.otlp.end(trace, &told, shell.clock.wall_us());
        }
        response.with("x-request-id", self.request_id)
    }
}

/// Writes the line of the access log.
fn write_line(shell: &Shell, done: &Done<'_>, took_us: u64, content: &Content) {
    use tracing::Level;
    if !shell.config.access_log && !tracing::enabled!(target: "access", Level::DEBUG) {
        return;
    }
    let &Done { method, path, status, request_id, .. } = done;
    let route = TABLE.get(done.route).map(|route| route.path);
    let client = done.client.map(tracing::field::display);
    let account = done.name();
    // Of a stream nobody knows yet.
    let bytes = match content {
        Content::Full(bytes) => Some(bytes.len()),
        Content::Stream(_) => None,
    };
    if shell.config.access_log {
        tracing::info!(target: "access", method, path, route, status, took_us, bytes, account, client, request_id);
    } else {
        tracing::debug!(target: "access", method, path, route, status, took_us, bytes, account, client, request_id);
    }
}

/// The client's own id for the request if it is fit to be logged, else a new one.
fn request_id(shell: &Shell, request: &Request) -> String {
    let fit = |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    match request.header("x-request-id").filter(fit) {
        Some(id) => id.to_owned(),
        None => format!("{:016x}", shell.request_ids.fetch_add(1, Relaxed)),
    }
}
