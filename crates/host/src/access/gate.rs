//! The gate authenticates and authorizes every request, once, on whichever stack it arrives.
//!
//! Fast checks (no accounts, a cached credential, a token, a key) run on the serving thread. A
//! password takes tens of milliseconds of CPU time, so the same password sent over many connections
//! at once is verified once.

use super::api_key;
use super::cache::{Cache, Fingerprint};
use super::config::AccessConfig;
use super::cors_origins::Cors;
use super::credentials::{self, Credential, CredentialFault, Login};
use super::foreign_page::{Pages, Trust};
use super::jwks_source;
use super::needs::Needs;
use super::password::{self, Passwords};
use super::principal::{Principal, Proof, Verdict};
use super::recheck::Moment;
use super::throttle::{Admission, AttemptResult, Throttle};
use super::token::{IssuedToken, Tokens};
use super::waiting::WaitingPlaces;
use crate::access::view::{Access, Folded, State};
use crate::cluster::{ClusterKey, NodeName};
use crate::foreign_files::remedy;
use crate::identity::Caller;
use crate::identity::{AccountName, Grants, Role};
use crate::settings::ProcessConfig;
use crate::setup::SetupError;
use crate::stats;
use crate::view::Live;
use crate::wire::problem::{self, Problem, Retry};
use hyper::header::AUTHORIZATION;
use hyper::{HeaderMap, Uri};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::OnceCell;
use wellspring_log::Clock;
use zeroize::Zeroizing;

/// Credentials that each serving thread caches.
const REMEMBERED: usize = 8_192;
/// Most passwords that wait to be verified.
const MOST_WAITING: usize = 64;
/// Detail of the refusal where only nodes are admitted.
const NODES_ONLY: &str =
    "this route is reserved for the nodes of the cluster, which sign their requests with its key";

/// A caller whose password was right.
#[derive(Debug, Clone)]
pub struct LoggedIn {
    /// The account.
    pub account: AccountName,
    /// The account's roles.
    pub grants: Arc<Grants>,
    /// The account's `tokens_valid_from_us` in the state whose password was verified.
    since_us: u64,
}

/// Why a login failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NotLoggedIn {
    /// The password is wrong, or the account does not exist or is disabled; the answer does not say
    /// which.
    Wrong,
    /// Retry after this many seconds.
    Later(u64),
    /// Too many passwords wait to be verified.
    Busy,
}

/// The parts of a request that the gate examines.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateRequest<'a> {
    /// Its target.
    pub(crate) uri: &'a Uri,
    /// Its headers.
    pub(crate) headers: &'a HeaderMap,
    /// The client's address.
    pub(crate) client: Option<IpAddr>,
    /// The node that forwarded it, if any.
    pub(crate) of_node: Option<&'a NodeName>,
}

/// A password being verified, shared by all requests that sent the same.
type Flight = Arc<OnceCell<Result<LoggedIn, NotLoggedIn>>>;

/// An admitted credential on a log, and how to tell whether it is still valid.
#[derive(Debug, Clone)]
pub(crate) struct Pass {
    /// The caller.
    pub(crate) principal: Arc<Principal>,
    /// The state of accounts and tokens when the pass was given.
    moment: Moment,
    /// When it must be judged again, in µs since 1970 UTC.
    until_us: u64,
}

/// Authenticates and authorizes every request.
pub struct Gate {
    live: Arc<Live<Access>>,
    folded: Arc<Folded>,
    tokens: Tokens,
    passwords: Passwords,
    throttle: Arc<Throttle>,
    clock: Arc<dyn Clock>,
    /// One per serving thread, so that threads do not contend for a lock.
    caches: Vec<Mutex<Cache>>,
    flights: Mutex<HashMap<Fingerprint, Flight>>,
    /// Whether accounts have been seen. The last account is never deleted, so this never becomes
    /// false again.
    closed: AtomicBool,
    waiting: WaitingPlaces,
    open_caller: Arc<Principal>,
    unauthenticated: Arc<Principal>,
    /// Which pages are allowed.
    pages: Pages,
    /// Lifetime of a token if the client requests none, in s.
    token_life_s: u64,
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Gate")
    }
}

