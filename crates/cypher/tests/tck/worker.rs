//! A thread that runs scenarios, and a watch over it: one that hangs is left behind, and another
//! goes on after it.

use crate::kit::Case;
use crate::scenario;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long a scenario may take before it stops itself.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long until one that does not stop itself is left behind.
const LEFT_BEHIND: Duration = Duration::from_secs(8);
/// Threads' stack.
const STACK: usize = 64 << 20;

/// What a scenario came to: why it failed if it did.
pub(crate) type Outcome = Result<(), String>;

/// Runs all, in order. Threads that hang end with the process.
pub(crate) fn run_all(cases: &'static [Case], graphs: &'static Path) -> Vec<Outcome> {
    // A panic is a result of its own, told with the scenario.
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

/// The outcomes until the first that does not come.
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
