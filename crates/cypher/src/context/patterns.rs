//! Regular expressions, each compiled once per statement. Nothing here is done at once that takes
//! longer than some ms: a pattern is priced before it is compiled, and a text is matched in pieces.

use crate::context::Budget;
use crate::error::{Detail, Error, Result};
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson;
use regex_automata::{Anchored, Input};
use regex_syntax::ast::parse::ParserBuilder;
use regex_syntax::ast::{
    Ast, ClassBracketed, ClassPerlKind, ClassSet, ClassSetItem, Flag, Flags, RepetitionKind,
    RepetitionRange,
};
use regex_syntax::hir::translate::Translator;
use regex_syntax::hir::{Hir, Look};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

/// Maximum length of an expression, in bytes: some bytes can stand for thousands of characters.
pub const MOST_PATTERN_BYTES: usize = 1_024;
/// Maximum number of states that an expression may need, as estimated from its syntax.
const MOST_STATES: u64 = 16_384;
/// States of a class of Unicode characters such as `\w`.
const CLASS_STATES: u64 = 256;
/// States of `\d` and `\D`.
const DIGIT_STATES: u64 = 64;
/// States of `\s` and `\S`.
const SPACE_STATES: u64 = 16;
/// Number of all characters.
const MOST_WIDTH: u64 = 0x11_0000;
/// Maximum number of characters whose other cases are looked up for the flag `i`, some 5 ns each:
/// three classes of nearly all characters.
const MOST_FOLDED: u64 = 3 * MOST_WIDTH;
/// States of `.`.
const DOT_STATES: u64 = 16;
/// Nesting of groups and classes.
const MOST_NESTED: u32 = 100;
/// Maximum memory of a compiled expression.
const BYTES: usize = 512 << 10;
/// Maximum memory of the transitions learnt while it matches.
const LEARNT_BYTES: usize = 256 << 10;
/// Maximum memory of the kept expressions without what they learn.
const KEPT_BYTES: usize = 1 << 20;
/// Maximum number of kept expressions; a statement with more recompiles some.
const KEPT: usize = 16;
/// Steps charged for compiling one apart from its states.
const STEPS: u64 = 1_000;
/// Bytes of a text that are matched between two charges.
const PIECE_BYTES: usize = 256;

/// The compiled regular expressions of a statement.
#[derive(Default)]
pub struct Patterns {
    compiled: HashMap<Arc<str>, Pattern>,
    /// The memory of the expressions.
    bytes: usize,
}

struct Pattern {
    dfa: DFA,
    learnt: Cache,
}

impl Patterns {
    /// Whether a regular expression matches a text completely.
    ///
    /// # Errors
    /// The expression is malformed or too large; an exhausted budget.
    pub fn matches(&mut self, pattern: &Arc<str>, text: &str, budget: &mut Budget) -> Result<bool> {
        if let Some(known) = self.compiled.get_mut(pattern) {
            return known.matches(text, budget);
        }
        let mut new = Pattern::compile(pattern, budget)?;
        let matches = new.matches(text, budget)?;
        let bytes = new.dfa.get_nfa().memory_usage();
        if self.compiled.len() >= KEPT || self.bytes + bytes > KEPT_BYTES {
            *self = Self::default();
        }
        self.bytes += bytes;
        self.compiled.insert(pattern.clone(), new);
        Ok(matches)
    }
}

impl Pattern {
    fn compile(pattern: &str, budget: &mut Budget) -> Result<Self> {
        if pattern.len() > MOST_PATTERN_BYTES {
            let message = format!(
                "A regular expression has at most {MOST_PATTERN_BYTES} bytes, not {}.",
                pattern.len()
            );
            return Err(Error::argument(Detail::LimitExceeded, message));
        }
        let parsed = ParserBuilder::new().nest_limit(MOST_NESTED).build().parse(pattern);
        let parsed = parsed.map_err(|problem| malformed(pattern, problem))?;
        let mut price = Price::default();
        let states = price.states(&parsed);
        if states > MOST_STATES {
            return Err(malformed(pattern, "it is too large: repeat less"));
        }
        if price.folded > MOST_FOLDED {
            let message = "it has too many large classes with the flag i: use it for letters only";
            return Err(malformed(pattern, message));
        }
        budget.charge_steps(STEPS + states / 4 + price.folded / 16)?;
        let hir = Translator::new().translate(pattern, &parsed);
        let hir = hir.map_err(|problem| malformed(pattern, problem))?;
        let whole = Hir::concat(vec![Hir::look(Look::Start), hir, Hir::look(Look::End)]);
        let nfa = thompson::Compiler::new()
            .configure(
                thompson::Config::new()
                    .nfa_size_limit(Some(BYTES))
                    .which_captures(thompson::WhichCaptures::None),
            )
            .build_from_hir(&whole)
            .map_err(|problem| malformed(pattern, problem))?;
        let config = Config::new().cache_capacity(LEARNT_BYTES).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa);
        let dfa = dfa.map_err(|problem| malformed(pattern, problem))?;
        let learnt = dfa.create_cache();
        Ok(Self { dfa, learnt })
    }

    /// Charges the length of the text times the states of the expression, in pieces: a transition
    /// that has not been learnt takes a look at each state.
    fn matches(&mut self, text: &str, budget: &mut Budget) -> Result<bool> {
        let Self { dfa, learnt } = self;
        let states = dfa.get_nfa().states().len() as u64;
        let input = Input::new(text).anchored(Anchored::Yes);
        let mut state = dfa.start_state_forward(learnt, &input).map_err(unmatched)?;
        for piece in text.as_bytes().chunks(PIECE_BYTES) {
            let bytes = piece.len() as u64;
            budget.charge_steps(bytes / 16 + bytes * states / 1_024)?;
            for byte in piece {
                state = dfa.next_state(learnt, state, *byte).map_err(unmatched)?;
                if state.is_dead() {
                    return Ok(false);
                }
            }
        }
        Ok(dfa.next_eoi_state(learnt, state).map_err(unmatched)?.is_match())
    }
}

