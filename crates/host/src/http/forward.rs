//! Requests that only the leader answers: a node that does not lead forwards the request, or
//! redirects the client.
//!
//! ```text
//! leads? ── yes ──► the handler ─── lost the lead before anything happened ──┐
//!   │ no                                                                     ▼
//!   └─► leader?    ─ none, or not reachable ─► wait, at most leader_wait_ms ─► the leader answers
//!                                                  │                              ▼
//!                                            503 not-leading        this node shows it, too: answer
//! ```
//! A request is sent to another leader if the first has proved that nothing was done
//! ([`NothingDone`]). One that may have taken effect is repeated only where its route makes that
//! safe ([`Repeat`]).

use super::content::content_type;
use super::contract::AnsweredBy;
use super::declared_problems;
use super::forwarded_message::{self, BodyEnd, FollowerRefusal};
use super::routes::{Route, Scope};
use super::server::Server;
use super::{Answer, Content, Host, NDJSON, Request, Response};
use crate::cluster::{Cluster, EngineReach, FollowerWrites, PeerError, PeerRequest};
use crate::names::SYSTEM_LOG;
use crate::node::readiness::detached;
use crate::wire::effects::{NothingDone, Repeat};
use crate::wire::problem::{self, Problem, Retry};
use bytes::Bytes;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::{Feed, Leader, Log, Role};
use wellspring_types::Position;

/// Largest content that is forwarded.
const MAX_CONTENT_BYTES: usize = 64 << 20;
/// Largest content that is kept until the handler has answered, in case the lead is lost meanwhile.
const KEPT_CONTENT_BYTES: u64 = 256 << 10;
/// Time between two checks of who leads, in case a change is missed.
const LOOK: Duration = Duration::from_millis(50);
/// The first of them: a lead that moves does so within milliseconds.
const FIRST_LOOK: Duration = Duration::from_millis(2);
/// How long a node that was told to lead keeps forwarded requests until it does.
const NAMED_FOR: Duration = Duration::from_secs(1);
/// Time between two questions whether a leader that was replaced still answers.
const LAST_WORDS: Duration = Duration::from_millis(200);
/// How long it may take to show that it does.
const LAST_SILENCE: Duration = Duration::from_millis(500);
/// How long a leader with a request in progress may take to show that it is alive.
const SILENCE: Duration = Duration::from_secs(2);
/// How long an answer waits until this node shows the leader's change.
const SHOW_WAIT: Duration = Duration::from_secs(5);

/// The header that names the node that answered instead of the receiving one.
pub(super) const ANSWERED_BY: &str = "wellspring-answered-by";

/// A request that the leader of its log must answer.
pub(super) struct ForLeader {
    cluster: Arc<Cluster>,
    name: String,
    log: Log,
}

/// Whether the leader answers a request; `None` if this node does.
pub(super) fn for_leader(host: &Host, route: &Route, request: &Request) -> Option<ForLeader> {
    let cluster = host.node.cluster()?;
    if !route.is_for_leader() {
        return None;
    }
    let (name, log) = match (route.scope, route.contract.answered) {
        (Scope::Node, _) | (_, AnsweredBy::LeaderOfSystem) => {
            (SYSTEM_LOG, host.node.get(SYSTEM_LOG))
        }
        _ => (request.log_name.as_str(), request.log.clone()),
    };
    Some(ForLeader { cluster: Arc::clone(cluster), name: name.to_owned(), log: log? })
}

/// The result of an attempt to answer a request.
enum Attempt {
    /// An answer of any kind.
    Answered(Box<Response>),
    /// Nothing happened, for this reason: it may be retried.
    Nothing(String),
    /// It may have taken effect, but a retry is safe.
    InDoubt(String),
}

