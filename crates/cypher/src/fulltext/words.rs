//! Divides texts into words.

/// The words of a text in lower case, in order: letters, digits and underscores belong to words,
/// everything else divides them.
pub(crate) fn words(text: &str) -> impl Iterator<Item = String> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = text.split(move |letter| !is_part(letter)).filter(|word| !word.is_empty());
    words.map(str::to_lowercase)
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn letters_and_digits_belong_to_words() {
        let all: Vec<String> = words("Größe-XL: 3.5 kg, a_b!  'x'").collect();
        assert_eq!(all, ["größe", "xl", "3", "5", "kg", "a_b", "x"]);
        assert_eq!(words(" -- ").count(), 0);
    }
}
