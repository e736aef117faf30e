//! `wellspring cluster transfer`: makes another node lead the log `system`, or pins a log to one.

use super::ask;
use crate::answer::read;
use crate::exit::{Failure, say};
use serde::Deserialize;
use wellspring_client::endpoint::percent_encode;
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

/// A pinned log.
#[derive(Debug, Deserialize)]
struct Pinned {
    pinned_to: String,
    leads: bool,
}

/// Pins a log to a node; `None` lifts the pin.
pub(super) fn pin(client: &mut Client, log: &str, to: Option<&NodeName>) -> Result<(), Failure> {
    let path = format!("/v1/cluster/leads/{}", percent_encode(log));
    let Some(to) = to else {
        ask(client, &Request { method: "DELETE", path: &path, headers: &[], body: None })?;
        eprintln!("Lifted the pin of {log}.");
        return Ok(());
    };
    let body = serde_json::json!({ "to": to.as_str() }).to_string();
    let headers = &[("Content-Type", "application/json")];
    let request = Request { method: "PUT", path: &path, headers, body: Some(body.as_bytes()) };
    let Pinned { pinned_to, leads } = read(&ask(client, &request)?.body)?;
    let leads = if leads { "leads it" } else { "does not lead it yet" };
    say(&format!("{log} is pinned to {pinned_to}, which {leads}"))
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

    #[test]
    fn a_log_is_pinned_and_its_pin_lifted() {
        let server = TestServer::start(|request, _| {
            assert_eq!(request.path, "/v1/cluster/leads/orders");
            match (&*request.method, String::from_utf8_lossy(&request.body).as_ref()) {
                ("PUT", r#"{"to":"b"}"#) => {
                    Reply::json(200, r#"{"log":"orders","pinned_to":"b","leads":true}"#)
                }
                ("DELETE", "") => Reply::json(204, ""),
                _ => Reply::json(404, r#"{"type":"/problems/node-not-found","title":"x"}"#),
            }
        });
        let [b, c] = ["b", "c"].map(|name| NodeName::parse(name).unwrap());
        pin(&mut server.client(), "orders", Some(&b)).unwrap();
        pin(&mut server.client(), "orders", None).unwrap();
        assert!(pin(&mut server.client(), "orders", Some(&c)).is_err());
    }
}
