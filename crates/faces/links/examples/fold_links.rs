//! What folding links costs: events per second, lookups, memory. `cargo run --release -p
//! wellspring-face-links --example fold_links [millions of clicks]`
#![allow(clippy::disallowed_methods)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;
use wellspring_face_links::view::{Code, Links, Lookup, Permutation};
use wellspring_host::view::contract::{LogEvent, View};
use wellspring_types::Position;
use wellspring_types::random::{STEP, mix};

const LINKS: u64 = 1_000_000;
const KEY: [u8; 16] = *b"0123456789abcdef";
/// Number of different clicks; the run repeats them.
const CLICKS: u64 = 1 << 16;
const START_US: u64 = 1_795_225_406_952_770;

/// Counts the bytes that are allocated and not yet freed.
struct CountingAllocator;

static HEAP_BYTES: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system allocator; this only keeps a count.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HEAP_BYTES.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HEAP_BYTES.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// An event as the log lends it to a view.
struct LentEvent<'a> {
    position: Position,
    at_us: u64,
    event_type: &'static str,
    tag: &'a str,
    data: &'a str,
}

impl LogEvent for LentEvent<'_> {
    fn position(&self) -> Position {
        self.position
    }

    fn recorded_at_us(&self) -> u64 {
        self.at_us
    }

    fn event_type(&self) -> &str {
        self.event_type
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.tag)
    }

    fn data(&self) -> &[u8] {
        self.data.as_bytes()
    }
}

/// Another number for each.
fn mixed(n: u64) -> u64 {
    mix(n.wrapping_add(1).wrapping_mul(STEP))
}

