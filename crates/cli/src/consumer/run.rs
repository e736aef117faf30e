//! `wellspring consumer run`: calls a program for each delivery. It gets the events on standard
//! input, one JSON object per line; its exit code says what becomes of them.

use super::refusal;
use crate::answer::read;
use crate::exit::{Code, Failure, InputKind};
use crate::interrupt::Interrupts;
use crate::problem::Problem;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use wellspring_client::endpoint::percent_encode;
use wellspring_client::{Client, ClientError, Request};

/// Longest wait for events in one request: how long a stop may take while there are none.
const WAIT_MS: u64 = 2_000;
/// Pause before a request is repeated.
const PAUSE: Duration = Duration::from_secs(1);
/// Exit code of a program that can never process the event (`EX_DATAERR` of sysexits.h).
const PARKS: i32 = 65;
/// Most bytes of a reason.
const MAX_REASON_BYTES: usize = 1_024;

/// What `wellspring consumer run` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The program gets the events of a delivery on standard input, each as one line of JSON, and in its \
environment WELLSPRING_POSITION, WELLSPRING_TYPE, WELLSPRING_KEY, WELLSPRING_TRIES and \
WELLSPRING_EFFECT_KEY, an idempotency key that stays the same when the event comes again. Exit code 0 \
settles the delivery, 65 parks it, any other one has it tried again; the last line of standard error is \
the reason. While a program runs, its delivery is held. SIGTERM and Ctrl-C wait for the programs that run.

With --append, the lines that the program prints are events, as `wellspring import` takes them: they are \
appended, and the delivery is settled, as one. However often the event comes, they are appended once.

Examples:
  wellspring consumer run mailer -- ./send-mail
  wellspring consumer run billing --workers 8 --append -- ./make-invoice")]
pub(super) struct RunArgs {
    /// Name of the consumer
    name: String,
    /// Programs that run at a time
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: u16,
    /// Append what the program prints, and settle, as one
    #[arg(long)]
    append: bool,
    /// End when nothing can be delivered now; what is tried again later is left
    #[arg(long)]
    until_idle: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs until it is interrupted, or idle.
pub(super) fn run(target: &Target, args: &RunArgs) -> Result<(), Failure> {
    let interrupts = Interrupts::begin()?;
    let run = Run { target, args, is_ending: AtomicBool::new(false) };
    let (tell, ended) = mpsc::channel();
    let failures = std::thread::scope(|scope| {
        for number in 0..args.workers {
            let (run, tell) = (&run, tell.clone());
            scope.spawn(move || {
                let _ = tell.send(run.worker(number));
            });
        }
        drop(tell);
        let mut failures = Vec::new();
        loop {
            match ended.recv_timeout(Duration::from_millis(100)) {
                Ok(Ok(())) => {}
                // The others end, too: what one is refused, all are.
                Ok(Err(failure)) => {
                    run.is_ending.store(true, Relaxed);
                    failures.push(failure);
                }
                Err(RecvTimeoutError::Timeout) if interrupts.came() => {
                    run.is_ending.store(true, Relaxed);
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return failures,
            }
        }
    });
    match failures.into_iter().next() {
        Some(failure) => Err(failure),
        None => Ok(()),
    }
}

/// What all workers share.
struct Run<'a> {
    target: &'a Target,
    args: &'a RunArgs,
    is_ending: AtomicBool,
}

/// A request of a worker.
#[derive(Debug, Default, Serialize)]
struct Turn<'a> {
    worker: &'a str,
    turn: u64,
    want: u64,
    wait_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    done: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failed: Vec<FailedDelivery>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    park: Vec<FailedDelivery>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    release: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
struct FailedDelivery {
    delivery: String,
    reason: String,
}

#[derive(Deserialize)]
struct Deliveries<'a> {
    state: String,
    hold_ms: u64,
    #[serde(borrow)]
    deliveries: Vec<Delivery<'a>>,
    refused: Vec<RefusedDelivery>,
}

