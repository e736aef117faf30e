//! `POST /v1/import`: appends the lines of a body that no earlier import has appended.
//!
//! An import has no key of its own: the events are the key (decision 0017). `blocks` cuts the body
//! into whole lines, `intake` makes chunks of them and looks each up, `flights` makes new ones
//! durable in order. Reading and parsing go on while chunks are under way.

mod blocks;
mod chain;
mod flights;
mod intake;
mod settings;
#[cfg(test)]
mod tests;

use super::idempotency::import_name;
use super::json::push_string;
use super::params::{content_type, expect_identity, negotiate};
use super::problem::{self, Problem};
use super::{Answer, JSON, NDJSON, Request, Response, Shell};
use blocks::Blocks;
use intake::{Intake, Stop};
use settings::Settings;
use std::sync::Arc;

/// Imports the lines of a body.
pub(crate) async fn import(_shell: Arc<Shell>, mut request: Request) -> Answer {
    let log = request.log()?.clone();
    let settings = Settings::of(&request)?;
    negotiate(&request, &[JSON])?;
    if content_type(&request) != NDJSON {
        return Err(problem::UNSUPPORTED_MEDIA
            .because("an import is application/x-ndjson: one event a line"));
    }
    expect_identity(&request)?;
    let key_of = Box::new(import_name(&request));
    let intake = Intake::new(log.clone(), key_of, settings);
    let (intake, outcome) = read(&mut request, intake).await?;
    let outcome = outcome.map(|()| Response::json(200, answer(&intake, log.head())).at(log.head()));
    outcome.map_err(|problem| {
        let progress = &intake.flights.progress;
        let mut problem = problem
            .with("durable_lines", progress.through.lines.to_string())
            .with("durable_events", (progress.added + progress.known).to_string())
            .with("added", progress.added.to_string())
            .with("known", progress.known.to_string());
        if let Some((_, last)) = progress.positions {
            problem = problem.with("durable_last", last.to_string());
        }
        problem.position = Some(log.head());
        problem
    })
}

/// What an import has come to, with what stopped it.
type Ended = (Box<Intake>, Result<(), Box<Problem>>);

/// Reads the body to its end, or to what stops it. While a block is worked on, the next is read.
async fn read(request: &mut Request, intake: Intake) -> Result<Ended, Box<Problem>> {
    let mut blocks = Blocks::default();
    let mut intake = Box::new(intake);
    let mut next = blocks.next(&mut request.body).await;
    loop {
        let block = match next {
            Ok(Some(block)) => block,
            Ok(None) => return work(intake, Intake::finish).await,
            Err(problem) => {
                let (intake, stopped) = work(intake, Intake::stop).await?;
                return Ok((intake, stopped.and(Err(problem))));
            }
        };
        let working = tokio::task::spawn_blocking(move || {
            let taken = intake.take(&block);
            (intake, taken)
        });
        next = blocks.next(&mut request.body).await;
        let (returned, taken) = working.await.map_err(died)?;
        intake = returned;
        let (last, problem): (_, Box<Problem>) = match taken {
            Ok(()) => continue,
            Err(Stop::Line(problem)) => (work(intake, Intake::stop), problem),
            Err(Stop::Log(problem)) => (work(intake, Intake::settle), problem),
        };
        let (intake, settled) = last.await?;
        return Ok((intake, settled.and(Err(problem))));
    }
}

async fn work(
    mut intake: Box<Intake>,
    what: fn(&mut Intake) -> Result<(), Box<Problem>>,
) -> Result<Ended, Box<Problem>> {
    let working = tokio::task::spawn_blocking(move || {
        let done = what(&mut intake);
        (intake, done)
    });
    working.await.map_err(died)
}

fn died(error: tokio::task::JoinError) -> Box<Problem> {
    tracing::error!(%error, "an import died");
    problem::INTERNAL.because("the import died; the server's log says more")
}

fn answer(intake: &Intake, head: u64) -> Vec<u8> {
    let progress = &intake.flights.progress;
    let number = |n: Option<u64>| n.map_or("null".to_owned(), |n| n.to_string());
    let mut out = format!(
        r#"{{"lines":{},"events":{},"added":{},"known":{},"skipped":{},"folded":{},"first":{},"last":{},"head":{head},"next":"{}","faults":["#,
        progress.through.lines,
        progress.added + progress.known,
        progress.added,
        progress.known,
        intake.oddities.skipped,
        intake.oddities.folded,
        number(progress.positions.map(|(first, _)| first)),
        number(progress.positions.map(|(_, last)| last)),
        progress.through.chain.token(),
    )
    .into_bytes();
    for (i, fault) in intake.faults.iter().enumerate() {
        let separator = if i == 0 { "" } else { "," };
        out.extend_from_slice(
            format!("{separator}{{\"line\":{},\"detail\":", fault.line).as_bytes(),
        );
        push_string(&mut out, &fault.detail);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
    out
}
