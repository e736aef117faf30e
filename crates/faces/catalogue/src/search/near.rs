//! Words that differ by one typo: an extra letter, a missing one, a wrong one, or two swapped.

/// Whether `word` is, or with `TypedPart::Beginning` begins with, something at most one typo away
/// from `typed`.
pub(super) fn is_near(word: &str, typed: &str, whole: TypedPart) -> bool {
    let word: Vec<char> = word.chars().collect();
    let typed: Vec<char> = typed.chars().collect();
    let same = word.iter().zip(&typed).take_while(|(a, b)| a == b).count();
    let (word, typed) = (&word[same..], &typed[same..]);
    let fits = |of_word: usize, of_typed: usize| match (word.get(of_word..), typed.get(of_typed..))
    {
        (Some(word), Some(typed)) => match whole {
            TypedPart::Word => word == typed,
            TypedPart::Beginning => word.starts_with(typed),
        },
        _ => false,
    };
    let is_turned = || matches!((word, typed), ([a, b, ..], [c, d, ..]) if a == d && b == c);
    fits(0, 0) || fits(1, 0) || fits(0, 1) || fits(1, 1) || (is_turned() && fits(2, 2))
}

/// Which part of a word was typed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TypedPart {
    Word,
    Beginning,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slip_is_forgiven_and_two_are_not() {
        for typed in ["dummies", "dumies", "dummmies", "dunmies", "dumimes", "dummie", "xdummies"] {
            assert!(is_near("dummies", typed, TypedPart::Word), "{typed}");
        }
        for typed in ["dumie", "dmumeis", "xdummiesx", "", "summits"] {
            assert!(!is_near("dummies", typed, TypedPart::Word), "{typed}");
        }
        for typed in ["dumm", "dunm", "dmum", "umm", "dumx", "dummiesx"] {
            assert!(is_near("dummies", typed, TypedPart::Beginning), "{typed}");
        }
        for typed in ["dnnm", "xum i", "dumxx"] {
            assert!(!is_near("dummies", typed, TypedPart::Beginning), "{typed}");
        }
    }
}