impl Gate {
    /// The gate of a data folder, once its accounts are folded; for a node of a cluster, with the
    /// cluster's key.
    ///
    /// # Errors
    /// A sentence: the accounts or the token secret cannot be read.
    pub(crate) fn open(
        process: &ProcessConfig,
        config: &AccessConfig,
        pages: Pages,
        clock: Arc<dyn Clock>,
        live: Arc<Live<Access>>,
        cluster_key: Option<Arc<ClusterKey>>,
    ) -> Result<Gate, SetupError> {
        let folded =
            live.wait_live().map_err(|reason| format!("cannot read the accounts: {reason}"))?;
        let foreign = jwks_source::open(config, &*clock)?;
        let tokens = match cluster_key {
            Some(key) => Tokens::derived(key, Arc::clone(&folded), foreign),
            None => Tokens::open(&process.data, foreign).map_err(|e| {
                let remedy = remedy(&process.data, &e);
                format!("cannot store the token secret in {}: {e}{remedy}", process.data.display())
            })?,
        };
        // The lean threads are numbered after the others.
        let caches =
            (0..2 * process.threads.max(1)).map(|_| Cache::new(REMEMBERED).map(Mutex::new));
        let caches =
            caches.collect::<io::Result<_>>().map_err(|e| format!("no random bytes: {e}"))?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let unauthenticated = Arc::new(Principal::unauthenticated());
        let open_caller = Principal::of_open_server(&State::default());
        let open_caller = open_caller.map_or(Arc::clone(&unauthenticated), Arc::new);
        Ok(Gate {
            live,
            folded,
            tokens,
            passwords: Passwords::new(cores / 2, MOST_WAITING),
            throttle: Arc::default(),
            clock,
            caches,
            flights: Mutex::default(),
            closed: AtomicBool::new(false),
            waiting: WaitingPlaces::new(),
            open_caller,
            unauthenticated,
            pages,
            token_life_s: config.token_life_s,
        })
    }

    /// The current accounts and keys.
    pub fn state(&self) -> Arc<State> {
        self.folded.now()
    }

    /// The view of accounts, for commands.
    pub fn live(&self) -> &Arc<Live<Access>> {
        &self.live
    }

    /// Places for requests that wait before they are authenticated.
    pub(crate) fn waiting(&self) -> &WaitingPlaces {
        &self.waiting
    }

    /// The tokens.
    pub fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Where passwords are hashed and verified.
    pub fn passwords(&self) -> &Passwords {
        &self.passwords
    }

    /// An unauthenticated caller.
    pub fn unauthenticated(&self) -> Arc<Principal> {
        Arc::clone(&self.unauthenticated)
    }

    /// Whether there are no accounts and no external issuer: every caller then has full access.
    pub fn is_open(&self) -> bool {
        self.tokens.foreign().is_none() && !self.has_accounts()
    }

    /// Whether there is an account.
    pub fn has_accounts(&self) -> bool {
        if self.folded.position() == 0 {
            return false;
        }
        let seen = || self.closed.load(Ordering::Relaxed);
        let has = seen() || !self.state().is_open();
        if has && !seen() {
            self.closed.store(true, Ordering::Relaxed);
        }
        has
    }

