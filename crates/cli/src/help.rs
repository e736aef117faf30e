//! Common parts of the help of all commands: the width and the table of exit codes.

use crate::exit::EXIT_CODES;
use clap::{Arg, Command};

/// Widest line of a help, in columns: that of a terminal of the usual size.
const MAX_WIDTH: usize = 80;
/// The heading of each table of exit codes.
const HEADING: &str = "Exit codes:";

/// The command line as people see it: no help is wider than a terminal, no value of a variable is
/// shown (one may be a password), and each long help ends with the exit codes.
pub fn finished(command: Command) -> Command {
    with_exit_codes(command.max_term_width(MAX_WIDTH))
}

/// The command, and those below it, with these of its options in the short help: commands of a
/// hundred options have a screen, too.
pub fn in_short(command: Command, essential: &[&str]) -> Command {
    let is_short = |argument: &Arg| essential.contains(&argument.get_id().as_str());
    let command = command.mut_args(|argument| {
        let hidden = !is_short(&argument);
        argument.hide_short_help(hidden)
    });
    command.mut_subcommands(|command| in_short(command, essential))
}

fn with_exit_codes(command: Command) -> Command {
    let text = command.get_after_long_help().map(|help| format!("{help}\n\n")).unwrap_or_default();
    let command = command.after_long_help(format!("{text}{}", exit_codes()));
    command.mut_args(|argument| argument.hide_env_values(true)).mut_subcommands(with_exit_codes)
}

/// The table of exit codes, the same for all commands.
fn exit_codes() -> String {
    let mut table = HEADING.to_owned();
    for (code, meaning) in EXIT_CODES {
        let mut line = format!("\n{code:>5} ");
        for word in meaning.split(' ') {
            if line.len() + word.len() >= MAX_WIDTH {
                table.push_str(&line);
                line = format!("\n{:5} ", "");
            }
            line.push(' ');
            line.push_str(word);
        }
        table.push_str(&line);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_of_exit_codes_has_every_code_and_fits() {
        let table = exit_codes();
        assert!(table.lines().all(|line| line.len() <= MAX_WIDTH), "{table}");
        assert!(table.contains("\n   64  usage: "), "{table}");
        let rows = table.lines().skip(1).filter(|line| !line.starts_with("       "));
        assert_eq!(rows.count(), EXIT_CODES.len(), "{table}");
    }

    #[test]
    fn the_value_of_a_variable_is_never_shown() {
        let secret = clap::Arg::new("journal").long("journal").env("PATH");
        let below = Command::new("serve").arg(secret);
        let mut line = with_exit_codes(Command::new("x").subcommand(below));
        line.build();
        let serve = line.find_subcommand_mut("serve").expect("it is there");
        let help = serve.render_long_help().to_string();
        assert!(help.contains("[env: PATH]"), "{help}");
    }
}
