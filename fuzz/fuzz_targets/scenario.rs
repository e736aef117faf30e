//! Arbitrary text as a scenario and as what scenarios are made of: refused or
//! read, never a panic; what an import writes is a scenario.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wellspring_load::parsers::{imported, scenario};

fuzz_target!(|text: &str| {
    let _ = scenario(text);
    for made in imported(text).into_iter().flatten() {
        assert!(scenario(&made), "an import wrote what cannot be loaded:\n{made}");
    }
});