/// Clicks as the server writes them: one in three has no referrer, one in sixteen is a bot's.
fn clicks() -> Vec<String> {
    const FAMILIES: [&str; 5] = ["Chrome", "Safari", "Firefox", "Edge", "Samsung Internet"];
    let click = |n: u64| {
        let (visitor, chance) = (mixed(n), mixed(n ^ 1 << 40));
        let bot = chance.is_multiple_of(16);
        let agent = if bot { "Googlebot" } else { FAMILIES[(chance >> 8) as usize % 5] };
        let referrer = match chance >> 16 & 3 {
            0 => String::new(),
            // A few hosts account for most clicks.
            _ => format!(
                r#","referrer":"www.site{}.example""#,
                (chance >> 20 & 31).min(chance >> 26 & 31)
            ),
        };
        let bot = if bot { r#","bot":true"# } else { "" };
        format!(r#"{{"visitor":"{visitor:016x}","agent":"{agent}"{referrer}{bot}}}"#)
    };
    (0..CLICKS).map(click).collect()
}

fn row(what: &str, per_s: f64, ns: f64) {
    println!("| {what} | {per_s:.2} | {ns:.0} |");
}

/// Folds a million links; returns the view and the tags of their clicks.
fn create(position: &mut Position) -> (Links, Vec<String>) {
    let permutation = Permutation::new(KEY);
    let mut view = Links::new();
    let key = format!(r#"{{"key":"{:032x}"}}"#, u128::from_be_bytes(KEY));
    *position += 1;
    let opened = LentEvent {
        position: *position,
        at_us: START_US,
        event_type: "LinksOpened",
        tag: "links",
        data: &key,
    };
    view.apply(&opened);
    let code = |number| permutation.code(number).expect("a code");
    let links: Vec<(String, String)> = (0..LINKS)
        .map(|number| {
            let url = format!("https://www.example.com/some/page?with=a&query={number:07}");
            let data = format!(r#"{{"url":"{url}","number":{number},"chosen":"automatic"}}"#);
            (format!("link:{}", code(number)), data)
        })
        .collect();
    let (heap, clock) = (HEAP_BYTES.load(Relaxed), Instant::now());
    for (tag, data) in &links {
        *position += 1;
        view.apply(&LentEvent {
            position: *position,
            at_us: START_US,
            event_type: "LinkCreated",
            tag,
            data,
        });
    }
    let ns = clock.elapsed().as_nanos() as f64 / LINKS as f64;
    row("1 M creations, URLs of 54 bytes", 1e3 / ns, ns);
    let bytes = (HEAP_BYTES.load(Relaxed) - heap) as f64 / LINKS as f64;
    println!("| heap of a link, bytes | {bytes:.0} | |");
    (view, (0..LINKS).map(|number| format!("clicked:{}", code(number))).collect())
}

fn click(
    view: &mut Links,
    position: &mut Position,
    tags: &[String],
    clicks: &[String],
    count: u64,
) -> f64 {
    let clock = Instant::now();
    for n in 0..count {
        *position += 1;
        let tag = &tags[((u128::from(mixed(n)) * tags.len() as u128) >> 64) as usize];
        let data = &clicks[(n % CLICKS) as usize];
        // A thousand clicks a second.
        let at_us = START_US + *position * 1_000;
        view.apply(&LentEvent { position: *position, at_us, event_type: "LinkClicked", tag, data });
    }
    clock.elapsed().as_nanos() as f64 / count as f64
}

fn look_up(view: &Links, what: &str, expected: Lookup, code: impl Fn(u64) -> Code) {
    const LOOKS: u64 = 2_000_000;
    let codes: Vec<Code> = (0..LOOKS).map(|n| code(mixed(n) % LINKS)).collect();
    let (mut location, clock) = (Vec::with_capacity(100), Instant::now());
    for &code in &codes {
        location.clear();
        assert_eq!(view.folded().lookup(code, START_US, &mut location), expected);
        black_box(&location);
    }
    let ns = clock.elapsed().as_nanos() as f64 / LOOKS as f64;
    row(what, 1e3 / ns, ns);
}

fn main() {
    let millions = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10);
    let count = millions * 1_000_000;
    let clicks = clicks();
    println!("| | M/s | ns |\n|---|---|---|");
    let mut position = 0;
    let (mut view, tags) = create(&mut position);
    let permutation = Permutation::new(KEY);
    look_up(&view, "lookup, automatic, 1 M links", Lookup::Found, |n| {
        permutation.code(n).expect("a code")
    });
    look_up(&view, "lookup, no such link", Lookup::Unknown, |n| {
        Code::from_number((1 << 50) + n * 7_919).expect("a code")
    });
    for (what, links) in [("one link", 1), ("1000 links", 1_000)] {
        let ns = click(&mut view, &mut position, &tags[..links], &clicks, count);
        row(&format!("{millions} M clicks on {what}"), 1e3 / ns, ns);
    }
    let heap = HEAP_BYTES.load(Relaxed);
    let ns = click(&mut view, &mut position, &tags[1_000..], &clicks, LINKS);
    row("1 M clicks on 1 M links: two thirds are first ones", 1e3 / ns, ns);
    let clicked = |view: &Links| {
        let code = |tag: &String| Code::parse(&tag.as_bytes()["clicked:".len()..]).expect("a code");
        let known =
            tags[1_000..].iter().step_by(100).filter_map(|tag| view.folded().details(code(tag)));
        known.filter(|details| details.clicks > 0).count() as f64 * 100.0
    };
    let per_link = |view: &Links| (HEAP_BYTES.load(Relaxed) - heap) as f64 / clicked(view);
    println!("| heap of a link's clicks, 1.6 a link, bytes | {:.0} | |", per_link(&view));
    let ns = click(&mut view, &mut position, &tags[1_000..], &clicks, count);
    row(&format!("{millions} M more"), 1e3 / ns, ns);
    println!(
        "| heap of a link's clicks, {} a link, bytes | {:.0} | |",
        millions + 1,
        per_link(&view)
    );
    let aliases = |n: u64| Code::from_number((1 << 51) + n * 7_919).expect("a code");
    for n in 0..LINKS {
        position += 1;
        let tag = format!("link:{}", aliases(n));
        let data =
            r#"{"url":"https://www.example.com/some/page?with=a&query=1234567","chosen":"alias"}"#;
        view.apply(&LentEvent {
            position,
            at_us: START_US,
            event_type: "LinkCreated",
            tag: &tag,
            data,
        });
    }
    look_up(&view, "lookup, alias, 1 M aliases beside 1 M automatic", Lookup::Found, aliases);
    look_up(&view, "lookup, no such link, then", Lookup::Unknown, |n| aliases(n + 2 * LINKS));
}
