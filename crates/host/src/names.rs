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

/// The name of the log in a path that ends with `route`, as it is written there: `main` in
/// `/v1/append`, `orders` in `/v1/logs/orders/append`. None if it is another path.
pub fn log_in_path<'a>(path: &'a str, route: &str) -> Option<&'a str> {
    let log = path.strip_suffix(route)?;
    if log == "/v1" {
        return Some(MAIN);
    }
    log.strip_prefix("/v1/logs/").filter(|log| !log.is_empty() && !log.contains('/'))
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

    #[test]
    fn a_log_stands_before_the_route_of_a_path() {
        for (path, log) in [
            ("/v1/append", Some("main")),
            ("/v1/logs/orders/append", Some("orders")),
            ("/v1/logs/a%20b/append", Some("a%20b")),
            ("/v1/logs//append", None),
            ("/v1/logs/a/b/append", None),
            ("/v1/logs/append", None),
            ("/append", None),
            ("/v1/appends", None),
        ] {
            assert_eq!(log_in_path(path, "/append"), log, "{path}");
        }
    }
}
