//! From a request to its answer: finds the route and the log, calls the handler,
//! and puts on every answer what every answer carries.

use super::body_memory::{self, Charge};
use super::params::percent_decode;
use super::problem::{self, Problem};
use super::routes::{Found, Lookup, Route, Router, Scope, TABLE};
use super::{Answer, Content, Request, Response, Shell, links};
use crate::access::{Needs, SYSTEM_LOG};
use crate::limits::{Payer, Refused};
use crate::node::is_name;
use hyper::{Method, Version};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use wellspring_log::Log;
use wellspring_views::access::Role;

/// Answers a request, whatever it is.
pub(crate) async fn dispatch(shell: Arc<Shell>, request: Request) -> Response {
    let started_us = shell.clock.monotonic_us();
    let (method, uri) = (request.method.clone(), request.uri.clone());
    let request_id = request_id(&shell, &request);
    let http_10 = request.version < Version::HTTP_11;
    let version = request.version;
    let held = Charge::of_head(&shell.body_memory, version, &request.uri, &request.headers);
    let (Ran { route, log, payer, answer }, held) = match held {
        Ok(held) => (run(&shell, request).await, held),
        Err(problem) => (Ran::refused(problem), None),
    };
    let mut response = answer.unwrap_or_else(Response::from);
    response.held = held;
    if http_10 && matches!(response.content, Content::Stream(_)) {
        // Without chunks a stream that was cut looks like one that ended.
        response = problem::NEEDS_HTTP_11.because("ask for this over HTTP/1.1 or HTTP/2").into();
    }
    if let (None, Some(log)) = (response.position, &log) {
        response.position = Some(log.head());
    }
    response.pay_by(payer);
    let took_us = shell.clock.monotonic_us().saturating_sub(started_us);
    shell.stats.answered(route, response.status, took_us);
    let (path, status) = (uri.path(), response.status);
    if shell.config.access_log {
        tracing::info!(target: "access", %method, path, status, took_us, request_id);
    } else {
        tracing::debug!(target: "access", %method, path, status, took_us, request_id);
    }
    response.with("x-request-id", request_id)
}

/// What a request came to.
struct Ran {
    /// Its place in the table.
    route: usize,
    log: Option<Log>,
    /// Who is charged for the answer.
    payer: Payer,
    answer: Answer,
}

impl Ran {
    /// Not looked at further.
    fn refused(problem: Box<Problem>) -> Ran {
        Ran { route: TABLE.len(), log: None, payer: Payer::default(), answer: Err(problem) }
    }
}

async fn run(shell: &Arc<Shell>, mut request: Request) -> Ran {
    let within = within_limits(shell, &mut request);
    let payer = request.payer.clone();
    let (found, refused) = match (find(shell, &request), within) {
        (Ok(found), within) => (found, within.err()),
        (Err(answer), within) => {
            let answer = within.map_or_else(Err, |()| answer);
            return Ran { route: TABLE.len(), log: None, payer, answer };
        }
    };
    let route = &TABLE[found.route];
    let prepared = match (refused, name(&mut request, &found)) {
        (None, Ok(())) => prepare(shell, &mut request, route).await,
        (Some(problem), _) | (_, Err(problem)) => Err(problem),
    };
    let (payer, log) = (request.payer.clone(), request.log.clone());
    let answer = match prepared {
        Ok(()) => {
            let version = request.version;
            let answer = (route.handler)(Arc::clone(shell), request).await;
            answer.and_then(|response| within_memory(shell, route, version, response))
        }
        Err(problem) => Err(problem),
    };
    let answer = answer.map_err(|problem| in_words_of(route.scope, problem));
    // Whether they came with the request or in its body.
    if matches!(&answer, Err(problem) if std::ptr::eq(problem.kind, &problem::TOO_MANY_LOGINS)) {
        shell.stats.refusals.count(Refused::Login);
    }
    Ran { route: found.route, log, payer, answer }
}

/// Takes the request out of what its connection and its address may send, and charges its body to
/// the address. Who asks whether the server lives, or what it would allow, is not limited.
fn within_limits(shell: &Shell, request: &mut Request) -> Result<(), Box<Problem>> {
    let path = request.uri.path();
    let is_health = path == "/health" || path.starts_with("/health/");
    if !shell.limits.looks_at_requests() || is_health || request.method == Method::OPTIONS {
        return Ok(());
    }
    let purse = shell.limits.purse(request.client);
    request.pay_by(Payer::new(&shell.limits, purse));
    let now_us = shell.clock.monotonic_us();
    shell.limits.admit(request.connection.as_deref(), purse, now_us)
}

