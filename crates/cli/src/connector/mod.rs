//! `wellspring sink` and `wellspring source`: their definitions on a running server, their state,
//! and the decisions that an operator must take.

mod report;

use crate::answer::read;
use crate::confirmation;
use crate::definition::{read_file, start};
use crate::exit::{Code, Failure, InputKind, say};
use crate::problem::Problem;
use crate::server::Server;
use report::{ConnectorReport, lines, rows};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Answer, Client, Request};

/// What `wellspring sink` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A definition is the JSON object accepted by PUT /v1/sinks/NAME (docs/kafka.md). If there are accounts, \
put, reset and delete require an admin, the rest an operator. `status` exits with 1 if the sink has \
stopped. Kafka needs a server with the feature kafka, as in packages; webhooks do not.

Examples:
  wellspring sink put orders orders.json      - reads standard input
  wellspring sink status orders
  wellspring sink skip orders --position 17   an event the destination refuses
  wellspring sink reset orders --to 0         deliver everything again")]
pub struct SinkArgs {
    #[command(subcommand)]
    what: SinkCommand,
}

/// What `wellspring source` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A definition is the JSON object accepted by PUT /v1/sources/NAME (docs/kafka.md). If there are \
accounts, put, reset and delete require an admin, the rest an operator. `status` exits with 1 if the \
source has stopped. The server needs the feature kafka, as in packages.

Examples:
  wellspring source put payments payments.json
  wellspring source status payments")]
pub struct SourceArgs {
    #[command(subcommand)]
    what: SourceCommand,
}

/// What is common to the two.
#[derive(Debug, clap::Subcommand)]
enum CommonCommand {
    /// List all, with the state of each
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: Server,
    },
    /// Show state, progress and problems of one
    Status {
        /// Its name
        name: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        server: Server,
    },
    /// Define one, or change its definition
    Put {
        /// Its name: 1 to 48 of a-z, 0-9 and -
        name: String,
        /// File with the definition, a JSON object; - is standard input
        file: PathBuf,
        #[command(flatten)]
        server: Server,
    },
    /// Pause one; it keeps its place
    Pause {
        /// Its name
        name: String,
        #[command(flatten)]
        server: Server,
    },
    /// Resume one that is paused, or restart one that has stopped
    Resume {
        /// Its name
        name: String,
        #[command(flatten)]
        server: Server,
    },
    /// Delete one and its place; what it delivered or appended remains
    Delete {
        /// Its name
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        server: Server,
    },
}

#[derive(Debug, clap::Subcommand)]
enum SinkCommand {
    #[command(flatten)]
    Common(CommonCommand),
    /// Skip one event, for example one too large for the destination
    Skip {
        /// Its name
        name: String,
        /// Position of the event
        #[arg(long)]
        position: u64,
        #[command(flatten)]
        server: Server,
    },
    /// Restart elsewhere in the log: events are delivered again, or never
    Reset {
        /// Its name
        name: String,
        /// beginning, now, the position to start after, or a time (RFC 3339)
        #[arg(long, value_name = "WHERE", value_parser = start)]
        to: Value,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        server: Server,
    },
}

#[derive(Debug, clap::Subcommand)]
enum SourceCommand {
    #[command(flatten)]
    Common(CommonCommand),
    /// Restart where the definition says: records are appended again, or never
    Reset {
        /// Its name
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
        #[command(flatten)]
        server: Server,
    },
}

/// The two kinds of connectors, as the command line and the API name them.
#[derive(Debug, Clone, Copy)]
struct ConnectorKind {
    word: &'static str,
    path: &'static str,
    member: &'static str,
}

const SINK: ConnectorKind = ConnectorKind { word: "sink", path: "/v1/sinks", member: "sinks" };
const SOURCE: ConnectorKind =
    ConnectorKind { word: "source", path: "/v1/sources", member: "sources" };

