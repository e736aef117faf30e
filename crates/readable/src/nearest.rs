//! The name that was probably meant by a mistyped one.

/// The candidate closest to `typed`, if it is close enough to be worth a question: at most a third
/// of the letters of `typed` differ, at least one and at most three may; two swapped neighbours
/// count as one. Texts of over 64 bytes are not compared.
#[must_use]
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if typed.len() > LONGEST {
        return None;
    }
    let most = (typed.chars().count() / 3).clamp(1, 3);
    let distances = candidates.into_iter().filter(|candidate| candidate.len() <= LONGEST);
    let best =
        distances.map(|candidate| (strsim::osa_distance(typed, candidate), candidate)).min()?;
    (best.0 <= most).then_some(best.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let known = ["name", "weight", "method", "path", "headers", "body"];
        assert_eq!(nearest("wieght", known), Some("weight"));
        assert_eq!(nearest("header", known), Some("headers"));
        assert_eq!(nearest("paht", known), Some("path"));
        assert_eq!(nearest("timeout", known), None);
        assert_eq!(nearest("", known), None);
    }
}
