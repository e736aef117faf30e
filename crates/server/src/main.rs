//! The binary `wellspring`; everything is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    wellspring_server::main()
}
