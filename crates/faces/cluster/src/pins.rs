//! `PUT` and `DELETE /v1/cluster/leads/{log}`: pins a log to a node, and lifts the pin.

use super::body::{MAX_BODY_BYTES, read_transfer};
use super::records::LOG;
use super::{ClusterFace, json};
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use wellspring_host::cluster::node_auth::NodeName;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::node::NodeError;
use wellspring_host::wire::effects::StepRefusal;
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_types::Position;

/// Time between two checks of who leads.
const LOOK: Duration = Duration::from_millis(10);

/// A pinned log.
#[derive(Debug, Serialize)]
struct PinDocument {
    log: String,
    pinned_to: String,
    /// Whether that node leads it by now.
    leads: bool,
}

/// Pins a log to a node, and waits a moment until that leads it. Answered by the leader of the log
/// `system`.
pub(super) async fn put(face: Arc<ClusterFace>, mut request: Box<Request>) -> Answer {
    let log = request.segment(&LOG)?;
    expect_json(&request)?;
    let content = request.content(MAX_BODY_BYTES).await?;
    let to = read_transfer(&content).map_err(|fault| of_fault(&fault, &content))?;
    let to = to.ok_or_else(|| problem::BAD_REQUEST.because("to is missing").field("to"))?;
    let cluster = Arc::clone(face.cluster()?);
    face.members()?.known_url(&to)?;
    let node = NodeName::parse(&to).map_err(|rule| problem::BAD_REQUEST.because(rule))?;
    let position = pin(&face, &request, &log, Some(node)).await?;
    let leads = || face.host.node.known_leader(&log).is_some_and(|leader| leader.node == to);
    let led = tokio::time::timeout(cluster.lead_timeout, async {
        while !leads() {
            tokio::time::sleep(LOOK).await;
        }
    });
    let leads = led.await.is_ok();
    Ok(json(&PinDocument { log, pinned_to: to, leads })?.at(position))
}

/// Lifts a pin.
pub(super) async fn delete(face: Arc<ClusterFace>, request: Box<Request>) -> Answer {
    let log = request.segment(&LOG)?;
    face.cluster()?;
    Ok(Response::empty(204).at(pin(&face, &request, &log, None).await?))
}

async fn pin(
    face: &Arc<ClusterFace>,
    request: &Request,
    log: &str,
    node: Option<NodeName>,
) -> Result<Position, Box<Problem>> {
    let (host, name) = (Arc::clone(&face.host), log.to_owned());
    request.still_may()?;
    let pinned = elsewhere(move || host.node.pin(&name, node.as_ref())).await?;
    request.effects.settle(pinned).map_err(|refused| match refused {
        StepRefusal { error: NodeError::NotFound, .. } => problem::no_such_log(log),
        refused => refused.into(),
    })
}