/// Runs `wellspring sink`.
pub(crate) fn run_sink(args: &SinkArgs) -> Result<(), Failure> {
    match &args.what {
        SinkCommand::Common(common) => run_common(SINK, common),
        SinkCommand::Skip { server, name, position } => {
            let body = json!({ "position": position });
            post(&mut server.client()?, SINK, name, "skip", Some(&body))?;
            say(&format!("Sink {name} skips position {position}."))
        }
        SinkCommand::Reset { server, name, to, yes } => {
            let what = format!("This moves sink {name}: events are delivered again, or never.");
            confirmation::ask_unless(*yes, &what, name)?;
            post(&mut server.client()?, SINK, name, "reset", Some(&json!({ "to": to })))?;
            say(&format!("Sink {name} restarts at {to}."))
        }
    }
}

/// Runs `wellspring source`.
pub(crate) fn run_source(args: &SourceArgs) -> Result<(), Failure> {
    match &args.what {
        SourceCommand::Common(common) => run_common(SOURCE, common),
        SourceCommand::Reset { server, name, yes } => {
            let what = format!("This moves source {name}: records are appended again, or never.");
            confirmation::ask_unless(*yes, &what, name)?;
            post(&mut server.client()?, SOURCE, name, "reset", None)?;
            say(&format!("Source {name} restarts where its definition says."))
        }
    }
}

fn run_common(kind: ConnectorKind, command: &CommonCommand) -> Result<(), Failure> {
    match command {
        CommonCommand::List { server, json } => list(&mut server.client()?, kind, *json),
        CommonCommand::Status { server, name, json } => {
            status(&mut server.client()?, kind, name, *json)
        }
        CommonCommand::Put { server, name, file } => put(&mut server.client()?, kind, name, file),
        CommonCommand::Pause { server, name } => {
            post(&mut server.client()?, kind, name, "pause", None)?;
            say(&format!("Paused {} {name}.", kind.word))
        }
        CommonCommand::Resume { server, name } => {
            let report = post(&mut server.client()?, kind, name, "resume", None)?;
            say(&format!("Resumed {} {name} at position {}.", kind.word, report.position))
        }
        CommonCommand::Delete { server, name, yes } => {
            let what = format!("This deletes {} {name} and its place, permanently.", kind.word);
            confirmation::ask_unless(*yes, &what, name)?;
            ask(&mut server.client()?, kind, name, "DELETE", &path(kind, name), None)?;
            say(&format!("Deleted {} {name}.", kind.word))
        }
    }
}

fn list(client: &mut Client, kind: ConnectorKind, as_json: bool) -> Result<(), Failure> {
    let answer = ask(client, kind, "", "GET", kind.path, None)?;
    if as_json {
        return say(String::from_utf8_lossy(&answer.body).trim_end());
    }
    let mut members: std::collections::BTreeMap<String, Vec<ConnectorReport>> = read(&answer.body)?;
    let reports = members.remove(kind.member).unwrap_or_default();
    if reports.is_empty() {
        return say(&format!(
            "No {} yet; define one with `wellspring {} put`.",
            kind.member, kind.word
        ));
    }
    say(&rows(&reports).join("\n"))
}

fn status(
    client: &mut Client,
    kind: ConnectorKind,
    name: &str,
    as_json: bool,
) -> Result<(), Failure> {
    let answer = ask(client, kind, name, "GET", &path(kind, name), None)?;
    let report: ConnectorReport = read(&answer.body)?;
    if as_json {
        say(String::from_utf8_lossy(&answer.body).trim_end())?
    } else {
        say(&lines(&report).join("\n"))?
    }
    match report.state.as_str() {
        // Scripts see it by the exit code; the reason has been shown.
        "stopped" => Err(Failure::new(Code::Refused, format!("{name} has stopped"))),
        _ => Ok(()),
    }
}

