//! Regular expressions, each compiled once for a statement.

use crate::error::{Detail, Error, Result};
use regex_automata::meta::{Config, Regex};
use regex_automata::util::syntax;
use std::collections::HashMap;
use std::sync::Arc;

/// The regular expressions that a statement has met.
#[derive(Default)]
pub struct Patterns {
    compiled: HashMap<Arc<str>, Regex>,
}

impl Patterns {
    /// How many are kept; a statement that meets more compiles some again.
    const KEPT: usize = 16;
    /// How much memory one may take when compiled.
    const BYTES: usize = 512 << 10;
    /// How much more it may take for what it learns of texts.
    const LEARNT_BYTES: usize = 256 << 10;
    /// What compiling one takes.
    const STEPS: u64 = 1_000;

    /// How many steps it will take before a text can be looked at.
    pub fn steps(&self, pattern: &str) -> u64 {
        if self.compiled.contains_key(pattern) { 0 } else { Self::STEPS }
    }

    /// Whether a regular expression matches a text from beginning to end.
    ///
    /// # Errors
    /// A malformed expression, or one too large.
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