/// The result of an attempt after one that may have taken effect: its refusal says nothing of the
/// earlier one.
fn after_doubt(
    attempt: Result<Attempt, Box<Problem>>,
    doubt: Option<&str>,
) -> Result<Attempt, Box<Problem>> {
    let Some(reason) = doubt else { return attempt };
    let status = match &attempt {
        Ok(Attempt::Answered(response)) => response.status,
        Ok(_) => return attempt,
        Err(problem) => problem.kind.status,
    };
    if matches!(status, 429 | 503) { Err(unknown(reason, Repeat::Safe)) } else { attempt }
}

impl ForLeader {
    /// Whether this node leads the log now.
    pub(super) fn is_led_here(&self) -> bool {
        self.log.role().leads()
    }

    /// Has the request answered by the leader of the log.
    pub(super) async fn answer(
        self,
        server: &Server,
        route: usize,
        mut request: Box<Request>,
    ) -> Answer {
        let deadline = Instant::now() + self.cluster.leader_wait;
        let redirects = self.cluster.follower_writes == FollowerWrites::Redirect;
        // A redirected client would be sent back.
        if request.of_node.is_some() || redirects {
            self.about_to_lead(&server.host).await;
        }
        let leads = self.log.role().leads();
        if request.of_node.is_some() {
            // The forwarding node waits, and tries others.
            return if leads {
                if forwarded_message::is_broken_off(&request) {
                    let content = request.body.gather_all(MAX_CONTENT_BYTES).await?;
                    request.body.break_off_after(content);
                }
                self.by_handler(server, route, request).await
            } else {
                Err(self.not_leading(&server.host, "this node does not lead the log"))
            };
        }
        let keeps = request.body.exact_bytes().is_some_and(|bytes| bytes <= KEPT_CONTENT_BYTES);
        if redirects
            && !leads
            && let Some(response) = self.redirect(&server.host, &request, deadline).await?
        {
            return Ok(response);
        }
        if self.log.role().leads() && !keeps {
            return self.by_handler(server, route, request).await;
        }
        let (content, end) = self.content(&mut request).await?;
        let passed = forwarded_message::request(&request, content, end, self.own_authority());
        let repeat = request.repeat();
        let host = Arc::clone(&server.host);
        let mut here = Some(request);
        let mut waits_for = "the log has no leader".to_owned();
        let mut doubt: Option<String> = None;
        let mut pause = FIRST_LOOK;
        loop {
            let seen = self.log.role_changes().head();
            let attempt = match self.log.role() {
                Role::Leading { .. } | Role::Detached { .. } => match here.take() {
                    Some(request) => self.here(server, route, request).await,
                    None => Ok(Attempt::Nothing(
                        "the lead moved while the request was being forwarded".to_owned(),
                    )),
                },
                role => match self.other_leader(&host) {
                    Some(leader) => self.there(&host, &leader, &passed, repeat).await,
                    None => Ok(Attempt::Nothing(format!(
                        "the log has no leader (this node is {})",
                        role.name()
                    ))),
                },
            };
            match after_doubt(attempt, doubt.as_deref())? {
                Attempt::Answered(response) => return Ok(*response),
                Attempt::InDoubt(why) => {
                    debug_assert_eq!(repeat, Repeat::Safe, "no other request is repeated in doubt");
                    doubt = Some(why);
                }
                Attempt::Nothing(why) => {
                    waits_for = if why.is_empty() { waits_for } else { why };
                    // Another node may have claimed.
                    self.cluster.engine.nudge();
                    pause = LOOK.min(2 * pause);
                }
            }
            if Instant::now() >= deadline {
                if let Some(reason) = doubt {
                    return Err(unknown(&reason, repeat));
                }
                return Err(self.not_leading(
                    &host,
                    &format!(
                        "{waits_for}; nothing was done within {} ms",
                        self.cluster.leader_wait.as_millis()
                    ),
                ));
            }
            let changes = self.log.role_changes();
            if changes.is_closed() {
                let what =
                    "the log was dropped or recreated meanwhile, or this node is shutting down";
                return Err(doubt.map_or_else(
                    || self.not_leading(&host, what),
                    |reason| unknown(&reason, repeat),
                ));
            }
            moved(changes, seen, pause.min(deadline - Instant::now())).await;
        }
    }

