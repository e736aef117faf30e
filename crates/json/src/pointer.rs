//! JSON Pointer (RFC 6901). A `PointerSet` finds what pointers point at.

use std::fmt;

/// A pointer. Without steps it points at the whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    text: String,
    steps: Vec<Step>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    key: String,
    /// The same step as an array index, if it can be one.
    index: Option<usize>,
}

/// Why a text is no pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PointerFault {
    /// It is not empty and does not begin with `/`.
    Start,
    /// A `~` that is neither `~0` nor `~1`.
    Escape {
        /// The byte of the text at which it stands.
        at: usize,
    },
    /// It has more steps than the caller allows.
    Steps,
}

impl Pointer {
    /// Reads a pointer: empty, or at most `most` steps that each begin with `/`, with `~0` for `~`
    /// and `~1` for `/`. Finding a value recurses once for each step.
    ///
    /// # Errors
    /// [`PointerFault`].
    pub fn parse(text: &str, most: usize) -> Result<Pointer, PointerFault> {
        let mut parts = text.split('/');
        if !parts.next().unwrap_or_default().is_empty() {
            return Err(PointerFault::Start);
        }
        let mut steps = Vec::new();
        let mut at = 0;
        for part in parts {
            at += 1;
            if steps.len() == most {
                return Err(PointerFault::Steps);
            }
            let key = unescape(part).map_err(|inside| PointerFault::Escape { at: at + inside })?;
            steps.push(Step { index: index_of(&key), key });
            at += part.len();
        }
        Ok(Pointer { text: text.to_owned(), steps })
    }

    /// The steps, each with the index that it is in an array, if it can be one.
    pub(crate) fn steps(&self) -> impl Iterator<Item = (&str, Option<usize>)> {
        self.steps.iter().map(|step| (&*step.key, step.index))
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Resolves the escapes of one step, or tells at which byte there is none that exists.
fn unescape(part: &str) -> Result<String, usize> {
    let mut out = String::with_capacity(part.len());
    let mut rest = part;
    while let Some(at) = rest.find('~') {
        out.push_str(&rest[..at]);
        match rest.as_bytes().get(at + 1) {
            Some(b'0') => out.push('~'),
            Some(b'1') => out.push('/'),
            _ => return Err(part.len() - rest.len() + at),
        }
        rest = &rest[at + 2..];
    }
    out.push_str(rest);
    Ok(out)
}

/// An array index as the RFC allows it: digits without a leading zero. `-` (the
/// element after the last) names nothing that could be read.
fn index_of(key: &str) -> Option<usize> {
    let digits = !key.is_empty() && key.bytes().all(|b| b.is_ascii_digit());
    if !digits || (key.len() > 1 && key.starts_with('0')) {
        return None;
    }
    key.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: usize = 32;

    #[test]
    fn malformed_pointers_are_refused_where_they_go_wrong() {
        for (bad, fault) in [
            ("a", PointerFault::Start),
            ("a/b", PointerFault::Start),
            ("/~", PointerFault::Escape { at: 1 }),
            ("/a~", PointerFault::Escape { at: 2 }),
            ("/a/b~2", PointerFault::Escape { at: 4 }),
            (&"/".repeat(MOST + 1), PointerFault::Steps),
        ] {
            assert_eq!(Pointer::parse(bad, MOST), Err(fault), "{bad}");
        }
        assert!(Pointer::parse(&"/".repeat(MOST), MOST).is_ok());
    }
}
