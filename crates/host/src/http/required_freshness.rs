//! The freshness of answers: what a request requires, and the wait until a log or a view shows it.
//! One implementation for every read of every view.
//!
//! ```text
//! Wellspring-Min-Position ─► consistency ─► the position that has to be shown ─► folded up to there
//!                            cached         none
//!                            local          the head, once what was accepted is stored where that counts
//!                            linearizable   the same, and the head is confirmed to be the end
//! ```

use super::contract::{CONSISTENCY, WAIT_MS};
use super::header_names::{WELLSPRING_MIN_POSITION, WELLSPRING_MIN_SYSTEM_POSITION};
use super::{Host, Request};
use crate::access::credentials;
use crate::names::SYSTEM_LOG;
use crate::view::contract::View;
use crate::view::{Live, NotFresh, all_stored};
use crate::wire::param::{IntegerOr, MAX_WAIT_MS, Param, Words};
use crate::wire::problem::{self, Problem};
use hyper::header::HeaderName;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::batcher::Batcher;
use wellspring_log::{Log, TooManyWaiters};
use wellspring_types::Position;

/// How long a request waits for accounts by default, in ms.
const ACCOUNTS_WAIT_MS: u64 = 5_000;
/// How long a change waits for events that its connection handed in before.
const HANDED_IN_WAIT: Duration = Duration::from_secs(10);
/// How long a request for an unknown log waits, in case it was created on another node.
const CATALOG_WAIT: Duration = Duration::from_secs(1);

/// The required freshness of a read's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// The current fold, which may lack the newest events.
    Cached,
    /// Everything that this node had acknowledged when the request arrived.
    Local,
    /// Everything that any node had acknowledged when the request arrived: the end of the log is
    /// confirmed first.
    Linearizable,
}

/// The freshness that a request requires.
#[derive(Debug, Clone, Copy)]
pub struct Freshness {
    consistency: Consistency,
    /// The position its client has seen elsewhere; 0 for none.
    least: Position,
    wait: Duration,
    deadline: Instant,
}

impl Freshness {
    /// The freshness required by these two parameters, which the route declares, and by
    /// `Wellspring-Min-Position`, if the route concerns a log. Starts the timeout.
    ///
    /// # Errors
    /// 400: the header holds no position.
    pub fn asked(
        request: &Request,
        consistency: &Param<Words<Consistency>>,
        wait_ms: &Param<IntegerOr>,
    ) -> Result<Freshness, Box<Problem>> {
        let consistency = request.query(consistency)?;
        let wait = Duration::from_millis(request.query(wait_ms)?);
        let least = match request.log {
            Some(_) => least_position(request)?,
            None => 0,
        };
        Ok(Freshness { consistency, least, wait, deadline: Instant::now() + wait })
    }

    /// The same, with [`Cached`](Consistency::Cached) instead of [`Local`](Consistency::Local): for
    /// decisions on top of everything staged, where the log reports conflicts.
    #[must_use]
    pub fn for_commands(self) -> Freshness {
        match self.consistency {
            Consistency::Local => Freshness { consistency: Consistency::Cached, ..self },
            Consistency::Cached | Consistency::Linearizable => self,
        }
    }

    /// Waits until a view is as fresh as required; returns its fold. `accepted`: the batcher whose
    /// accepted events count although they are not durable yet.
    ///
    /// # Errors
    /// 503: not in time; `not-confirmed` if confirming failed. Never an answer less fresh than
    /// required.
    pub async fn view<'a, V: View>(
        &self,
        request: &Request,
        live: &'a Live<V>,
        accepted: Option<&Batcher>,
    ) -> Result<&'a V::Folded, Box<Problem>> {
        let position = self.position(live.log(), accepted).await?;
        let folded = live.caught_up(position, self.left()).await?;
        request.still_may()?;
        Ok(folded)
    }

    /// Waits until snapshots of a log are as fresh as required.
    ///
    /// # Errors
    /// As of [`view`](Self::view).
    pub async fn log(&self, request: &Request, log: &Log) -> Result<(), Box<Problem>> {
        self.position(log, None).await?;
        request.still_may()
    }

    /// The position to show. The log has it.
    async fn position(
        &self,
        log: &Log,
        accepted: Option<&Batcher>,
    ) -> Result<Position, Box<Problem>> {
        self.reach(log).await?;
        if self.consistency == Consistency::Cached {
            return Ok(self.least);
        }
        if let Some(batcher) = accepted {
            all_stored(batcher, self.left()).await?;
        }
        let end = match self.consistency {
            Consistency::Linearizable => self.confirmed(log).await?,
            Consistency::Local | Consistency::Cached => log.head(),
        };
        Ok(end.max(self.least))
    }

    /// Waits until the log has reached the position that the client has seen elsewhere.
    async fn reach(&self, log: &Log) -> Result<(), Box<Problem>> {
        let least = self.least;
        if least <= log.head() || past(log, least - 1, self.left()).await? >= least {
            return Ok(());
        }
        Err(problem::NOT_YET.because(format!(
            "position {least} was not reached within {} ms; the head is {}",
            self.wait.as_millis(),
            log.head()
        )))
    }

    /// The end of the log. The check starts after the request has arrived, or it would confirm too
    /// little.
    async fn confirmed(&self, log: &Log) -> Result<Position, Box<Problem>> {
        match tokio::time::timeout(self.left(), log.confirm()).await {
            Ok(Ok(end)) => Ok(end),
            Ok(Err(refused)) => Err(problem::NOT_CONFIRMED
                .because(format!("the end of the log could not be confirmed: {refused}"))),
            Err(_) => Err(problem::NOT_CONFIRMED.because(format!(
                "the end of the log was not confirmed within {} ms",
                self.wait.as_millis()
            ))),
        }
    }

    /// The remaining time.
    fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// Makes sure that snapshots of a log are as fresh as the client requires by [`CONSISTENCY`] and
