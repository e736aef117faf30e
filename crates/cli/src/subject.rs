//! `wellspring subject`: what is stored about a data subject, and its erasure.

use crate::answer::read;
use crate::confirmation;
use crate::exit::{Code, Failure, InputKind, say_lines};
use crate::numbers::counted;
use crate::problem::Problem;
use crate::server::Server;
use crate::table::table;
use serde::Deserialize;
use serde_json::value::RawValue;
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Answer, Client, Request};

/// Events of a page of an export.
const PAGE_EVENTS: u64 = 1_000;

/// What `wellspring subject` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A data subject is a tag such as student:8f14e45f. What is stored with it as its subject is sealed with \
a key of its own (docs/privacy.md); an erasure destroys that key, and with it the data in every log, copy \
and backup. If the server has accounts, all of this requires an admin.

Examples:
  wellspring subject show student:8f14e45f
  wellspring subject export student:8f14e45f >ada.ndjson
  wellspring subject erase student:8f14e45f --grace-s 86400     can be cancelled for a day
  xargs wellspring subject erase --yes <ids.txt
  wellspring subject erasure 4f1c09d2a87b4e6f                   its state; complete: the proof
  wellspring subject cancel 4f1c09d2a87b4e6f")]
pub struct SubjectArgs {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    what: SubjectCommand,
}

#[derive(Debug, clap::Subcommand)]
enum SubjectCommand {
    /// Show the state of its key, and how many events of it each log has
    Show {
        /// The data subject
        subject: String,
    },
    /// Write all its events of all logs, opened, one JSON object per line
    Export {
        /// The data subject
        subject: String,
    },
    /// Erase everything that is sealed for one or more, permanently
    Erase {
        /// The data subjects
        #[arg(required = true)]
        subjects: Vec<String>,
        /// How long the erasure can be cancelled, in seconds; nothing shows the data meanwhile
        #[arg(long, default_value = "0", value_name = "SECONDS")]
        grace_s: u64,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Show an erasure as JSON, or those that are not complete
    Erasure {
        /// Its id; without it, all that are not complete
        erasure: Option<String>,
    },
    /// Cancel an erasure that still waits
    Cancel {
        /// Its id
        erasure: String,
    },
}

/// What is stored about a data subject.
#[derive(Debug, Deserialize)]
struct Subject {
    state: String,
    erases_at: Option<String>,
    until: Option<String>,
    logs: Vec<InLog>,
}

/// Its events in one log.
#[derive(Debug, Deserialize)]
struct InLog {
    log: String,
    events: u64,
    sealed: u64,
    clear: u64,
    first: u64,
    last: u64,
}

/// An erasure.
#[derive(Debug, Deserialize)]
struct Erasure {
    erasure: String,
    state: String,
    erases_at: String,
}

/// Runs the command.
pub(crate) fn run(args: &SubjectArgs) -> Result<(), Failure> {
    let mut client = args.server.client()?;
    match &args.what {
        SubjectCommand::Show { subject } => show(&mut client, subject),
        SubjectCommand::Export { subject } => export(&mut client, subject),
        SubjectCommand::Erase { subjects, grace_s, yes } => {
            erase(&mut client, subjects, *grace_s, *yes)
        }
        SubjectCommand::Erasure { erasure } => {
            let id = erasure.as_deref().map(|id| format!("/{}", percent_encode(id)));
            let path = format!("/v1/erasures{}", id.unwrap_or_default());
            print(&ask(&mut client, "GET", &path)?)
        }
        SubjectCommand::Cancel { erasure } => {
            ask(&mut client, "POST", &format!("/v1/erasures/{}/cancel", percent_encode(erasure)))?;
            eprintln!("Cancelled the erasure {erasure}.");
            Ok(())
        }
    }
}

fn find(client: &mut Client, subject: &str) -> Result<Subject, Failure> {
    read(&ask(client, "GET", &format!("/v1/subjects/{}", percent_encode(subject)))?.body)
}

fn show(client: &mut Client, subject: &str) -> Result<(), Failure> {
    let found = find(client, subject)?;
    let detail = match (&found.erases_at, &found.until) {
        (Some(at), _) => format!("; it will be erased at {at}"),
        (_, Some(until)) => format!("; nothing is sealed for {subject} before {until}"),
        _ if found.state == "unavailable" => {
            ": it is not in the server's store of keys. Put the newest backup of the keys back"
                .to_owned()
        }
        _ if found.state == "unknown" => ": nothing is sealed for it".to_owned(),
        _ => String::new(),
    };
    eprintln!("The key of {subject} is {}{detail}.", found.state);
    let cells = |row: &InLog| {
        let InLog { log, events, sealed, clear, first, last } = row;
        let numbers = [events, sealed, clear, first, last].map(u64::to_string);
        std::iter::once(log.clone()).chain(numbers).collect::<Vec<String>>()
    };
    let rows = found.logs.iter().map(cells);
    say_lines(&table(&["LOG", "EVENTS", "SEALED", "CLEAR", "FIRST", "LAST"], rows))
}

fn export(client: &mut Client, subject: &str) -> Result<(), Failure> {
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        events: Vec<&'a RawValue>,
        next: Option<u64>,
    }
    let found = find(client, subject)?;
    let events = counted(found.logs.iter().map(|log| log.events).sum(), "event has", "events have");
    eprintln!("{events} the tag {subject}; its key is {}.", found.state);
    for InLog { log, first, .. } in found.logs {
        let mut after = Some(first - 1);
        while let Some(position) = after {
            let path = format!(
                "/v1/logs/{}/events?tag={}&limit={PAGE_EVENTS}&after={position}",
                percent_encode(&log),
                percent_encode(subject)
            );
            let answer = ask(client, "GET", &path)?;
            let page: Page<'_> = read(&answer.body)?;
            // An event is an object with a position.
            let line = |event: &&RawValue| {
                let event = event.get().replace(['\n', '\r'], " ");
                format!("{{\"log\":\"{log}\",{}", &event[1..])
            };
            say_lines(&page.events.iter().map(line).collect::<Vec<_>>())?;
            after = page.next;
        }
    }
    Ok(())
}

