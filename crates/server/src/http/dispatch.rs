//! From a request to its answer: finds the route and the log, calls the handler,
//! and puts on every answer what every answer carries.

use super::allowance;
use super::body_memory::Charge;
use super::params::percent_decode;
use super::problem::{self, Problem};
use super::record::{Asked, Way};
use super::routes::{Found, Lookup, Route, Router, Scope, TABLE};
use super::security::{self, Transport};
use super::{Answer, Content, Request, Response, Shell, cors, links};
use crate::access::credentials;
use crate::access::{Needs, SYSTEM_LOG, Standing};
use crate::limits::{Payer, Refused};
use crate::node::{MAIN, is_name};
use hyper::{Method, Version};
use std::borrow::Cow;
use std::sync::Arc;
use wellspring_log::Log;
use wellspring_views::access::Role;

/// Answers a request, whatever it is.
pub(crate) async fn dispatch(shell: Arc<Shell>, request: Request) -> Response {
    let page = shell.cors.as_ref().map(|_| cors::Asked::of(&request));
    let asked = Asked::of(&shell, &request);
    let version = request.version;
    let held = Charge::of_head(&shell.body_memory, version, &request.uri, &request.headers);
    let (Ran { way, log, payer, answer }, held) = match held {
        Ok(held) => (run(&shell, request).await, held),
        Err(problem) => (Ran::refused(&request, Payer::default(), Err(problem)), None),
    };
    let mut response = answer.unwrap_or_else(Response::from);
    response.held = held;
    if version < Version::HTTP_11 && matches!(response.content, Content::Stream(_)) {
        // Without chunks a stream that was cut looks like one that ended.
        response = problem::NEEDS_HTTP_11.because("ask for this over HTTP/1.1 or HTTP/2").into();
    }
    if let (None, Some(log)) = (response.position, &log) {
        response.position = Some(log.head());
    }
    response.pay_by(payer);
    let transport = if shell.tls.is_some() { Transport::Tls } else { Transport::Plain };
    security::put_on(&mut response, transport);
    if let (Some(cors), Some(page)) = (&shell.cors, &page) {
        cors.put_on(&mut response, page, way.route);
    }
    asked.answered(&shell, &way, response)
}

/// What a request came to.
struct Ran {
    way: Way,
    log: Option<Log>,
    /// Who is charged for the answer.
    payer: Payer,
    answer: Answer,
}

impl Ran {
    /// Answered before a route was found.
    fn refused(request: &Request, payer: Payer, answer: Answer) -> Ran {
        let principal = Arc::clone(&request.principal);
        let log_name = Cow::Borrowed("");
        let way = Way { route: TABLE.len(), log_name, principal, shows_credentials: false };
        Ran { way, log: None, payer, answer }
    }
}

async fn run(shell: &Arc<Shell>, mut request: Request) -> Ran {
    let within = allowance::of_client(shell, &mut request);
    if request.method == Method::GET {
        // Nobody will read it, and the answer may take a minute.
        request.body.discard();
    }
    let (found, refused) = match (find(shell, &request), within) {
        (Ok(found), within) => (found, within.err()),
        (Err(answer), within) => {
            let answer = within.map_or_else(Err, |()| *answer);
            return Ran::refused(&request, request.payer.clone(), answer);
        }
    };
    let route = &TABLE[found.route];
    let prepared = match (refused, name(&mut request, &found)) {
        (None, Ok(())) => prepare(shell, &mut request, route).await,
        (Some(problem), _) | (_, Err(problem)) => Err(problem),
    };
    let is_unknown = matches!(&prepared, Err(problem) if problem.kind.status == 401);
    let way = Way {
        route: found.route,
        log_name: log_of(route, &request).map_or(Cow::Borrowed(""), kept),
        principal: Arc::clone(&request.principal),
        shows_credentials: is_unknown && credentials::are_shown(&request.headers),
    };
    let (payer, log) = (request.payer.clone(), request.log.clone());
    let answer = match prepared {
        Ok(()) => {
            let version = request.version;
            let answer = (route.handler)(Arc::clone(shell), request).await;
            answer.and_then(|response| allowance::of_memory(shell, route, version, response))
        }
        Err(problem) => Err(problem),
    };
    let answer = answer.map_err(|problem| in_words_of(route.scope, problem));
    // Whether they came with the request or in its body.
    if matches!(&answer, Err(problem) if std::ptr::eq(problem.kind, &problem::TOO_MANY_LOGINS)) {
        shell.stats.refusals.count(Refused::Login);
    }
    Ran { way, log, payer, answer }
}

/// A log's name, to be kept: most are that of the one log that is always there.
fn kept(log: &str) -> Cow<'static, str> {
    if log == MAIN { Cow::Borrowed(MAIN) } else { Cow::Owned(log.to_owned()) }
}

/// Name of the log that a request is about, if its route is about one.
fn log_of<'a>(route: &Route, request: &'a Request) -> Option<&'a str> {
    match route.scope {
        Scope::Node => route.path.ends_with("{log}").then_some(&*request.param),
        _ => Some(&*request.log_name),
    }
}

/// A problem as the clients of a route expect it.
fn in_words_of(scope: Scope, problem: Box<Problem>) -> Box<Problem> {
    if scope == Scope::Links { links::with_error(problem) } else { problem }
}

/// The route of a request, or the answer that needs none.
fn find(shell: &Shell, request: &Request) -> Result<Found, Box<Answer>> {
    let path = request.uri.path();
    let length = request.uri.path_and_query().map_or(0, |p| p.as_str().len());
    let limit = shell.config.max_url_bytes;
    if length > limit {
        let detail = format!("the URL is {length} bytes long; POST /v1/query takes long queries");
        let problem = problem::URL_TOO_LONG.because(detail).limit(limit as u64);
        return Err(Box::new(Err(problem)));
    }
    let router = Router::get(shell.config.dev_endpoints);
    match router.find(request.method.as_str(), path) {
        Lookup::Found(found) => Ok(found),
        Lookup::WrongMethod { allow, .. } if request.method == Method::OPTIONS => {
            let response = Response { status: 204, content_type: "", ..Response::json(204, "") };
            Err(Box::new(Ok(response.with("allow", allow))))
        }
        Lookup::WrongMethod { allow, scope } => {
            let detail = format!("{path} knows {allow}, not {}", request.method);
            let mut problem = problem::METHOD_NOT_ALLOWED.because(detail);
            problem.allow = Some(allow);
            Err(Box::new(Err(in_words_of(scope, problem))))
        }
        Lookup::Nothing => {
            let detail = format!("{path} is not a route; GET /openapi.json lists them all");
            Err(Box::new(Err(problem::NOT_FOUND.because(detail))))
        }
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
    let log = log_of(route, request);
    let moment = shell.access.moment();
    let admitted = shell.access.admit(&request.headers, request.client, route.needs, log).await;
    let is_kept = log == Some(SYSTEM_LOG) && route.needs > Needs::Role(Role::Reader);
    let principal = admitted?;
    let standing = Standing::new(&shell.access, moment, &principal, route.needs, log.map(kept));
    request.body.stand(standing);
    request.principal = principal;
    allowance::of_account(shell, request)?;
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
