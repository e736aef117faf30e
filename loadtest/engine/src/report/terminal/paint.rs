//! Colour for a terminal, or none.

/// What a piece of text means; the colour follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// A heading.
    Strong,
    /// Labels and units, which may recede.
    Faint,
    /// Something held.
    Good,
    /// Something to mind.
    Care,
    /// Something failed.
    Bad,
    /// Bars and strips.
    Plot,
}

/// Paints or leaves text as it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Painter {
    /// Whether to write ANSI escape sequences.
    pub(super) colour: bool,
}

impl Painter {
    /// `text` in the colour of `ink`. Only the sixteen colours every terminal theme
    /// sets itself are used, so that text stays readable on light and dark ground.
    pub(super) fn paint(self, ink: Ink, text: &str) -> String {
        if !self.colour || text.is_empty() {
            return text.to_owned();
        }
        let code = match ink {
            Ink::Strong => "1",
            Ink::Faint => "2",
            Ink::Good => "32",
            Ink::Care => "33",
            Ink::Bad => "31",
            Ink::Plot => "36",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}
