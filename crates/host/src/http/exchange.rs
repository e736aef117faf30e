//! A request from its arrival to its answer: facts recorded on the way, and the final record.

use super::cors::RequestOrigin;
use super::forwarded_message::FollowerRefusal;
use super::header_names::X_REQUEST_ID;
use super::{Content, Host, Request, Response, forward};
use crate::access::Principal;
use crate::identity;
use crate::limits::Payer;
use crate::otlp::Trace;
use crate::record::{RequestRecord, RouteName};
use crate::trouble::FailedRequest;
use crate::wire::problem::Problem;
use hyper::{Method, Uri, Version};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wellspring_log::Log;

/// The stages that may refuse a request before its handler, in the order of the table in
/// [`dispatch`](super::dispatch).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    Head,
    Client,
    Sender,
    Path,
    Access,
    History,
    Contract,
    Precedence,
}

/// The facts known so far of a request in progress. The request itself goes to its handler.
pub(super) struct Exchange {
    method: Method,
    uri: Uri,
    /// The version of its protocol, which decides how its answer may be framed.
    pub(super) version: Version,
    /// The page of a browser that sent it, if pages of other sites may.
    pub(super) page: Option<RequestOrigin>,
    /// Whether another node of the cluster forwarded it.
    pub(super) is_of_node: bool,
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
    /// The first refusal, and its stage.
    refusal: Option<(Stage, Box<Problem>)>,
    /// Whether the connection ends with the answer, because what follows may be a part of the
    /// request.
    pub(super) ends_connection: bool,
    /// How it was refused because this node does not lead, for the node that forwarded it.
    pub(super) not_leading: Option<FollowerRefusal>,
}

impl Exchange {
    /// A new request.
    pub(super) fn begin(host: &Host, request: &Request) -> Exchange {
        let started_us = host.clock.monotonic_us();
        Exchange {
            method: request.method.clone(),
            uri: request.uri.clone(),
            version: request.version,
            page: host.access.cors().map(|_| RequestOrigin::of(request)),
            is_of_node: request.of_node.is_some(),
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
            refusal: None,
            ends_connection: false,
            not_leading: None,
        }
    }

    /// Keeps what a stage decided. The first refusal is the one that is told.
    pub(super) fn check(&mut self, stage: Stage, judged: Result<(), Box<Problem>>) {
        if let (None, Err(problem)) = (&self.refusal, judged) {
            self.refusal = Some((stage, problem));
        }
    }

    /// Whether nothing has refused the request so far.
    pub(super) fn is_open(&self) -> bool {
        self.refusal.is_none()
    }

    /// The stage that refused the request.
    pub(super) fn refused_at(&self) -> Option<Stage> {
        self.refusal.as_ref().map(|(stage, _)| *stage)
    }

    pub(super) fn refusal(&self) -> Option<&Problem> {
        self.refusal.as_ref().map(|(_, problem)| &**problem)
    }

    /// The refusal, on its way to the client.
    pub(super) fn take_refusal(&mut self) -> Option<Box<Problem>> {
        self.refusal.take().map(|(_, problem)| problem)
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
