//! Operations of protocols other than HTTP: each passes the gate and the limits of a request, and
//! leaves the same record.
//!
//! ```text
//! connection ─► credentials ─► operate ─► quotas ─► gate ─► log ─► work ─► figures, log lines, audit, trace
//! ```

use super::allowance;
use super::body_memory::Charge;
use super::dispatch::{log_of, prepare};
use super::exchange::Exchange;
use super::routes::Operation;
use super::{ConnectionState, ConnectionTies, Host, Request, Response};
use crate::access::credentials;
use crate::names::is_name;
use crate::stats::RefusalReason;
use crate::wire::effects::{Effects, Repeat};
use crate::wire::problem::{self, Problem};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use hyper::header::{AUTHORIZATION, HeaderMap, HeaderValue};
use hyper::{Method, Uri};
use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_types::Position;
use zeroize::Zeroizing;

/// Credentials of a connection.
pub enum Credentials<'a> {
    /// None.
    Missing,
    /// An account and its password.
    Password {
        /// The account.
        account: &'a str,
        /// Its password.
        password: &'a str,
    },
    /// A token or an API key.
    Bearer(&'a str),
}

/// The result of an operation, and the position that it reflects.
pub struct OperationResult<T> {
    /// The result.
    pub value: T,
    /// The position, if a log is involved.
    pub position: Option<Position>,
}

/// The client of one connection, who performs one operation after another.
pub struct OperationClient {
    host: Arc<Host>,
    /// Reused for each operation.
    request: Box<Request>,
    /// Memory for what it has sent.
    held: Charge,
}

impl OperationClient {
    /// The client of a new connection from this address.
    #[must_use]
    pub fn new(host: &Arc<Host>, client: Option<IpAddr>) -> OperationClient {
        let mut request =
            Request::in_process(host, Method::POST, Uri::default(), HeaderMap::new(), Bytes::new());
        request.client = client;
        let state = Arc::new(ConnectionState::default());
        let rate = host.limits.of_connection();
        request.connection = Some(ConnectionTies { rate, is_counted: false, framing: None, state });
        OperationClient { host: Arc::clone(host), request, held: Charge::of_work() }
    }

    /// Counts `bytes` of memory for what the client has sent and is not acted on yet, in place of
    /// what was counted before.
    ///
    /// # Errors
    /// 429, 503: the memory for what clients send is exhausted.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Box<Problem>> {
        self.held = Charge::of_work();
        self.held.raise_for(&self.request.payer, &self.host.body_memory, bytes)
    }

    /// Whether the client of the last operation would still be admitted.
    ///
    /// # Errors
    /// 401, 403.
    pub fn still_may(&self) -> Result<(), Box<Problem>> {
        self.request.still_may()
    }

    /// Uses these credentials from the next operation on, which proves them.
    ///
    /// # Errors
    /// 400: they contain characters that no credentials have.
    pub fn set_credentials(&mut self, given: &Credentials<'_>) -> Result<(), Box<Problem>> {
        let text = Zeroizing::new(match given {
            Credentials::Missing => {
                self.request.headers.remove(AUTHORIZATION);
                return Ok(());
            }
            Credentials::Password { account, password } => {
                let login = Zeroizing::new(format!("{account}:{password}"));
                format!("Basic {}", STANDARD.encode(login.as_bytes()))
            }
            Credentials::Bearer(token) => format!("Bearer {token}"),
        });
        let mut value = HeaderValue::from_str(&text).map_err(|_| {
            problem::MALFORMED_CREDENTIALS.because("the credentials contain control characters")
        })?;
        value.set_sensitive(true);
        self.request.headers.insert(AUTHORIZATION, value);
        Ok(())
    }

    /// Performs an operation on the log of this name, or of its alias; an empty name for none.
    /// `effects` tell what it has done so far, also if it is dropped.
    ///
    /// # Errors
    /// As for a request: 401, 403, 404, 429, 503; those of the work.
    pub async fn operate<T>(
        &mut self,
        operation: &Operation,
        log_name: &str,
        effects: &Effects,
        work: impl AsyncFnOnce(&Request) -> Result<OperationResult<T>, Box<Problem>>,
    ) -> Result<T, Box<Problem>> {
        let (host, request) = (&*self.host, &mut *self.request);
        aim(host, request, operation, log_name, effects);
        let mut exchange = Exchange::begin(host, request);
        exchange.route = operation.name;
        let performed = match allowance::of_client(host, request) {
            Ok(()) => perform(host, request, operation, work).await,
            Err(problem) => Err(problem),
        };
        end(host, request, exchange, operation, performed)
    }

    /// Does what only prepares an operation: it passes quotas and gate, and leaves no record.
    ///
    /// # Errors
    /// As of [`operate`](Self::operate).
    pub async fn prepare<T>(
        &mut self,
        operation: &Operation,
        log_name: &str,
        work: impl AsyncFnOnce(&Request) -> Result<OperationResult<T>, Box<Problem>>,
    ) -> Result<T, Box<Problem>> {
        let (host, request) = (&*self.host, &mut *self.request);
        aim(host, request, operation, log_name, &Effects::default());
        allowance::of_client(host, request)?;
        Ok(perform(host, request, operation, work).await?.value)
    }
}

/// Makes the request of the last operation that of another one.
fn aim(
    host: &Host,
    request: &mut Request,
    operation: &Operation,
    log_name: &str,
    effects: &Effects,
) {
    request.effects = effects.clone();
    request.principal = host.access.unauthenticated();
    request.log = None;
    log_name.clone_into(&mut request.log_name);
    if host.node.get(log_name).is_none() {
        let aliases = operation.entry.face.log_aliases;
        if let Some((_, log)) = aliases.iter().find(|(alias, _)| *alias == log_name) {
            (*log).clone_into(&mut request.log_name);
        }
    }
}

async fn perform<T>(
    host: &Host,
    request: &mut Request,
    operation: &Operation,
    work: impl AsyncFnOnce(&Request) -> Result<OperationResult<T>, Box<Problem>>,
) -> Result<OperationResult<T>, Box<Problem>> {
    let route = operation.entry.route;
    if let Some(log) = log_of(route, request)
        && !is_name(log)
    {
        return Err(problem::no_such_log(log));
    }
    request.contract = &route.contract;
    // The defaults of what a request might say.
    request.query = route.contract.read(None)?;
    prepare(host, request, route).await?;
    let performed = work(request).await;
    performed.map_err(|problem| request.effects.refusal(problem, Repeat::Unsafe))
}

fn end<T>(
    host: &Host,
    request: &Request,
    mut exchange: Exchange,
    operation: &Operation,
    performed: Result<OperationResult<T>, Box<Problem>>,
) -> Result<T, Box<Problem>> {
    let log = log_of(operation.entry.route, request).unwrap_or_default();
    exchange.log_name = Cow::Owned(log.to_owned());
    exchange.principal = Some(Arc::clone(&request.principal));
    let (response, result) = match performed {
        Ok(OperationResult { value, position }) => {
            let mut response = Response::empty(200);
            if let Some(position) = position {
                response = response.at(position);
            }
            (response, Ok(value))
        }
        Err(problem) => {
            if problem.kind.is(&problem::TOO_MANY_LOGINS) {
                host.stats.refusals.count(RefusalReason::Login);
            }
            let is_unknown = problem.kind.status == 401;
            exchange.shows_credentials = is_unknown && credentials::are_shown(&request.headers);
            (Response::of_problem(&problem), Err(problem))
        }
    };
    exchange.end(host, response);
    result
}
