//! `wellspring bench`: executes the program `wellspring-bench`, as git does for `git-foo`.
//!
//! The load tester is a program of its own, which knows nothing of the server.

use crate::exit::Failure;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The file name of the load tester.
const PROGRAM: &str = "wellspring-bench";
/// The name under which the load tester is started, so its usage lines show what the user typed.
const CALLED: &str = "wellspring bench";

/// What `wellspring bench` takes: everything, for the other program to read.
#[derive(Debug, clap::Args)]
#[command(
    disable_help_flag = true,
    after_help = "`wellspring bench --help` and `wellspring bench FORM --help` show the options.",
    after_long_help = "\
The load tester is the program `wellspring-bench`, found beside this program or on PATH; all arguments \
are passed on. `wellspring bench --help` and `wellspring bench FORM --help` show its options, \
`wellspring bench completions SHELL` completes them."
)]
pub struct BenchArgs {
    /// A URL, or one of ladder, search, scenario, compare, report, import, self-test, audit; then
    /// their options
    #[arg(
        value_name = "URL|FORM",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_hint = clap::ValueHint::Other
    )]
    words: Vec<OsString>,
}

/// Becomes the load tester. Returns only if it cannot.
///
/// # Errors
/// The program is missing or cannot be executed.
pub(crate) fn run(args: &BenchArgs) -> Result<(), Failure> {
    let beside = env::current_exe().ok();
    let folders = beside.as_deref().and_then(Path::parent).map(Path::to_owned);
    let Some(program) = found(folders, env::var_os("PATH").as_deref()) else {
        return Err(Failure::usage(format!(
            "the load tester, `{PROGRAM}`, is neither beside this program nor on PATH; packages have it, \
             and from the sources `cargo install --path loadtest/program` makes it"
        )));
    };
    let error = Command::new(&program).arg0(CALLED).args(&args.words).exec();
    Err(Failure::usage(format!("{}: {error}", program.display())))
}

/// The load tester: in the folder of this program, else in the first of PATH that has it.
fn found(beside: Option<PathBuf>, path: Option<&OsStr>) -> Option<PathBuf> {
    let on_path = path.into_iter().flat_map(env::split_paths);
    beside
        .into_iter()
        .chain(on_path)
        .map(|folder| folder.join(PROGRAM))
        .find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_program_beside_comes_before_those_on_path() {
        let dir = tempfile::tempdir().unwrap();
        let folder = |name: &str, mode: u32| {
            let folder = dir.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join(PROGRAM), "").unwrap();
            fs::set_permissions(folder.join(PROGRAM), fs::Permissions::from_mode(mode)).unwrap();
            folder
        };
        let (beside, other, text) =
            (folder("beside", 0o755), folder("path", 0o755), folder("text", 0o644));
        let path = env::join_paths([&dir.path().join("none"), &text, &other]).unwrap();
        let program = |folder: &Path| Some(folder.join(PROGRAM));
        assert_eq!(found(Some(beside.clone()), Some(&path)), program(&beside));
        assert_eq!(found(Some(text), Some(&path)), program(&other));
        assert_eq!(found(None, Some(&path)), program(&other));
        assert_eq!(found(None, None), None);
    }
}
