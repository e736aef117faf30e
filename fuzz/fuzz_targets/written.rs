//! Arbitrary text as a threshold, a result file, published tables and go test output: never a
//! panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = wellspring_load::parsers::written(text);
});
