//! The standing data set: appended in order from an empty store, 1000 events a request, so that
//! event number `i` is at position `i + 1`.

use crate::{
    flags::{Flags, Outcome},
    machine,
    proto::{AppendRequest, Event},
    row::Sink,
    store::{Dialect, Store},
    workload::write_standing,
};
use std::time::Instant;

/// Events a request: the limit of Wellspring's API.
const BATCH: u64 = 1000;

/// `wsbench fill`: makes the log `--events` long; goes on where an earlier fill stopped.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let dialect: Dialect = flags.required("server")?;
    let sink = Sink::from_flags("fill", dialect.name(), &mut flags)?;
    let address: String = flags.required("address")?;
    let events: u64 = flags.required("events")?;
    let customers: u64 = flags.or("customers", 10_007)?;
    let payload = flags.or("payload", 200)?;
    let core: Option<usize> = flags.optional("pin")?;
    flags.finish()?;
    if let Some(core) = core {
        machine::pin_to(core)?;
    }
    let mut store = Store::open(dialect, &address)?;
    let first = store.head()?;
    let mut next = first;
    let (mut request, mut scratch) = (AppendRequest::default(), Vec::new());
    let started = Instant::now();
    while next < events {
        let count = BATCH.min(events - next);
        request.events.resize_with(count as usize, Event::default);
        for event in &mut request.events {
            write_standing(event, next, customers, payload);
            next += 1;
        }
        let last = store.append(&request, &mut scratch)?;
        if last != next {
            return Err(format!("event {next} is at position {last}: was the store empty?").into());
        }
    }
    let rate = (next - first) as f64 / started.elapsed().as_secs_f64();
    let mut row = sink.row("1000 events a request, 1 client", rate, "events/s");
    (row.size, row.samples) = (next, next - first);
    sink.put(&row)
}
