//! Templates of sources: any text is refused or kept as it was written, and any record fills it or
//! is told why not.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let _ = wellspring_connectors::fuzzed::template(bytes);
});
