//! From a request to its answer: the stages, in order. The exchange keeps the first refusal: the
//! stages after it that prepare the handler are left out, all others are passed.
//!
//! | stage | refuses with | what it leaves |
//! |---|---|---|
//! | `node_sender::learn` | 401 | the node that sent it, and whom it came from first |
//! | `Exchange::begin` | | request id, start, trace |
//! | `Charge::of_head` | 429, 503 | memory of the head |
//! | `allowance::of_client` | 429 | who pays: connection, address |
//! | `judge_head` | 400, 401, 403, 431 | sound framing, a host that is ours |
//! | `find`, `name` | 400, 404, 405, 414 | route, names in the path |
//! | `prepare` | 401, 403, 404, 429, 503 | accounts as new as asked, principal, its allowance, the log |
//! | `judge_history` | 409 | the log of the history that is named |
//! | `hold_against` | 406, 422 | parameters and media type as declared |
//! | `required_freshness::handed_in_stored` | 503 | the connection's own events before its change |
//! | `note` | | what the records of the request show |
//! | `handled` | its own; 503 without a leader | an answer or a problem, its memory charged |
//! | `Face::render` | | a problem as the face's clients expect it |
//! | `finished` | | headers of every answer, its bytes charged |
//! | `Exchange::end` | | figures, log lines, audit, trace; the request id |

use super::allowance;
use super::body_memory::Charge;
use super::contract::{Accept, IDEMPOTENCY_KEY};
use super::exchange::{Exchange, Stage};
use super::forward;
use super::forwarded_message::FollowerRefusal;
use super::head_rules::{self, HeadRules};
use super::node_sender;
use super::routes::{Entry, FoundRoute, Lookup, Route, Scope};
use super::security::{self, Transport};
use super::server::Server;
use super::{
    Answer, Content, Host, ReflectedPosition, Request, Response, content, cors, forwarded_message,
    history, idempotency, required_freshness, subjects, websocket,
};
use crate::access::credentials;
use crate::access::{AccessRecheck, GateRequest, Needs};
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
    let sender = node_sender::learn(host, &mut request);
    credentials::decode_bearer(&mut request.headers);
    let mut exchange = Exchange::begin(host, &request);
    let memory = &host.body_memory;
    let response = match Charge::of_head(memory, request.version, &request.uri, &request.headers) {
        Ok(held) => {
            let client = allowance::of_client(host, &mut request);
            let head = judge_head(host, &request, &mut exchange);
            exchange.check(Stage::Head, head);
            exchange.check(Stage::Client, client);
            exchange.check(Stage::Sender, sender);
            Response { held, ..answer(&server, request, &mut exchange).await }
        }
        Err(problem) => problem.into(),
    };
    let response = finished(host, &mut exchange, response);
    exchange.end(host, response)
}

/// Finds the route of a request and calls its handler if nothing refuses it, recording in
/// `exchange` what becomes known on the way.
async fn answer(server: &Server, mut request: Box<Request>, exchange: &mut Exchange) -> Response {
    let host = &*server.host;
    if request.method == Method::GET {
        // No handler reads it, and the answer may take a minute.
        request.body.discard();
    }
    let found = match find(host, &request) {
        Ok(found) => found,
        Err(response) => {
            exchange.payer = request.payer.clone();
            return exchange.take_refusal().map_or(*response, Response::from);
        }
    };
    let Entry { face, route } = *host.routes.at(found.route);
    // A refused request is audited with its route and its log.
    let path = name(host, &mut request, &found);
    exchange.check(Stage::Path, path);
    if exchange.is_open() {
        let access = prepare(host, &mut request, route).await;
        exchange.check(Stage::Access, access);
    }
    if exchange.is_open() {
        exchange.check(Stage::History, judge_history(host, &request, route));
    }
    if exchange.is_open() {
        exchange.check(Stage::Contract, hold_against(route, &mut request));
    }
    if exchange.is_open() && changes(route, &request) {
        let stored = required_freshness::handed_in_stored(host, &request).await;
        exchange.check(Stage::Precedence, stored);
    }
    note(host, exchange, &found, &request);
    let answer = match exchange.take_refusal() {
        Some(problem) => declared(route, Err(problem)),
        None => match websocket::answer(server, &request) {
            Some(answer) => answer,
            None => handled(server, &found, request, exchange).await,
        },
    };
    if let Some(refusal) = answer.as_ref().err().and_then(|problem| FollowerRefusal::of(problem)) {
        exchange.not_leading =
            exchange.not_leading.or(Some(refusal).filter(|_| exchange.is_of_node));
    }
    let answer = answer.map_err(route.contract.words);
    // The credentials may be in the headers or in the body.
    if matches!(&answer, Err(problem) if problem.kind.is(&problem::TOO_MANY_LOGINS)) {
        host.stats.refusals.count(RefusalReason::Login);
    }
    answer.unwrap_or_else(face.render)
}

