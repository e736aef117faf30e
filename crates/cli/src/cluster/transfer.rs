//! `wellspring cluster transfer`: makes another node lead.

use super::ask;
use crate::answer::read;
use crate::exit::{Failure, say};
use serde::Deserialize;
use wellspring_client::{Client, Request};
use wellspring_host::cluster::node_auth::NodeName;

/// The new leader.
#[derive(Debug, Deserialize)]
struct Transferred {
    node: String,
    epoch: u64,
    #[serde(default)]
    already: bool,
}

pub(super) fn run(client: &mut Client, to: Option<&NodeName>) -> Result<(), Failure> {
    let body = match to {
        Some(to) => serde_json::json!({ "to": to.as_str() }),
        None => serde_json::json!({}),
    };
    let body = body.to_string();
    let request = Request {
        method: "POST",
        path: "/v1/cluster/transfer",
        headers: &[("Content-Type", "application/json")],
        body: Some(body.as_bytes()),
    };
    let answer = ask(client, &request)?;
    let Transferred { node, epoch, already } = read(&answer.body)?;
    let already = if already { " already" } else { "" };
    say(&format!("{node}{already} leads, in epoch {epoch}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use wellspring_client::test_server::{Reply, TestServer};

    #[test]
    fn the_next_leader_is_named_and_a_refusal_is_reported() {
        let server =
            TestServer::start(|request, _| match String::from_utf8_lossy(&request.body).as_ref() {
                "{}" | r#"{"to":"b"}"# if request.path == "/v1/cluster/transfer" => {
                    Reply::json(200, r#"{"node":"b","epoch":8}"#)
                }
                _ => {
                    Reply::json(409, r#"{"type":"/problems/no-cluster","title":"x","detail":"y"}"#)
                }
            });
        run(&mut server.client(), None).unwrap();
        let [b, c] = ["b", "c"].map(|name| NodeName::parse(name).unwrap());
        run(&mut server.client(), Some(&b)).unwrap();
        assert_eq!(run(&mut server.client(), Some(&c)).unwrap_err().code, Code::Refused);
    }
}
