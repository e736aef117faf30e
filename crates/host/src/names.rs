//! Names of logs: the two permanent ones, and the rule for all names.

/// The log that always exists after a start.
pub const MAIN: &str = "main";
/// The log of accounts and of the audit, for administrators of everything only.
pub const SYSTEM_LOG: &str = "system";
/// The rule for a log's name, in words.
pub const NAME_RULE: &str = "1 to 63 characters a-z, 0-9, _ and -, starting with a letter or digit";

/// Whether a text is a valid name of a log, which is then safe as a folder's name.
pub fn is_name(name: &str) -> bool {
    let ordinary = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut bytes = name.bytes();
    name.len() <= 63
        && bytes.next().is_some_and(ordinary)
        && bytes.all(|b| ordinary(b) || matches!(b, b'_' | b'-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_safe_names_are_names() {
        for good in ["main", "a", "0", "a_b-c", &"x".repeat(63)] {
            assert!(is_name(good), "{good}");
        }
        for bad in ["", "-a", "_a", "A", "a.b", "..", "a/b", "é", &"x".repeat(64), ".dropped-1-a"]
        {
            assert!(!is_name(bad), "{bad}");
        }
    }
}
