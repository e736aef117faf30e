//! `wellspring cluster init` and `join`: nodes that order their logs themselves become a cluster.

use super::ask;
use super::document::{ClusterDocument, GroupDocument};
use super::status::{PATH, group_of, leading};
use crate::answer::read;
use crate::argument_error::ArgumentError;
use crate::credentials::Credentials;
use crate::exit::{Code, Failure, say};
use crate::server::Server;
use crate::span;
use serde::Deserialize;
use std::time::Duration;
use wellspring_client::endpoint::Endpoint;
use wellspring_client::trust::Trust;
use wellspring_client::{Client, Request};
use wellspring_log::{Clock as _, SystemClock};

/// Time between two attempts.
const PAUSE: Duration = Duration::from_millis(300);
/// How long the nodes may take to change who orders.
pub(super) const ORDERED_WITHIN: Duration = Duration::from_secs(6);
/// How long a founded cluster may take to have a leader.
const LED_WITHIN: Duration = Duration::from_secs(10);

/// What `wellspring cluster init` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Each node was started with --journal raft and the same --cluster-key, on an empty folder. The \
command is sent to the first URL. It may be repeated: it goes on where it stopped, and succeeds \
if all is done.

Example:
  wellspring cluster init http://a:4000 http://b:4000 http://c:4000 --wait 60s")]
pub(super) struct InitArgs {
    /// URLs of all nodes: three or five, or one
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,
    /// Accept an even number of nodes, which survives no more failures than one less
    #[arg(long)]
    even: bool,
    /// How long to try until all nodes answer, e.g. 60s
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = time)]
    wait: Duration,
    #[command(flatten)]
    trust: Trust,
    #[command(flatten)]
    credentials: Credentials,
}

/// What `wellspring cluster join` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The node was started with --journal raft and the --cluster-key of the cluster, on an empty folder. \
It fetches the logs first, and votes once it has caught up. --replace first removes the member of \
the same name, which must no longer be reachable.

Examples:
  wellspring cluster join http://d:4000 --url http://a:4000
  wellspring cluster join http://c:4000 --replace --url http://a:4000")]
pub(super) struct JoinArgs {
    /// URL of the node that joins; --url is any node of the cluster
    #[arg(value_name = "URL")]
    node: String,
    /// It follows and does not vote
    #[arg(long)]
    learner: bool,
    /// It takes the place of the member of its name, whose disk is lost
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    server: Server,
}

/// A time as everywhere, or a number of seconds.
fn time(text: &str) -> Result<Duration, ArgumentError> {
    let has_unit = !text.ends_with(|last: char| last.is_ascii_digit());
    let seconds = if has_unit { span::seconds(text) } else { span::seconds(&format!("{text}s")) };
    seconds.map(Duration::from_secs)
}

#[derive(Debug, Deserialize)]
struct Founded {
    cluster: String,
    nodes: Vec<String>,
    state: String,
    already: bool,
    applied_index: Option<u64>,
    last_index: Option<u64>,
}

/// Repeats a request for so long while no node can do what it asks.
pub(super) fn while_unavailable<T>(
    within: Duration,
    mut ask: impl FnMut() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let begun_us = SystemClock.monotonic_us();
    loop {
        let done = ask();
        let elapsed = Duration::from_micros(SystemClock.monotonic_us() - begun_us);
        let is_unavailable = done.as_ref().is_err_and(|failure| failure.code == Code::Unavailable);
        if !is_unavailable || elapsed >= within {
            return done;
        }
        std::thread::sleep(PAUSE);
    }
}

fn post(client: &mut Client, path: &str, body: &serde_json::Value) -> Result<Founded, Failure> {
    let body = body.to_string();
    let headers = &[("Content-Type", "application/json")];
    let request = Request { method: "POST", path, headers, body: Some(body.as_bytes()) };
    read(&ask(client, &request)?.body)
}

