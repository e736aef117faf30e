//! Latency of conditional appends at one client for every query shape, at whatever size the log
//! has. Run it in turns against servers of several sizes and compare.

use crate::{
    flags::{Flags, Outcome},
    machine,
    proto::{AppendRequest, Event},
    row::Sink,
    sample::Samples,
    store::{Dialect, Store},
    workload::{RARE_TYPE, condition_item, rewrite},
};
use std::time::{Duration, Instant};

/// A shape: what the condition asks. None of them finds anything, so every append succeeds.
struct Shape {
    name: &'static str,
    types: &'static [&'static str],
    tags: &'static [&'static str],
    after: After,
}

/// Where the condition begins to look.
#[derive(Clone, Copy)]
enum After {
    /// There is no condition.
    NoCondition,
    /// At the beginning.
    Absent,
    /// At the event that has the key.
    Key,
    /// At the head.
    Head,
    /// A hundred events before the head.
    Recent,
}

/// In a tag, `{new}` becomes a number never used before and `{old}` the number of some standing
/// event.
const SHAPES: &[Shape] = &[
    Shape { name: "no condition", types: &[], tags: &[], after: After::NoCondition },
    Shape {
        name: "unique tag, absent",
        types: &[],
        tags: &["key:new-{new}"],
        after: After::Absent,
    },
    Shape { name: "unique tag, after it", types: &[], tags: &["key:{old}"], after: After::Key },
    Shape { name: "absent type", types: &["NeverHappened"], tags: &[], after: After::Absent },
    Shape { name: "common tag, after = head", types: &[], tags: &["common:0"], after: After::Head },
    Shape {
        name: "common tag + rare type",
        types: &[RARE_TYPE],
        tags: &["common:0"],
        after: After::Absent,
    },
    Shape {
        name: "common tag + absent tag",
        types: &[],
        tags: &["common:0", "key:new-{new}"],
        after: After::Absent,
    },
    Shape {
        name: "common tag + absent type",
        types: &["NeverHappened"],
        tags: &["common:0"],
        after: After::Absent,
    },
    Shape {
        name: "two common tags, never met",
        types: &[],
        tags: &["common:0", "common:1"],
        after: After::Absent,
    },
    Shape { name: "recent after", types: &[], tags: &["customer:5"], after: After::Recent },
];

/// Appends without a condition before anything is measured: they fill the window of
/// [`After::Recent`].
const LEAD: u64 = 200;

/// Appends of one shape in a row.
const BLOCK: usize = 20;

/// `wsbench condition-growth`.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let dialect: Dialect = flags.required("server")?;
    let sink = Sink::from_flags("condition-growth", dialect.name(), &mut flags)?;
    let mut store = Store::open(dialect, &flags.required::<String>("address")?)?;
    let size: u64 = flags.required("size")?;
    let count: usize = flags.or("count", 200)?;
    let budget = Duration::from_secs_f64(flags.or("budget", 10.0)?);
    let core: Option<usize> = flags.optional("pin")?;
    flags.finish()?;
    if let Some(core) = core {
        machine::pin_to(core)?;
    }
    let mut head = store.head()?;
    if head < size {
        return Err(format!("the log has {head} events, not {size}: fill it first").into());
    }
    let run =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_micros() as u64;
    let mut request = AppendRequest { events: vec![Event::default()], condition: None };
    let mut scratch = Vec::new();
    let mut samples: Vec<_> =
        SHAPES.iter().map(|_| (Samples::with_capacity(count), Duration::ZERO)).collect();
    let mut number = 0u64;
    while number < LEAD {
        number += 1;
        write_probe(&mut request.events[0], run, number);
        head = store.append(&request, &mut scratch)?;
    }
    // Shapes take turns in short blocks: noise of the machine falls on all alike, and what a dear
    // shape leaves in the caches spoils only the first appends of the next block, not its median.
    for _ in 0..count.div_ceil(BLOCK) {
        for (shape, (samples, spent)) in SHAPES.iter().zip(&mut samples) {
            for _ in 0..BLOCK {
                // A shape that has used up its time is left out from then on.
                if *spent > budget {
                    break;
                }
                number += 1;
                write_probe(&mut request.events[0], run, number);
                write_condition(&mut request, shape, run, number, size, head);
                let sent = Instant::now();
                head = store
                    .append(&request, &mut scratch)
                    .map_err(|error| format!("{}: {error}", shape.name))?;
                let latency = sent.elapsed();
                samples.add(latency);
                *spent += latency;
            }
        }
    }
    for (shape, (mut samples, _)) in SHAPES.iter().zip(samples) {
        let mut row = sink.row(shape.name, samples.quantile_us(0.5).unwrap_or(0.0), "µs p50");
        row.p99_us = samples.quantile_us(0.99);
        (row.samples, row.size) = (samples.len() as u64, size);
        sink.put(&row)?;
    }
    Ok(())
}

/// The event appended: matched by no shape.
fn write_probe(event: &mut Event, run: u64, number: u64) {
    event.event_type = "Probed".into();
    event.tags.resize_with(1, String::new);
    rewrite(&mut event.tags[0], format_args!("probe:{run:x}-{number}"));
    event.data = br#"{"probe":true}"#.to_vec();
}

fn write_condition(
    request: &mut AppendRequest,
    shape: &Shape,
    run: u64,
    number: u64,
    size: u64,
    head: u64,
) {
    // Spread over the log by a fixed odd multiplier; no generator to seed.
    let old = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) % size;
    let after = match shape.after {
        After::NoCondition => return request.condition = None,
        After::Absent => None,
        After::Key => Some(old + 1),
        After::Head => Some(head),
        After::Recent => Some(head - 100),
    };
    let item = condition_item(&mut request.condition, after);
    item.types = shape.types.iter().map(|&name| name.into()).collect();
    let new = format!("{run:x}-{number}");
    item.tags = shape
        .tags
        .iter()
        .map(|tag| tag.replace("{new}", &new).replace("{old}", &old.to_string()))
        .collect();
}
