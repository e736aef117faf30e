//! Regular expressions, each compiled once per statement.

use crate::error::{Detail, Error, Result};
use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use std::collections::HashMap;
use std::sync::Arc;

/// The compiled regular expressions of a statement.
#[derive(Default)]
pub struct Patterns {
    compiled: HashMap<Arc<str>, Regex>,
}

impl Patterns {
    /// Number of expressions kept; a statement with more recompiles some.
    const KEPT: usize = 16;
    /// Maximum memory of a compiled expression.
    const BYTES: usize = 512 << 10;
    /// Maximum memory of its lazy DFA cache.
    const LEARNT_BYTES: usize = 256 << 10;
    /// Steps charged for compiling one.
    const STEPS: u64 = 1_000;

    /// Steps charged before a text can be matched.
    pub fn steps(&self, pattern: &str) -> u64 {
        if self.compiled.contains_key(pattern) { 0 } else { Self::STEPS }
    }

    /// Whether a regular expression matches a text completely.
    ///
    /// # Errors
    /// The expression is malformed or too large.
    pub fn matches(&mut self, pattern: &Arc<str>, text: &str) -> Result<bool> {
        if let Some(regex) = self.compiled.get(pattern) {
            return Ok(regex.is_match(text));
        }
        let regex = compile(pattern)?;
        let matches = regex.is_match(text);
        if self.compiled.len() >= Self::KEPT {
            self.compiled.clear();
        }
        self.compiled.insert(pattern.clone(), regex);
        Ok(matches)
    }
}

fn compile(pattern: &str) -> Result<Regex> {
    let config = Config::new()
        .nfa_size_limit(Some(Patterns::BYTES))
        .hybrid_cache_capacity(Patterns::LEARNT_BYTES);
    Regex::builder()
        .configure(config)
        .syntax(syntax::Config::new().nest_limit(100))
        .build(&format!("^(?:{pattern})$"))
        .map_err(|problem| {
            let message = format!("Invalid regular expression '{pattern}': {problem}");
            Error::argument(Detail::InvalidArgumentValue, message)
        })
}
