//! A database's counts.

use crate::GraphFace;
use crate::commit::folded_version;
use crate::fresh::{Purpose, fresh};
use crate::render::push_string;
use std::io::Write as _;
use std::sync::Arc;
use wellspring_host::http::{Answer, Request, Response};

/// `GET /db/{log}`: the counts of a database.
pub(crate) async fn database(face: Arc<GraphFace>, request: Box<Request>) -> Answer {
    let live = fresh(&face, &request, Purpose::Reading).await?;
    let position = live.position();
    let graph = folded_version(&live);
    let mut out = b"{\"name\":".to_vec();
    push_string(&mut out, &request.log_name);
    let (nodes, relationships) = (graph.node_count(), graph.relationship_count());
    let _ = write!(
        out,
        ",\"status\":\"online\",\"nodeCount\":{nodes},\"relationshipCount\":{relationships},\"position\":{position}}}"
    );
    Ok(Response::json(200, out).at(position))
}
