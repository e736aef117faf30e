//! Whether words and documents match a question.

use super::query::{Group, Leaf, Occurrence, Part, Term, TextQuery};
use super::ranking::Document;
use std::collections::HashMap;

/// The number of times each leaf of a question occurs in a document.
pub(super) type Counts = Vec<u32>;

/// The most letters of words that are compared with a pattern or with slips.
const MOST_LETTERS: usize = 64;

impl TextQuery {
    /// How often each leaf occurs in a document.
    pub(super) fn count(&self, plain: &PlainWords, document: &Document) -> Counts {
        let mut counts = vec![0; self.leaves.len()];
        for (key, words) in &document.texts {
            let is_of_key = |leaf: &Leaf| leaf.key.as_ref().is_none_or(|wanted| wanted == key);
            for word in words {
                for at in plain.0.get(word).into_iter().flatten() {
                    if let (Some(count), Some(leaf)) = (counts.get_mut(*at), self.leaves.get(*at))
                        && is_of_key(leaf)
                    {
                        *count += 1;
                    }
                }
            }
            for (leaf, count) in self.leaves.iter().zip(&mut counts) {
                if is_of_key(leaf) {
                    *count += occurrences(&leaf.wanted, words);
                }
            }
        }
        counts
    }

    /// The letters and words that a word of a document is compared with, at worst.
    pub(super) fn compared(&self) -> usize {
        let compared = self.leaves.iter().map(|leaf| match &leaf.wanted {
            Term::Word(_) | Term::All => 0,
            Term::Phrase(words) => words.len(),
            Term::Wildcard(letters) => letters.len() * 4,
            Term::Similar(letters, _) => letters.len().min(MOST_LETTERS) * 8,
        });
        compared.sum()
    }

    /// The leaves that are plain words, by word.
    pub(super) fn plain_words(&self) -> PlainWords {
        let mut by_word: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, leaf) in self.leaves.iter().enumerate() {
            if let Term::Word(word) = &leaf.wanted {
                by_word.entry(word.clone()).or_default().push(at);
            }
        }
        PlainWords(by_word)
    }
}

/// The leaves that are plain words, by word.
pub(super) struct PlainWords(HashMap<String, Vec<usize>>);

/// How often something other than a plain word occurs.
fn occurrences(wanted: &Term, words: &[String]) -> u32 {
    let count = match wanted {
        Term::Word(_) => 0,
        Term::All => 1,
        Term::Phrase(phrase) => {
            words.windows(phrase.len()).filter(|window| *window == phrase.as_slice()).count()
        }
        Term::Wildcard(pattern) => words.iter().filter(|word| fits(pattern, word)).count(),
        Term::Similar(letters, slips) => {
            words.iter().filter(|word| is_alike(letters, word, *slips)).count()
        }
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Whether a word has the form of a pattern.
fn fits(pattern: &[char], word: &str) -> bool {
    let word: Vec<char> = word.chars().take(MOST_LETTERS + 1).collect();
    if word.len() > MOST_LETTERS {
        return false;
    }
    let (mut at, mut in_word) = (0, 0);
    // Where the last star was, and the letter up to which it stands.
    let mut star: Option<(usize, usize)> = None;
    while in_word < word.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_word));
                at += 1;
            }
            Some(letter) if *letter == '?' || word.get(in_word) == Some(letter) => {
                at += 1;
                in_word += 1;
            }
            _ => {
                let Some((star_at, covered)) = star else { return false };
                star = Some((star_at, covered + 1));
                at = star_at + 1;
                in_word = covered + 1;
            }
        }
    }
    pattern.get(at..).unwrap_or_default().iter().all(|letter| *letter == '*')
}

/// Whether a word differs from these letters by at most so many insertions, removals and
/// replacements.
fn is_alike(letters: &[char], word: &str, slips: usize) -> bool {
    let word: Vec<char> = word.chars().take(MOST_LETTERS + 1).collect();
    let longest = letters.len().max(word.len());
    if longest > MOST_LETTERS || letters.len().abs_diff(word.len()) > slips {
        return false;
    }
    let mut row: Vec<usize> = (0..=word.len()).collect();
    for (i, letter) in letters.iter().enumerate() {
        let mut diagonal = i;
        let mut left = i + 1;
        let mut next = vec![left];
        for (j, other) in word.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(usize::MAX);
            let replaced = diagonal + usize::from(letter != other);
            left = replaced.min(above + 1).min(left + 1);
            next.push(left);
            diagonal = above;
        }
        row = next;
    }
    row.last().is_some_and(|distance| *distance <= slips)
}

impl Group {
    /// Whether a document with these counts is an answer.
    pub(super) fn is_met(&self, counts: &Counts) -> bool {
        let met = |part: &Part| match part {
            Part::Leaf(at) => counts.get(*at).is_some_and(|count| *count > 0),
            Part::Group(group) => group.is_met(counts),
        };
        let mut has_must = false;
        let mut any = false;
        for (occurrence, part) in &self.0 {
            match (occurrence, met(part)) {
                (Occurrence::Must, false) | (Occurrence::MustNot, true) => return false,
                (Occurrence::Must, true) => has_must = true,
                (Occurrence::Should, true) => any = true,
                _ => {}
            }
        }
        has_must || any
    }

    /// Passes the numbers of the leaves that count for an answer.
    pub(super) fn each_counted(&self, visit: &mut dyn FnMut(usize)) {
        for (occurrence, part) in &self.0 {
            match part {
                _ if *occurrence == Occurrence::MustNot => {}
                Part::Leaf(at) => visit(*at),
                Part::Group(group) => group.each_counted(visit),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{fits, is_alike};

    #[test]
    fn patterns_stand_for_letters() {
        let fits = |pattern: &str, word: &str| fits(&pattern.chars().collect::<Vec<_>>(), word);
        for (pattern, word) in
            [("beg*", "begin"), ("*", "x"), ("w?rd", "word"), ("*a*b", "xaxbab"), ("a*", "a")]
        {
            assert!(fits(pattern, word), "{pattern} {word}");
        }
        for (pattern, word) in [("beg*", "be"), ("w?rd", "wrd"), ("a*b", "abc"), ("", "a")] {
            assert!(!fits(pattern, word), "{pattern} {word}");
        }
    }

    #[test]
    fn words_may_differ_by_some_letters() {
        let alike = |letters: &str, word: &str, slips| {
            is_alike(&letters.chars().collect::<Vec<_>>(), word, slips)
        };
        assert!(alike("word", "word", 0) && alike("word", "wird", 1) && alike("word", "wrd", 1));
        assert!(alike("word", "words", 1) && alike("", "ab", 2) && alike("kitten", "sitte", 2));
        assert!(!alike("word", "wird", 0) && !alike("kitten", "sitting", 2));
        assert!(!alike(&"a".repeat(70), &"a".repeat(70), 2));
    }
}
