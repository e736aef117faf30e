//! `wellspring cluster forget`: removes a stopped node from the list. `remove`: a node from a
//! cluster of nodes that order their logs themselves.

use super::ask;
use super::init::{ORDERED_WITHIN, while_unavailable};
use crate::exit::Failure;
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Client, Request};
use wellspring_host::cluster::node_auth::NodeName;

pub(super) fn run(client: &mut Client, node: &NodeName) -> Result<(), Failure> {
    let path = format!("/v1/cluster/nodes/{}", percent_encode(node.as_str()));
    ask(client, &Request { method: "DELETE", path: &path, headers: &[], body: None })?;
    eprintln!("Removed node {node} from the list; it joins again if it is started.");
    Ok(())
}

/// Repeats the request while the nodes change who orders.
pub(super) fn remove(client: &mut Client, node: &NodeName) -> Result<(), Failure> {
    let body = serde_json::json!({ "node": node.as_str() }).to_string();
    let headers = &[("Content-Type", "application/json")];
    let path = "/v1/cluster/remove";
    let request = Request { method: "POST", path, headers, body: Some(body.as_bytes()) };
    while_unavailable(ORDERED_WITHIN, || ask(client, &request))?;
    eprintln!("Removed node {node}. To join again it needs an empty data folder.");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use wellspring_client::test_server::{Reply, TestServer};

    #[test]
    fn a_node_that_never_joined_is_a_wrong_command() {
        let server = TestServer::start(|request, _| {
            match (request.method.as_str(), request.path.as_str()) {
                ("DELETE", "/v1/cluster/nodes/b") => Reply::json(204, ""),
                _ => Reply::json(404, r#"{"type":"/problems/node-not-found","detail":"no node"}"#),
            }
        });
        let forget = |name: &str| run(&mut server.client(), &NodeName::parse(name).unwrap());
        forget("b").unwrap();
        assert_eq!(forget("c").unwrap_err().code, Code::Usage);
    }

    #[test]
    fn a_removal_is_repeated_while_another_node_begins_to_order() {
        let server = TestServer::start(|request, count| {
            assert_eq!(request.path, "/v1/cluster/remove");
            let busy = r#"{"type":"/problems/not-leading","detail":"it has handed ordering over"}"#;
            if count < 2 { Reply::json(503, busy) } else { Reply::json(204, "") }
        });
        remove(&mut server.client(), &NodeName::parse("b").unwrap()).unwrap();
    }
}
