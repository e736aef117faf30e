//! Suggests the intended flag for a mistyped one.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};
use std::ffi::OsString;
use wellspring_readable::nearest::nearest;

/// The error that clap found, with the nearest flag. Clap compares words by their common letters
/// from the front, and would suggest `--user` for `--ulr`.
pub(crate) fn respelled(mut error: Error, line: &mut Command, words: &[OsString]) -> Error {
    let typed = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::UnknownArgument, Some(ContextValue::String(typed))) => typed.clone(),
        _ => return error,
    };
    let Some(typed) = typed.strip_prefix("--") else { return error };
    line.build();
    let command = meant(line, words);
    let known = command.get_arguments().filter(|argument| !argument.is_hide_set());
    let flags: Vec<&str> = known.filter_map(clap::Arg::get_long).collect();
    let Some(flag) = nearest(typed, flags) else { return error };
    error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{flag}")));
    let usage = command.clone().render_usage();
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    error
}

/// The command that words select.
fn meant<'c>(line: &'c Command, words: &[OsString]) -> &'c Command {
    let deeper = |command: &'c Command, word| command.find_subcommand(word).unwrap_or(command);
    words.iter().skip(1).fold(line, deeper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    fn told(words: &[&str]) -> String {
        let status = Command::new("status").arg(Arg::new("url").long("url"));
        let status = status.arg(Arg::new("user").long("user"));
        let mut line =
            Command::new("wellspring").subcommand(Command::new("cluster").subcommand(status));
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let error = line.clone().try_get_matches_from(&words).unwrap_err();
        respelled(error, &mut line, &words).to_string()
    }

    #[test]
    fn two_letters_in_the_wrong_order_are_the_same_flag() {
        let swapped = told(&["wellspring", "cluster", "status", "--ulr", "x"]);
        assert!(swapped.contains("'--url'") && !swapped.contains("--user"), "{swapped}");
        assert!(swapped.contains("Usage: wellspring cluster status [OPTIONS]"), "{swapped}");
        let unlike = told(&["wellspring", "cluster", "status", "--frobnicate"]);
        assert!(!unlike.contains("similar"), "{unlike}");
        let value = told(&["wellspring", "cluster", "status", "--url"]);
        assert!(value.contains("a value is required"), "{value}");
    }
}