#[derive(Deserialize)]
struct Delivery<'a> {
    delivery: String,
    keys: Vec<String>,
    tries: u64,
    effect_key: String,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct RefusedDelivery {
    delivery: String,
    problem: String,
}

/// What identifies an event for its program.
#[derive(Deserialize)]
struct EventName<'a> {
    position: u64,
    #[serde(rename = "type")]
    event_type: std::borrow::Cow<'a, str>,
}

/// What becomes of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Done,
    /// It was settled, or lost, by an append.
    Over,
    Failed(String),
    Parked(String),
    Released,
}

impl Run<'_> {
    fn is_ending(&self) -> bool {
        self.is_ending.load(Relaxed)
    }

    fn worker(&self, number: u16) -> Result<(), Failure> {
        let drawn = wellspring_host::random::bytes::<8>()
            .map_err(|error| Failure::new(Code::Io, format!("no random name: {error}")))?;
        let name = format!("run-{number}-{:016x}", u64::from_le_bytes(drawn));
        let client = self.target.client()?;
        let mut worker = Worker { run: self, client, name, turn: 0, is_state_said: false };
        worker.serve()
    }
}

/// One worker of the consumer.
struct Worker<'a> {
    run: &'a Run<'a>,
    client: Client,
    name: String,
    turn: u64,
    is_state_said: bool,
}

