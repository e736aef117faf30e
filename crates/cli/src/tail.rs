//! `wellspring tail`: events as lines, and new ones as they are appended.

use crate::exit::{Code, Failure, InputKind};
use crate::export::{BEGINNING, Refusal, events_after, refused, within_history};
use crate::interrupt::on_interrupt;
use crate::problem::{Problem, Retrial};
use crate::query::{QueryArgs, add_parameter};
use crate::sse::Messages;
use crate::target::Target;
use crate::wire::RecordedEvent;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::io::{self, Write};
use std::time::Duration;
use wellspring_client::{Client, ClientError, Request};
use wellspring_host::http::history::ResumePoint;

const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Longest pause that a server can ask for.
const LONGEST_REST: Duration = Duration::from_secs(3_600);

/// Number of newest events shown by default.
const DEFAULT_LINES: u64 = 10;
/// Most of them: a page.
const MAX_LINES: u64 = 1_000;

/// What `wellspring tail` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  wellspring tail -f --type OrderPlaced
  wellspring tail --after 100 -n 50        the 50 events after position 100
  wellspring tail --since 2026-11-28       everything from that day on")]
pub struct TailArgs {
    /// Keep following new events until Ctrl-C; reconnects without gaps
    #[arg(short, long)]
    follow: bool,
    /// Number of newest events, up to 1000 [default: 10]
    ///
    /// With --after, --since or --from-start: stop after so many events [default: no limit].
    #[arg(short = 'n', long, value_name = "COUNT")]
    lines: Option<u64>,
    /// Start after this position instead
    ///
    /// With the log's history, as in 42@4f1c09d2a87b4e6f, a log that was restored from a backup or
    /// created anew since is told from the one that had this position.
    #[arg(long, value_name = "POSITION[@HISTORY]")]
    after: Option<ResumePoint>,
    /// Start with the first event instead
    #[arg(long, conflicts_with = "after")]
    from_start: bool,
    #[command(flatten)]
    query: QueryArgs,
    /// Print events as JSON, one per line, as the server sends them
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    target: Target,
}

impl TailArgs {
    /// What to start after, if that is given.
    fn start(&self) -> Option<ResumePoint> {
        let begins = self.from_start || self.query.since.is_some();
        self.after.or(begins.then_some(BEGINNING))
    }

    /// # Errors
    /// Usage, about `-n` and `--until`.
    fn check(&self) -> Result<(), Failure> {
        if self.follow && self.query.until.is_some() {
            return Err(Failure::usage("-f has no end: leave out -f or --until"));
        }
        match (self.lines, self.start()) {
            (Some(_), Some(_)) if self.follow => Err(Failure::usage(
                "with -f, -n is the number of newest events to start with, and --after, --since and \
                 --from-start name another start: give one of them. Without -f they combine: -n then limits the number \
                 of events",
            )),
            (Some(lines), None) if lines > MAX_LINES => Err(Failure::usage(format!(
                "-n {lines}: at most {MAX_LINES} of the newest events can be shown; with --after, --since or \
                 --from-start any number"
            ))),
            _ => Ok(()),
        }
    }
}

/// Shows events.
pub(crate) fn run(args: &TailArgs) -> Result<(), Failure> {
    args.check()?;
    // Lines are written whole and flushed: there is nothing left to say at Ctrl-C.
    on_interrupt(|| ());
    let mut client = args.target.client()?;
    let mut printer = Printer { out: io::stdout(), json: args.json };
    let after = match args.start() {
        Some(after) => after,
        None => newest(args, &mut client, &mut printer)?,
    };
    if args.follow {
        return follow(args, &mut client, &mut printer, after);
    }
    match args.start() {
        Some(after) => from(args, &mut client, &mut printer, after),
        None => Ok(()),
    }
}

/// Prints the events after a position, up to the number asked for.
fn from(
    args: &TailArgs,
    client: &mut Client,
    printer: &mut Printer<impl Write>,
    after: ResumePoint,
) -> Result<(), Failure> {
    let mut path = path(args, after.position);
    match args.lines {
        Some(0) => return Ok(()),
        Some(most) => add_parameter(&mut path, "limit", &most.to_string()),
        None => {}
    }
    let opened = events_after(&args.target, client, &path, after)?;
    let mut lines = opened.map_err(|refusal| refusal.failure)?;
    while let Some((line, event)) = lines.next()? {
        printer.print(line, &event)?;
    }
    Ok(())
}

