//! The language of questions: the part of Lucene's that tools send.
//!
//! `word`, `"a phrase"`, `begin*`, `w?rd`, `slip~`, `key:word`, `(a b)`, `AND`, `OR`, `NOT`,
//! `+must`, `-not`, `word^2`; a backslash makes a sign a part of a word. Without `AND` and the
//! like, one of the words suffices.

use super::words::words;
use std::iter::Peekable;
use std::str::Chars;

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TextQuery {
    /// What is counted in each document.
    pub(super) leaves: Vec<Leaf>,
    /// How the counts make a match.
    pub(super) root: Group,
}

/// Something that occurs in a document or not.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    /// The key of the property it must occur in; any without.
    pub(super) key: Option<String>,
    pub(super) wanted: Term,
    /// What it weighs in the ranking.
    pub(super) boost: f64,
}

/// What must occur.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Term {
    /// A word.
    Word(String),
    /// Words one after another, at least two.
    Phrase(Vec<String>),
    /// A word of this form: `*` stands for any letters, `?` for one.
    Wildcard(Vec<char>),
    /// A word that differs by at most so many letters.
    Similar(Vec<char>, usize),
    /// Anything: `*:*`
    All,
}

/// How a part counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occurrence {
    Must,
    Should,
    MustNot,
}

/// A part of a question.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    /// The leaf with this number.
    Leaf(usize),
    Group(Group),
}

/// Parts, and how each counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Group(pub(super) Vec<(Occurrence, Part)>);

/// Why a text is no question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryFault {
    /// A bracket or a quotation mark is not closed, or was not opened.
    Unclosed,
    /// A range or a regular expression.
    Unsupported,
    /// It has too many parts, or they are nested too deeply.
    TooLarge,
}

impl std::fmt::Display for QueryFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            QueryFault::Unclosed => "a bracket or a quotation mark is not closed",
            QueryFault::Unsupported => "ranges and regular expressions are not supported",
            QueryFault::TooLarge => "it is too large",
        })
    }
}

/// Maximum number of leaves, and of brackets inside one another.
const MOST_LEAVES: usize = 256;
const MOST_NESTED: usize = 32;
/// The most letters of a pattern.
const MOST_LETTERS: usize = 64;
/// The letters in which an `alike~` word may differ, at most and by itself.
const MOST_SLIPS: usize = 2;

impl TextQuery {
    /// Reads a question.
    ///
    /// # Errors
    /// [`QueryFault`]
    pub(crate) fn read(text: &str) -> Result<TextQuery, QueryFault> {
        let mut reader = Reader { rest: text.chars().peekable(), leaves: Vec::new(), nested: 0 };
        let root = reader.group(None)?;
        if reader.rest.peek().is_some() {
            return Err(QueryFault::Unclosed);
        }
        Ok(TextQuery { leaves: reader.leaves, root })
    }
}

struct Reader<'t> {
    rest: Peekable<Chars<'t>>,
    leaves: Vec<Leaf>,
    nested: usize,
}

/// A word as written: its letters, and whether each was escaped.
type EscapedText = Vec<(char, bool)>;