    /// The caller of a request, if access is granted: what the route `needs`, on the log concerned
    /// (`None`: on something that belongs to no log).
    ///
    /// # Errors
    /// 401: the credential is missing or invalid. 403: it is valid but grants too little. 400: the
    /// headers are malformed. 429: too many passwords were wrong, or are being verified.
    pub(crate) async fn admit(
        &self,
        asking: GateRequest<'_>,
        needs: Needs,
        log: Option<&str>,
    ) -> Result<Arc<Principal>, Box<Problem>> {
        let GateRequest { uri, headers, client, of_node } = asking;
        match (needs, of_node) {
            (Needs::Public, _) | (Needs::Node, Some(_)) => return Ok(self.unauthenticated()),
            (Needs::Node, None) => return Err(problem::NOT_A_NODE.because(NODES_ONLY)),
            (Needs::Account | Needs::Role(_), _) => {}
        }
        // The node that received the request has judged its page and host name.
        let is_of_page = of_node.is_none();
        if self.is_open() {
            if is_of_page {
                self.pages.check_origin(uri, headers, Trust::ThisMachine)?;
            }
            return Ok(Arc::clone(&self.open_caller));
        }
        let values = |name| headers.get_all(name).into_iter().map(|value| value.as_bytes());
        let presented =
            credentials::presented(values(AUTHORIZATION.as_str()), values("x-api-key"))?;
        let Some(presented) = presented else {
            let detail = "this route requires credentials: send Authorization: Bearer with a \
                          token or an API key, X-API-Key, or Authorization: Basic";
            return Err(problem::UNAUTHENTICATED.because(detail));
        };
        if is_of_page && matches!(presented, Credential::Basic(_)) {
            self.pages.check_origin(uri, headers, Trust::OwnOrigin)?;
        }
        let principal = match self.recognise(&presented)? {
            Some(principal) => principal,
            None => self.by_password(&presented, client).await?,
        };
        may(&principal, needs, log)
            .map_err(|problem| problem.told_to(Caller::Known(principal.identity().clone())))?;
        Ok(principal)
    }

    /// Which pages are allowed.
    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// The origins whose pages may use this server; `None`: only its own.
    pub(crate) fn cors(&self) -> Option<&Cors> {
        self.pages.cors()
    }

    /// Lifetime of a token if the client requests none, in s.
    pub fn token_life_s(&self) -> u64 {
        self.token_life_s
    }

    /// Refuses, while there are no accounts, every request under a host name that a page of another
    /// site can have.
    ///
    /// # Errors
    /// 403 `foreign-host`.
    pub(crate) fn check_host(&self, uri: &Uri, host: Option<&[u8]>) -> Result<(), Box<Problem>> {
        if self.is_open() { self.pages.check_host(uri, host) } else { Ok(()) }
    }

    /// Whether [`check_host`](Self::check_host) accepts a request that names its host in the header
    /// only.
    pub(crate) fn answers_under(&self, host: &[u8]) -> bool {
        !self.is_open() || self.pages.is_own_host(host)
    }

