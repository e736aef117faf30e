//! Whether output has colours: only on a terminal, and never if the variable `NO_COLOR` is set to
//! anything (<https://no-color.org>). Clap and the terminal of `top` keep to the same variable; the
//! server's log lines have no colours.

use std::env;
use std::ffi::OsStr;
use std::io::{self, IsTerminal as _};

/// Whether standard output shows colours.
pub(crate) fn on_standard_output() -> bool {
    is_wanted(io::stdout().is_terminal(), env::var_os("NO_COLOR").as_deref())
}

fn is_wanted(is_terminal: bool, no_color: Option<&OsStr>) -> bool {
    is_terminal && no_color.is_none_or(OsStr::is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_turns_colours_off_and_pipes_have_none() {
        let set = |text: &'static str| Some(OsStr::new(text));
        assert!(is_wanted(true, None) && is_wanted(true, set("")));
        assert!(!is_wanted(true, set("1")) && !is_wanted(true, set("0")));
        assert!(!is_wanted(false, None));
    }
}
