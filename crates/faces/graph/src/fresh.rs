//! The freshness of a graph: parameters of routes, and the wait.

use crate::GraphFace;
use crate::view::GraphView;
use std::sync::Arc;
use std::time::Duration;
use wellspring_host::http::Request;
use wellspring_host::http::contract::{CONSISTENCY, wait_ms};
use wellspring_host::http::required_freshness::Freshness;
use wellspring_host::view::{Live, NotFresh};
use wellspring_host::wire::param::{AnyParam, IntegerOr, Param};
use wellspring_host::wire::problem::Problem;
use wellspring_types::Position;

/// How long a request without such parameters waits for a graph that is being folded for the first
/// time.
const REBUILD_WAIT: Duration = Duration::from_secs(5);

/// How long a transaction waits for what its bookmarks name.
const BOOKMARK_WAIT: Duration = Duration::from_secs(10);

/// The purpose of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Reading, or staying open: it shows what its request requires.
    Reading,
    /// Committing at once. That uses the staged head and needs no acknowledged event: the log
    /// reports conflicts. Only a linearizable request waits.
    Writing,
}

/// How long a request waits for the required freshness.
static WAIT_MS: Param<IntegerOr> = wait_ms(5_000);
/// The parameters of every route that begins a transaction.
pub(crate) const FRESHNESS: &[&dyn AnyParam] = &[&CONSISTENCY, &WAIT_MS];

/// The graph of a log, once it is ready.
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

/// The graph of a request's log, once it is as fresh as required.
///
/// # Errors
/// 400, 404, 422, 503.
pub(crate) async fn fresh(
    face: &GraphFace,
    request: &Request,
    purpose: Purpose,
) -> Result<Arc<Live<GraphView>>, Box<Problem>> {
    let asked = Freshness::asked(request, &CONSISTENCY, &WAIT_MS)?;
    let asked = match purpose {
        Purpose::Reading => asked,
        Purpose::Writing => asked.for_commands(),
    };
    let live = face.graphs.get(&request.log_name)?;
    asked.view(request, &live, None).await?;
    Ok(live)
}

/// Whether a graph shows a position.
pub(crate) enum WaitResult {
    Yes,
    /// Not in time; it shows this one.
    NotYet {
        position: Position,
    },
}

/// Waits until the graph of a request's log shows a position.
///
/// # Errors
/// 404; 503: it cannot be read.
pub(crate) async fn reached(
    face: &GraphFace,
    request: &Request,
    position: Position,
) -> Result<WaitResult, Box<Problem>> {
    let live = face.graphs.get(&request.log_name)?;
    if position <= live.position() {
        return Ok(WaitResult::Yes);
    }
    match live.caught_up(position, BOOKMARK_WAIT).await {
        Ok(_) => Ok(WaitResult::Yes),
        Err(NotFresh::NotYet(progress)) => Ok(WaitResult::NotYet { position: progress.position }),
        Err(error) => Err(error.into()),
    }
}
