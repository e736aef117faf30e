//! Arbitrary text as the `/metrics` that `wellspring top` reads, alone and behind a page that a
//! server wrote: figures or a refusal, never a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wellspring_server::parsers::metrics_page;

const REAL: &str = include_str!("../../crates/cli/src/top/metrics.txt");

fuzz_target!(|bytes: &[u8]| {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = (metrics_page(text), metrics_page(&format!("{REAL}{text}")));
});
