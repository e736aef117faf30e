//! Memory and time per event of the active index, by the shape of the events: `cargo test --release
//! -p wellspring-log index::memory_bench -- --ignored --nocapture`.

#![allow(clippy::disallowed_methods)] // a benchmark looks at the clock

use super::sealed_writer::sealed_image;
use super::*;
use std::time::Instant;
use wellspring_format::record::{EncodedEvents, RequestKey};
use wellspring_types::{Event, EventId};

const REQUEST_EVENTS: u32 = 1_000;

/// The contents of each event of a measurement.
struct Shape {
    name: &'static str,
    events: u32,
    tags: fn(u32) -> Vec<String>,
    with_id: bool,
    with_key: bool,
}

fn shapes() -> Vec<Shape> {
    let none = Shape {
        name: "no tag",
        events: 1_000_000,
        tags: |_| Vec::new(),
        with_id: false,
        with_key: false,
    };
    vec![
        Shape { name: "one unique tag", tags: |rel| vec![format!("order:{rel}")], ..none },
        Shape {
            name: "two common tags",
            tags: |rel| vec![format!("region:{}", rel % 50), format!("shop:{}", rel % 7)],
            ..none
        },
        Shape {
            name: "64 unique tags",
            events: 50_000,
            tags: |rel| (0..64).map(|i| format!("t:{rel}:{i}")).collect(),
            ..none
        },
        Shape { name: "an id", with_id: true, ..none },
        Shape { name: "a request key", with_key: true, events: 200_000, ..none },
        none,
    ]
}

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<usize>().ok()).unwrap_or(0) * 4096
}

fn push_request(writer: &mut ActiveWriter, shape: &Shape, first: u32) -> std::time::Duration {
    let mut encoded = EncodedEvents::new();
    let count = if shape.with_key { 1 } else { REQUEST_EVENTS };
    for rel in first..first + count {
        let tags = (shape.tags)(rel);
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        let mut event = Event::json("OrderPlaced", &tags, "{}");
        let id = u128::from(rel).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        event.id = shape.with_id.then(|| EventId(id.to_le_bytes()));
        encoded.push(&event.as_ref()).unwrap();
    }
    if shape.with_key {
        encoded.attach_key(&RequestKey { key: format!("request {first}"), digest: [1; 16] });
    }
    let begin = Instant::now();
    encoded.iter().for_each(|record| writer.push(0, &record));
    begin.elapsed()
}

#[test]
#[ignore = "a benchmark"]
fn bytes_per_event() {
    for shape in shapes() {
        let before = resident_bytes();
        let mut writer = ActiveWriter::new(1);
        let (mut first, mut spent) = (0, std::time::Duration::ZERO);
        while first < shape.events {
            spent += push_request(&mut writer, &shape, first);
            first = writer.index().len();
        }
        let bytes = writer.index().memory_bytes() as f64 / f64::from(first);
        let resident = (resident_bytes() - before) as f64 / f64::from(first);
        let push_ns = spent.as_nanos() as u64 / u64::from(first);
        let begin = Instant::now();
        let image = sealed_image(
            writer.index(),
            &[SegmentExtent { base: writer.index().base(), end: 0, salt: 0 }],
            7,
        );
        println!(
            "{}: {bytes:.1} bytes an event (resident {resident:.1}), push {push_ns} ns, \
             sealed {:.1} bytes in {:?}",
            shape.name,
            image.len() as f64 / f64::from(first),
            begin.elapsed()
        );
    }
}