/// The same for the account, now that it is known.
fn within_limits_of_account(shell: &Shell, request: &mut Request) -> Result<(), Box<Problem>> {
    let (Some(mut purse), Some(account)) = (request.payer.purse(), request.principal.account())
    else {
        return Ok(());
    };
    let now_us = shell.clock.monotonic_us();
    let admitted = shell.limits.admit_account(&mut purse, account.as_str(), now_us);
    request.pay_by(Payer::new(&shell.limits, purse));
    admitted
}

/// Charges an answer's content until it is sent, so that who does not read what he asked for cannot
/// make memory out of small requests. What has been done is told in any case, and what is about
/// the server itself.
fn within_memory(shell: &Shell, route: &Route, version: Version, mut response: Response) -> Answer {
    let only_reads = route.needs <= Needs::Role(Role::Reader) && route.scope != Scope::Node;
    if let Content::Full(bytes) = &mut response.content
        && only_reads
    {
        *bytes = body_memory::charged(&shell.body_memory, version, std::mem::take(bytes))?;
    }
    Ok(response)
}

/// A problem as the clients of a route expect it.
fn in_words_of(scope: Scope, problem: Box<Problem>) -> Box<Problem> {
    if scope == Scope::Links { links::with_error(problem) } else { problem }
}

fn find(shell: &Shell, request: &Request) -> Result<Found, Answer> {
    let path = request.uri.path();
    let length = request.uri.path_and_query().map_or(0, |p| p.as_str().len());
    let limit = shell.config.max_url_bytes;
    if length > limit {
        let detail = format!("the URL is {length} bytes long; POST /v1/query takes long queries");
        return Err(Err(problem::URL_TOO_LONG.because(detail).limit(limit as u64)));
    }
    let router = Router::get(shell.config.dev_endpoints);
    match router.find(request.method.as_str(), path) {
        Lookup::Found(found) => Ok(found),
        Lookup::WrongMethod { allow, .. } if request.method == Method::OPTIONS => {
            let response = Response { status: 204, content_type: "", ..Response::json(204, "") };
            Err(Ok(response.with("allow", allow)))
        }
        Lookup::WrongMethod { allow, scope } => {
            let detail = format!("{path} knows {allow}, not {}", request.method);
            let mut problem = problem::METHOD_NOT_ALLOWED.because(detail);
            problem.allow = Some(allow);
            Err(Err(in_words_of(scope, problem)))
        }
        Lookup::Nothing => Err(Err(problem::NOT_FOUND
            .because(format!("{path} is not a route; GET /openapi.json lists them all")))),
    }
}

/// Decodes the names in the path.
fn name(request: &mut Request, found: &Found) -> Result<(), Box<Problem>> {
    request.param = percent_decode(&found.param, false)?;
    request.log_name = percent_decode(&found.log, false)?;
    Ok(())
}

/// Lets the request in if it may, and finds the log it is about. In this order: who may not learn
/// of a log is not told whether there is one.
async fn prepare(shell: &Shell, request: &mut Request, route: &Route) -> Result<(), Box<Problem>> {
    let log = match route.scope {
        Scope::Node => route.path.ends_with("{log}").then_some(&request.param),
        _ => Some(&request.log_name),
    };
    let log = log.map(String::as_str);
    let admitted = shell.access.admit(&request.headers, request.client, route.needs, log).await;
    let is_kept = log == Some(SYSTEM_LOG) && route.needs > Needs::Role(Role::Reader);
    request.principal = admitted?;
    within_limits_of_account(shell, request)?;
    if is_kept {
        let detail = "the system log keeps accounts and what was done; it can be read, and the \
                      server alone writes it";
        return Err(problem::SYSTEM_LOG_KEPT.because(detail));
    }
    if route.scope != Scope::Node {
        request.log = Some(&request.log_name)
            .filter(|name| is_name(name))
            .and_then(|name| shell.node.get(name));
        request.log()?;
    }
    Ok(())
}

/// The client's own id for the request if it is fit to be logged, else a new one.
fn request_id(shell: &Shell, request: &Request) -> String {
    let fit = |id: &&str| (1..=128).contains(&id.len()) && id.bytes().all(|b| b.is_ascii_graphic());
    match request.header("x-request-id").filter(fit) {
        Some(id) => id.to_owned(),
        None => format!("{:016x}", shell.request_ids.fetch_add(1, Relaxed)),
    }
}