/// Records what is known of a request before its handler takes it.
fn note(host: &Host, exchange: &mut Exchange, found: &FoundRoute, request: &Request) {
    let route = host.routes.at(found.route).route;
    exchange.route = host.routes.name_at(found.route);
    exchange.log_name = log_of(route, request).map_or(Cow::Borrowed(""), kept);
    // What everyone may ask shows neither the head nor the history of a log.
    exchange.log = request.log.clone().filter(|_| route.needs != Needs::Public);
    // Both only after the gate.
    let is_admitted = matches!(exchange.refused_at(), None | Some(Stage::History));
    exchange.tells_of_named_log = is_admitted && route.scope == Scope::Node;
    exchange.principal = Some(Arc::clone(&request.principal));
    let is_unknown = exchange.refusal().is_some_and(|problem| problem.kind.status == 401);
    exchange.shows_credentials = is_unknown && credentials::are_shown(&request.headers);
    exchange.payer = request.payer.clone();
}

/// The answer of the handler, here or at the leader.
async fn handled(
    server: &Server,
    found: &FoundRoute,
    request: Box<Request>,
    exchange: &Exchange,
) -> Answer {
    let host = &*server.host;
    let route = host.routes.at(found.route).route;
    let memory = |answer: Answer| {
        answer.and_then(|response| {
            allowance::of_memory(host, route, exchange.version, &exchange.payer, response)
        })
    };
    match forward::for_leader(host, route, &request) {
        None => declared(route, memory(server.handle(found.route, request).await)),
        Some(for_leader) if for_leader.is_led_here() => {
            declared(route, memory(for_leader.answer(server, found.route, request).await))
        }
        // Another node's answer was checked against the contract there.
        Some(for_leader) => memory(for_leader.answer(server, found.route, request).await),
    }
}

/// The answer, which the contract of its route has to name.
fn declared(route: &Route, answer: Answer) -> Answer {
    debug_assert_eq!(route.undeclared(&answer), None, "what no client was told of");
    answer
}

/// The answer with the headers that every answer has.
fn finished(host: &Host, exchange: &mut Exchange, mut response: Response) -> Response {
    if exchange.ends_connection {
        response = response.with("connection", "close".to_owned());
    }
    if exchange.version < Version::HTTP_11 && matches!(response.content, Content::Stream(_)) {
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
    if let (true, Some(system)) = (exchange.is_of_node, host.node.get(SYSTEM_LOG)) {
        response = response.with(forwarded_message::SYSTEM_POSITION, system.head().to_string());
    }
    if let Some(refusal) = exchange.not_leading {
        response = response.with(forwarded_message::NOT_LEADING, refusal.header_value().to_owned());
    }
    response.pay_by(std::mem::take(&mut exchange.payer));
    let transport = if host.tls.is_some() { Transport::Tls } else { Transport::Plain };
    security::put_on(&mut response, transport);
    if let (Some(allowed), Some(page)) = (host.access.cors(), &exchange.page) {
        cors::put_on(allowed, &mut response, page, exchange.route.path);
    }
    response
}

const NOT_IN_A_CLUSTER: &str = "a node forwarded the request (Wellspring-Node), and this server is in no cluster; \
     nothing was done";

/// Checks a head before routing, as the lean loop does.
fn judge_head(host: &Host, request: &Request, exchange: &mut Exchange) -> Result<(), Box<Problem>> {
    let rules = HeadRules::of(&request.headers);
    let framing = request.connection.as_ref().and_then(|ties| ties.framing);
    if let Some(unsound) = rules.unsound(request.version).or(framing) {
        exchange.ends_connection = true;
        return Err(unsound.into());
    }
    // HTTP/2 may split a header such as cookies into many fields; its bytes are bounded.
    let most = host.config.max_headers;
    if request.version < Version::HTTP_2 && request.headers.len() > most {
        return Err(head_rules::too_many_headers(most));
    }
    if rules.names_node() && host.cluster_key.is_none() {
        // A leader was here. The node waits for the leader, wherever it is now.
        exchange.not_leading = Some(FollowerRefusal::NothingDone);
        return Err(problem::NOT_A_NODE.because(NOT_IN_A_CLUSTER));
    }
    // Nodes may address each other by any name.
    if request.of_node.is_none() {
        host.access.check_host(&request.uri, rules.host())?;
    }
    rules.refusal().map_or(Ok(()), Err)
}

/// An owned log name, without an allocation for `main`, the most frequent one.
fn kept(log: &str) -> Cow<'static, str> {
    if log == MAIN { Cow::Borrowed(MAIN) } else { Cow::Owned(log.to_owned()) }
}

/// The log of a request, if its route concerns one.
pub(super) fn log_of<'a>(route: &Route, request: &'a Request) -> Option<&'a str> {
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
    if changes(route, request) && !contract.reads(&subjects::SUBJECT) {
        subjects::refuse(request)?;
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
pub(super) async fn prepare(
    host: &Host,
    request: &mut Request,
    route: &Route,
) -> Result<(), Box<Problem>> {
    if route.needs.are_of_accounts() {
        required_freshness::accounts(host, request).await?;
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
    let recheck = AccessRecheck::new(&host.access, moment, &principal, route.needs, log.map(kept));
    request.body.recheck_access(recheck);
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
            required_freshness::log_made_elsewhere(host, name).await?;
            log = host.node.get(name);
        }
        request.log = log;
        request.log()?;
    }
    Ok(())
}

/// Whether the history that the request names is that of the log.
fn judge_history(host: &Host, request: &Request, route: &Route) -> Result<(), Box<Problem>> {
    match route.needs {
        // A refusal would show everyone the head and the history of the log.
        Needs::Public => Ok(()),
        _ => history::check_header(host, request, log_of(route, request)),
    }
}