    /// Waits while this node has been told to lead the log and does not yet: forwarded requests
    /// come here at once.
    async fn about_to_lead(&self, host: &Host) {
        let begun = Instant::now();
        let is_named = || {
            let named = host.node.placement().and_then(|placement| placement.named(&self.name));
            named.is_some_and(|(node, age)| node == self.cluster.node.as_str() && age < NAMED_FOR)
        };
        while !self.log.role().leads() && is_named() && begun.elapsed() < NAMED_FOR {
            let changes = self.log.role_changes();
            let seen = changes.head();
            if !self.log.role().leads() {
                moved(changes, seen, LOOK).await;
            }
        }
    }

    /// All content of a request. Of an incomplete body of lines, the received lines are kept, as a
    /// leader keeps them.
    async fn content(&self, request: &mut Request) -> Result<(Bytes, BodyEnd), Box<Problem>> {
        let (content, broken) = request.body.gather_what_comes(MAX_CONTENT_BYTES).await;
        match broken {
            None => Ok((content, BodyEnd::Whole)),
            Some(problem)
                if problem.kind.is(&problem::BAD_REQUEST)
                    && has_lines(request)
                    && !content.is_empty() =>
            {
                request.body.break_off_after(content.clone());
                Ok((content, BodyEnd::BrokenOff))
            }
            Some(problem) => Err(problem),
        }
    }

    /// The host and port of this node's own URL.
    fn own_authority(&self) -> &str {
        let url = &self.cluster.url;
        url.split_once("://")
            .map_or(url.as_str(), |(_, rest)| rest.split('/').next().unwrap_or(rest))
    }

    /// Calls the handler. What it has sent to the journal may not come back while the journal is
    /// unreachable: then the client is told within a bound. That does not take back what was sent.
    async fn by_handler(&self, server: &Server, route: usize, request: Box<Request>) -> Answer {
        let repeat = request.repeat();
        let mut handling = pin!(server.handle(route, request));
        let mut bound = self.cluster.leader_wait.max(LOOK);
        loop {
            if let Ok(answer) = tokio::time::timeout(bound, &mut handling).await {
                return answer;
            }
            let status = self.cluster.engine.status();
            if status.reach != EngineReach::Connected || !self.log.role().leads() {
                // The journal's location is for operators only.
                let waited = self.cluster.leader_wait.as_millis();
                let what = "the journal has not reported the outcome";
                return Err(unknown(&format!("{what} for at least {waited} ms"), repeat));
            }
            bound = LOOK;
        }
    }

    /// Calls the handler; losing the lead before anything happened is not an answer.
    async fn here(
        &self,
        server: &Server,
        route: usize,
        request: Box<Request>,
    ) -> Result<Attempt, Box<Problem>> {
        match self.by_handler(server, route, request).await {
            Ok(response) => Ok(Attempt::Answered(Box::new(response))),
            Err(problem) => match (FollowerRefusal::of(&problem), self.log.role()) {
                // No node can lead it from here until an operator decides.
                (Some(FollowerRefusal::NothingDone), Role::Detached { reason }) => {
                    Err(detached(&self.name, &reason))
                }
                (Some(FollowerRefusal::NothingDone), _) => Ok(Attempt::Nothing(problem.detail)),
                (Some(FollowerRefusal::Interrupted), _) => Ok(Attempt::InDoubt(problem.detail)),
                (None, _) => Err(problem),
            },
        }
    }