fn put(client: &mut Client, kind: ConnectorKind, name: &str, file: &Path) -> Result<(), Failure> {
    let definition = read_file(file)?;
    let answer = ask(client, kind, name, "PUT", &path(kind, name), Some(&definition))?;
    let done = if answer.head.status == 201 { "Defined" } else { "Changed" };
    say(&format!("{done} {0} {name}; see `wellspring {0} status {name}`.", kind.word))
}

fn post(
    client: &mut Client,
    kind: ConnectorKind,
    name: &str,
    action: &str,
    body: Option<&Value>,
) -> Result<ConnectorReport, Failure> {
    let path = format!("{}/{action}", path(kind, name));
    let body = body.map(|body| body.to_string().into_bytes());
    let answer = ask(client, kind, name, "POST", &path, body.as_deref())?;
    read(&answer.body)
}

fn path(kind: ConnectorKind, name: &str) -> String {
    format!("{}/{}", kind.path, percent_encode(name))
}

fn ask(
    client: &mut Client,
    kind: ConnectorKind,
    name: &str,
    method: &str,
    path: &str,
    body: Option<&[u8]>,
) -> Result<Answer, Failure> {
    let json = [("Content-Type", "application/json")];
    let headers: &[(&str, &str)] = if body.is_some() { &json } else { &[] };
    // Only a definition comes from a file.
    let input = if method == "PUT" { InputKind::Data } else { InputKind::Arguments };
    let answer = client.call(&Request { method, path, headers, body })?;
    if (200..300).contains(&answer.head.status) {
        return Ok(answer);
    }
    let problem = Problem::of(&answer);
    Err(match problem.slug() {
        "sink-not-found" | "source-not-found" => {
            Failure::usage(format!("{} {name} does not exist", kind.word))
        }
        _ => Failure::new(problem.code(input), problem.sentence()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_client::test_server::{Reply, TestServer};

    const STOPPED: &str = r#"{"name":"a","definition":{"url":"http://x"},"defined_by":"api","state":"stopped",
        "reason":"too large","stop_code":"too-large","stopped_at":7,"generation":1,"position":6,"head":9,"lag":3,
        "events":6,"bytes":60,"batches":1,"restarts":0,"retries":0,"set_aside":0,"skipped":0}"#;

    #[test]
    fn a_stopped_one_is_shown_with_its_reason_and_fails_a_script() {
        let server = TestServer::start(|request, _| {
            assert_eq!((request.method.as_str(), request.path.as_str()), ("GET", "/v1/sinks/a"));
            Reply::json(200, STOPPED)
        });
        let failure = status(&mut server.client(), SINK, "a", false).unwrap_err();
        assert_eq!(failure.code, Code::Refused);
        let report: ConnectorReport = serde_json::from_str(STOPPED).unwrap();
        let shown = lines(&report).join("\n");
        for told in ["stopped", "too large", "too-large", "at position 7", "3 behind"] {
            assert!(shown.contains(told), "{told}: {shown}");
        }
    }

    #[test]
    fn a_missing_sink_is_a_usage_error_and_other_refusals_are_shown() {
        let server = TestServer::start(|request, _| match request.path.as_str() {
            "/v1/sinks/b/pause" => {
                Reply::json(404, r#"{"type":"/problems/sink-not-found","title":"x"}"#)
            }
            _ => Reply::json(
                409,
                r#"{"type":"/problems/connector-configured","title":"x","detail":"in the configuration"}"#,
            ),
        });
        let mut client = server.client();
        assert_eq!(post(&mut client, SINK, "b", "pause", None).unwrap_err().code, Code::Usage);
        let refused = post(&mut client, SINK, "c", "pause", None).unwrap_err();
        assert!(
            refused.code == Code::Refused && refused.message.contains("configuration"),
            "{refused:?}"
        );
    }

    #[test]
    fn where_a_sink_begins_is_a_word_or_a_position() {
        assert_eq!(start("now"), Ok(json!("now")));
        assert_eq!(start("17"), Ok(json!(17)));
        assert!(start("-1").is_err() && start("end").is_err());
    }
}
