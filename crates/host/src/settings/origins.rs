//! The origin of each setting, so that an error can name the place to correct.

use clap::parser::ValueSource;
use clap::{ArgMatches, Command};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The origin of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Origin {
    /// On the command line, which needs no mention.
    Flag,
    /// In this variable of the environment.
    Variable(String),
    /// In this line of a file, from 1.
    File(PathBuf, usize),
}

/// The origins of settings, by their names in the file; defaults are not here.
#[derive(Debug, Clone, Default)]
pub struct Origins(BTreeMap<String, Origin>);

impl Origins {
    /// The origins in a command line and its environment, including those of the given subcommand.
    /// The command must be built: only then its subcommands know their inherited flags.
    pub fn of(command: &Command, matches: &ArgMatches) -> Origins {
        let given = command.get_arguments().filter_map(|argument| {
            let name = argument.get_id().as_str();
            // `--help` and `--version` have no value.
            let source =
                matches.try_contains_id(name).ok().and_then(|_| matches.value_source(name));
            let origin = match (source?, argument.get_env()) {
                (ValueSource::CommandLine, _) => Origin::Flag,
                (ValueSource::EnvVariable, Some(variable)) => {
                    Origin::Variable(variable.to_string_lossy().into_owned())
                }
                _ => return None,
            };
            Some((name.to_owned(), origin))
        });
        let mut origins = Origins(given.collect());
        if let Some((name, matches)) = matches.subcommand()
            && let Some(command) = command.find_subcommand(name)
        {
            origins.0.append(&mut Origins::of(command, matches).0);
        }
        origins
    }

    /// Adds a setting of a file, which is used where it is not given elsewhere.
    pub fn add(&mut self, name: &str, path: &Path, line: usize) {
        let origin = Origin::File(path.to_owned(), line);
        self.0.entry(name.to_owned()).or_insert(origin);
    }

    /// The message of a tool with the origin of the flag that it starts with. Later flags are
    /// advice, which can be pasted.
    pub fn explain_first(&self, message: String) -> String {
        let first = words(&message).next().filter(|_| message.starts_with("--"));
        let only = first.and_then(|name| self.0.get_key_value(&name));
        let only = only.map(|(name, origin)| (name.clone(), origin.clone()));
        Origins(only.into_iter().collect()).explain(message)
    }

    /// The message with the origin of each setting that it names, except flags and defaults.
    pub fn explain(&self, message: String) -> String {
        let mut told: Vec<(&str, &Origin)> = Vec::new();
        for word in words(&message) {
            if let Some((name, origin)) = self.0.get_key_value(&word)
                && !told.iter().any(|(earlier, _)| earlier == name)
            {
                told.push((name, origin));
            }
        }
        let clauses: Vec<String> = told
            .into_iter()
            .filter_map(|(name, origin)| match origin {
                Origin::Flag => None,
                Origin::Variable(variable) => {
                    Some(format!("{name} is set by the variable {variable}"))
                }
                Origin::File(path, line) => {
                    Some(format!("{name} is set in {}, line {line}", path.display()))
                }
            })
            .collect();
        if clauses.is_empty() { message } else { format!("{message} ({})", clauses.join("; ")) }
    }
}

/// The words of a message that may name a setting, as the file has them: flags, words joined by
/// `_`, and the first word. Elsewhere `data` and `listen` are ordinary words.
fn words(message: &str) -> impl Iterator<Item = String> {
    let is_inside = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_-".contains(c);
    message.split(move |c| !is_inside(c)).enumerate().filter_map(|(at, word)| {
        let name = word.trim_start_matches('-').replace('-', "_");
        (at == 0 || word.starts_with("--") || word.contains('_')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_told_with_the_origins_of_what_it_names() {
        let mut origins = Origins::default();
        let variable = Origin::Variable("WELLSPRING_LISTEN".to_owned());
        origins.0.insert("listen".to_owned(), variable);
        origins.0.insert("max_logs".to_owned(), Origin::Flag);
        origins.add("max_logs", Path::new("w.toml"), 1);
        origins.add("tls_key", Path::new("w.toml"), 7);
        let told = |message: &str| origins.explain(message.to_owned());
        assert_eq!(
            told("--listen must be ADDRESS:PORT"),
            "--listen must be ADDRESS:PORT (listen is set by the variable WELLSPRING_LISTEN)"
        );
        assert_eq!(told("they listen"), "they listen");
        let first = |message: &str| origins.explain_first(message.to_owned());
        assert_eq!(first("make it with: x --listen a"), "make it with: x --listen a");
        assert!(first("--listen: none").ends_with("variable WELLSPRING_LISTEN)"));
        assert_eq!(told("max_logs is too much"), "max_logs is too much");
        assert_eq!(
            told("--tls-key needs --tls-cert; --tls-key is alone with --listen"),
            "--tls-key needs --tls-cert; --tls-key is alone with --listen (tls_key is set in w.toml, line \
             7; listen is set by the variable WELLSPRING_LISTEN)"
        );
    }
}
