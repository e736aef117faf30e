//! Retries requests until the server has answered them definitively.

use crate::exit::{Code, Failure};
use crate::problem::Problem;
use std::time::Duration;
use wellspring_client::Answer;

/// Tries of a request after the first.
const MAX_RETRIES: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The meaning of an answer.
pub(crate) enum Verdict<T, R> {
    Done(T),
    /// Retry, at the earliest after this time; and why.
    Later(Option<Duration>, String),
    Refused(R),
}

/// Tries until it is done or refused, at most eleven times. `note` gets the reason for each wait.
pub(crate) fn retried<T, R>(
    note: &mut dyn FnMut(String),
    gave_up: impl FnOnce(Failure) -> R,
    mut attempt: impl FnMut() -> Verdict<T, R>,
) -> Result<T, R> {
    let mut pause = FIRST_PAUSE;
    let mut retry = 0;
    loop {
        let (wanted, why) = match attempt() {
            Verdict::Done(done) => return Ok(done),
            Verdict::Refused(refusal) => return Err(refusal),
            Verdict::Later(wanted, why) => (wanted, why),
        };
        if retry == MAX_RETRIES {
            let message = format!(
                "{why}; gave up after {MAX_RETRIES} retries. Run the same command again to continue"
            );
            return Err(gave_up(Failure::new(Code::Unavailable, message)));
        }
        let wait = wanted.unwrap_or(pause).min(LONGEST_PAUSE);
        if retry > 0 {
            note(format!("{why}; retrying in {:.1} s", wait.as_secs_f64()));
        }
        std::thread::sleep(wait);
        pause = (pause * 2).min(Duration::from_secs(10));
        retry += 1;
    }
}

/// The time to wait, and why, if the refusal is temporary. A full disk does not become free while
/// a client waits.
pub(crate) fn passing(answer: &Answer, problem: &Problem) -> Option<(Option<Duration>, String)> {
    let passes = problem.is_passing() && problem.slug() != "storage-full";
    let seconds = answer.head.header("retry-after").and_then(|seconds| seconds.parse().ok());
    passes.then(|| (seconds.map(Duration::from_secs), problem.sentence()))
}