impl Reader<'_> {
    /// Parts up to the end or a closing bracket.
    fn group(&mut self, key: Option<&str>) -> Result<Group, QueryFault> {
        let mut parts: Vec<(Occurrence, Part)> = Vec::new();
        let mut joined = false;
        let mut sign = None;
        loop {
            while self.rest.next_if(|letter| letter.is_whitespace()).is_some() {}
            match self.rest.peek() {
                None | Some(')') => return Ok(Group(parts)),
                Some('+') => {
                    self.rest.next();
                    sign = Some(Occurrence::Must);
                    continue;
                }
                Some('-' | '!') => {
                    self.rest.next();
                    sign = Some(Occurrence::MustNot);
                    continue;
                }
                _ => {}
            }
            let Some(part) = self.part(key, &mut joined, &mut sign)? else {
                if joined {
                    require(&mut parts);
                }
                continue;
            };
            let occurrence = match (sign.take(), std::mem::take(&mut joined)) {
                (Some(sign), _) => sign,
                (None, true) => Occurrence::Must,
                (None, false) => Occurrence::Should,
            };
            parts.push((occurrence, part));
        }
    }

    /// The next part; `None` for a word such as `AND`, which is noted.
    fn part(
        &mut self,
        key: Option<&str>,
        joined: &mut bool,
        sign: &mut Option<Occurrence>,
    ) -> Result<Option<Part>, QueryFault> {
        match self.rest.peek() {
            Some('(') => {
                self.rest.next();
                self.bracket(key).map(Some)
            }
            Some('"') => {
                self.rest.next();
                self.phrase(key).map(Some)
            }
            Some('[' | '{' | '/') => Err(QueryFault::Unsupported),
            _ => {
                let word = self.word();
                let plain: String = word.iter().map(|(letter, _)| letter).collect();
                match plain.as_str() {
                    "AND" | "&&" => *joined = true,
                    "OR" | "||" => *joined = false,
                    "NOT" => *sign = Some(Occurrence::MustNot),
                    _ if self.rest.next_if_eq(&':').is_some() => {
                        return self.of_key(&plain, joined, sign);
                    }
                    _ => return self.leaf(key, &word).map(Some),
                }
                Ok(None)
            }
        }
    }

    /// What follows `key:`.
    fn of_key(
        &mut self,
        key: &str,
        joined: &mut bool,
        sign: &mut Option<Occurrence>,
    ) -> Result<Option<Part>, QueryFault> {
        if key == "*" && self.rest.next_if_eq(&'*').is_some() {
            return self.add(None, Term::All).map(Some);
        }
        self.part(Some(key), joined, sign)
    }

    fn bracket(&mut self, key: Option<&str>) -> Result<Part, QueryFault> {
        self.nested += 1;
        if self.nested > MOST_NESTED {
            return Err(QueryFault::TooLarge);
        }
        let first = self.leaves.len();
        let group = self.group(key)?;
        self.nested -= 1;
        self.rest.next_if_eq(&')').ok_or(QueryFault::Unclosed)?;
        let boost = self.boost();
        self.leaves.iter_mut().skip(first).for_each(|leaf| leaf.boost *= boost);
        Ok(Part::Group(group))
    }

    fn phrase(&mut self, key: Option<&str>) -> Result<Part, QueryFault> {
        let mut text = String::new();
        loop {
            match self.rest.next().ok_or(QueryFault::Unclosed)? {
                '"' => break,
                '\\' => text.extend(self.rest.next()),
                letter => text.push(letter),
            }
        }
        // How far the words may be apart is not heeded.
        if self.rest.next_if_eq(&'~').is_some() {
            self.number();
        }
        let boost = self.boost();
        let mut all: Vec<String> = words(&text).collect();
        let wanted = match all.len() {
            0 => return Ok(Part::Group(Group::default())),
            1 => Term::Word(all.remove(0)),
            _ => Term::Phrase(all),
        };
        self.add_boosted(key, wanted, boost)
    }

    /// Letters up to a blank or a sign.
    fn word(&mut self) -> EscapedText {
        let mut word = Vec::new();
        while let Some(&letter) = self.rest.peek() {
            let ends = letter.is_whitespace()
                || matches!(letter, '(' | ')' | '"' | ':' | '^' | '~' | '[' | ']' | '{' | '}');
            if ends && !word.is_empty() {
                break;
            }
            self.rest.next();
            if letter == '\\' {
                word.extend(self.rest.next().map(|letter| (letter, true)));
            } else {
                word.push((letter, false));
                if ends {
                    break;
                }
            }
        }
        word
    }

    /// A word as a part: several if the tokenizer divides it.
    fn leaf(&mut self, key: Option<&str>, word: &EscapedText) -> Result<Part, QueryFault> {
        let plain: String = word.iter().map(|(letter, _)| letter).collect();
        let has_pattern = word.iter().any(|it| matches!(it, ('*' | '?', false)));
        if self.rest.next_if_eq(&'~').is_some() {
            let slips = self.number().map_or(MOST_SLIPS, |number| number as usize).min(MOST_SLIPS);
            let boost = self.boost();
            let letters = plain.to_lowercase().chars().collect();
            return self.add_boosted(key, Term::Similar(letters, slips), boost);
        }
        let boost = self.boost();
        if has_pattern {
            let letters: Vec<char> = plain.to_lowercase().chars().collect();
            if letters.len() > MOST_LETTERS {
                return Err(QueryFault::TooLarge);
            }
            return self.add_boosted(key, Term::Wildcard(letters), boost);
        }
        let mut parts = Vec::new();
        for word in words(&plain) {
            parts.push((Occurrence::Should, self.add_boosted(key, Term::Word(word), boost)?));
        }
        Ok(match parts.len() {
            1 => parts.remove(0).1,
            _ => Part::Group(Group(parts)),
        })
    }

    fn add(&mut self, key: Option<&str>, wanted: Term) -> Result<Part, QueryFault> {
        self.add_boosted(key, wanted, 1.0)
    }

    fn add_boosted(
        &mut self,
        key: Option<&str>,
        wanted: Term,
        boost: f64,
    ) -> Result<Part, QueryFault> {
        if self.leaves.len() >= MOST_LEAVES {
            return Err(QueryFault::TooLarge);
        }
        self.leaves.push(Leaf { key: key.map(str::to_owned), wanted, boost });
        Ok(Part::Leaf(self.leaves.len() - 1))
    }

    /// `^2.5`
    fn boost(&mut self) -> f64 {
        match self.rest.next_if_eq(&'^') {
            Some(_) => self.number().filter(|boost| *boost > 0.0).unwrap_or(1.0),
            None => 1.0,
        }
    }

    fn number(&mut self) -> Option<f64> {
        let mut digits = String::new();
        while let Some(digit) =
            self.rest.next_if(|letter| letter.is_ascii_digit() || *letter == '.')
        {
            digits.push(digit);
        }
        digits.parse().ok().filter(|number: &f64| number.is_finite())
    }
}

