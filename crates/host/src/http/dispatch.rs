//! From a request to its answer: finds the route and the log, calls the handler, and adds the
//! common headers. The stages, in order; a refusal at one skips those before the handler and passes
//! all those after it:
//!
//! | stage | refuses with | what it leaves |
//! |---|---|---|
//! | `sender::learn` | 401 | the node that sent it, and whom it came from first |
//! | `Exchange::begin` | | request id, start, trace |
//! | `Charge::of_head` | 429, 503 | memory of the head |
//! | `allowance::of_client` | 429 | who pays: connection, address |
//! | `judge_head` | 400, 403, 431 | sound framing, a host that is ours |
//! | `find`, `name` | 400, 404, 405, 414 | route, names in the path |
//! | `prepare` | 401, 403, 404, 409, 429, 503 | accounts as new as asked, principal, its allowance, the log, of the history that is named |
//! | `hold_against` | 406, 422 | parameters and media type as declared |
//! | the handler, or `forward` | its own; 503 without a leader | an answer or a problem |
//! | `allowance::of_memory` | 429, 503 | memory of the answer |
//! | `Face::render` | | a problem as the face's clients expect it |
//! | position, history, `pay_by`, `security`, `cors` | | headers of every answer, its bytes charged |
//! | `Exchange::end` | | figures, log lines, audit, trace; the request id |

use super::allowance;
use super::body_memory::Charge;
use super::contract::{Accept, IDEMPOTENCY_KEY};
use super::exchange::Exchange;
use super::forward;
use super::head_rules::{self, HeadAmbiguity, HeadRules};
use super::passed_on::FollowerRefusal;
use super::routes::{Entry, FoundRoute, Lookup, Route, Scope};
use super::security::{self, Transport};
use super::sender;
use super::server::Server;
use super::{
    Content, Host, ReflectedPosition, Request, Response, content, cors, fresh, history,
    idempotency, passed_on,
};
use crate::access::credentials;
use crate::access::{GateRequest, Needs, Standing};
use crate::names::SYSTEM_LOG;
use crate::names::{MAIN, is_name};
use crate::stats::RefusalReason;
use crate::wire::params::percent_decode;
use crate::wire::problem::{self, Problem};
use hyper::{Method, Version};
use std::borrow::Cow;
use std::sync::Arc;

/// Answers any request.
pub async fn dispatch(server: Arc<Server>, mut request: Box<Request>) -> Response {
    let host = &*server.host;
    let sender = sender::learn(host, &mut request);
    let page = host.access.cors().map(|_| cors::RequestOrigin::of(&request));
    let mut exchange = Exchange::begin(host, &request);
    let (version, is_of_node) = (request.version, request.of_node.is_some());
    let held = Charge::of_head(&host.body_memory, version, &request.uri, &request.headers);
    let (mut response, held) = match held {
        Ok(held) => (run(&server, (request, sender), &mut exchange).await, held),
        Err(problem) => (problem.into(), None),
    };
    response.held = held;
    if version < Version::HTTP_11 && matches!(response.content, Content::Stream(_)) {
        // Without chunked framing a truncated stream looks like a complete one.
        response = problem::NEEDS_HTTP_11.because("use HTTP/1.1 or HTTP/2 for this route").into();
    }
    if response.reflects == ReflectedPosition::TheLog {
        if let Some(log) = &exchange.log {
            response.position = response.position.or_else(|| Some(log.head()));
        }
        // After the answer: the request may have made the log.
        let named = exchange.tells_of_named_log.then(|| host.node.get(&exchange.log_name));
        let log = exchange.log.as_ref().or(named.as_ref().and_then(Option::as_ref));
        if let Some(history) = log.and_then(wellspring_log::Log::history) {
            response = response.with(history::HEADER, history.to_string());
        }
    }
    if let (true, Some(system)) = (is_of_node, host.node.get(SYSTEM_LOG)) {
        let position = system.head().to_string();
        response = response.with(passed_on::SYSTEM_POSITION, position);
        if let Some(refusal) = exchange.refused_as_follower {
            response = response.with(passed_on::NOT_LEADING, refusal.header_value().to_owned());
        }
    }
    if exchange.forwarded_astray {
        // The node waits for the leader, wherever it is now.
        let refusal = FollowerRefusal::NothingDone.header_value();
        response = response.with(passed_on::NOT_LEADING, refusal.to_owned());
    }
    response.pay_by(std::mem::take(&mut exchange.payer));
    let transport = if host.tls.is_some() { Transport::Tls } else { Transport::Plain };
    security::put_on(&mut response, transport);
    if let (Some(allowed), Some(page)) = (host.access.cors(), &page) {
        cors::put_on(allowed, &mut response, page, exchange.route.path);
    }
    exchange.end(host, response)
}