fn path(args: &TailArgs, after: u64) -> String {
    let mut path = args.target.path("events");
    args.query.add_to(&mut path);
    add_parameter(&mut path, "after", &after.to_string());
    path
}

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
    head: u64,
}

/// Prints the newest events and returns the head they were read at, where following continues, in
/// the history that the server names.
fn newest(
    args: &TailArgs,
    client: &mut Client,
    printer: &mut Printer<impl Write>,
) -> Result<ResumePoint, Failure> {
    let mut path = args.target.path("events");
    args.query.add_to(&mut path);
    add_parameter(&mut path, "order", "desc");
    let most = args.lines.unwrap_or(DEFAULT_LINES);
    add_parameter(&mut path, "limit", &most.max(1).to_string());
    let mut is_backwards = true;
    let answer = loop {
        let answer = client.call(&Request::get(&path, &[("Accept", "application/json")]))?;
        if answer.head.status == 200 {
            break answer;
        }
        let problem = Problem::of(&answer);
        match (answer.head.status, problem.retry_after_s) {
            // The log has fewer than that: its beginning was removed. They are all there is.
            (410, _) if problem.first.is_some_and(|_| is_backwards) => {
                let first = problem.first.unwrap_or(1);
                eprintln!("Events before position {first} were removed.");
                path = self::path(args, first - 1);
                add_parameter(&mut path, "limit", &most.to_string());
                is_backwards = false;
            }
            // A follower can wait.
            (429, Some(seconds)) if args.follow => {
                eprintln!("wellspring: {}", problem.sentence());
                std::thread::sleep(Duration::from_secs(seconds.max(1)).min(LONGEST_REST));
            }
            _ => return Err(args.target.refusal(&problem, InputKind::Arguments)),
        }
    };
    let page: Page<'_> = serde_json::from_slice(&answer.body).map_err(|error| {
        Failure::new(
            Code::Unavailable,
            format!("the server did not send a page of events ({error})"),
        )
    })?;
    let wanted = usize::try_from(most).unwrap_or(usize::MAX);
    let mut shown: Vec<_> = page.events.iter().take(wanted).collect();
    if is_backwards {
        shown.reverse();
    }
    for raw in shown {
        printer.print_text(raw.get())?;
    }
    Ok(within_history(ResumePoint { position: page.head, history: None }, &answer.head))
}

/// Why a subscription ended.
enum End {
    /// Connect again.
    Again(Break),
    /// Connecting again would not help.
    Final(Failure),
}

/// A subscription that can be resumed.
struct Break {
    /// Whether it had delivered an event.
    delivered: bool,
    why: String,
    /// The pause that the server asked for.
    rest: Option<Duration>,
}

impl Break {
    fn end(delivered: bool, why: impl Into<String>) -> End {
        End::Again(Break { delivered, why: why.into(), rest: None })
    }
}

