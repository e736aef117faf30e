//! The name that was probably meant by a mistyped one.

/// The candidate closest to `typed`, if it is close enough to be worth a question: at most a third
/// of the letters of `typed` differ, at least one and at most three may. Texts of over 64 bytes are
/// not compared.
#[must_use]
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if typed.len() > LONGEST {
        return None;
    }
    let most = (typed.chars().count() / 3).clamp(1, 3);
    let distances = candidates.into_iter().filter(|candidate| candidate.len() <= LONGEST);
    let best = distances.map(|candidate| (distance(typed, candidate), candidate)).min()?;
    (best.0 <= most).then_some(best.1)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one text
/// into the other (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
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
        assert_eq!(distance("ab", "ba"), 1);
        for (from, to, changes) in [
            ("", "", 0),
            ("", "ab", 2),
            ("", "abc", 3),
            ("ab", "ab", 0),
            ("kitten", "sitting", 3),
            ("abc", "ac", 1),
        ] {
            assert_eq!(distance(from, to), changes, "{from} {to}");
            assert_eq!(distance(to, from), changes, "{to} {from}");
        }
    }
}
