//! Sequential and selective reads at one client.

use crate::{
    flags::{Flags, Outcome},
    machine,
    row::Sink,
    sample::Samples,
    store::{Depth, Dialect, EventForm, Store},
};
use std::time::{Duration, Instant};

/// `wsbench reads`.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let dialect: Dialect = flags.required("server")?;
    let sink = Sink::from_flags("reads", dialect.name(), &mut flags)?;
    let mut store = Store::open(dialect, &flags.required::<String>("address")?)?;
    let size: u64 = flags.required("size")?;
    let customers: u64 = flags.required("customers")?;
    let count: usize = flags.or("count", 2000)?;
    let batch_size: Option<u32> = flags.optional("batch-size")?;
    let form: EventForm = flags.or("form", EventForm::Lines)?;
    let core: Option<usize> = flags.optional("pin")?;
    flags.finish()?;
    if let Some(core) = core {
        machine::pin_to(core)?;
    }
    for (name, depth) in [("counted", Depth::Count), ("decoded", Depth::Decode)] {
        let (cpu, started) = (machine::own_cpu(), Instant::now());
        let tally = store.read(None, depth, batch_size, form)?;
        let elapsed = started.elapsed();
        if tally.events != size {
            return Err(format!("read {} events of {size}", tally.events).into());
        }
        let rate = size as f64 / elapsed.as_secs_f64();
        let mut row = sink.row(&format!("whole log, {name}"), rate, "events/s");
        row.client_busy = Some((machine::own_cpu() - cpu).as_secs_f64() / elapsed.as_secs_f64());
        (row.size, row.samples) = (size, 1);
        sink.put(&row)?;
    }
    let expected = size / customers;
    let mut samples = Samples::with_capacity(count);
    let (cpu, started) = (machine::own_cpu(), Instant::now());
    for number in 0..count as u64 {
        let customer = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % customers;
        let sent = Instant::now();
        let tag = format!("customer:{customer}");
        let tally = store.read(Some(&tag), Depth::Decode, batch_size, form)?;
        samples.add(sent.elapsed());
        if tally.events != expected {
            return Err(
                format!("customer:{customer} has {} events, not {expected}", tally.events).into()
            );
        }
    }
    let elapsed = started.elapsed();
    let case = format!("one tag of {expected} events, decoded");
    let mut row = sink.row(&case, count as f64 / elapsed.as_secs_f64(), "reads/s");
    row.client_busy = Some(
        (machine::own_cpu() - cpu).as_secs_f64()
            / elapsed.max(Duration::from_nanos(1)).as_secs_f64(),
    );
    row.p50_us = samples.quantile_us(0.5);
    row.p99_us = samples.quantile_us(0.99);
    (row.size, row.samples) = (size, count as u64);
    sink.put(&row)
}
