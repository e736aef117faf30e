//! Environment variables: unknown ones that look like ours, which would otherwise be ignored
//! silently, and those with an invalid value.

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, Command, Error};
use std::env;
use std::ffi::OsString;
use wellspring_readable::nearest::nearest;

/// The prefix of all our variables.
const PREFIX: &str = "WELLSPRING_";
/// The prefix of the test suite's variables. No setting of the program may begin with it: servers
/// inherit the environment of the tests that start them.
const TEST_PREFIX: &str = "WELLSPRING_TEST_";
/// Variables that are not read by the command line.
const OTHERS: [&str; 4] =
    ["WELLSPRING_TOKEN", "WELLSPRING_ADMIN_USER", "WELLSPRING_ADMIN_PASSWORD", "WELLSPRING_URL"];

/// A sentence for each variable that is set, has our prefix and is unknown, in alphabetical order.
/// It never contains a value. The command line is built only if a variable has our prefix.
pub(crate) fn unknown(
    line: impl FnOnce() -> Command,
    set: impl Iterator<Item = String>,
) -> Vec<String> {
    let mut unknown: Vec<String> = set
        .filter(|name| name.starts_with(PREFIX) && !name.starts_with(TEST_PREFIX))
        .filter(|name| !is_of_a_service(name) && !OTHERS.contains(&name.as_str()))
        .collect();
    if unknown.is_empty() {
        return unknown;
    }
    let mut known: Vec<String> = OTHERS.map(str::to_owned).to_vec();
    gather(&line(), &mut known);
    unknown.retain(|name| !known.contains(name));
    unknown.sort_unstable();
    // The common prefix does not count as similarity.
    let candidates = || known.iter().filter_map(|name| name.strip_prefix(PREFIX));
    let sentence = |name: &String| match nearest(&name[PREFIX.len()..], candidates()) {
        Some(near) => {
            format!("the variable {name} is unknown and ignored; did you mean {PREFIX}{near}?")
        }
        None => format!(
            "the variable {name} is unknown and ignored; `wellspring serve --help` lists the \
             known ones"
        ),
    };
    unknown.iter().map(sentence).collect()
}

/// An error found by clap, attributed to the variable that caused it, if it is not on the command
/// line: clap names the flag in either case.
pub(crate) fn named(mut error: Error, line: &Command, words: &[OsString]) -> Error {
    let typed = without_variables(line.clone()).try_get_matches_from(words);
    if typed.is_err_and(|typed| typed.to_string() == error.to_string()) {
        return error;
    }
    let flag = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(flag)) => Some(flag.clone()),
        _ => None,
    };
    let one = flag.and_then(|flag| Some((variable_of(line, &flag)?, flag)));
    let tip = if let Some((variable, flag)) = one {
        let tip = format!("the environment variable {variable} sets {flag}");
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
        tip
    } else {
        // Flags that exclude or require one another.
        let mut set = Vec::new();
        words
            .iter()
            .filter_map(|word| line.find_subcommand(word))
            .for_each(|c| gather(c, &mut set));
        set.retain(|name| env::var_os(name).is_some());
        set.sort_unstable();
        set.dedup();
        match set.as_slice() {
            [] => return error,
            set => {
                format!("{} is set in the environment and counts as a flag", set.join(", "))
            }
        }
    };
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    error
}

fn without_variables(command: Command) -> Command {
    let reset = |argument: Arg| argument.env(Resettable::<clap::builder::OsStr>::Reset);
    command.mut_args(reset).mut_subcommands(without_variables)
}

/// The set variable for a flag, as `--threads <THREADS>`.
fn variable_of(command: &Command, flag: &str) -> Option<String> {
    let name = flag.split(' ').next()?.strip_prefix("--")?;
    let mut same = command.get_arguments().filter(|argument| argument.get_long() == Some(name));
    let variable =
        same.find_map(|argument| argument.get_env().filter(|n| env::var_os(n).is_some()));
    let variable = variable.map(|name| name.to_string_lossy().into_owned());
    variable.or_else(|| command.get_subcommands().find_map(|below| variable_of(below, flag)))
}

/// Whether Kubernetes sets it, for a service named `wellspring`.
fn is_of_a_service(name: &str) -> bool {
    let rest = &name[PREFIX.len()..];
    rest == "PORT" || rest.starts_with("PORT_") || rest.starts_with("SERVICE_")
}

/// The names of all variables that a command line reads.
fn gather(command: &Command, known: &mut Vec<String>) {
    let variables = command.get_arguments().filter_map(Arg::get_env);
    known.extend(variables.map(|name| name.to_string_lossy().into_owned()));
    command.get_subcommands().for_each(|command| gather(command, known));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_has_the_prefix_of_the_tests_variables() {
        let mut known = OTHERS.map(str::to_owned).to_vec();
        gather(&crate::command_line(), &mut known);
        assert!(known.len() > 50 && !known.iter().any(|name| name.starts_with(TEST_PREFIX)));
    }

    #[test]
    fn a_mistyped_variable_is_reported_with_the_nearest_one() {
        let serve = Command::new("serve")
            .arg(Arg::new("listen").env("WELLSPRING_LISTEN"))
            .arg(Arg::new("max").env("WELLSPRING_MAX_CONNECTIONS"));
        let line = Command::new("wellspring").subcommand(serve);
        let told =
            |names: &[&str]| unknown(|| line.clone(), names.iter().map(|&name| name.to_owned()));
        let fine = ["WELLSPRING_LISTEN", "WELLSPRING_TOKEN", "HOME", "wellspring_listen"];
        assert_eq!(told(&fine), Vec::<String>::new());
        let of_a_service =
            ["WELLSPRING_PORT", "WELLSPRING_PORT_4000_TCP", "WELLSPRING_SERVICE_HOST"];
        assert_eq!(told(&of_a_service), Vec::<String>::new());
        assert_eq!(told(&["WELLSPRING_TEST_ENGINES"]), Vec::<String>::new());
        let far = told(&["WELLSPRING_FOO", "WELLSPRING_", "WELLSPRING_TEST"]);
        assert_eq!(far.len(), 3);
        assert!(far.iter().all(|told| told.contains("serve --help")), "{far:?}");
        let told =
            told(&["WELLSPRING_SOMETHING_ELSE", "WELLSPRING_LISTN", "WELLSPRING_MAX_CONECTION"]);
        assert_eq!(told.len(), 3);
        assert!(told[0].contains("WELLSPRING_LISTN") && told[0].ends_with("WELLSPRING_LISTEN?"));
        assert!(told[1].ends_with("did you mean WELLSPRING_MAX_CONNECTIONS?"), "{}", told[1]);
        assert!(told[2].contains("serve --help"), "{}", told[2]);
    }
}
