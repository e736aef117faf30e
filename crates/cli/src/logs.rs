//! `wellspring log`: the logs of a running server.

use crate::answer::read;
use crate::argument_error::ArgumentError;
use crate::cluster::document::ClusterDocument;
use crate::cluster::status::PATH as STATUS;
use crate::confirmation;
use crate::exit::{Failure, InputKind, say_lines};
use crate::numbers::counted;
use crate::problem::Problem;
use crate::server::Server;
use crate::table::table;
use serde::Deserialize;
use serde_json::value::RawValue;
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Answer, Client, Request};
use wellspring_host::names::{NAME_RULE, is_name};

/// What `wellspring log` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Each log is an order of its own: positions, conditions and leases of one log are independent of the \
others. The log main exists from the first start. If the server has accounts, creating and deleting \
logs requires an admin.

Examples:
  wellspring log create orders      no change if it exists
  wellspring log list
  wellspring log delete orders      asks for confirmation; --yes does not")]
pub struct LogArgs {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    what: LogCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LogCommand {
    /// Create a log; an existing one is left unchanged
    Create {
        /// 1 to 63 of a-z, 0-9, _ and -, starting with a letter or a digit
        #[arg(value_parser = name)]
        name: String,
    },
    /// List the logs that you may read
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Delete a log with all its events, permanently
    #[command(visible_alias = "drop")]
    Delete {
        /// Name of the log
        #[arg(value_parser = name)]
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

fn name(text: &str) -> Result<String, ArgumentError> {
    if is_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("not a valid name of a log: {NAME_RULE}").into())
    }
}

/// Runs the command.
pub(crate) fn run(args: &LogArgs) -> Result<(), Failure> {
    let mut client = args.server.client()?;
    match &args.what {
        LogCommand::Create { name } => create(&mut client, name),
        LogCommand::List { json } => list(&mut client, *json),
        LogCommand::Delete { name, yes } => delete(&mut client, name, *yes),
    }
}

/// A log as the server describes it.
#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    head: u64,
    disk_bytes: u64,
    types: u64,
    #[serde(default)]
    more_types: bool,
    tags: u64,
    #[serde(default)]
    more_tags: bool,
}

fn create(client: &mut Client, name: &str) -> Result<(), Failure> {
    let answer = ask(client, "PUT", name, &path(name))?;
    match answer.head.status {
        201 => eprintln!("Created log {name}."),
        _ => eprintln!("Log {name} already exists; nothing was changed."),
    }
    Ok(())
}

fn list(client: &mut Client, json: bool) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Logs<'a> {
        #[serde(borrow)]
        logs: Vec<&'a RawValue>,
    }
    let answer = ask(client, "GET", "", "/v1/logs")?;
    let Logs { logs } = read(&answer.body)?;
    if json {
        return say_lines(&logs.iter().map(|log| log.get().to_owned()).collect::<Vec<_>>());
    }
    let rows: Vec<Row> =
        logs.iter().map(|log| read(log.get().as_bytes())).collect::<Result<_, _>>()?;
    say_lines(&table(&["LOG", "HEAD", "DISK BYTES", "TYPES", "TAGS"], rows.iter().map(cells)))
}

fn cells(row: &Row) -> Vec<String> {
    let Row { name, head, disk_bytes, types, more_types, tags, more_tags } = row;
    let or_more = |count: &u64, more: &bool| format!("{count}{}", if *more { "+" } else { "" });
    vec![
        name.clone(),
        head.to_string(),
        disk_bytes.to_string(),
        or_more(types, more_types),
        or_more(tags, more_tags),
    ]
}

fn delete(client: &mut Client, name: &str, yes: bool) -> Result<(), Failure> {
    if !yes {
        // A log that does not exist needs no confirmation.
        let row: Row = read(&ask(client, "GET", name, &path(name))?.body)?;
        let events = counted(row.head, "event", "events");
        confirmation::ask_for(
            &format!("This deletes log {name} with {events}, permanently."),
            name,
        )?;
    }
    let confirmed = format!("{}?confirm={}", path(name), percent_encode(name));
    ask(client, "DELETE", name, &confirmed)?;
    let left = left_in_journal(client);
    eprintln!("Deleted log {name} with all its events{left}.");
    Ok(())
}

/// What remains of a deleted log where several nodes share a journal, in words.
fn left_in_journal(client: &mut Client) -> String {
    let answer = ask(client, "GET", "", STATUS);
    match answer.and_then(|answer| ClusterDocument::read(&answer.body)) {
        Ok(ClusterDocument { node: Some(_), journal, .. }) => format!(
            ", on all nodes. Its entries and rows stay in the journal ({journal}) until they are deleted there \
             (docs/cluster.md, SQL over the events)"
        ),
        // A single node, an older server, or a client without access.
        _ => String::new(),
    }
}

fn path(name: &str) -> String {
    format!("/v1/logs/{}", percent_encode(name))
}

fn ask(client: &mut Client, method: &str, name: &str, path: &str) -> Result<Answer, Failure> {
    let answer = client.call(&Request { method, path, headers: &[], body: None })?;
    if (200..300).contains(&answer.head.status) {
        return Ok(answer);
    }
    let problem = Problem::of(&answer);
    Err(match problem.slug() {
        "log-not-found" => Failure::usage(format!("log {name} does not exist")),
        _ => Failure::new(problem.code(InputKind::Arguments), problem.sentence()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;
    use wellspring_client::test_server::{Reply, TestServer};

    #[test]
    fn a_log_is_a_line_and_what_was_not_counted_to_the_end_says_so() {
        let row: Row = read(
            br#"{"name":"a","head":7,"disk_bytes":9,"segments":1,"types":2,"tags":10000,"more_types":false,"more_tags":true}"#,
        )
        .unwrap();
        assert_eq!(cells(&row), ["a", "7", "9", "2", "10000+"]);
        assert_eq!(read::<Row>(b"<html>").unwrap_err().code, Code::Unavailable);
    }

    #[test]
    fn what_stays_in_a_journal_is_told_of_several_nodes_alone() {
        let told = |status, cluster: &'static str| {
            let server = TestServer::start(move |_, _| Reply::json(status, cluster));
            left_in_journal(&mut server.client())
        };
        let several =
            r#"{"node":"a","journal":"postgres","engine":null,"leader":null,"nodes":[],"logs":[]}"#;
        assert!(told(200, several).contains("stay in the journal (postgres)"));
        let alone =
            r#"{"node":null,"journal":"files","engine":null,"leader":null,"nodes":[],"logs":[]}"#;
        assert_eq!((told(200, alone), told(404, "{}")), (String::new(), String::new()));
    }

    #[test]
    fn only_what_a_log_may_be_called_is_taken() {
        assert_eq!(name("orders-2"), Ok("orders-2".to_owned()));
        assert!(name("Orders").unwrap_err().to_string().contains("starting with a letter"));
    }
}
