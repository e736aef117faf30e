//! The binary `wellspring`; everything is in the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// Allocation was a quarter of a write to a graph (decision 0029). Programs that embed the server
/// choose their own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    wellspring_server::main()
}