fn follow(
    args: &TailArgs,
    client: &mut Client,
    printer: &mut Printer<impl Write>,
    after: ResumePoint,
) -> Result<(), Failure> {
    let mut cursor = after;
    let mut pause = FIRST_PAUSE;
    let mut ever_connected = false;
    let mut quiet = false;
    loop {
        match subscription(args, client, printer, &mut cursor, &mut ever_connected) {
            End::Final(failure) => return Err(failure),
            // A server that says when to retry is reachable.
            End::Again(Break { why, rest: None, .. }) if !ever_connected => {
                return Err(Failure::new(Code::Unavailable, why));
            }
            End::Again(Break { delivered, why, rest }) => {
                if delivered {
                    (pause, quiet) = (FIRST_PAUSE, false);
                }
                // One message per outage.
                if !quiet {
                    eprintln!("wellspring: {why}; reconnecting after position {cursor}");
                    quiet = true;
                }
                std::thread::sleep(rest.map_or(pause, |rest| rest.min(LONGEST_REST)).max(pause));
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Whether to connect again after a refusal. A server that says that no retry helps, because what
/// it stores there is damaged, say, will not send anything the next time either.
fn end_of(refusal: Refusal) -> End {
    let Refusal { failure, status, retrial, .. } = refusal;
    let rest = match (status, retrial) {
        (500..=599, Retrial::Never) => return End::Final(failure),
        (429, Retrial::AfterSeconds(seconds)) => Some(Duration::from_secs(seconds)),
        (429 | 500..=599, _) => None,
        _ => return End::Final(failure),
    };
    End::Again(Break { delivered: false, why: failure.message, rest })
}

/// One connection's worth of events.
fn subscription(
    args: &TailArgs,
    client: &mut Client,
    printer: &mut Printer<impl Write>,
    cursor: &mut ResumePoint,
    ever_connected: &mut bool,
) -> End {
    let path = path(args, cursor.position);
    let last = cursor.to_string();
    let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", last.as_str())];
    let (head, body) = match client.open(&Request::get(&path, &headers)) {
        Ok(opened) => opened,
        Err(error @ (ClientError::TooLarge | ClientError::Tls { .. })) => {
            return End::Final(error.into());
        }
        Err(error) => return Break::end(false, error.to_string()),
    };
    if head.status != 200 || !head.is_type("text/event-stream") {
        return end_of(refused(&args.target, &head, body));
    }
    *ever_connected = true;
    *cursor = within_history(*cursor, &head);
    let mut messages = Messages::new(body);
    let mut delivered = false;
    loop {
        let message = match messages.next() {
            Ok(Some(message)) => message,
            Ok(None) => return Break::end(delivered, "the server ended the stream"),
            Err(error) => return Break::end(delivered, error.to_string()),
        };
        // Named messages are not events, but may say how far the server has read.
        if !matches!(message.event.as_str(), "" | "message") {
            match message.id.parse::<ResumePoint>() {
                Ok(id) if id.position > cursor.position => *cursor = id,
                _ => {}
            }
            continue;
        }
        let printed = RecordedEvent::parse(&message.data)
            .map_err(|what| Failure::new(Code::Unavailable, what))
            .and_then(|event| {
                // After a reconnection a server may repeat events.
                if event.position > cursor.position {
                    printer.print(&message.data, &event)?;
                    let id = message.id.parse::<ResumePoint>().ok();
                    let history = id.and_then(|id| id.history).or(cursor.history);
                    *cursor = ResumePoint { position: event.position, history };
                }
                Ok(())
            });
        if let Err(failure) = printed {
            return End::Final(failure);
        }
        delivered = true;
    }
}

struct Printer<W> {
    out: W,
    json: bool,
}

impl<W: Write> Printer<W> {
    fn print_text(&mut self, text: &str) -> Result<(), Failure> {
        let event =
            RecordedEvent::parse(text).map_err(|what| Failure::new(Code::Unavailable, what))?;
        self.print(text, &event)
    }

    fn print(&mut self, text: &str, event: &RecordedEvent<'_>) -> Result<(), Failure> {
        let line = if self.json {
            // Line ends in JSON are only ever white space.
            text.replace(['\r', '\n'], " ")
        } else {
            readable(event)
        };
        writeln!(self.out, "{line}")
            .and_then(|()| self.out.flush())
            .map_err(|error| Failure::output("standard output", &error))
    }
}

/// An event for people: position, time, type, tags, payload.
fn readable(event: &RecordedEvent<'_>) -> String {
    let time = event.recorded_at.as_ref().map_or("-", |time| &*time.0);
    let tags: Vec<&str> = event.tags.iter().map(|tag| &*tag.0).collect();
    let data = match (event.data, &event.data_base64) {
        (Some(data), _) => data.get().to_owned(),
        (None, Some(bytes)) => format!("base64 {}", bytes.0),
        (None, None) => String::new(),
    };
    let line =
        format!("{}  {time}  {}  [{}]  {data}", event.position, event.event_type, tags.join(" "));
    // A payload must not be able to move the cursor of the terminal it is shown on.
    line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
#[path = "tail_tests.rs"]
mod tests;