/// Finds the route of a request and calls its handler, recording in `exchange` what becomes known
/// on the way. The request comes with its refusal, if it is refused already.
async fn run(
    server: &Server,
    (mut request, sender): (Box<Request>, Result<(), Box<Problem>>),
    exchange: &mut Exchange,
) -> Response {
    let host = &*server.host;
    let within = allowance::of_client(host, &mut request);
    let judged = judge_head(host, &request);
    let ends = matches!(judged, Err(HeadFault::Unsound(_)));
    exchange.forwarded_astray = matches!(judged, Err(HeadFault::NotInACluster));
    if request.method == Method::GET {
        // No handler reads it, and the answer may take a minute.
        request.body.discard();
    }
    let within = judged.map_err(Box::<Problem>::from).and(within).and(sender);
    let (found, refused) = match (find(host, &request), within) {
        (Ok(found), within) => (found, within.err()),
        (Err(response), within) => {
            let answer = within.map_or_else(Response::from, |()| *response);
            exchange.payer = request.payer.clone();
            return ending(answer, ends);
        }
    };
    let Entry { face, route } = *host.routes.at(found.route);
    let prepared = match (refused, name(host, &mut request, &found)) {
        (None, Ok(())) => match prepare(host, &mut request, route).await {
            Ok(()) => match hold_against(route, &mut request) {
                Ok(()) if changes(route, &request) => fresh::handed_in_stored(host, &request).await,
                held => held,
            },
            refused => refused,
        },
        (Some(problem), _) | (_, Err(problem)) => Err(problem),
    };
    let is_unknown = matches!(&prepared, Err(problem) if problem.kind.status == 401);
    exchange.route = host.routes.name_at(found.route);
    exchange.log_name = log_of(route, &request).map_or(Cow::Borrowed(""), kept);
    // What everyone may ask shows neither the head nor the history of a log.
    exchange.log = request.log.clone().filter(|_| route.needs != Needs::Public);
    // Both only after the gate.
    let is_admitted = match &prepared {
        Ok(()) => true,
        Err(problem) => std::ptr::eq(problem.kind, &problem::ANOTHER_HISTORY),
    };
    exchange.tells_of_named_log = is_admitted && route.scope == Scope::Node;
    exchange.principal = Some(Arc::clone(&request.principal));
    exchange.shows_credentials = is_unknown && credentials::are_shown(&request.headers);
    exchange.payer = request.payer.clone();
    // Another node's answer was checked against the contract there.
    let mut answers_here = true;
    let answer = match prepared {
        Ok(()) => {
            let version = request.version;
            let for_leader = forward::for_leader(host, route, &request);
            answers_here = for_leader.as_ref().is_none_or(forward::ForLeader::is_led_here);
            let answer = match for_leader {
                None => server.handle(found.route, request).await,
                Some(for_leader) => for_leader.answer(server, found.route, request).await,
            };
            answer.and_then(|response| {
                allowance::of_memory(host, route, (version, &exchange.payer), response)
            })
        }
        Err(problem) => Err(problem),
    };
    exchange.refused_as_follower =
        answer.as_ref().err().and_then(|problem| FollowerRefusal::of(problem));
    debug_assert_eq!(
        answers_here.then(|| route.undeclared(&answer)).flatten(),
        None,
        "what no client was told of"
    );
    let answer = answer.map_err(route.contract.words);
    // The credentials may be in the headers or in the body.
    if matches!(&answer, Err(problem) if std::ptr::eq(problem.kind, &problem::TOO_MANY_LOGINS)) {
        host.stats.refusals.count(RefusalReason::Login);
    }
    ending(answer.unwrap_or_else(face.render), ends)
}

