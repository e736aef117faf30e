//! JSON that is known to be well formed, read where it lies: nothing is built, numbers and names
//! stay the bytes that were sent, and nesting costs no stack.

mod cursor;
mod pointer;

pub use cursor::Cursor;
pub use pointer::{Pointer, PointerFault};

/// Whether a JSON string as written, with its quotes, stands for this text. One that is no Unicode
/// (a lone surrogate escape) stands for none.
#[must_use]
pub fn string_is(written: &str, text: &str) -> bool {
    let Some(inner) = written.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return false;
    };
    if !inner.contains('\\') {
        return inner == text;
    }
    let (mut written, mut wanted) = (inner.chars(), text.chars());
    loop {
        match (next_char(&mut written), wanted.next()) {
            (Some(Some(found)), Some(wanted)) if found == wanted => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

/// The next character that a string stands for; `Some(None)` if an escape is no character.
fn next_char(written: &mut std::str::Chars<'_>) -> Option<Option<char>> {
    let found = written.next()?;
    if found != '\\' {
        return Some(Some(found));
    }
    Some(match written.next() {
        Some('u') => escaped(written),
        Some('b') => Some('\u{8}'),
        Some('f') => Some('\u{c}'),
        Some('n') => Some('\n'),
        Some('r') => Some('\r'),
        Some('t') => Some('\t'),
        Some(itself @ ('"' | '\\' | '/')) => Some(itself),
        _ => None,
    })
}

/// The character of `XXXX` behind `\u`, or of a surrogate and `\uXXXX` behind it.
fn escaped(written: &mut std::str::Chars<'_>) -> Option<char> {
    let mut unit = || (0..4).try_fold(0, |unit, _| Some(unit << 4 | written.next()?.to_digit(16)?));
    let first = unit()?;
    if !(0xd800..0xdc00).contains(&first) {
        return char::from_u32(first);
    }
    if written.next()? != '\\' || written.next()? != 'u' {
        return None;
    }
    let second = (0..4).try_fold(0, |unit, _| Some(unit << 4 | written.next()?.to_digit(16)?))?;
    let low = second.checked_sub(0xdc00).filter(|&low| low < 0x400)?;
    char::from_u32(0x1_0000 + ((first - 0xd800) << 10 | low))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn escapes_stand_for_what_serde_json_reads(
            inner in r#"([a-z"/é😀]|\\["\\/bfnrtux]|\\u(d[89a-f]|00|20)[0-9a-fA-F]{2}){0,6}"#
        ) {
            let written = format!("\"{inner}\"");
            match serde_json::from_str::<String>(&written) {
                Ok(text) => {
                    prop_assert!(string_is(&written, &text));
                    let (more, longer) = (format!("{text}x"), format!("\"{inner}x\""));
                    prop_assert!(!string_is(&written, &more) && !string_is(&longer, &text));
                }
                // What serde_json refuses is not known to be well formed.
                Err(_) => { let _ = string_is(&written, &inner); }
            }
        }
    }

    #[test]
    fn a_lone_surrogate_is_no_text() {
        for lone in [r#""\ud800""#, r#""\udfff""#, r#""\ud800\u0041""#, r#""\ud800x""#] {
            assert!(!string_is(lone, "\u{fffd}") && !string_is(lone, ""), "{lone}");
        }
        assert!(string_is(r#""\ud83d\ude00""#, "😀"));
    }
}
