//! Arbitrary text as a threshold, a result file, published tables and go test output: never a
//! panic.
use wellspring_load::audit::Published;
use wellspring_load::check::Threshold;
use wellspring_load::micro::parse_go_bench;
use wellspring_load::result::Report;

pub fn run(text: &str) {
    let _ = Threshold::parse(text);
    let _ = Report::from_json(text);
    let _ = Published::parse(text);
    let _ = parse_go_bench(text);
}
