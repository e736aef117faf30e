//! The parsers of what servers send and people write, for the fuzz targets under `fuzz/`.

use crate::engine::{AnswersSeen, answers_of};
use crate::scenario::{Options, Scenario, import};

/// Reads `bytes` as what an HTTP/1.1 server answers to requests sent one after
/// another, in pieces of `piece` bytes; the statuses of the complete answers.
#[must_use]
pub fn http1_answers(bytes: &[u8], piece: usize) -> AnswersSeen {
    answers_of(bytes, piece, crate::plan::Protocol::Http1)
}

/// The same for HTTP/2, with four requests under way from the start.
#[must_use]
pub fn http2_answers(bytes: &[u8], piece: usize) -> AnswersSeen {
    answers_of(bytes, piece, crate::plan::Protocol::Http2)
}

/// Whether `text` is a scenario.
#[must_use]
pub fn scenario(text: &str) -> bool {
    let options = Options { environment: |_| None, ..Options::default() };
    Scenario::parse(text, std::path::Path::new("/nonexistent/fuzz.toml"), &options).is_ok()
}

/// Scenarios made of `text` as a curl command line, a HAR file and an OpenAPI document.
#[must_use]
pub fn imported(text: &str) -> [Option<String>; 3] {
    [
        import::curl(text, &|_| Err("no files here".to_owned())).ok(),
        import::har(text, &import::HarOptions { static_assets: true }).ok(),
        import::openapi(text).ok(),
    ]
}

/// Whether `text` is a threshold, a result file, a table to audit, or output of `go test -bench`.
#[must_use]
pub fn written(text: &str) -> [bool; 4] {
    [
        crate::check::Threshold::parse(text).is_ok(),
        crate::result::Report::from_json(text).is_ok(),
        crate::audit::Published::parse(text).is_ok(),
        crate::import::parse_go_bench(text).is_ok(),
    ]
}
