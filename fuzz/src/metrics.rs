//! Arbitrary text as the `/metrics` that `wellspring top` reads, alone and behind a page that a
//! server wrote: figures or a refusal, never a panic.
use wellspring_server::parsers::metrics_page;

const REAL: &str = include_str!("../../crates/cli/src/top/metrics.txt");

pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let _ = (metrics_page(text), metrics_page(&format!("{REAL}{text}")));
}
