//! `wellspring cluster forget`: removes a stopped node from the list.

use super::ask;
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
}