    /// Has the leader answer, and waits until this node shows its change.
    async fn there(
        &self,
        host: &Host,
        leader: &Leader,
        passed: &PeerRequest,
        repeat: Repeat,
    ) -> Result<Attempt, Box<Problem>> {
        let in_doubt = |reason: String| match repeat {
            Repeat::Safe => Ok(Attempt::InDoubt(reason)),
            Repeat::Unsafe => Err(unknown(&reason, repeat)),
        };
        let now_us = host.clock.wall_us();
        // A frozen leader answers once it runs again, and keeps the connection until then.
        let answered = tokio::select! {
            answered = self.cluster.peers.send(&leader.url, passed, now_us) => answered,
            () = self.replaced(host, leader) => {
                Err(PeerError::Unknown(format!("{leader} was replaced before it answered")))
            }
            () = self.silent(host, leader, self.cluster.leader_wait.max(LOOK), SILENCE) => {
                Err(PeerError::Unknown(format!("{leader} no longer answers")))
            }
        };
        let answered = match answered {
            Ok(answered) => answered,
            Err(PeerError::NotSent(reason)) => return Ok(Attempt::Nothing(reason)),
            Err(PeerError::Unknown(reason)) => return in_doubt(reason),
        };
        let answered = forwarded_message::answer(answered).await;
        let answered =
            answered.map_err(|reason| unknown(&format!("{}: {reason}", leader.url), repeat))?;
        if let Some(refused) = answered.refused {
            let why = detail_of(&answered.response).unwrap_or_else(|| "it says so".to_owned());
            let why = format!("{leader} no longer leads the log: {why}");
            return match refused {
                FollowerRefusal::NothingDone => Ok(Attempt::Nothing(why)),
                FollowerRefusal::Interrupted => in_doubt(why),
            };
        }
        // Also for a refusal: a bulk with a bad line has stored those before it.
        let position = answered.response.position.unwrap_or(0);
        self.shown_here(host, position, answered.system_position).await;
        let response = answered.response.with(ANSWERED_BY, leader.node.clone());
        Ok(Attempt::Answered(Box::new(response)))
    }

    /// Waits until `leader` is replaced, and then for its answer, as long as it lives: a lead also
    /// moves from a busy node.
    async fn replaced(&self, host: &Host, leader: &Leader) {
        let changes = self.log.role_changes();
        loop {
            let seen = changes.head();
            let is_replaced = match self.log.role() {
                Role::Leading { epoch } => epoch > leader.epoch,
                // The epoch of one that was only told to lead is not known.
                Role::Following { leader: Some(leads) } => {
                    leads.epoch > leader.epoch && leads.node != leader.node
                }
                _ => false,
            };
            if is_replaced {
                break;
            }
            if changes.is_closed() {
                // This log receives no more updates here: `silent` watches its leader.
                return std::future::pending().await;
            }
            moved(changes, seen, SILENCE).await;
        }
        let silent = self.silent(host, leader, LAST_WORDS, LAST_SILENCE);
        let _ = tokio::time::timeout(self.cluster.leader_wait, silent).await;
    }

    /// Waits until a leader no longer answers any request. Its work on this one may take long.
    async fn silent(&self, host: &Host, leader: &Leader, pause: Duration, patience: Duration) {
        let question = PeerRequest::get("/health/live");
        loop {
            tokio::time::sleep(pause).await;
            let now_us = host.clock.wall_us();
            let asked = self.cluster.peers.ask(&leader.url, &question, patience, now_us).await;
            if asked.is_err() {
                return;
            }
        }
    }

    /// Waits until this node shows what the leader had seen when it answered: a client reads its
    /// own writes here, too. Not for long: the answer names the position.
    async fn shown_here(&self, host: &Host, position: Position, system_position: Position) {
        let deadline = Instant::now() + SHOW_WAIT;
        let left = || deadline.saturating_duration_since(Instant::now());
        let wait = async {
            self.reached(&self.log, position).await;
            if let Some(system) = host.node.get(SYSTEM_LOG) {
                self.reached(&system, system_position).await;
            }
            if let Some(settled) = host.node.catalog_settled() {
                reached(settled, system_position).await;
            }
            host.node.shown(SYSTEM_LOG, system_position, left()).await;
            host.node.shown(&self.name, position, left()).await;
        };
        let _ = tokio::time::timeout(SHOW_WAIT, wait).await;
    }

    async fn reached(&self, log: &Log, position: Position) {
        if log.head() < position {
            self.cluster.engine.nudge();
            reached(log.feed(), position).await;
        }
    }

