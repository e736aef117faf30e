//! The words of a text: lower-case runs of letters and digits, Latin letters without accents.

use std::ops::Range;
use tantivy::tokenizer::{AsciiFoldingFilter, LowerCaser, SimpleTokenizer, TextAnalyzer};

/// The tokenizer of the index and of everything else.
pub(super) fn analyzer() -> TextAnalyzer {
    TextAnalyzer::builder(SimpleTokenizer::default())
        .filter(LowerCaser)
        .filter(AsciiFoldingFilter)
        .build()
}

/// A word and its range in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) word: String,
    pub(super) bytes: Range<usize>,
}

/// The words of a text, in order.
pub(super) fn words(analyzer: &mut TextAnalyzer, text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut stream = analyzer.token_stream(text);
    while stream.advance() {
        let token = stream.token();
        let bytes = token.offset_from..token.offset_to;
        words.push(Word { word: token.text.clone(), bytes });
    }
    words
}

/// The same without ranges.
pub(super) fn split(analyzer: &mut TextAnalyzer, text: &str) -> Vec<String> {
    words(analyzer, text).into_iter().map(|word| word.word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_small_letters_and_digits_without_accents() {
        let text = "RPCs for Dummies: Crème-brûlée, C++ 20!";
        let found = words(&mut analyzer(), text);
        let told: Vec<&str> = found.iter().map(|word| &*word.word).collect();
        assert_eq!(told, ["rpcs", "for", "dummies", "creme", "brulee", "c", "20"]);
        assert_eq!(&text[found[3].bytes.clone()], "Crème");
        assert_eq!(split(&mut analyzer(), "«Straße» ÅSE 日本"), ["strasse", "ase", "日本"]);
        assert_eq!(split(&mut analyzer(), " … "), Vec::<String>::new());
    }
}