fn erase(client: &mut Client, subjects: &[String], grace_s: u64, yes: bool) -> Result<(), Failure> {
    let what = match subjects {
        [subject] => subject.clone(),
        _ => counted(subjects.len() as u64, "data subject", "data subjects"),
    };
    if !yes {
        let (mut sealed, mut clear) = (0, 0);
        for subject in subjects {
            let logs = find(client, subject)?.logs;
            sealed += logs.iter().map(|log| log.sealed).sum::<u64>();
            clear += logs.iter().map(|log| log.clear).sum::<u64>();
        }
        let stays = match clear {
            0 => String::new(),
            _ => format!(
                " {} such a tag but no sealed data, and will remain.",
                counted(clear, "event has", "events have")
            ),
        };
        let sealed = counted(sealed, "event", "events");
        let warning = format!(
            "This permanently erases the data that {sealed} hold for {what}, in copies and backups too.{stays}"
        );
        confirmation::ask_for(&warning, &what)?;
    }
    let body = serde_json::json!({ "subjects": subjects, "grace_s": grace_s }).to_string();
    let headers = [("Content-Type", "application/json")];
    let (path, body) = ("/v1/erasures", Some(body.as_bytes()));
    let answer = client.call(&Request { method: "POST", path, headers: &headers, body })?;
    let Erasure { erasure, state, erases_at } = read(&accepted(answer)?.body)?;
    match state.as_str() {
        "complete" => eprintln!("Erased {what} (erasure {erasure})."),
        "waiting" => eprintln!(
            "{what} will be erased at {erases_at}; to cancel before then: wellspring subject cancel {erasure}"
        ),
        _ => eprintln!("The erasure {erasure} of {what} has begun; the server goes on with it."),
    }
    Ok(())
}

/// Prints the document of an answer.
pub(crate) fn print(answer: &Answer) -> Result<(), Failure> {
    say_lines(&[String::from_utf8_lossy(&answer.body).into_owned()])
}

/// The answer to a request without a body.
pub(crate) fn ask(client: &mut Client, method: &str, path: &str) -> Result<Answer, Failure> {
    accepted(client.call(&Request { method, path, headers: &[], body: None })?)
}

fn accepted(answer: Answer) -> Result<Answer, Failure> {
    if (200..300).contains(&answer.head.status) {
        return Ok(answer);
    }
    let problem = Problem::of(&answer);
    let code = match problem.slug() {
        "erasure-begun" => Code::Refused,
        _ => problem.code(InputKind::Arguments),
    };
    Err(Failure::new(code, problem.sentence()))
}