pub(super) fn init(args: &InitArgs) -> Result<(), Failure> {
    let url = &args.urls[0];
    let endpoint =
        Endpoint::parse(url).map_err(|error| Failure::usage(format!("{url}: {error}")))?;
    let authorization = args.credentials.authorization(&endpoint)?;
    let client = Client::new(endpoint, &args.trust).map_err(Failure::usage)?;
    let mut client = client.with_authorization(authorization);
    let body = serde_json::json!({ "nodes": args.urls, "even": args.even });
    let founded = while_unavailable(args.wait, || post(&mut client, "/v1/cluster/init", &body))?;
    let founded_us = SystemClock.monotonic_us();
    let leads = loop {
        let answer = ask(&mut client, &Request::get(PATH, &[]));
        // A node asks for credentials once it knows of accounts, and so once a node leads.
        if answer.as_ref().is_err_and(|failure| failure.code == Code::Denied) {
            break "it has accounts".to_owned();
        }
        let document = answer.and_then(|answer| ClusterDocument::read(&answer.body)).ok();
        if let Some(leader) = document.as_ref().and_then(leading) {
            break format!("{} leads", leader.node);
        }
        let waited = Duration::from_micros(SystemClock.monotonic_us() - founded_us);
        if waited > LED_WITHIN.max(args.wait) {
            break "no node leads yet".to_owned();
        }
        std::thread::sleep(PAUSE);
    };
    let Founded { cluster, nodes, already, .. } = founded;
    let nodes = nodes.join(", ");
    let done = if already { "was founded before, by" } else { "was founded by" };
    say(&format!("Cluster {cluster} {done} {nodes}; {leads}."))
}

pub(super) fn join(args: &JoinArgs) -> Result<(), Failure> {
    let mut client = args.server.client()?;
    let body =
        serde_json::json!({ "node": args.node, "learner": args.learner, "replace": args.replace });
    let mut shown = None;
    loop {
        let step =
            while_unavailable(ORDERED_WITHIN, || post(&mut client, "/v1/cluster/join", &body))?;
        let node = step.nodes.join(", ");
        match (&*step.state, args.learner) {
            ("voter", _) => {
                say(&format!("{node} is a voter of the cluster."))?;
                let document =
                    ClusterDocument::read(&ask(&mut client, &Request::get(PATH, &[]))?.body)?;
                if let Some(warning) =
                    group_of(&document).and_then(GroupDocument::even_voters_warning)
                {
                    eprintln!("{warning}: let another node join, or remove one");
                }
                return Ok(());
            }
            ("learner", true) => return say(&format!("{node} follows the cluster.")),
            _ => {}
        }
        let far = (step.applied_index, step.last_index);
        if shown != Some(far) {
            let [applied, last] = [far.0, far.1].map(Option::unwrap_or_default);
            eprintln!("{node} has {applied} of {last} entries");
        }
        shown = Some(far);
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_client::test_server::{Reply, TestServer};

    #[test]
    fn a_time_has_a_unit() {
        for (text, seconds) in [("60s", 60), ("2m", 120), ("5", 5)] {
            assert_eq!(time(text), Ok(Duration::from_secs(seconds)));
        }
        assert!(time("soon").is_err() && time("-1s").is_err());
    }

    #[test]
    fn a_node_joins_step_by_step() {
        let server = TestServer::start(|request, count| {
            assert_eq!(request.path, "/v1/cluster/join");
            let state = if count < 2 { "learner" } else { "voter" };
            Reply::json(
                200,
                &format!(
                    r#"{{"cluster":"7","nodes":["d"],"state":"{state}","already":false,
                        "applied_index":{count},"last_index":9}}"#
                ),
            )
        });
        let body = serde_json::json!({});
        let states: Vec<String> = (0..3)
            .map(|_| post(&mut server.client(), "/v1/cluster/join", &body).unwrap().state)
            .collect();
        assert_eq!(states.last().map(String::as_str), Some("voter"));
    }
}