    /// Synchronous [`admit`](Self::admit), for one role on a log or on everything. `None` if the
    /// check is slow or access is denied.
    pub(crate) fn pass<'a>(
        &self,
        authorization: Option<&'a [u8]>,
        api_key: Option<&'a [u8]>,
        role: Role,
        log: Option<&str>,
    ) -> Option<Pass> {
        // Read first: any later change invalidates the pass.
        let moment = self.moment();
        let principal = if self.is_open() {
            Arc::clone(&self.open_caller)
        } else {
            let presented = credentials::presented(authorization, api_key).ok()??;
            self.recognise(&presented).ok()??
        };
        let until_us = principal.until_us().unwrap_or(u64::MAX);
        let allowed = principal.may(role, log) == Verdict::Allowed;
        allowed.then_some(Pass { principal, moment, until_us })
    }

    /// The current state of accounts and tokens. Take it before examining a request: later changes
    /// are then detected.
    pub(crate) fn moment(&self) -> Moment {
        Moment { position: self.folded.position(), tokens: self.tokens.generation() }
    }

    /// µs since 1970 UTC.
    pub(super) fn wall_us(&self) -> u64 {
        self.clock.wall_us()
    }

    /// Whether the state for which a pass was given still holds.
    pub(crate) fn holds(&self, pass: &Pass) -> bool {
        pass.moment == self.moment()
            && (pass.until_us == u64::MAX || self.clock.wall_us() < pass.until_us)
    }

    /// The principal of a cached credential, or of one that can be verified at once; `None`: it is
    /// a password.
    fn recognise(
        &self,
        presented: &Credential<'_>,
    ) -> Result<Option<Arc<Principal>>, Box<Problem>> {
        let now_us = self.clock.wall_us();
        let tokens = self.tokens.generation();
        let mut cache = self.cache();
        let fingerprint = cache.fingerprint(presented);
        if let Some(principal) = cache.find(&fingerprint, &self.folded, tokens, now_us) {
            return Ok(Some(Arc::clone(principal)));
        }
        drop(cache);
        let proof = match presented {
            Credential::Token(token) => {
                self.tokens.verify(token, now_us).map_err(|_| not_accepted())?.into()
            }
            Credential::Key(key) => Proof::Key(api_key::digest(key)),
            Credential::Basic(_) => return Ok(None),
        };
        self.remember(presented, proof, tokens, now_us).map(Some)
    }

    /// Judges a proof, and caches it if it is valid.
    fn remember(
        &self,
        presented: &Credential<'_>,
        proof: Proof,
        tokens: u64,
        now_us: u64,
    ) -> Result<Arc<Principal>, Box<Problem>> {
        let state = self.state();
        let principal = Arc::new(proof.judge(&state, now_us).map_err(|_| not_accepted())?);
        let mut cache = self.cache();
        let fingerprint = cache.fingerprint(presented);
        let remembered = Arc::clone(&principal);
        cache.remember(fingerprint, proof, remembered, state.applied(), tokens, now_us);
        Ok(principal)
    }

    async fn by_password(
        &self,
        presented: &Credential<'_>,
        from: Option<IpAddr>,
    ) -> Result<Arc<Principal>, Box<Problem>> {
        let Credential::Basic(encoded) = presented else { return Err(not_accepted()) };
        let Login { username, password } = credentials::basic(encoded)?;
        let LoggedIn { account, since_us, .. } = self.login(&username, password, from).await?;
        let proof = Proof::Password { account, since_us };
        self.remember(presented, proof, self.tokens.generation(), self.clock.wall_us())
    }

    /// Verifies a name and a password, once for all concurrent requests that send the same. Takes
    /// as long if the account does not exist.
    ///
    /// # Errors
    /// 401, 429.
    pub async fn login(
        &self,
        name: &str,
        password: Zeroizing<String>,
        from: Option<IpAddr>,
    ) -> Result<LoggedIn, Box<Problem>> {
        // All threads use the salt of the first cache, so that they share a verification.
        let fingerprint = lock(&self.caches[0]).fingerprint_of_login(name, &password);
        let flight = Arc::clone(lock(&self.flights).entry(fingerprint).or_default());
        let _landing = Landing { gate: self, fingerprint, flight: &flight };
        let verified = flight.get_or_init(|| self.verify(name, password, from)).await;
        verified.clone().map_err(|reason| self.refuse_login(name, reason))
    }

    /// The answer to a failed login; for the audit, with the named account if it exists.
    fn refuse_login(&self, name: &str, reason: NotLoggedIn) -> Box<Problem> {
        let claimed = self.state().account(name).map(|account| account.name().clone());
        Box::<Problem>::from(reason).told_to(Caller::Claimed(claimed))
    }

    async fn verify(
        &self,
        name: &str,
        password: Zeroizing<String>,
        from: Option<IpAddr>,
    ) -> Result<LoggedIn, NotLoggedIn> {
        let attempt = match self.throttle.admit(name, from, self.clock.monotonic_us()) {
            Admission::Go(attempt) => attempt,
            Admission::Later(seconds) => return Err(NotLoggedIn::Later(seconds)),
        };
        let state = self.state();
        let account = state.account(name).filter(|account| !account.is_disabled());
        let kept = account.and_then(|account| account.password().cloned());
        let verdict = self.passwords.verify(kept, password).await;
        let now_us = self.clock.monotonic_us();
        match (verdict, account) {
            (Err(password::Busy), _) => {
                attempt.settle(AttemptResult::NotTried, now_us);
                Err(NotLoggedIn::Busy)
            }
            (
                Ok(
                    right @ (password::PasswordVerdict::Right
                    | password::PasswordVerdict::RightButWeak),
                ),
                Some(account),
            ) => {
                attempt.settle(AttemptResult::Right, now_us);
                if right == password::PasswordVerdict::RightButWeak {
                    // Not rehashed: the event that sets a password ends the account's tokens.
                    let account = account.name().as_str();
                    tracing::info!(
                        account,
                        "the password is hashed with outdated parameters; set it again"
                    );
                }
                Ok(LoggedIn {
                    account: account.name().clone(),
                    grants: Arc::clone(account.grants()),
                    since_us: account.tokens_valid_from_us(),
                })
            }
            (Ok(_), _) => {
                attempt.settle(AttemptResult::Wrong, now_us);
                Err(NotLoggedIn::Wrong)
            }
        }
    }

    /// Issues a token to a logged-in account, with its roles or fewer.
    ///
    /// # Errors
    /// The system provides no random bytes.
    pub fn issue(
        &self,
        logged_in: &LoggedIn,
        grants: &Grants,
        life_s: u64,
    ) -> io::Result<IssuedToken> {
        let LoggedIn { account, since_us, .. } = logged_in;
        self.tokens.issue(account, grants, *since_us, life_s, self.clock.wall_us())
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        lock(&self.caches[stats::thread() % self.caches.len()])
    }
}

