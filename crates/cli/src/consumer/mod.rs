//! `wellspring consumer`: background work on the events of a log. Definitions, state, the decisions
//! that an operator must take, and `run`, which calls a program for each delivery.

mod report;
mod run;

use crate::answer::read;
use crate::confirmation;
use crate::definition::{read_file, start};
use crate::exit::{Code, Failure, InputKind, say};
use crate::numbers::counted;
use crate::problem::Problem;
use crate::target::Target;
use report::{ConsumerReport, OpenKeyReport, lines, open_rows, rows};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Answer, Client, Request};

/// What `wellspring consumer` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A consumer hands each event of a query to one of its workers, in the order of a key (docs/background-work.md). \
If there are accounts, `run` requires a writer and the rest an operator of the log. `status` exits with 1 \
if the consumer has stopped.

Examples:
  wellspring consumer put mailer --type OrderPlaced --key order
  wellspring consumer run mailer -- ./send-mail      calls ./send-mail for each event
  wellspring consumer status mailer
  wellspring consumer open mailer --state parked     what failed too often, and why
  wellspring consumer replay mailer --all            try it again")]
pub struct ConsumerArgs {
    #[command(flatten)]
    target: Target,
    #[command(subcommand)]
    what: ConsumerCommand,
}

#[derive(Debug, clap::Subcommand)]
enum ConsumerCommand {
    /// List all consumers of the log
    List {
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Show state and progress of a consumer
    Status {
        /// Its name
        name: String,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Define a consumer, or change its definition
    Put(PutArgs),
    /// Call a program for each delivery; it settles by exit code 0
    Run(run::RunArgs),
    /// Show what is held, tried again, parked or waiting, by key
    Open {
        /// Its name
        name: String,
        /// Only keys in this state
        #[arg(long, value_parser = ["waiting", "ready", "held", "retrying", "parked"])]
        state: Option<String>,
        /// Most keys to show
        #[arg(long, default_value = "100")]
        limit: u16,
        /// Print one JSON document
        #[arg(long)]
        json: bool,
    },
    /// Deliver parked events again
    Replay(ParkedArgs),
    /// Go on without parked events
    Skip(ParkedArgs),
    /// Pause a consumer; what is held can be settled
    Pause {
        /// Its name
        name: String,
    },
    /// Resume a consumer that is paused or stopped
    Resume {
        /// Its name
        name: String,
    },
    /// Move a consumer: events are delivered again, or never
    Reset {
        /// Its name
        name: String,
        /// beginning, now, the position to start after, or a time (RFC 3339)
        #[arg(long, value_name = "WHERE", value_parser = start)]
        to: Value,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Delete a consumer; the events of the log remain
    Delete {
        /// Its name
        name: String,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, clap::Args)]
struct PutArgs {
    /// Its name: 1 to 63 of a-z, 0-9, _ and -
    name: String,
    /// File with a definition, the JSON object of PUT /v1/consumers/NAME; - is standard input
    #[arg(
        conflicts_with_all = ["types", "tags", "key", "from", "max_tries", "on_failure"],
        required_unless_present_any = ["types", "tags"]
    )]
    file: Option<PathBuf>,
    /// Events of this type; repeatable: any of the types
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Events with this tag; repeatable: all of the tags
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// Keep the order of events with the same value of this tag, as in customer:7; `all`: of all
    #[arg(long, value_name = "TAG")]
    key: Option<String>,
    /// beginning (default), now, the position to start after, or a time (RFC 3339)
    #[arg(long, value_name = "WHERE", value_parser = start)]
    from: Option<Value>,
    /// Deliveries of an event before it is parked [default: 8]
    #[arg(long, value_name = "N")]
    max_tries: Option<u8>,
    /// What follows the last one [default: park-key]
    #[arg(long, value_name = "RULE", value_parser = ["park-key", "park-event", "stop"])]
    on_failure: Option<String>,
}

#[derive(Debug, clap::Args)]
struct ParkedArgs {
    /// Its name
    name: String,
    /// All that are parked
    #[arg(long, conflicts_with_all = ["keys", "positions"])]
    all: bool,
    /// The event of this key; repeatable
    #[arg(long = "key", value_name = "KEY", conflicts_with = "positions")]
    keys: Vec<String>,
    /// The event at this position; repeatable
    #[arg(long = "position", value_name = "POSITION")]
    positions: Vec<u64>,
}

/// Runs the command.
pub(crate) fn run(args: &ConsumerArgs) -> Result<(), Failure> {
    if let ConsumerCommand::Run(run) = &args.what {
        return run::run(&args.target, run);
    }
    let asker = &mut Asker { client: args.target.client()?, target: &args.target };
    match &args.what {
        ConsumerCommand::Run(_) => unreachable!("it was run"),
        ConsumerCommand::List { json } => list(asker, *json),
        ConsumerCommand::Status { name, json } => status(asker, name, *json),
        ConsumerCommand::Put(put) => asker.put(put),
        ConsumerCommand::Open { name, state, limit, json } => {
            open(asker, name, state.as_deref(), *limit, *json)
        }
        ConsumerCommand::Replay(parked) => {
            let replayed = asker.decide(parked, "replay", "replayed")?;
            say(&format!(
                "{} again.",
                counted(replayed, "event is delivered", "events are delivered")
            ))
        }
        ConsumerCommand::Skip(parked) => {
            let skipped = asker.decide(parked, "skip", "skipped")?;
            say(&format!("Skipped {}.", counted(skipped, "event", "events")))
        }
        ConsumerCommand::Pause { name } => {
            asker.post(name, "pause", &json!({}))?;
            say(&format!("Paused consumer {name}."))
        }
        ConsumerCommand::Resume { name } => {
            asker.post(name, "resume", &json!({}))?;
            say(&format!("Resumed consumer {name}."))
        }
        ConsumerCommand::Reset { name, to, yes } => {
            let what = format!("This moves consumer {name}: events are delivered again, or never.");
            confirmation::ask_unless(*yes, &what, name)?;
            asker.post(name, "reset", &json!({ "to": to }))?;
            say(&format!("Consumer {name} restarts at {to}."))
        }
        ConsumerCommand::Delete { name, yes } => {
            let what = format!("This deletes consumer {name} and its place, permanently.");
            confirmation::ask_unless(*yes, &what, name)?;
            asker.ask(name, "DELETE", "", None)?;
            say(&format!("Deleted consumer {name}."))
        }
    }
}

#[derive(Deserialize)]
struct ConsumerList {
    consumers: Vec<ConsumerReport>,
}

fn list(asker: &mut Asker<'_>, as_json: bool) -> Result<(), Failure> {
    let answer = asker.ask("", "GET", "", None)?;
    if as_json {
        return say(String::from_utf8_lossy(&answer.body).trim_end());
    }
    let ConsumerList { consumers } = read(&answer.body)?;
    if consumers.is_empty() {
        return say("No consumers yet; define one with `wellspring consumer put`.");
    }
    say(&rows(&consumers).join("\n"))
}

fn status(asker: &mut Asker<'_>, name: &str, as_json: bool) -> Result<(), Failure> {
    let answer = asker.ask(name, "GET", "", None)?;
    let report: ConsumerReport = read(&answer.body)?;
    if as_json {
        say(String::from_utf8_lossy(&answer.body).trim_end())?
    } else {
        say(&lines(&report).join("\n"))?
    }
    match report.state.as_str() {
        // Scripts see it by the exit code.
        "stopped" => Err(Failure::new(Code::Refused, format!("{name} has stopped"))),
        _ => Ok(()),
    }
}

#[derive(Deserialize)]
struct OpenKeyPage {
    open: Vec<OpenKeyReport>,
    next: Option<u64>,
}

fn open(
    asker: &mut Asker<'_>,
    name: &str,
    state: Option<&str>,
    limit: u16,
    as_json: bool,
) -> Result<(), Failure> {
    let state = state.map_or(String::new(), |state| format!("&state={state}"));
    let answer = asker.ask(name, "GET", &format!("/open?limit={limit}{state}"), None)?;
    if as_json {
        return say(String::from_utf8_lossy(&answer.body).trim_end());
    }
    let page: OpenKeyPage = read(&answer.body)?;
    if page.open.is_empty() {
        return say("None.");
    }
    let mut lines = open_rows(&page.open);
    lines.extend(page.next.map(|_| "… and more; see --limit".to_owned()));
    say(&lines.join("\n"))
}

/// Asks about consumers of a log.
struct Asker<'a> {
    client: Client,
    target: &'a Target,
}

