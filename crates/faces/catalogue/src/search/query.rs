//! Parsing search text: plain words and "phrases". Every text has a meaning.

/// Longest search text, in bytes.
pub(super) const MAX_QUERY_BYTES: usize = 300;

/// A query: every part must occur. Words are in their indexed form.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Query {
    /// Whole words, without repetitions.
    pub(super) words: Vec<String>,
    /// A prefix: the last word typed, unless it is quoted.
    pub(super) beginning: Option<String>,
    /// Phrases of two and more words.
    pub(super) phrases: Vec<Vec<String>>,
}

impl Query {
    /// Parses a search text; `split` returns the words of a text. An unmatched quote starts no
    /// phrase.
    pub(super) fn read(text: &str, mut split: impl FnMut(&str) -> Vec<String>) -> Query {
        let mut query = Query::default();
        let mut last = None;
        let mut rest = text;
        while !rest.is_empty() {
            let (plain, behind) = rest.split_once('"').unwrap_or((rest, ""));
            let phrase = behind.split_once('"');
            // Without another quote the rest is plain, too.
            let plain = if phrase.is_none() { rest } else { plain };
            for word in split(plain) {
                query.add_word(last.replace(word));
            }
            let Some((phrase, behind)) = phrase else { break };
            let mut phrase = split(phrase);
            if phrase.len() > 1 {
                query.add_word(last.take());
                query.phrases.push(phrase);
            } else if let Some(word) = phrase.pop() {
                query.add_word(last.take());
                query.add_word(Some(word));
            }
            rest = behind;
        }
        query.beginning = last;
        query
    }

    fn add_word(&mut self, word: Option<String>) {
        if let Some(word) = word
            && !self.words.contains(&word)
        {
            self.words.push(word);
        }
    }

    /// Whether the query is empty: there was no letter and no digit.
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty() && self.beginning.is_none() && self.phrases.is_empty()
    }
}

/// The fault of a search text, if any.
pub(super) fn fault(text: &str) -> Option<String> {
    match () {
        () if text.trim().is_empty() => Some("q must not be empty".to_owned()),
        () if text.len() > MAX_QUERY_BYTES => {
            Some(format!("q is longer than {MAX_QUERY_BYTES} bytes"))
        }
        () => None,
    }
}

/// Parses a search text; returns the number of words and of those in phrases, `None` if it is
/// refused.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn reads(text: &str) -> Option<(Vec<String>, usize)> {
    if fault(text).is_some() {
        return None;
    }
    let split = |text: &str| {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_lowercase).collect()
    };
    let query = Query::read(text, split);
    let none = query.is_empty();
    let Query { mut words, beginning, phrases } = query;
    words.extend(beginning);
    let phrased: Vec<String> = phrases.into_iter().flatten().collect();
    let count = phrased.len();
    words.extend(phrased);
    assert_eq!(none, words.is_empty());
    Some((words, count))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (String, String, String) {
        let split = |text: &str| text.split_whitespace().map(str::to_owned).collect();
        let Query { words, beginning, phrases } = Query::read(text, split);
        let phrases: Vec<String> = phrases.iter().map(|phrase| phrase.join(" ")).collect();
        (words.join(","), beginning.unwrap_or_default(), phrases.join(","))
    }

    #[test]
    fn words_phrases_and_the_beginning_of_a_word_are_told_apart() {
        for (text, words, beginning, phrases) in [
            ("cook", "", "cook", ""),
            ("cooking for imp", "cooking,for", "imp", ""),
            ("a a a", "a", "a", ""),
            ("\"cooking for\" imp", "", "imp", "cooking for"),
            ("imp \"cooking for\"", "imp", "", "cooking for"),
            ("\"cook\"", "cook", "", ""),
            ("\"cook", "", "\"cook", ""),
            ("a \"b c\" d \"e f", "a,d,\"e", "f", "b c"),
            ("a\"b c\"d", "a", "d", "b c"),
            ("\"\"", "", "", ""),
            ("a \"\" b", "a", "b", ""),
            ("\"a\"\"b\"\"c d\"", "a,b", "", "c d"),
        ] {
            let expected = (words.to_owned(), beginning.to_owned(), phrases.to_owned());
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn texts_that_cannot_be_looked_for_are_told() {
        for bad in ["", " \t", &"a".repeat(301)] {
            assert!(fault(bad).is_some(), "{bad:?}");
            assert_eq!(reads(bad), None);
        }
        assert_eq!(reads("!!"), Some((Vec::new(), 0)));
        assert_eq!(reads(&"a ".repeat(150)).map(|(words, _)| words.len()), Some(2));
        let words = ["in", "the", "wild", "west"].map(str::to_owned).to_vec();
        assert_eq!(
            reads("In \"The wild\" west!").map(|(mut words, count)| {
                words.sort();
                (words, count)
            }),
            Some((
                {
                    let mut words = words;
                    words.sort();
                    words
                },
                2
            ))
        );
    }
}
