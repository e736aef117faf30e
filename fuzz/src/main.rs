//! All fuzz targets in one program, as each would link the whole server: `FUZZ_TARGET` names the
//! one that runs. A target is a module with `run`, from bytes or what libFuzzer makes of them.
#![no_main]

use libfuzzer_sys::arbitrary::{Arbitrary, Unstructured};
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;

/// Runs a target on an input made of these bytes, if they make one.
fn feed<'a, Input: Arbitrary<'a>>(bytes: &'a [u8], run: impl Fn(Input)) {
    if let Ok(input) = Input::arbitrary_take_rest(Unstructured::new(bytes)) {
        run(input);
    }
}

/// A body without the byte-order mark that the server passes over and serde does not.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// CRC32C, bit by bit: the crate that does it quickly is no dependency here.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg())
        })
    })
}

macro_rules! targets {
    ($($name:ident)*) => {
        $(mod $name;)*

        /// Every target: its name, and what it does with some bytes.
        const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), |bytes| feed(bytes, $name::run))),*];
    };
}

targets! {
    access_body
    answers
    append_body
    backup
    bolt_handshake
    bolt_packstream
    bolt_session
    catalogue
    credentials
    cypher
    entry
    graph
    key_roots
    key_set
    key_store
    lean
    links
    metrics
    node_header
    project_body
    raft_message
    record
    scenario
    search
    segment
    template
    tokens
    wal
    websocket
    written
}

/// The target that the environment names.
fn chosen() -> fn(&[u8]) {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(target, _)| *target == name);
    let names: Vec<&str> = TARGETS.iter().map(|(target, _)| *target).collect();
    found.unwrap_or_else(|| panic!("FUZZ_TARGET={name:?} must be one of {names:?}")).1
}

fuzz_target!(|bytes: &[u8]| {
    static TARGET: OnceLock<fn(&[u8])> = OnceLock::new();
    TARGET.get_or_init(chosen)(bytes);
});