impl Asker<'_> {
    fn ask(
        &mut self,
        name: &str,
        method: &str,
        action: &str,
        body: Option<&[u8]>,
    ) -> Result<Answer, Failure> {
        let resource = match name {
            "" => "consumers".to_owned(),
            name => format!("consumers/{}{action}", percent_encode(name)),
        };
        let path = self.target.path(&resource);
        let json = [("Content-Type", "application/json")];
        let headers: &[(&str, &str)] = if body.is_some() { &json } else { &[] };
        let input = if method == "PUT" { InputKind::Data } else { InputKind::Arguments };
        let answer = self.client.call(&Request { method, path: &path, headers, body })?;
        if (200..300).contains(&answer.head.status) {
            return Ok(answer);
        }
        Err(refusal(self.target, name, &Problem::of(&answer), input))
    }

    fn post(&mut self, name: &str, action: &str, body: &Value) -> Result<Answer, Failure> {
        self.ask(name, "POST", &format!("/{action}"), Some(body.to_string().as_bytes()))
    }

    /// Replays or skips parked events; returns how many.
    fn decide(&mut self, parked: &ParkedArgs, action: &str, member: &str) -> Result<u64, Failure> {
        let body = match (parked.all, &parked.keys[..]) {
            (false, []) if parked.positions.is_empty() => {
                let message = format!("which ones? Say --all, --key or --position to {action}");
                return Err(Failure::usage(message));
            }
            (true, _) => json!({ "all": true }),
            (false, []) => json!({ "positions": parked.positions }),
            (false, keys) => json!({ "keys": keys }),
        };
        let answer = self.post(&parked.name, action, &body)?;
        let counts: Map<String, Value> = read(&answer.body)?;
        match counts.get(member).and_then(Value::as_u64) {
            None | Some(0) => {
                let message = format!(
                    "no such event is parked; see `wellspring consumer open {} --state parked{}`",
                    parked.name,
                    self.target.flags()
                );
                Err(Failure::new(Code::Refused, message))
            }
            Some(count) => Ok(count),
        }
    }

    fn put(&mut self, put: &PutArgs) -> Result<(), Failure> {
        let definition = match &put.file {
            Some(file) => read_file(file)?,
            None => put.definition().to_string().into_bytes(),
        };
        let name = &put.name;
        let answer = self.ask(name, "PUT", "", Some(&definition))?;
        let done = if answer.head.status == 201 { "Defined" } else { "Kept or changed" };
        let flags = self.target.flags();
        say(&format!("{done} consumer {name}; see `wellspring consumer status {name}{flags}`."))
    }
}

