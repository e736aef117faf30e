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
  wellspring log trim telemetry --max-age 30d --dry-run
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
    /// Remove the beginning of a log, in whole segments, permanently
    Trim(TrimArgs),
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

/// How much of a log is to go: what all that is named allows.
#[derive(Debug, clap::Args)]
struct TrimArgs {
    /// Name of the log
    #[arg(value_parser = name)]
    name: String,
    /// Events before this position
    #[arg(long, value_name = "POSITION", required_unless_present_any = ["max_age", "max_bytes"])]
    before: Option<u64>,
    /// Events older than this: 90s, 12h, 30d
    #[arg(long, value_name = "AGE", value_parser = age)]
    max_age: Option<u64>,
    /// Segments, until those that are left have at most this many bytes
    #[arg(long, value_name = "BYTES")]
    max_bytes: Option<u64>,
    /// Say what would go, and who needs it; remove nothing
    #[arg(long)]
    dry_run: bool,
    /// Also what consumers and sinks have not read yet
    #[arg(long)]
    force: bool,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
}

/// Seconds of an age such as `30d`.
fn age(text: &str) -> Result<u64, ArgumentError> {
    let units = [("s", 1), ("m", 60), ("h", 3_600), ("d", 86_400)];
    let of = |(unit, seconds): (&str, u64)| {
        text.strip_suffix(unit)?.parse::<u64>().ok()?.checked_mul(seconds)
    };
    units.into_iter().find_map(of).ok_or_else(|| "not an age such as 90s, 12h or 30d".into())
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
        LogCommand::Trim(args) => trim(&mut client, args),
        LogCommand::Delete { name, yes } => delete(&mut client, name, *yes),
    }
}

/// A log as the server describes it.
#[derive(Debug, Deserialize)]
struct Row {
    name: String,
    #[serde(default = "one")]
    first: u64,
    head: u64,
    disk_bytes: u64,
    types: u64,
    #[serde(default)]
    more_types: bool,
    tags: u64,
    #[serde(default)]
    more_tags: bool,
}

/// The first position of a log of servers that do not tell it.
fn one() -> u64 {
    1
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
    say_lines(&table(
        &["LOG", "FIRST", "HEAD", "DISK BYTES", "TYPES", "TAGS"],
        rows.iter().map(cells),
    ))
}

fn cells(row: &Row) -> Vec<String> {
    let Row { name, first, head, disk_bytes, types, more_types, tags, more_tags } = row;
    let or_more = |count: &u64, more: &bool| format!("{count}{}", if *more { "+" } else { "" });
    vec![
        name.clone(),
        first.to_string(),
        head.to_string(),
        disk_bytes.to_string(),
        or_more(types, more_types),
        or_more(tags, more_tags),
    ]
}

/// What was removed, or would be.
#[derive(Debug, Deserialize)]
struct Trimmed {
    first: u64,
    removed_events: u64,
    removed_bytes: u64,
    held_by: Vec<Reader>,
}

/// Something that needs events which would be removed.
#[derive(Debug, Deserialize)]
struct Reader {
    kind: String,
    name: String,
    position: u64,
}

impl Trimmed {
    /// What is removed, for a person: `3 events (1200 bytes)`.
    fn amount(&self) -> String {
        let events = counted(self.removed_events, "event", "events");
        format!("{events} ({} bytes)", self.removed_bytes)
    }
}

fn trim(client: &mut Client, args: &TrimArgs) -> Result<(), Failure> {
    let TrimArgs { name, before, max_age, max_bytes, dry_run, force, yes } = args;
    let mut target = format!("{}/trim?force={force}", path(name));
    let wanted = [("before", before), ("max_age_s", max_age), ("max_bytes", max_bytes)];
    for (parameter, value) in wanted {
        if let Some(value) = value {
            target.push_str(&format!("&{parameter}={value}"));
        }
    }
    let plan: Trimmed = read(&ask(client, "POST", name, &format!("{target}&dry_run=true"))?.body)?;
    let amount = plan.amount();
    for Reader { kind, name, position } in &plan.held_by {
        eprintln!("The {kind} {name} needs events from {position} on.");
    }
    if *dry_run || plan.removed_events == 0 {
        let first = plan.first;
        eprintln!("This would remove {amount} of log {name}, which would begin at {first}.");
        return Ok(());
    }
    if !yes {
        let what = format!("This removes the first {amount} of log {name}, permanently.");
        confirmation::ask_for(&what, name)?;
    }
    let done: Trimmed = read(&ask(client, "POST", name, &target)?.body)?;
    eprintln!("Removed {}: log {name} begins at position {}.", done.amount(), done.first);
    Ok(())
}

fn delete(client: &mut Client, name: &str, yes: bool) -> Result<(), Failure> {
    if !yes {
        // A log that does not exist needs no confirmation.
        let row: Row = read(&ask(client, "GET", name, &path(name))?.body)?;
        let events = counted(row.head + 1 - row.first, "event", "events");
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
        assert_eq!(cells(&row), ["a", "1", "7", "9", "2", "10000+"]);
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
