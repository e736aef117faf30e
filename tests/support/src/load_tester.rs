//! Where the load tester is, which is a program of its own.
//!
//! `WELLSPRING_TEST_BENCH` names it; else it is the one that was built last in `loadtest/target`.
//! Without it the tests say so and pass, unless `WELLSPRING_TEST_REQUIRE_BENCH` is set.

use crate::program::program_path;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The load tester, if it was built.
fn program() -> Option<PathBuf> {
    if let Some(named) = env::var_os("WELLSPRING_TEST_BENCH") {
        return Some(PathBuf::from(named));
    }
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../loadtest/target");
    let built = ["debug", "release"].map(|profile| target.join(profile).join("wellspring-bench"));
    built.into_iter().max_by_key(|file| file.metadata().and_then(|about| about.modified()).ok())
}

/// A `PATH` on which `wellspring bench` finds the load tester; `None` without one.
pub fn search_path() -> Option<OsString> {
    let Some(program) = program().and_then(|file| file.canonicalize().ok()) else {
        let required = env::var_os("WELLSPRING_TEST_REQUIRE_BENCH").is_some();
        assert!(
            !required,
            "WELLSPRING_TEST_REQUIRE_BENCH is set, and there is no wellspring-bench"
        );
        eprintln!(
            "SKIPPED: no wellspring-bench; build it in loadtest/, or set WELLSPRING_TEST_BENCH"
        );
        return None;
    };
    let folder = program.parent()?.to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    env::join_paths(std::iter::once(folder).chain(env::split_paths(&others))).ok()
}

/// `wellspring bench`, which finds the load tester; `None` without one.
pub fn bench() -> Option<Command> {
    let path = search_path()?;
    let mut command = Command::new(program_path());
    command.arg("bench").env("PATH", path);
    Some(command)
}
