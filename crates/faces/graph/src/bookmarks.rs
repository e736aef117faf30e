//! Bookmarks: positions that a client has seen, which its next transaction waits for.

use wellspring_types::Position;

/// A bookmark is malformed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidBookmark(pub(crate) String);

/// The bookmark of a position in a log.
pub(crate) fn bookmark(log: &str, position: Position) -> String {
    format!("FB:{log}:{position}")
}

/// The greatest position that bookmarks name in this log; 0 for none. Those of other logs do not
/// count: a driver's bookmark manager mixes them.
///
/// # Errors
/// The first that no server of this kind gave.
pub(crate) fn greatest<'a>(
    bookmarks: impl IntoIterator<Item = &'a str>,
    log: &str,
) -> Result<Position, InvalidBookmark> {
    let mut greatest = 0;
    for text in bookmarks {
        let parts = text.strip_prefix("FB:").and_then(|rest| rest.rsplit_once(':'));
        let known = parts.and_then(|(of, position)| Some((of, position.parse::<Position>().ok()?)));
        match known {
            Some((of, position)) if of == log => greatest = position.max(greatest),
            Some(_) => {}
            None => return Err(InvalidBookmark(text.chars().take(80).collect())),
        }
    }
    Ok(greatest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_position_of_the_log_counts() {
        let of = |bookmarks: &[&str]| greatest(bookmarks.iter().copied(), "main");
        assert_eq!(of(&[]), Ok(0));
        assert_eq!(of(&["FB:main:7", &bookmark("main", 12), "FB:other:99"]), Ok(12));
        for bad in ["", "FB:main", "FB:main:", "FB:main:x", "FB:main:-1", "neo4j:bookmark:v1:tx1"] {
            assert_eq!(of(&["FB:main:7", bad]), Err(InvalidBookmark(bad.to_owned())), "{bad}");
        }
    }
}
