//! Where a link leads, for a thread that serves nothing but redirects and ingest.

use super::click::Clicks;
use super::visit::Visit;
use super::visitor::Visitor;
use crate::http::problem::Problem;
use crate::http::{Shell, links, routes};
use crate::ingest::Intake;
use crate::view::Live;
use std::sync::Arc;
use wellspring_types::Invalid;
use wellspring_views::links::{Code, Links};

/// A request for a link.
pub(crate) struct Visiting<'a> {
    /// The code, 1 to 10 letters and digits.
    pub(crate) code: &'a [u8],
    /// What is recorded of the visit.
    pub(crate) visit: &'a Visit,
    /// Who visits.
    pub(crate) visitor: &'a mut Visitor,
    /// Monotonic time of this turn of the loop, µs.
    pub(crate) now_us: u64,
}

/// What became of a request for a link.
#[derive(Debug)]
pub(crate) enum Redirected {
    /// The click is recorded, and where the link leads is appended.
    Found,
    /// It leads nowhere: answer this, go on with the connection.
    Refused(Box<Problem>),
    /// For the general stack, which can wait.
    Foreign,
}

/// Codes that are no links, whatever the log says: in any mix of cases, as numbers, in order.
struct Reserved(Vec<u128>);

impl Reserved {
    fn new() -> Reserved {
        let is_code = |word: &&str| Code::parse(word.as_bytes()).is_some();
        let words = routes::reserved_words().filter(is_code);
        let mut numbers: Vec<u128> = words.map(|word| Reserved::number(word.as_bytes())).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Reserved(numbers)
    }

    /// Up to sixteen letters and digits as a number; a letter is the same in either case.
    fn number(word: &[u8]) -> u128 {
        word.iter().fold(0, |number, byte| number << 8 | u128::from(byte | 0x20))
    }

    #[inline]
    fn holds(&self, code: &[u8]) -> bool {
        self.0.binary_search(&Reserved::number(code)).is_ok()
    }
}

/// What is looked up once in a turn of the loop.
struct Turn {
    /// Its time, by the monotonic clock.
    at_us: u64,
    /// The same, µs since 1970 UTC.
    wall_us: u64,
    /// The view; another once the log has been emptied.
    live: Option<Arc<Live<Links>>>,
}

/// A thread's way to links.
pub(crate) struct Redirects {
    shell: Arc<Shell>,
    reserved: Reserved,
    clicks: Clicks,
    turn: Turn,
}

impl Redirects {
    /// Nobody redirected yet.
    ///
    /// # Errors
    /// Those of [`Clicks::new`].
    pub(crate) fn new(shell: &Arc<Shell>) -> Result<Redirects, Invalid> {
        let (reserved, clicks) = (Reserved::new(), Clicks::new()?);
        let turn = Turn { at_us: u64::MAX, wall_us: 0, live: None };
        Ok(Redirects { shell: Arc::clone(shell), reserved, clicks, turn })
    }

    /// Whether a code may be a link's at all.
    pub(crate) fn serves(&self, code: &[u8]) -> bool {
        !self.reserved.holds(code)
    }

    /// Appends where a link leads to `location`, and records the click.
    pub(crate) fn redirect(
        &mut self,
        intake: &mut Intake,
        visiting: Visiting<'_>,
        location: &mut Vec<u8>,
    ) -> Redirected {
        let Visiting { code, visit, visitor, now_us } = visiting;
        if self.turn.at_us != now_us {
            let (wall_us, live) = (self.shell.clock.wall_us(), self.shell.node.links());
            self.turn = Turn { at_us: now_us, wall_us, live };
        }
        let Turn { wall_us, live, .. } = &self.turn;
        let Some(folded) = live.as_ref().and_then(|live| live.folded()) else {
            return Redirected::Foreign;
        };
        let Some(code) = Code::parse(code).filter(|_| self.serves(code)) else {
            return Redirected::Foreign;
        };
        match links::of_lookup(code, folded.lookup(code, *wall_us, location)) {
            Ok(()) => {
                self.clicks.record(intake, code, visit, visitor, *wall_us);
                Redirected::Found
            }
            Err(problem) => Redirected::Refused(links::with_error(problem)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_words_are_no_links_in_any_mix_of_cases() {
        let reserved = Reserved::new();
        for word in routes::reserved_words().filter(|word| Code::parse(word.as_bytes()).is_some()) {
            let upper = word.to_ascii_uppercase();
            assert!(reserved.holds(word.as_bytes()) && reserved.holds(upper.as_bytes()), "{word}");
        }
        for code in ["Yci", "0123456789", "healthy", "h", "HEALTHZ", "zzzzzzzzzz"] {
            assert_eq!(reserved.holds(code.as_bytes()), routes::is_reserved(code), "{code}");
        }
    }
}