/// [`WAIT_MS`].
///
/// # Errors
/// As of [`Freshness::asked`] and [`Freshness::log`].
pub async fn freshen(request: &Request, log: &Log) -> Result<(), Box<Problem>> {
    Freshness::asked(request, &CONSISTENCY, &WAIT_MS)?.log(request, log).await
}

/// The same for several logs, each with its name, in the time for one.
///
/// # Errors
/// The first error.
pub async fn freshen_all(request: &Request, logs: &[(String, Log)]) -> Result<(), Box<Problem>> {
    let asked = Freshness::asked(request, &CONSISTENCY, &WAIT_MS)?;
    for (_, log) in logs {
        asked.log(request, log).await?;
    }
    Ok(())
}

/// The position in `Wellspring-Min-Position`; 0 if it is missing.
fn least_position(request: &Request) -> Result<Position, Box<Problem>> {
    position_in(request, &WELLSPRING_MIN_POSITION, "Wellspring-Min-Position")
}

/// The position in a header, 0 if there is none.
fn position_in(
    request: &Request,
    header: &HeaderName,
    shown: &'static str,
) -> Result<Position, Box<Problem>> {
    let Some(value) = request.headers.get(header) else { return Ok(0) };
    let text = String::from_utf8_lossy(value.as_bytes());
    text.trim().parse().map_err(|_| {
        let detail = format!("{shown} must be a position, not {text:?}");
        problem::BAD_REQUEST.because(detail).field(shown)
    })
}

