//! How fresh a graph is to be: parameters of routes, and the wait for what they ask.

use crate::GraphFace;
use crate::view::GraphView;
use std::sync::Arc;
use std::time::Duration;
use wellspring_host::http::Request;
use wellspring_host::http::contract::{CONSISTENCY, wait_ms};
use wellspring_host::http::fresh::Freshness;
use wellspring_host::view::Live;
use wellspring_host::wire::param::{AnyParam, IntegerOr, Param};
use wellspring_host::wire::problem::Problem;

/// How long a request that has no say in it waits for a graph that is being folded for the first
/// time.
const REBUILD_WAIT: Duration = Duration::from_secs(5);

/// What a transaction is begun for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be read in, or to be kept open: it shows what its request asks for.
    Reading,
    /// To be committed at once. That is on the staged head and needs no event that is acknowledged:
    /// the log tells of those that stand in its way. Only who asks for a confirmed end gets it.
    Writing,
}

/// How long a request waits for the graph to show what it asks.
static WAIT_MS: Param<IntegerOr> = wait_ms(5_000);
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

/// The graph of a request's log, once it shows what the request asks for.
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