const NOT_IN_A_CLUSTER: &str = "a node forwarded the request (Wellspring-Node), and this server is in no cluster; \
     nothing was done";

/// Why the head of a request is refused, whatever it asks for.
enum HeadFault {
    /// Its framing is ambiguous, so the rest of the connection cannot be trusted.
    Unsound(HeadAmbiguity),
    /// A node forwarded it, and this server is in no cluster: it listens where a leader did.
    NotInACluster,
    /// Its framing is sound, but it breaks a rule.
    Refused(Box<Problem>),
}

impl From<HeadFault> for Box<Problem> {
    fn from(fault: HeadFault) -> Box<Problem> {
        match fault {
            HeadFault::Unsound(unsound) => unsound.into(),
            HeadFault::NotInACluster => problem::NOT_A_NODE.because(NOT_IN_A_CLUSTER),
            HeadFault::Refused(problem) => problem,
        }
    }
}

/// Checks a head before routing, as the lean loop does.
fn judge_head(host: &Host, request: &Request) -> Result<(), HeadFault> {
    let rules = HeadRules::of(&request.headers);
    if let Some(unsound) = rules.unsound(request.version) {
        return Err(HeadFault::Unsound(unsound));
    }
    // HTTP/2 may split a header such as cookies into many fields; its bytes are bounded.
    let most = host.config.max_headers;
    if request.version < Version::HTTP_2 && request.headers.len() > most {
        return Err(HeadFault::Refused(head_rules::too_many_headers(most)));
    }
    if rules.names_node() && host.cluster_key.is_none() {
        return Err(HeadFault::NotInACluster);
    }
    // Nodes may address each other by any name.
    if request.of_node.is_none() {
        host.access.check_host(&request.uri, rules.host()).map_err(HeadFault::Refused)?;
    }
    rules.refusal().map_or(Ok(()), |problem| Err(HeadFault::Refused(problem)))
}

/// The answer; if it `ends` the connection, because what follows may be a part of the request.
fn ending(response: Response, ends: bool) -> Response {
    match ends {
        true => response.with("connection", "close".to_owned()),
        false => response,
    }
}

/// An owned log name, without an allocation for `main`, the most frequent one.
fn kept(log: &str) -> Cow<'static, str> {
    if log == MAIN { Cow::Borrowed(MAIN) } else { Cow::Owned(log.to_owned()) }
}

/// The log of a request, if its route concerns one.
fn log_of<'a>(route: &Route, request: &'a Request) -> Option<&'a str> {
    match route.scope {
        Scope::Node => route.path.ends_with("{log}").then_some(request.param()),
        _ => Some(&*request.log_name),
    }
}