/// Waits until the accounts are known up to the position of the system log that the client names in
/// `Wellspring-Min-System-Position`, if any: so a lagging node judges no one without changes that
/// were made and answered on another. This comes before authentication, so no client waits for what
/// cannot come, or without credentials where these are required, and few of one address wait at a
/// time.
///
/// # Errors
/// 400: the header holds no position. 503: they are not known in time, or too many wait.
pub(super) async fn accounts(host: &Host, request: &Request) -> Result<(), Box<Problem>> {
    let least =
        position_in(request, &WELLSPRING_MIN_SYSTEM_POSITION, "Wellspring-Min-System-Position")?;
    let live = host.access.live();
    if least <= live.position() {
        return Ok(());
    }
    if host.access.has_accounts() && !credentials::are_shown(&request.headers) {
        // Refused by the gate, whatever comes.
        return Ok(());
    }
    let system = live.log();
    if system.role().leads() && least > system.head() {
        return Err(problem::NOT_YET.because(format!(
            "the log system ends at position {}; position {least} has been given by no node",
            system.head()
        )));
    }
    let _place = host.access.waiting().hold(request.client)?;
    let wait = accounts_wait(request.uri.query());
    match live.caught_up(least, wait).await {
        Ok(_) => Ok(()),
        Err(NotFresh::NotYet(progress)) => Err(problem::NOT_YET.because(format!(
            "this node did not reach position {least} of the log system within {} ms; it knows \
             accounts, keys and tokens up to {}",
            wait.as_millis(),
            progress.position
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Before a change: waits until what its connection handed in to the log (`POST /e`, clicks) is
/// stored, so that the log has a connection's events in the order they were sent.
///
/// # Errors
/// 503: it is not stored in time; nothing was done.
pub(super) async fn handed_in_stored(host: &Host, request: &Request) -> Result<(), Box<Problem>> {
    let (Some(ties), Some(_)) = (&request.connection, &request.log) else { return Ok(()) };
    // Never taken down: the events may be of another log, and a look at a batcher costs little.
    if !ties.state.handed_in.load(Ordering::Acquire) {
        return Ok(());
    }
    let Some(batcher) = host.node.started_batcher(&request.log_name) else { return Ok(()) };
    let stored = all_stored(&batcher, HANDED_IN_WAIT).await;
    stored.map_err(|not_fresh| {
        let mut problem = Box::<Problem>::from(not_fresh);
        problem
            .detail
            .push_str(": those that this connection handed in before come first; nothing was done");
        problem
    })
}

/// Before answering that a log does not exist: makes sure that this node knows of every log that
/// any client was told of. Where that cannot be determined in time, the answer rests on what is
/// known here.
///
/// # Errors
/// 503: the log exists, but cannot be opened on this node.
pub(super) async fn log_made_elsewhere(host: &Host, name: &str) -> Result<(), Box<Problem>> {
    let node = &host.node;
    let (Some(settled), Some(system)) = (node.catalog_settled(), node.get(SYSTEM_LOG)) else {
        return Ok(());
    };
    let known = async {
        let Ok(end) = system.confirm().await else { return };
        while settled.head() < end && settled.past(end - 1).await.is_ok() && !settled.is_closed() {}
    };
    let _ = tokio::time::timeout(CATALOG_WAIT, known).await;
    if node.unopened_logs().iter().any(|(unopened, _)| unopened == name) {
        Err(problem::CATCHING_UP
            .because("the log cannot be opened on this node; another node may have it")
            .about(name))
    } else {
        Ok(())
    }
}

/// How long a request waits for accounts. Its query is not checked yet, so an invalid number of ms
/// is refused later, or means nothing to its route.
fn accounts_wait(query: Option<&str>) -> Duration {
    let mut params = query.unwrap_or_default().split('&');
    let asked = params.find_map(|param| param.strip_prefix("wait_ms=")?.parse().ok());
    Duration::from_millis(asked.unwrap_or(ACCOUNTS_WAIT_MS).min(MAX_WAIT_MS))
}

/// Waits until the head is past a position, at most this long; returns the head.
///
/// # Errors
/// [`TooManyWaiters`]. A retry helps when others have stopped waiting.
async fn past(log: &Log, position: Position, wait: Duration) -> Result<Position, TooManyWaiters> {
    let moved = log.feed().past(position);
    tokio::time::timeout(wait, moved).await.unwrap_or_else(|_| Ok(log.head()))
}

#[cfg(test)]
mod tests {
    use super::super::contract::{CONSISTENCY_CACHED, FRESHNESS, FRESHNESS_CACHED, wait_ms};
    use super::*;
    use crate::wire::params::{KnownParams, Params};

    #[test]
    fn the_two_variants_differ_in_their_default_alone() {
        let asked = |query| {
            let [local, cached] = [FRESHNESS, FRESHNESS_CACHED]
                .map(|shared| Params::of(query, KnownParams { own: &[], shared }));
            let (local, cached) = (local.unwrap(), cached.unwrap());
            assert_eq!(local.get(&WAIT_MS).unwrap(), cached.get(&WAIT_MS).unwrap());
            [local.get(&CONSISTENCY).unwrap(), cached.get(&CONSISTENCY_CACHED).unwrap()]
        };
        assert_eq!(asked(None), [Consistency::Local, Consistency::Cached]);
        for (query, word) in [
            ("consistency=cached", Consistency::Cached),
            ("consistency=local", Consistency::Local),
            ("consistency=linearizable", Consistency::Linearizable),
        ] {
            assert_eq!(asked(Some(query)), [word; 2]);
        }
        let known = KnownParams { own: &[], shared: FRESHNESS };
        for query in ["consistency=strong", "wait_ms=60001", "wait_ms=soon"] {
            assert_eq!(Params::of(Some(query), known).err().map(|p| p.kind.status), Some(422));
        }
        let params = Params::of(None, known).unwrap();
        assert_eq!(params.get(&wait_ms(7)).unwrap(), 7);
    }

    #[test]
    fn commands_wait_for_what_is_confirmed_and_for_nothing_acknowledged() {
        let asked = |consistency| Freshness {
            consistency,
            least: 0,
            wait: Duration::ZERO,
            deadline: Instant::now(),
        };
        for (word, becomes) in [
            (Consistency::Cached, Consistency::Cached),
            (Consistency::Local, Consistency::Cached),
            (Consistency::Linearizable, Consistency::Linearizable),
        ] {
            assert_eq!(asked(word).for_commands().consistency, becomes);
        }
    }
}
