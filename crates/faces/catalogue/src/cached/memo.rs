//! A serving thread's last answers.

use crate::rendered::RenderedAnswer;
use std::collections::HashMap;
use wellspring_types::Position;

/// Most cached answers, and the largest size of one.
const MOST_ANSWERS: usize = 256;
const MOST_BYTES: usize = 64 << 10;

/// Answers of a catalogue that has not changed since, by the requested words.
#[derive(Debug, Default)]
pub(super) struct Memo {
    changed_at: Position,
    answers: HashMap<Box<[u8]>, RenderedAnswer>,
}

impl Memo {
    /// The answer for a word, if the last change of the catalogue is still this one.
    pub(super) fn get(&mut self, word: &[u8], changed_at: Position) -> Option<&RenderedAnswer> {
        if self.changed_at != changed_at {
            self.answers.clear();
            return None;
        }
        self.answers.get(word)
    }

    /// Caches an answer of a catalogue with this last change.
    pub(super) fn keep(&mut self, word: &[u8], changed_at: Position, rendered: &RenderedAnswer) {
        if self.changed_at != changed_at || self.answers.len() == MOST_ANSWERS {
            self.answers.clear();
            self.changed_at = changed_at;
        }
        if rendered.content.len() <= MOST_BYTES {
            self.answers.insert(word.into(), rendered.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_until_anything_changes() {
        let rendered = |content: &str| RenderedAnswer { changed_at: 3, content: content.into() };
        let mut memo = Memo::default();
        memo.keep(b"1", 5, &rendered("a"));
        assert_eq!(memo.get(b"1", 5).unwrap().content, b"a");
        assert!(memo.get(b"2", 5).is_none());
        assert!(memo.get(b"1", 6).is_none());
        assert!(memo.get(b"1", 5).is_none(), "what was changed once is not looked at again");
        memo.keep(b"1", 7, &rendered(&"a".repeat(MOST_BYTES + 1)));
        assert!(memo.get(b"1", 7).is_none(), "long answers are not kept twice");
        for word in 0..1_000u32 {
            memo.keep(&word.to_le_bytes(), 7, &rendered("b"));
        }
        assert!(memo.answers.len() <= MOST_ANSWERS);
    }
}