impl Worker<'_> {
    fn serve(&mut self) -> Result<(), Failure> {
        let mut outcome = None;
        loop {
            let is_ending = self.run.is_ending();
            let (want, wait_ms) = if is_ending { (0, 0) } else { (1, self.wait_ms()) };
            if is_ending && outcome.is_none() {
                return Ok(());
            }
            let answer = self.next(outcome.take(), want, wait_ms)?;
            let given: Deliveries<'_> = read(&answer)?;
            for refused in &given.refused {
                let RefusedDelivery { delivery, problem } = refused;
                eprintln!("wellspring: delivery {delivery}: {problem}; the event comes again");
            }
            let Some(delivery) = given.deliveries.first() else {
                match (given.state.as_str(), self.run.args.until_idle) {
                    ("running", true) => return Ok(()),
                    ("running", false) => {}
                    (state, true) => {
                        let message = format!("consumer {} is {state}", self.run.args.name);
                        return Err(Failure::new(Code::Refused, message));
                    }
                    (state, false) => self.say_state(state),
                }
                continue;
            };
            let became = match self.process(delivery, given.hold_ms) {
                Ok(became) => became,
                Err(failure) => {
                    let released = (delivery.delivery.clone(), Outcome::Released);
                    let _ = self.next(Some(released), 0, 0);
                    return Err(failure);
                }
            };
            outcome = Some((delivery.delivery.clone(), became));
        }
    }

    /// Says once that nothing is delivered.
    fn say_state(&mut self, state: &str) {
        if !std::mem::replace(&mut self.is_state_said, true) {
            eprintln!("wellspring: consumer {} is {state}; waiting", self.run.args.name);
        }
    }

    fn wait_ms(&self) -> u64 {
        if self.run.args.until_idle { 0 } else { WAIT_MS }
    }

    /// Tells what became of a delivery, and asks for more. Repeats the same turn until there is an
    /// answer.
    fn next(
        &mut self,
        outcome: Option<(String, Outcome)>,
        want: u64,
        wait_ms: u64,
    ) -> Result<Vec<u8>, Failure> {
        self.turn += 1;
        let name = self.name.clone();
        let mut turn = Turn { worker: &name, turn: self.turn, want, wait_ms, ..Turn::default() };
        if let Some((delivery, outcome)) = outcome {
            match outcome {
                Outcome::Done => turn.done.push(delivery),
                Outcome::Over => {}
                Outcome::Failed(reason) => turn.failed.push(FailedDelivery { delivery, reason }),
                Outcome::Parked(reason) => turn.park.push(FailedDelivery { delivery, reason }),
                Outcome::Released => turn.release.push(delivery),
            }
        }
        let body = serde_json::to_vec(&turn).unwrap_or_default();
        let mut is_told = false;
        loop {
            let why = match self.post("next", &body) {
                Ok((200, answer, _)) => return Ok(answer),
                Ok((_, _, problem)) if !is_passing(&problem) => {
                    return Err(self.refusal(&problem));
                }
                Ok((_, _, problem)) => problem.sentence(),
                Err(error) => error.to_string(),
            };
            if self.run.is_ending() {
                return Err(Failure::new(Code::Unavailable, why));
            }
            if !std::mem::replace(&mut is_told, true) {
                eprintln!("wellspring: {why}; trying again every second");
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn refusal(&self, problem: &Problem) -> Failure {
        refusal(self.run.target, &self.run.args.name, problem, InputKind::Arguments)
    }

    fn post(&mut self, action: &str, body: &[u8]) -> Result<(u16, Vec<u8>, Problem), ClientError> {
        let name = percent_encode(&self.run.args.name);
        let path = self.run.target.path(&format!("consumers/{name}/{action}"));
        self.send(&path, body)
    }

    fn send(&mut self, path: &str, body: &[u8]) -> Result<(u16, Vec<u8>, Problem), ClientError> {
        let headers = [("Content-Type", "application/json")];
        let request = Request { method: "POST", path, headers: &headers, body: Some(body) };
        let answer = self.client.call(&request)?;
        let problem = Problem::of(&answer);
        Ok((answer.head.status, answer.body, problem))
    }

    /// Runs the program on a delivery, and extends the hold meanwhile.
    fn process(&mut self, delivery: &Delivery<'_>, hold_ms: u64) -> Result<Outcome, Failure> {
        let mut input = Vec::new();
        for event in &delivery.events {
            // JSON text has line breaks only between its tokens.
            input.extend(event.get().bytes().filter(|byte| !matches!(byte, b'\n' | b'\r')));
            input.push(b'\n');
        }
        let command = self.command(delivery)?;
        let (tell, told) = mpsc::channel();
        let extension = Duration::from_millis(hold_ms / 3);
        let ran = std::thread::scope(|scope| {
            scope.spawn(move || {
                let _ = tell.send(run_program(command, &input));
            });
            loop {
                match told.recv_timeout(extension) {
                    Ok(ran) => return ran,
                    Err(RecvTimeoutError::Timeout) => self.extend(),
                    Err(RecvTimeoutError::Disconnected) => return Err(io::ErrorKind::Other.into()),
                }
            }
        });
        let program = &self.run.args.command[0];
        let ran = ran.map_err(|why| Failure::new(Code::NoInput, format!("{program}: {why}")))?;
        Ok(match ran.status.code() {
            Some(0) if self.run.args.append => self.append(delivery, &ran.output),
            Some(0) => Outcome::Done,
            // The signal that ends this program may have ended that one.
            _ if self.run.is_ending() => Outcome::Released,
            Some(PARKS) => Outcome::Parked(ran.reason()),
            _ => Outcome::Failed(ran.reason()),
        })
        .inspect(|outcome| say_failure(delivery, outcome))
    }

    fn command(&self, delivery: &Delivery<'_>) -> Result<Command, Failure> {
        let words = &self.run.args.command;
        let first = delivery.events.first().map_or("null", |event| event.get());
        let name: EventName<'_> = read(first.as_bytes())?;
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .env("WELLSPRING_POSITION", name.position.to_string())
            .env("WELLSPRING_TYPE", &*name.event_type)
            .env("WELLSPRING_KEY", delivery.keys.first().map_or("", String::as_str))
            .env("WELLSPRING_TRIES", delivery.tries.to_string())
            .env("WELLSPRING_EFFECT_KEY", &delivery.effect_key)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped());
        if self.run.args.append {
            command.stdout(Stdio::piped());
        }
        Ok(command)
    }

    /// A sign of life. One that does not get through is made up for by the next.
    fn extend(&mut self) {
        let body = format!(r#"{{"worker":"{}"}}"#, self.name);
        let _ = self.post("extend", body.as_bytes());
    }

    /// Appends what the program printed, and settles the delivery with it.
    fn append(&mut self, delivery: &Delivery<'_>, output: &[u8]) -> Outcome {
        let lines = output.split(|byte| *byte == b'\n');
        let lines: Vec<&[u8]> =
            lines.map(<[u8]>::trim_ascii).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() {
            return Outcome::Done;
        }
        let settles = Settles {
            consumer: &self.run.args.name,
            worker: &self.name,
            delivery: &delivery.delivery,
        };
        let mut body = b"{\"events\":[".to_vec();
        body.extend_from_slice(&lines.join(&b','));
        body.extend_from_slice(b"],\"settles\":");
        body.extend_from_slice(&serde_json::to_vec(&settles).unwrap_or_default());
        body.push(b'}');
        let path = self.run.target.path("append");
        loop {
            let why = match self.send(&path, &body) {
                Ok((200, ..)) => return Outcome::Over,
                Ok((_, _, problem)) => match problem.slug() {
                    // An earlier try did it.
                    "delivery-settled" => return Outcome::Over,
                    "delivery-lost" => {
                        eprintln!("wellspring: {}; the event comes again", problem.sentence());
                        return Outcome::Over;
                    }
                    _ if is_passing(&problem) => problem.sentence(),
                    _ => return Outcome::Failed(cut(problem.sentence())),
                },
                Err(error) => error.to_string(),
            };
            // An append that did happen is found by the next try.
            eprintln!("wellspring: {why}; trying again");
            std::thread::sleep(PAUSE);
            if self.run.is_ending() {
                return Outcome::Over;
            }
        }
    }
}

#[derive(Serialize)]
struct Settles<'a> {
    consumer: &'a str,
    worker: &'a str,
    delivery: &'a str,
}

/// Tells which event failed: what the program said of it does not.
fn say_failure(delivery: &Delivery<'_>, outcome: &Outcome) {
    let (Outcome::Failed(reason) | Outcome::Parked(reason)) = outcome else { return };
    let first = delivery.events.first().map_or("null", |event| event.get());
    let position = serde_json::from_str::<EventName<'_>>(first).map_or(0, |name| name.position);
    let next = if matches!(outcome, Outcome::Parked(_)) { "parked" } else { "tried again" };
    eprintln!("wellspring: position {position}, try {}: {reason}; {next}", delivery.tries);
}

/// Whether the same request may succeed later.
fn is_passing(problem: &Problem) -> bool {
    problem.is_passing() || matches!(problem.slug(), "delivery-staged" | "outcome-unknown")
}

fn cut(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(MAX_REASON_BYTES));
    reason
}