/// The route of a request, or the answer that needs none.
fn find(host: &Host, request: &Request) -> Result<FoundRoute, Box<Response>> {
    let path = request.uri.path();
    let length = request.uri.path_and_query().map_or(0, |p| p.as_str().len());
    let limit = host.config.max_url_bytes;
    if length > limit {
        let detail =
            format!("the URL is {length} bytes long; send long queries with POST /v1/query");
        let problem = problem::URL_TOO_LONG.because(detail).limit(limit as u64);
        return Err(Box::new(problem.into()));
    }
    match host.routes.find(request.method.as_str(), path) {
        Lookup::Found(found) => Ok(found),
        Lookup::WrongMethod { allow, .. } if request.method == Method::OPTIONS => {
            let response = Response::empty(204);
            Err(Box::new(response.with("allow", allow)))
        }
        Lookup::WrongMethod { allow, face } => {
            let detail = format!("{path} accepts {allow} only, not {}", request.method);
            let mut problem = problem::METHOD_NOT_ALLOWED.because(detail);
            problem.allow = Some(allow);
            Err(Box::new((face.render)(problem)))
        }
        Lookup::Nothing => {
            let detail = format!("{path} is not a route; GET /openapi.json lists all routes");
            let problem = problem::NOT_FOUND.because(detail);
            Err(Box::new(match host.routes.neighbour(path) {
                Some(face) => (face.render)(problem),
                None => problem.into(),
            }))
        }
    }
}

/// Whether a request may change a log.
fn changes(route: &Route, request: &Request) -> bool {
    route.is_for_leader() && request.method != Method::GET
}

/// Parses the query and `Accept` of a request according to its route, once its sender is admitted.
fn hold_against(route: &'static Route, request: &mut Request) -> Result<(), Box<Problem>> {
    let contract = &route.contract;
    request.contract = contract;
    // Reads ignore it.
    if changes(route, request) && !contract.reads(&IDEMPOTENCY_KEY) {
        idempotency::refuse_key(request)?;
    }
    request.query = contract.read(request.uri.query())?;
    if contract.accept == Accept::Obeyed {
        request.wants = content::negotiate(request)?;
    }
    Ok(())
}

/// Decodes the names in the path.
fn name(host: &Host, request: &mut Request, found: &FoundRoute) -> Result<(), Box<Problem>> {
    for (param, found) in request.params.iter_mut().zip(&found.params) {
        *param = percent_decode(found, false)?;
    }
    request.log_name = percent_decode(&found.log, false)?;
    let Entry { face, route } = host.routes.at(found.route);
    if route.scope == Scope::Named && host.node.get(&request.log_name).is_none() {
        let alias = face.log_aliases.iter().find(|(alias, _)| *alias == request.log_name);
        if let Some((_, log)) = alias {
            (*log).clone_into(&mut request.log_name);
        }
    }
    Ok(())
}

/// Authorizes the request, then finds the log it is about. In this order: a caller without access
/// to a log must not learn whether it exists.
async fn prepare(host: &Host, request: &mut Request, route: &Route) -> Result<(), Box<Problem>> {
    if route.needs.are_of_accounts() {
        fresh::accounts(host, request).await?;
    }
    let log = log_of(route, request);
    let moment = host.access.moment();
    let admitted = {
        let Request { uri, headers, client, of_node, .. } = &*request;
        let asking = GateRequest { uri, headers, client: *client, of_node: of_node.as_ref() };
        host.access.admit(asking, route.needs, log).await
    };
    let is_kept = log == Some(SYSTEM_LOG) && route.may_write();
    let principal = admitted?;
    let standing = Standing::new(&host.access, moment, &principal, route.needs, log.map(kept));
    request.body.stand(standing);
    request.principal = principal;
    allowance::of_account(host, request)?;
    if is_kept {
        let detail = "the log system holds accounts and the audit; clients may read it, and \
                      only the server writes it";
        return Err(problem::SYSTEM_LOG_KEPT.because(detail));
    }
    if route.scope != Scope::Node {
        let name = Some(&*request.log_name).filter(|name| is_name(name));
        let mut log = name.and_then(|name| host.node.get(name));
        if let (None, Some(name)) = (&log, name) {
            fresh::log_made_elsewhere(host, name).await?;
            log = host.node.get(name);
        }
        request.log = log;
        request.log()?;
    }
    match route.needs {
        // A refusal would show everyone the head and the history of the log.
        Needs::Public => Ok(()),
        _ => history::check_header(host, request, log_of(route, request)),
    }
}
