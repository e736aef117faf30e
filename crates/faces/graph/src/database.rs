//! The discovery document, and a database's counts.

use crate::GraphFace;
use crate::commit::folded_version;
use crate::fresh::{Purpose, fresh};
use crate::render::push_string;
use std::io::Write as _;
use std::sync::Arc;
use wellspring_cypher::NEO4J_VERSION;
use wellspring_host::http::{Answer, Request, Response};

impl GraphFace {
    /// The server's URL for its client.
    pub(crate) fn base_url(&self, request: &Request) -> String {
        let scheme = if self.host.tls.is_some() { "https" } else { "http" };
        let authority = request.uri.authority().map(|authority| authority.as_str());
        let host = authority.or_else(|| request.header("host")).unwrap_or("localhost");
        format!("{scheme}://{host}")
    }
}

/// `GET /`: the discovery document.
pub(crate) async fn discovery(face: Arc<GraphFace>, request: Box<Request>) -> Answer {
    let base = face.base_url(&request);
    let mut out = b"{".to_vec();
    for (name, text) in [
        ("transaction", format!("{base}/db/{{databaseName}}/tx").as_str()),
        ("neo4j_version", NEO4J_VERSION),
        ("neo4j_edition", "community"),
        ("default_database", "neo4j"),
        ("openapi", &format!("{base}/openapi.json")),
        ("wellspring_version", env!("CARGO_PKG_VERSION")),
    ] {
        if out.len() > 1 {
            out.push(b',');
        }
        push_string(&mut out, name);
        out.push(b':');
        push_string(&mut out, text);
    }
    out.push(b'}');
    Ok(Response::json(200, out))
}

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
