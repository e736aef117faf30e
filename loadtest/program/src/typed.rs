//! Options together with the flags that were typed: only then a flag that is not used can be told
//! from one that has its default.

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// Options, and which of them were typed.
#[derive(Debug)]
pub(crate) struct Typed<T> {
    pub(crate) args: T,
    /// Long names, without the dashes.
    pub(crate) flags: Vec<String>,
}

impl<T: Args> FromArgMatches for Typed<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let flags = T::augment_args(Command::new("typed"))
            .get_arguments()
            .filter(|argument| {
                matches.value_source(argument.get_id().as_str()) == Some(ValueSource::CommandLine)
            })
            .filter_map(|argument| argument.get_long().map(str::to_owned))
            .collect();
        Ok(Typed { args: T::from_arg_matches(matches)?, flags })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Typed::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: Args> Args for Typed<T> {
    fn augment_args(command: Command) -> Command {
        T::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        T::augment_args_for_update(command)
    }
}

impl<T> Typed<T> {
    /// Those of the typed flags that are none of these, as they are typed.
    pub(crate) fn others(&self, used: &[&str]) -> Vec<String> {
        let others = self.flags.iter().filter(|flag| !used.contains(&flag.as_str()));
        others.map(|flag| format!("--{flag}")).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Args)]
    struct SampleFlags {
        name: String,
        #[arg(long, default_value_t = 1)]
        repeat: u32,
        #[arg(short = 'n', long = "requests")]
        many: Option<u32>,
    }

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        typed: Typed<SampleFlags>,
    }

    #[test]
    fn a_default_is_not_typed() {
        let of =
            |words: &[&str]| Line::try_parse_from([&["x", "a"], words].concat()).unwrap().typed;
        assert!(of(&[]).flags.is_empty());
        assert_eq!(of(&["--repeat", "1", "-n", "3"]).flags, ["repeat", "requests"]);
        assert_eq!(of(&["--repeat", "1", "-n", "3"]).others(&["requests"]), ["--repeat"]);
    }
}
