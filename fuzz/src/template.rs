//! Templates of sources: any text is refused or kept as it was written, and any record fills it or
//! is told why not.

pub fn run(bytes: &[u8]) {
    let _ = wellspring_connectors::fuzzed::template(bytes);
}
