//! Whether another node of the cluster forwarded a request, and its original client.

use super::header_names::WELLSPRING_NODE;
use super::{Host, Request};
use crate::cluster::node_auth::{self, Sender};
use crate::wire::problem::{self, Problem};

/// Records what the header says of the forwarding node. Without a cluster key there are no other
/// nodes, and the rules of heads refuse the header.
///
/// # Errors
/// 401: it claims to come from a node, without proof.
pub(super) fn learn(host: &Host, request: &mut Request) -> Result<(), Box<Problem>> {
    let Some(key) = &host.cluster_key else { return Ok(()) };
    let mut values = request.headers.get_all(&WELLSPRING_NODE).iter().peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let target = request.uri.path_and_query().map_or("/", |target| target.as_str());
    let asked = (request.method.as_str(), target);
    let values = values.map(|value| value.as_bytes());
    match node_auth::judge(key, asked, values, host.clock.wall_us()) {
        Sender::NotOfANode => {}
        Sender::OfNode { node, client } => {
            request.client = client;
            request.of_node = Some(node);
            // Many clients share it.
            request.connection = None;
        }
        Sender::Refused(fault) => return Err(problem::NOT_A_NODE.because(fault.to_string())),
    }
    Ok(())
}

#[cfg(test)]
#[path = "node_sender_tests.rs"]
mod tests;