/// Forgets a shared verification once no request waits for it.
struct Landing<'a> {
    gate: &'a Gate,
    fingerprint: Fingerprint,
    flight: &'a Flight,
}

impl Drop for Landing<'_> {
    fn drop(&mut self) {
        let mut flights = lock(&self.gate.flights);
        // A caller that arrives after the verification ended starts another: the result may be
        // outdated.
        let is_over = self.flight.initialized() || Arc::strong_count(self.flight) <= 2;
        let is_this = |flight: &Flight| Arc::ptr_eq(flight, self.flight);
        if is_over && flights.get(&self.fingerprint).is_some_and(is_this) {
            flights.remove(&self.fingerprint);
        }
    }
}

/// Whether a caller may do what a route needs.
pub(crate) fn may(
    principal: &Principal,
    needs: Needs,
    log: Option<&str>,
) -> Result<(), Box<Problem>> {
    let Needs::Role(role) = needs else { return Ok(()) };
    let Verdict::Denied { needs, has } = principal.may(role, log) else { return Ok(()) };
    let place = match log {
        Some(log) => format!("on the log {log}"),
        None => "on everything".to_owned(),
    };
    let held = match has {
        Some(role) => format!("these credentials grant the role {role}"),
        None if log.is_some() => "these credentials grant no access to that log".to_owned(),
        None => "these credentials grant no access".to_owned(),
    };
    Err(problem::FORBIDDEN.because(format!("this needs the role {needs} {place}; {held}")))
}

/// The same answer for every fault of a credential.
pub(super) fn not_accepted() -> Box<Problem> {
    problem::UNAUTHENTICATED.because(
        "the credentials are invalid: wrong, expired or revoked, or the account is disabled",
    )
}

impl From<CredentialFault> for Box<Problem> {
    fn from(malformed: CredentialFault) -> Box<Problem> {
        problem::MALFORMED_CREDENTIALS.because(malformed.to_string())
    }
}

impl From<NotLoggedIn> for Box<Problem> {
    fn from(reason: NotLoggedIn) -> Box<Problem> {
        match reason {
            NotLoggedIn::Wrong => not_accepted(),
            NotLoggedIn::Later(seconds) => problem::TOO_MANY_LOGINS
                .because(format!("too many logins have failed; try again in {seconds} s"))
                .retry(Retry::Seconds(u32::try_from(seconds).unwrap_or(u32::MAX))),
            NotLoggedIn::Busy => problem::TOO_MANY_LOGINS
                .because("too many passwords are being verified; use a token or an API key")
                .retry(Retry::Seconds(1)),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
