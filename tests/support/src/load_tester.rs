//! The load tester, a program of its own that is built into the folder of the server's.

use crate::program::program_path;
use std::env;
use std::path::Path;
use std::process::Command;

/// `wellspring bench`, which finds the load tester beside it. Without one this is `None` and says
/// so, unless `WELLSPRING_TEST_REQUIRE_BENCH` is set.
pub fn bench() -> Option<Command> {
    if !Path::new(program_path()).with_file_name("wellspring-bench").exists() {
        let required = env::var_os("WELLSPRING_TEST_REQUIRE_BENCH").is_some();
        assert!(
            !required,
            "WELLSPRING_TEST_REQUIRE_BENCH is set, and there is no wellspring-bench"
        );
        eprintln!("SKIPPED: no wellspring-bench; cargo build -p wellspring-bench makes it");
        return None;
    }
    let mut command = Command::new(program_path());
    command.arg("bench");
    Some(command)
}