#[cold]
fn malformed(pattern: &str, problem: impl Display) -> Error {
    let message = format!("Invalid regular expression '{pattern}': {problem}");
    Error::argument(Detail::InvalidArgumentValue, message)
}

#[cold]
fn unmatched(problem: impl Display) -> Error {
    Error::defect(format!("A regular expression: {problem}"))
}

/// What compiling an expression takes, estimated from its syntax.
#[derive(Default)]
struct Price {
    /// Whether a flag `i` has been read, in any group.
    folds: bool,
    /// Characters whose other cases are looked up, one by one, while it is translated.
    folded: u64,
}

impl Price {
    /// The states of an expression.
    fn states(&mut self, ast: &Ast) -> u64 {
        match ast {
            Ast::Empty(_) | Ast::Literal(_) | Ast::Assertion(_) => 1,
            Ast::Flags(set) => {
                self.read(&set.flags);
                1
            }
            Ast::Dot(_) => DOT_STATES,
            Ast::ClassUnicode(_) => {
                self.fold(MOST_WIDTH);
                CLASS_STATES
            }
            // A class such as `\w` has all cases: it is not folded unless it is in brackets.
            Ast::ClassPerl(class) => states_of_perl(&class.kind),
            Ast::ClassBracketed(class) => self.bracketed(class).states,
            Ast::Repetition(repetition) => {
                let times = match &repetition.op.kind {
                    RepetitionKind::Range(RepetitionRange::Bounded(_, most)) => *most,
                    RepetitionKind::Range(
                        RepetitionRange::Exactly(least) | RepetitionRange::AtLeast(least),
                    ) => least.saturating_add(1),
                    _ => 1,
                };
                self.states(&repetition.ast).saturating_mul(u64::from(times)).saturating_add(1)
            }
            Ast::Group(group) => {
                if let Some(flags) = group.flags() {
                    self.read(flags);
                }
                self.states(&group.ast)
            }
            Ast::Alternation(alternation) => self.states_of_all(&alternation.asts),
            Ast::Concat(concat) => self.states_of_all(&concat.asts),
        }
    }

    fn states_of_all(&mut self, asts: &[Ast]) -> u64 {
        asts.iter().fold(0, |sum: u64, ast| sum.saturating_add(self.states(ast)))
    }

    fn read(&mut self, flags: &Flags) {
        self.folds |= flags.flag_state(Flag::CaseInsensitive) == Some(true);
    }

    fn fold(&mut self, width: u64) {
        if self.folds {
            self.folded = self.folded.saturating_add(width.min(MOST_WIDTH));
        }
    }

    /// Every pair of brackets is folded, also one in another, and negated afterwards.
    fn bracketed(&mut self, class: &ClassBracketed) -> Set {
        let set = self.set(&class.kind);
        self.fold(set.width);
        let width = if class.negated { MOST_WIDTH } else { set.width };
        Set { width, ..set }
    }

    fn set(&mut self, set: &ClassSet) -> Set {
        match set {
            ClassSet::Item(item) => self.item(item),
            ClassSet::BinaryOp(operation) => {
                let (left, right) = (self.set(&operation.lhs), self.set(&operation.rhs));
                self.fold(left.width);
                self.fold(right.width);
                left.and(right)
            }
        }
    }

    fn item(&mut self, item: &ClassSetItem) -> Set {
        match item {
            ClassSetItem::Empty(_) | ClassSetItem::Literal(_) => Set { states: 1, width: 4 },
            ClassSetItem::Ascii(class) if class.negated => Set { states: 1, width: MOST_WIDTH },
            ClassSetItem::Ascii(_) => Set { states: 1, width: 128 },
            ClassSetItem::Range(range) => {
                let width = u64::from(range.end.c).saturating_sub(u64::from(range.start.c));
                Set { states: 2, width: width + 4 }
            }
            ClassSetItem::Unicode(_) => {
                self.fold(MOST_WIDTH);
                Set { states: CLASS_STATES, width: MOST_WIDTH }
            }
            ClassSetItem::Perl(class) => {
                let states = states_of_perl(&class.kind);
                let narrow = !class.negated && class.kind != ClassPerlKind::Word;
                Set { states, width: if narrow { 1_024 } else { MOST_WIDTH } }
            }
            ClassSetItem::Bracketed(class) => self.bracketed(class),
            ClassSetItem::Union(union) => {
                union.items.iter().fold(Set::default(), |all, item| all.and(self.item(item)))
            }
        }
    }
}

