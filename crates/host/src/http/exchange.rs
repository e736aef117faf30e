//! A request from its arrival to its answer: facts recorded on the way, and the final record.

use super::header_names::X_REQUEST_ID;
use super::passed_on::FollowerRefusal;
use super::{Content, Host, Request, Response, forward};
use crate::access::Principal;
use crate::identity;
use crate::limits::Payer;
use crate::otlp::Trace;
use crate::record::{RequestRecord, RouteName};
use crate::trouble::FailedRequest;
use hyper::{Method, Uri};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wellspring_log::Log;

/// The facts known so far of a request in progress. The request itself goes to its handler.
pub(super) struct Exchange {
    method: Method,
    uri: Uri,
    client: Option<IpAddr>,
    request_id: String,
    started_us: u64,
    /// The trace, if it is recorded.
    trace: Option<Trace>,
    /// Its route, once that is found.
    pub(super) route: RouteName,
    /// Name of its log; empty if it concerns none.
    pub(super) log_name: Cow<'static, str>,
    /// Its log, if that exists.
    pub(super) log: Option<Log>,
    /// Whether the answer is about the log of that name as a whole, to a caller who may see it.
    pub(super) tells_of_named_log: bool,
    /// The admitted caller, once the gate has decided.
    pub(super) principal: Option<Arc<Principal>>,
    /// Whether it was refused although it has credentials.
    pub(super) shows_credentials: bool,
    /// The payer of its answer.
    pub(super) payer: Payer,
    /// Whether it was refused because this node does not lead.
    pub(super) refused_as_follower: Option<FollowerRefusal>,
    /// Whether a node forwarded it to this server, which is in no cluster.
    pub(super) forwarded_astray: bool,
}

impl Exchange {
    /// A new request.
    pub(super) fn begin(host: &Host, request: &Request) -> Exchange {
        let started_us = host.clock.monotonic_us();
        Exchange {
            method: request.method.clone(),
            uri: request.uri.clone(),
            client: request.client,
            request_id: request_id(host, request),
            started_us,
            trace: host.otlp.begin(&request.headers),
            route: host.routes.no_name(),
            log_name: Cow::Borrowed(""),
            log: None,
            tells_of_named_log: false,
            principal: None,
            shows_credentials: false,
            payer: Payer::default(),
            refused_as_follower: None,
            forwarded_astray: false,
        }
    }

    /// Records the answer and gives it the request's id.
    pub(super) fn end(mut self, host: &Host, response: Response) -> Response {
        let trace = self.trace.take();
        let record = self.record(&response, host.clock.monotonic_us());
        host.stats.answered(&record);
        if let Some(cause) = &response.cause {
            let (route, log) = (record.route.path, record.log);
            let request_id = Some(record.request_id);
            let failed = FailedRequest { cause, route, log, request_id };
            host.stats.troubles.tell(failed, record.ended_us);
        }
        // The node that answered instead records it.
        if response.header(forward::ANSWERED_BY).is_none() {
            host.audit.note(&host.node, &record);
        }
        record.write_line(host.config.access_log);
        if let Some(trace) = trace {
            host.otlp.end(trace, &record, host.clock.wall_us());
        }
        response.with("x-request-id", self.request_id)
    }

    fn record<'a>(&'a self, response: &'a Response, ended_us: u64) -> RequestRecord<'a> {
        RequestRecord {
            route: self.route,
            method: self.method.as_str(),
            path: self.uri.path(),
            log: &self.log_name,
            identity: self.principal.as_deref().map_or(&identity::UNKNOWN, Principal::identity),
            caller: response.caller.as_ref(),
            shows_credentials: self.shows_credentials,
            status: response.status,
            client: self.client,
            request_id: &self.request_id,
            bytes: match &response.content {
                Content::Full(bytes) => Some(bytes.len()),
                Content::Stream(_) => None,
            },
            position: response.position,
            started_us: self.started_us,
            ended_us,
            commit_us: response.commit_us,
        }
    }
}

/// The client's own request id if it may be logged, otherwise a new one.
fn request_id(host: &Host, request: &Request) -> String {
    let fit = |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    match request.header(&X_REQUEST_ID).filter(fit) {
        Some(id) => id.to_owned(),
        None => format!("{:016x}", host.request_ids.fetch_add(1, Relaxed)),
    }
}
