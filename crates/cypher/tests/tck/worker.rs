//! A thread that runs scenarios, with a watchdog: a thread that hangs is abandoned, and another
//! continues after it.

use crate::kit::Case;
use crate::scenario;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Time limit after which a scenario stops itself.
const DEADLINE: Duration = Duration::from_secs(5);
/// Time after which a hanging thread is abandoned.
const LEFT_BEHIND: Duration = Duration::from_secs(8);
/// Stack size of the threads.
const STACK: usize = 64 << 20;

/// The outcome of a scenario: why it failed, if it did.
pub(crate) type Outcome = Result<(), String>;

/// Runs all cases in order. Hanging threads end with the process.
pub(crate) fn run_all(cases: &'static [Case], graphs: &'static Path) -> Vec<Outcome> {
    // A panic is reported with its scenario.
    std::panic::set_hook(Box::new(|_| {}));
    let mut outcomes: Vec<Outcome> = Vec::new();
    while let Some(rest) = cases.get(outcomes.len()..).filter(|rest| !rest.is_empty()) {
        let some = run_some(rest, graphs);
        if let Some(hanging) = rest.get(some.len()) {
            eprintln!("hangs: {}", hanging.name);
        }
        let all = some.len() == rest.len();
        outcomes.extend(some);
        if !all {
            outcomes.push(Err("hangs".to_owned()));
        }
    }
    outcomes
}

/// The outcomes up to the first one that does not arrive.
#[expect(clippy::disallowed_methods, reason = "a test starts threads of its own")]
fn run_some(cases: &'static [Case], graphs: &'static Path) -> Vec<Outcome> {
    let (sender, receiver) = channel();
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(move || {
        for case in cases {
            let deadline = now() + DEADLINE;
            let outcome =
                catch_unwind(AssertUnwindSafe(|| scenario::run(&case.scenario, graphs, deadline)));
            let outcome =
                outcome.unwrap_or_else(|panic| Err(format!("panics: {}", message(&*panic))));
            if sender.send(outcome).is_err() {
                return;
            }
        }
    });
    thread.expect("a thread can be started");
    let mut outcomes = Vec::new();
    while outcomes.len() < cases.len() {
        match receiver.recv_timeout(LEFT_BEHIND) {
            Ok(outcome) => outcomes.push(outcome),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    outcomes
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message").to_owned()
}

#[expect(clippy::disallowed_methods, reason = "a test watches over real time")]
fn now() -> Instant {
    Instant::now()
}