/// The failure of a request about a consumer.
fn refusal(target: &Target, name: &str, problem: &Problem, input: InputKind) -> Failure {
    match problem.slug() {
        "consumer-not-found" => Failure::usage(format!(
            "consumer {name} does not exist; define it with `wellspring consumer put {name}{}`",
            target.flags()
        )),
        _ => target.refusal(problem, input),
    }
}

impl PutArgs {
    /// The definition that the flags say.
    fn definition(&self) -> Value {
        let item = json!({ "types": self.types, "tags": self.tags });
        let mut definition = json!({ "query": { "items": [item] } });
        if let Some(key) = &self.key {
            definition["key"] = if key == "all" { json!("all") } else { json!({ "tag": key }) };
        }
        if let Some(from) = &self.from {
            definition["from"] = from.clone();
        }
        if let Some(max_tries) = self.max_tries {
            definition["max_tries"] = json!(max_tries);
        }
        if let Some(on_failure) = &self.on_failure {
            definition["on_failure"] = json!(on_failure);
        }
        definition
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;
    use wellspring_client::test_server::{Reply, TestServer};

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: ConsumerArgs,
    }

    fn parse(words: &[&str]) -> Result<ConsumerArgs, clap::Error> {
        Ok(Line::try_parse_from([&["consumer"], words].concat())?.args)
    }

    #[test]
    fn flags_say_a_definition() {
        let words =
            ["put", "mailer", "--type", "A", "--type", "B", "--key", "order", "--from", "7"];
        let ConsumerCommand::Put(put) = parse(&words).unwrap().what else { panic!("put") };
        assert_eq!(
            put.definition(),
            json!({"query": {"items": [{"types": ["A", "B"], "tags": []}]},
                   "key": {"tag": "order"}, "from": 7})
        );
        assert!(parse(&["put", "mailer"]).is_err(), "a file or flags");
        assert!(parse(&["put", "mailer", "f.json", "--type", "A"]).is_err(), "not both");
        let which = parse(&["replay", "mailer"]).map(|args| run(&args).unwrap_err().code);
        assert_eq!(which.ok(), Some(Code::Usage), "which ones");
        assert!(parse(&["replay", "mailer", "--all", "--key", "7"]).is_err(), "one of them");
        assert!(parse(&["reset", "mailer", "--to", "end"]).is_err());
    }

    #[test]
    fn a_stopped_consumer_fails_a_script_and_a_missing_one_is_a_usage_error() {
        let server = TestServer::start(|request, _| match request.path.as_str() {
            "/v1/logs/main/consumers/a" => Reply::json(
                200,
                r#"{"name":"a","definition":{},"state":"stopped","generation":1,"scanned":6,"floor":4,
                    "lag":3,"open_keys":2,"ready":1,"in_flight":0,"parked":1,"workers":0}"#,
            ),
            _ => Reply::json(404, r#"{"type":"/problems/consumer-not-found","title":"x"}"#),
        });
        let run_with = |words: &[&str]| {
            let mut words = words.to_vec();
            words.extend(["--url", server.url()]);
            run(&parse(&words).unwrap())
        };
        assert_eq!(run_with(&["status", "a"]).unwrap_err().code, Code::Refused);
        let missing = run_with(&["pause", "b"]).unwrap_err();
        assert!(missing.code == Code::Usage && missing.message.contains("consumer put b"));
    }
}
