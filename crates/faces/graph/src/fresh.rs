//! How fresh a graph is to be: parameters of routes, and the wait for what they ask.

use crate::GraphFace;
use crate::view::GraphView;
use std::sync::Arc;
use std::time::Duration;
use wellspring_host::http::Request;
use wellspring_host::http::content::reach;
use wellspring_host::view::Live;
use wellspring_host::wire::param::{AnyParam, IntegerOr, MAX_WAIT_MS, Param, Words};
use wellspring_host::wire::problem::Problem;

/// How long a request that has no say in it waits for a graph that is being folded for the first time.
const REBUILD_WAIT: Duration = Duration::from_secs(5);

/// What an answer has to show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// Everything that was acknowledged before the request came.
    Acknowledged,
    /// What is folded, which may lack the newest events that others appended.
    Folded,
}

static CONSISTENCY: Param<Words<Shown>> = Param::words(
    "consistency",
    "Whether events acknowledged before are waited for: not if the answer may be cached.",
    &[
        ("local", Shown::Acknowledged),
        ("linearizable", Shown::Acknowledged),
        ("cached", Shown::Folded),
    ],
    "local",
);
static WAIT_MS: Param<IntegerOr> = Param::integer(
    "wait_ms",
    "Longest wait for the graph to show what it has to, in ms.",
    (0, MAX_WAIT_MS),
)
.or(5_000);
/// What every route that begins a transaction knows.
pub(crate) const FRESHNESS: &[&dyn AnyParam] = &[&CONSISTENCY, &WAIT_MS];

/// The graph of a log, once it can be read.
///
/// # Errors
/// 404, 503.
pub(crate) async fn live(
    face: &GraphFace,
    log: &str,
) -> Result<Arc<Live<GraphView>>, Box<Problem>> {
    let live = face.graphs.get(log)?;
    live.caught_up(0, REBUILD_WAIT).await?;
    Ok(live)
}

/// The graph of a request's log, once it shows what the request asks for. What is begun on the staged head needs no
/// event that is acknowledged: the log tells of those that stand in its way.
///
/// # Errors
/// 400, 404, 422, 503.
pub(crate) async fn fresh(
    face: &GraphFace,
    request: &Request,
    least: Shown,
) -> Result<Arc<Live<GraphView>>, Box<Problem>> {
    let log = request.log()?;
    let wait = Duration::from_millis(request.query(&WAIT_MS)?);
    let asked = request.query(&CONSISTENCY)?;
    let wanted = reach(request, log, wait).await?.unwrap_or(0);
    let live = face.graphs.get(&request.log_name)?;
    let wanted = match (least, asked) {
        (Shown::Acknowledged, Shown::Acknowledged) => wanted.max(log.head()),
        _ => wanted,
    };
    live.caught_up(wanted, wait).await?;
    Ok(live)
}
