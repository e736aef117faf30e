//! `POST /v1/import`: appends the lines of a body that no earlier import has appended.
//!
//! An import has no key of its own: the events are the key (decision 0017). `blocks` cuts the body
//! into whole lines, `intake` makes chunks of them and looks each up, `flights` makes new ones
//! durable in order; all three work at the same time.
//!
//! Each chunk's request key is made from the events before it, its digest from its own. Each is
//! staged on the basis of the one before, so none can become durable after a gap.

mod blocks;
mod chain;
mod chunk;
mod earlier_ids;
mod flights;
mod intake;
mod settings;
#[cfg(test)]
mod tests;

use super::sealing::{EventSealer, Repetition};
use blocks::Blocks;
use flights::{ChunkOrder, Flights, Progress};
use intake::{ChunkSealer, Intake, Stop};
pub(super) use settings::PARAMS;
use settings::Settings;
use std::sync::Arc;
use tokio::task::{JoinError, JoinHandle, spawn_blocking};
use wellspring_host::http::content::{content_type, expect_identity};
use wellspring_host::http::idempotency::import_name;
use wellspring_host::http::subjects::subject_of;
use wellspring_host::http::{Answer, Host, NDJSON, Request, Response};
use wellspring_host::wire::json::push_string;
use wellspring_host::wire::problem::{self, Problem};

/// Imports the lines of a body.
pub(crate) async fn import(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let log = request.log()?.clone();
    let settings = Settings::of(&request, host.kept.in_log(&request.log_name))?;
    if content_type(&request) != NDJSON {
        return Err(problem::UNSUPPORTED_MEDIA
            .because("an import is application/x-ndjson: one event a line"));
    }
    expect_identity(&request)?;
    let key_of = Box::new(import_name(&request));
    let flights = Flights::new(log.clone(), request.effects.clone(), settings.start);
    // The same lines are known again by their bytes.
    let sealer = EventSealer::streaming(&host, subject_of(&request)?, Repetition::IsEqual)
        .finding(settings.subject_from.as_deref());
    let sealer = ChunkSealer { sealer, host: Some(Arc::clone(&host)) };
    let intake = Intake::new(log.clone(), key_of, settings, sealer);
    let (intake, flights, outcome) = Workers::read(&mut request, intake, flights).await?;
    let progress = &flights.progress;
    outcome.map_err(|problem| {
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
    })?;
    Ok(Response::json(200, answer(&intake, progress, log.head())).at(log.head()))
}

/// The lines read and the chunks in progress, with what stopped them.
type ImportEnd = (Box<Intake>, Flights, Result<(), Box<Problem>>);
/// A part of the work on a dedicated thread, which returns its state.
type Working<T, E> = JoinHandle<(T, Result<(), E>)>;

/// Three things at a time: a block is read, the previous one is parsed, and the chunks of the one
/// before that are staged. No thread waits for the client.
struct Workers {
    parsing: Working<Box<Intake>, Stop>,
    staging: Working<Flights, Box<Problem>>,
}

impl Workers {
    /// Reads the body to its end, or to what stops it.
    async fn read(
        request: &mut Request,
        intake: Intake,
        flights: Flights,
    ) -> Result<ImportEnd, Box<Problem>> {
        let mut blocks = Blocks::default();
        let mut workers = Workers::begin(intake, flights);
        loop {
            let next = blocks.next(&mut request.body).await;
            let (mut intake, parsed) = workers.parsing.await.map_err(died)?;
            let (flights, staged) = workers.staging.await.map_err(died)?;
            if staged.is_err() {
                return Ok((intake, flights, staged));
            }
            let orders = std::mem::take(&mut intake.orders);
            let stopped = match (parsed, next) {
                (Ok(()), Ok(Some(block))) => {
                    workers =
                        Workers { parsing: parse(intake, block), staging: stage(flights, orders) };
                    continue;
                }
                (Ok(()), Ok(None)) => intake.finish(),
                (Ok(()), Err(problem)) | (Err(Stop::Line(problem)), _) => {
                    intake.stop();
                    Err(problem)
                }
                (Err(Stop::Log(problem)), _) => Err(problem),
            };
            let mut orders = orders;
            orders.append(&mut intake.orders);
            let (flights, settled) = settle(flights, orders).await.map_err(died)?;
            return Ok((intake, flights, settled.and(stopped)));
        }
    }

    fn begin(intake: Intake, flights: Flights) -> Workers {
        Workers {
            parsing: parse(Box::new(intake), Vec::new()),
            staging: stage(flights, Vec::new()),
        }
    }
}

fn parse(mut intake: Box<Intake>, block: Vec<u8>) -> Working<Box<Intake>, Stop> {
    spawn_blocking(move || {
        let parsed = intake.take(&block);
        (intake, parsed)
    })
}

fn stage(mut flights: Flights, orders: Vec<ChunkOrder>) -> Working<Flights, Box<Problem>> {
    spawn_blocking(move || {
        let staged = flights.carry_out(orders);
        (flights, staged)
    })
}

/// Carries out the last orders and waits for all chunks in progress.
fn settle(mut flights: Flights, orders: Vec<ChunkOrder>) -> Working<Flights, Box<Problem>> {
    spawn_blocking(move || {
        let settled = flights.carry_out(orders).and_then(|()| flights.settle());
        (flights, settled)
    })
}

fn died(error: JoinError) -> Box<Problem> {
    tracing::error!(%error, "an import died");
    problem::INTERNAL.because("the import died; the server's log says more")
}

fn answer(intake: &Intake, progress: &Progress, head: u64) -> Vec<u8> {
    let number = |n: Option<u64>| n.map_or("null".to_owned(), |n| n.to_string());
    let mut out = format!(
        r#"{{"lines":{},"events":{},"added":{},"known":{},"skipped":{},"folded":{},"repeated":{},"passed_over":{},"sealed":{},"first":{},"last":{},"head":{head},"next":"{}","faults":["#,
        progress.through.lines,
        progress.added + progress.known,
        progress.added,
        progress.known,
        intake.oddities.skipped,
        intake.oddities.folded,
        intake.oddities.repeated,
        intake.oddities.passed_over,
        intake.oddities.sealed,
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
