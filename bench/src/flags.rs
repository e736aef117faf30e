//! `--name value` arguments, without a dependency to build.

use std::{collections::BTreeMap, str::FromStr};

/// What can go wrong here: always a sentence for the person at the terminal.
pub(crate) type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The arguments of one subcommand. Every flag must be taken exactly once, so a misspelt one is an
/// error.
pub(crate) struct Flags {
    given: BTreeMap<String, String>,
}

impl Flags {
    /// Parses `--name value` and `--name=value`.
    pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut given = BTreeMap::new();
        while let Some(argument) = arguments.next() {
            let name = argument
                .strip_prefix("--")
                .ok_or_else(|| format!("expected --flag, found {argument:?}"))?;
            let (name, value) = match name.split_once('=') {
                Some((name, value)) => (name.to_owned(), value.to_owned()),
                None => (
                    name.to_owned(),
                    arguments.next().ok_or_else(|| format!("--{name} needs a value"))?,
                ),
            };
            if given.insert(name.clone(), value).is_some() {
                return Err(format!("--{name} is given twice").into());
            }
        }
        Ok(Self { given })
    }

    /// A flag that may be left out.
    pub(crate) fn optional<T: FromStr>(&mut self, name: &str) -> Outcome<Option<T>> {
        match self.given.remove(name) {
            None => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| format!("--{name}: {text:?} is not understood").into()),
        }
    }

    /// A flag with a default.
    pub(crate) fn or<T: FromStr>(&mut self, name: &str, default: T) -> Outcome<T> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    /// A flag that must be there.
    pub(crate) fn required<T: FromStr>(&mut self, name: &str) -> Outcome<T> {
        self.optional(name)?.ok_or_else(|| format!("--{name} is missing").into())
    }

    /// Fails if a flag was given that nobody took.
    pub(crate) fn finish(self) -> Outcome<()> {
        match self.given.keys().next() {
            None => Ok(()),
            Some(name) => Err(format!("--{name} is not a flag of this subcommand").into()),
        }
    }
}