/// Before `AND`, the last part must occur, unless it must not.
fn require(parts: &mut [(Occurrence, Part)]) {
    if let Some((occurrence @ Occurrence::Should, _)) = parts.last_mut() {
        *occurrence = Occurrence::Must;
    }
}

#[cfg(test)]
mod tests {
    use super::{QueryFault, TextQuery};

    /// A question as text.
    fn shown(text: &str) -> String {
        use super::{Group, Leaf, Occurrence, Part, Term};
        fn leaf(leaf: &Leaf) -> String {
            let key = leaf.key.as_ref().map(|key| format!("{key}:")).unwrap_or_default();
            let wanted = match &leaf.wanted {
                Term::Word(word) => word.clone(),
                Term::Phrase(words) => format!("\"{}\"", words.join(" ")),
                Term::Wildcard(letters) => letters.iter().collect(),
                Term::Similar(letters, slips) => {
                    format!("{}~{slips}", letters.iter().collect::<String>())
                }
                Term::All => "ALL".to_owned(),
            };
            let boost = if leaf.boost == 1.0 { String::new() } else { format!("^{}", leaf.boost) };
            format!("{key}{wanted}{boost}")
        }
        fn group(query: &TextQuery, parts: &Group) -> String {
            let parts = parts.0.iter().map(|(occurrence, part)| {
                let sign = match occurrence {
                    Occurrence::Must => "+",
                    Occurrence::Should => "",
                    Occurrence::MustNot => "-",
                };
                match part {
                    Part::Leaf(at) => format!("{sign}{}", leaf(&query.leaves[*at])),
                    Part::Group(inner) => format!("{sign}({})", group(query, inner)),
                }
            });
            parts.collect::<Vec<_>>().join(" ")
        }
        let query = TextQuery::read(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        group(&query, &query.root)
    }

    #[test]
    fn questions_are_read() {
        for (text, meaning) in [
            ("Two words", "two words"),
            ("a AND b OR c", "+a +b c"),
            ("a && NOT b", "+a -b"),
            ("+a -b !c d", "+a -b -c d"),
            ("\"A b\" \"c\"", "\"a b\" c"),
            ("name:ann title:(\"x y\" OR z)", "name:ann (title:\"x y\" title:z)"),
            ("group_id:\"a\" AND (b c)", "+group_id:a +(b c)"),
            ("beg* w?rd", "beg* w?rd"),
            ("sli~ slip~1", "sli~2 slip~1"),
            ("a^2 (b c)^3", "a^2 (b^3 c^3)"),
            ("well-known", "(well known)"),
            ("a\\:b \\(c\\)", "(a b) c"),
            ("a\\*", "a"),
            ("*:*", "ALL"),
            ("", ""),
            ("-- +", ""),
            ("and or", "and or"),
        ] {
            assert_eq!(shown(text), meaning, "{text}");
        }
    }

    #[test]
    fn what_is_no_question_is_refused() {
        for (text, fault) in [
            ("(a", QueryFault::Unclosed),
            ("a)", QueryFault::Unclosed),
            ("\"a", QueryFault::Unclosed),
            ("[a TO b]", QueryFault::Unsupported),
            ("n:{1 TO 2}", QueryFault::Unsupported),
            ("/a.*/", QueryFault::Unsupported),
        ] {
            assert_eq!(TextQuery::read(text), Err(fault), "{text}");
        }
        assert_eq!(TextQuery::read(&"(".repeat(100)), Err(QueryFault::TooLarge));
        assert_eq!(TextQuery::read(&"a ".repeat(1_000)), Err(QueryFault::TooLarge));
    }
}
