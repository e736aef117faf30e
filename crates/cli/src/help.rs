//! What the help of every command ends with.

use clap::Command;

/// How each help that names exit codes does it.
const HEADING: &str = "Exit codes:";
/// For commands that do not name theirs.
const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 the answer is no, 64 or 2 usage, 65 bad data, 66 an input cannot be opened, 69 server not
reachable, full or busy, 74 reading or writing failed, 77 credentials missing or not enough, 130 interrupted, 141 the
reader of the output has gone.";

/// The command with exit codes in the help of every command below it that does not name its own.
pub fn with_exit_codes(command: Command) -> Command {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let command = match help {
        help if help.contains(HEADING) || command.get_name() == "wellspring" => command,
        help if help.is_empty() => command.after_help(EXIT_CODES),
        help => command.after_help(format!("{help}\n\n{EXIT_CODES}")),
    };
    command.mut_subcommands(with_exit_codes)
}
