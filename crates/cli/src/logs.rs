//! `wellspring log`: the logs of a running server.

use crate::answer::read;
use crate::cluster::document::ClusterDocument;
use crate::cluster::status::PATH as STATUS;
use crate::confirmation;
use crate::exit::{Code, Failure, say};
use crate::problem::Problem;
use crate::progress::counted;
use crate::server::Server;
use serde::Deserialize;
use serde_json::value::RawValue;
use wellspring_host::client::endpoint::percent_encode;
use wellspring_host::client::{Answer, Client, Request};
use wellspring_host::names::{NAME_RULE, is_name};

/// What `wellspring log` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A log is an order of its own: positions, conditions and leases of one know nothing of another. The log main is there
from the first start. Making and deleting takes an admin, if there are accounts.

Exit codes: 0 done, 1 refused or not confirmed, 64 or 2 usage or no such log, 69 server not reachable or full,
77 credentials missing or not enough.

Examples:
  wellspring log create orders                  makes it; if it is there already, nothing happens
  wellspring log list
  wellspring log delete orders                  asks; --yes does not")]
pub struct LogArgs {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    what: LogCommand,
}

#[derive(Debug, clap::Subcommand)]
enum LogCommand {
    /// Makes a log; one that is there stays as it is.
    Create {
        /// 1 to 63 of a-z, 0-9, _ and -, starting with a letter or a digit.
        #[arg(value_parser = name)]
        name: String,
    },
    /// Lists the logs that one may read.
    List {
        /// A JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Deletes a log with every event in it, for ever.
    Delete {
        /// Which.
        #[arg(value_parser = name)]
        name: String,
        /// Does not ask.
        #[arg(long)]
        yes: bool,
    },
}

fn name(text: &str) -> Result<String, String> {
    if is_name(text) { Ok(text.to_owned()) } else { Err(format!("a log's name is {NAME_RULE}")) }
}

/// Does it.
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
        201 => eprintln!("the log {name} is made"),
        _ => eprintln!("there is a log {name} already; nothing was changed"),
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
    let mut lines = Vec::new();
    if !json {
        lines.push("log\thead\tdisk_bytes\ttypes\ttags".to_owned());
    }
    for log in logs {
        lines.push(if json { log.get().to_owned() } else { line(&read(log.get().as_bytes())?) });
    }
    if lines.is_empty() { Ok(()) } else { say(&lines.join("\n")) }
}

fn line(row: &Row) -> String {
    let Row { name, head, disk_bytes, types, more_types, tags, more_tags } = row;
    let more = |more: &bool| if *more { "+" } else { "" };
    format!("{name}\t{head}\t{disk_bytes}\t{types}{}\t{tags}{}", more(more_types), more(more_tags))
}

fn delete(client: &mut Client, name: &str, yes: bool) -> Result<(), Failure> {
    if !yes {
        // A log that is not there needs no confirmation.
        let row: Row = read(&ask(client, "GET", name, &path(name))?.body)?;
        let events = counted(row.head, "event", "events");
        confirmation::ask_for(&format!("The log {name} ends for ever, with {events}."), name)?;
    }
    let confirmed = format!("{}?confirm={}", path(name), percent_encode(name));
    ask(client, "DELETE", name, &confirmed)?;
    let left = left_in_journal(client);
    eprintln!("the log {name} is deleted with every event that was in it{left}");
    Ok(())
}

/// What a deleted log leaves behind where several nodes share a journal, in words.
fn left_in_journal(client: &mut Client) -> String {
    let answer = ask(client, "GET", "", STATUS);
    match answer.and_then(|answer| ClusterDocument::read(&answer.body)) {
        Ok(ClusterDocument { node: Some(_), journal, .. }) => format!(
            ", on all nodes; its entries and rows stay in the journal ({journal}) until they are deleted there \
             (docs/cluster.md, SQL over the events)"
        ),
        // Alone, or an older server, or one that says no more to this client.
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
        "log-not-found" => Failure::usage(format!("there is no log {name}")),
        _ => Failure::new(problem.code(Code::Refused), problem.sentence()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_host::client::test_server::{Reply, TestServer};

    #[test]
    fn a_log_is_a_line_and_what_was_not_counted_to_the_end_says_so() {
        let row: Row = read(
            br#"{"name":"a","head":7,"disk_bytes":9,"segments":1,"types":2,"tags":10000,"more_types":false,"more_tags":true}"#,
        )
        .unwrap();
        assert_eq!(line(&row), "a\t7\t9\t2\t10000+");
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
        assert!(name("Orders").unwrap_err().contains("starting with a letter"));
    }
}