/// An estimate of a set of characters.
#[derive(Default)]
struct Set {
    states: u64,
    /// Its characters.
    width: u64,
}

impl Set {
    fn and(self, other: Self) -> Self {
        let width = (self.width + other.width).min(MOST_WIDTH);
        Self { states: self.states.saturating_add(other.states), width }
    }
}

const fn states_of_perl(kind: &ClassPerlKind) -> u64 {
    match kind {
        ClassPerlKind::Digit => DIGIT_STATES,
        ClassPerlKind::Space => SPACE_STATES,
        ClassPerlKind::Word => CLASS_STATES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str, budget: &mut Budget) -> Result<bool> {
        Patterns::default().matches(&pattern.into(), text, budget)
    }

    #[test]
    fn an_expression_matches_the_whole_text_by_any_of_its_alternatives() {
        let mut budget = Budget::unlimited();
        for (pattern, text, expected) in [
            ("a|ab", "ab", true),
            ("a*?", "aaa", true),
            ("", "", true),
            ("", "a", false),
            ("(?i)häu.er", "HÄUSER", true),
            (".", "\n", false),
            ("(?s).", "\n", true),
            ("(?m)a$\\nb", "a\nb", true),
            ("[\\pL&&[^a]]+", "bcd", true),
            ("(?x) a # b", "a", true),
        ] {
            assert_eq!(matches(pattern, text, &mut budget), Ok(expected), "{pattern}");
        }
    }

    #[test]
    fn a_pattern_that_grows_is_refused_before_it_is_compiled() {
        for pattern in [
            "\\pL".repeat(340),
            "(?i)\\w{100}".to_owned(),
            "((a{99}){99}){99}".to_owned(),
            "[\\w\\d\\s]{0,60}".to_owned(),
            "a{4294967295}".to_owned(),
            "a".repeat(1_025),
            format!("(?i){}", "[\u{1}-\u{10FFFF}]".repeat(127)),
            format!("(?i:{})", "[[^a]]".repeat(100)),
            format!("(?i){}a{}", "[^".repeat(60), "]".repeat(60)),
            format!("(?i){}", "\\pL".repeat(60)),
        ] {
            // Too few steps to compile anything.
            let mut budget = Budget::new(STEPS - 1, 0, || None);
            let refused = matches(&pattern, "a", &mut budget).unwrap_err();
            assert_eq!(refused.kind, crate::error::ErrorKind::ArgumentError, "{pattern}");
        }
    }

    #[test]
    fn a_class_of_all_characters_without_regard_to_case_is_charged_before_it_is_translated() {
        let pattern = "(?i)[\u{1}-\u{10FFFF}]";
        let mut budget = Budget::new(1 << 15, 0, || None);
        let refused = matches(pattern, "a", &mut budget).unwrap_err();
        assert_ne!(refused.kind, crate::error::ErrorKind::ArgumentError);
        assert_eq!(matches(pattern, "a", &mut Budget::unlimited()), Ok(true));
    }

    #[test]
    fn an_ordinary_validation_is_accepted_and_its_memory_is_bounded() {
        for pattern in [
            "\\d{1,64}",
            "\\d{1,100}",
            "\\d{0,255}",
            "\\D{1,100}",
            "\\S{1,64}",
            "\\S{0,255}",
            "\\s{0,80}",
            "[^\\s]{1,100}",
            "[\\d-]{1,100}",
            "(?:[\\d]{2}:){30}",
            "(?i)[a-z\\d._%+-]{1,64}@[a-z\\d.-]{1,64}",
            "(?i)[^\\W\\d]+",
        ] {
            let new = Pattern::compile(pattern, &mut Budget::unlimited());
            let new = new.unwrap_or_else(|refused| panic!("{pattern}: {refused:?}"));
            let bytes = new.dfa.get_nfa().memory_usage() + new.learnt.memory_usage();
            assert!(bytes < 1 << 20, "{pattern}: {bytes}");
        }
    }

    #[test]
    fn matching_costs_the_text_times_the_pattern_and_is_asked_to_stop() {
        let text = "ab".repeat(500_000);
        for (pattern, least) in [("[ab]*", 1 << 16), ("[ab]*a[ab]{3000}c?d", 1 << 20)] {
            let mut budget = Budget::new(u64::MAX, 0, || None);
            let asked = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
            let count = std::sync::Arc::clone(&asked);
            let stop = move || {
                let times = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                (times == 8).then_some(crate::context::Stop::Cancelled)
            };
            let mut stopped = Budget::new(u64::MAX, 0, stop);
            assert!(matches(pattern, &text, &mut stopped).is_err(), "{pattern}");
            let short = &text[..10_000];
            matches(pattern, short, &mut budget).unwrap();
            assert!((u64::MAX - budget.steps_left()) * 100 > least, "{pattern}");
        }
    }
}