    /// Redirects the client to the leader, once there is one; `None` if this node leads by then.
    async fn redirect(
        &self,
        host: &Host,
        request: &Request,
        deadline: Instant,
    ) -> Result<Option<Response>, Box<Problem>> {
        loop {
            let seen = self.log.role_changes().head();
            if self.log.role().leads() {
                return Ok(None);
            }
            if let Some(leader) = self.other_leader(host) {
                let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
                let response = Response::empty(declared_problems::REDIRECTED);
                let location = format!("{}{target}", leader.url);
                return Ok(Some(response.with("location", location)));
            }
            if Instant::now() >= deadline {
                return Err(self.not_leading(host, "the log has no leader"));
            }
            moved(self.log.role_changes(), seen, LOOK).await;
        }
    }

    /// The leading node, if it is another.
    fn other_leader(&self, host: &Host) -> Option<Leader> {
        let leader = host.node.leader_of(&self.name, &self.log)?;
        Some(leader).filter(|leader| !self.cluster.is_at(&leader.node, &leader.url))
    }

    fn not_leading(&self, host: &Host, detail: &str) -> Box<Problem> {
        let leader = host.node.leader_of(&self.name, &self.log);
        let nothing_done = Some(NothingDone::before_any_handler());
        problem::not_leading(leader.as_ref(), detail.to_owned(), nothing_done)
    }
}

/// Waits until a feed has reached a position, or never will.
async fn reached(feed: &Feed, position: Position) {
    while feed.head() < position && !feed.is_closed() {
        moved(feed, position - 1, LOOK).await;
    }
}

/// Waits until a feed is past a position or its waiters are roused, at most this long. Time passes
/// even where nothing can be waited for, because the feed is closed or has too many waiters:
/// otherwise the caller would spin.
async fn moved(feed: &Feed, seen: Position, at_most: Duration) {
    let deadline = Instant::now() + at_most;
    let moved = tokio::time::timeout_at(deadline, feed.past(seen)).await;
    if matches!(moved, Ok(Err(_))) || feed.is_closed() {
        tokio::time::sleep_until(deadline).await;
    }
}

/// Whether a request has content in which each line counts separately.
fn has_lines(request: &Request) -> bool {
    content_type(request) == NDJSON
}

/// The `detail` of a problem.
fn detail_of(response: &Response) -> Option<String> {
    let Content::Full(content) = &response.content else { return None };
    let told: serde_json::Value = serde_json::from_slice(content).ok()?;
    told["detail"].as_str().map(str::to_owned)
}

fn unknown(reason: &str, repeat: Repeat) -> Box<Problem> {
    let advice = match repeat {
        Repeat::Safe => "send the same request again to learn which",
        Repeat::Unsafe => {
            "sending it again may do it twice, unless its events have ids: look first whether it \
             was done"
        }
    };
    let detail = format!("the request may or may not have taken effect ({reason}); {advice}");
    let problem = problem::OUTCOME_UNKNOWN.because(detail);
    match repeat {
        Repeat::Safe => problem,
        Repeat::Unsafe => problem.retry(Retry::No),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_after_an_attempt_in_doubt_is_no_refusal() {
        let nothing_done = NothingDone::before_any_handler;
        let refused =
            || Err(problem::not_leading(None, "nothing was done".to_owned(), Some(nothing_done())));
        let status = |attempt: Result<Attempt, Box<Problem>>| match attempt {
            Ok(Attempt::Answered(response)) => response.status,
            Ok(_) => 0,
            Err(problem) => problem.kind.status,
        };
        assert_eq!(status(after_doubt(refused(), None)), 503);
        assert_eq!(status(after_doubt(refused(), Some("no answer"))), 500);
        for (told, then) in [(503, 500), (429, 500), (200, 200), (409, 409)] {
            let answered = Ok(Attempt::Answered(Box::new(Response::empty(told))));
            assert_eq!(status(after_doubt(answered, Some("no answer"))), then);
        }
        assert_eq!(status(after_doubt(Ok(Attempt::Nothing(String::new())), Some("x"))), 0);
    }
}