/// How a program ended.
struct EndedProgram {
    status: ExitStatus,
    output: Vec<u8>,
    /// The last line of standard error.
    last_words: String,
}

impl EndedProgram {
    fn reason(self) -> String {
        if self.last_words.is_empty() { self.status.to_string() } else { cut(self.last_words) }
    }
}

/// Runs a program with this input. What it says on standard error is passed on.
fn run_program(mut command: Command, input: &[u8]) -> io::Result<EndedProgram> {
    let mut child = command.spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // A program need not read everything.
            let _ = stdin.map(|mut stdin| stdin.write_all(input));
        });
        let words = scope.spawn(move || stderr.map_or_else(String::new, pass_on));
        let mut output = Vec::new();
        if let Some(mut stdout) = stdout {
            stdout.read_to_end(&mut output)?;
        }
        let status = child.wait()?;
        Ok(EndedProgram { status, output, last_words: words.join().unwrap_or_default() })
    })
}

/// Passes standard error on, and returns its last line.
fn pass_on(stderr: ChildStderr) -> String {
    let mut last = String::new();
    let mut lines = BufReader::new(stderr);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end();
        eprintln!("{text}");
        if !text.trim().is_empty() {
            text.clone_into(&mut last);
        }
        line.clear();
    }
    last
}
