//! JSON pointers (RFC 6901) into JSON text that is known to be valid: only what lies on the way is
//! read, and nothing is built.

use std::fmt;

/// A JSON pointer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pointer {
    text: String,
    /// Its parts with `~0` and `~1` resolved.
    tokens: Vec<String>,
}

impl Pointer {
    /// Reads a pointer: empty, or parts that begin with `/`.
    ///
    /// # Errors
    /// What is wrong with it, and the byte at which.
    pub(super) fn parse(text: &str) -> Result<Pointer, (usize, &'static str)> {
        let mut tokens = Vec::new();
        let mut at = 0;
        let mut parts = text.split('/');
        if !parts.next().unwrap_or_default().is_empty() {
            return Err((0, "a JSON pointer begins with `/`"));
        }
        for part in parts {
            at += 1;
            tokens.push(resolve(part).map_err(|inside| {
                (at + inside, "in a JSON pointer `~` stands only in `~0` and `~1`")
            })?);
            at += part.len();
        }
        Ok(Pointer { text: text.to_owned(), tokens })
    }

    /// The text of the value it points to in valid JSON; `None` if there is none. Of members of the
    /// same name the last one counts.
    pub(super) fn find<'a>(&self, json: &'a str) -> Option<&'a str> {
        let mut scan = Scan { json, at: 0 };
        scan.skip_space();
        let (mut start, mut end) = (scan.at, json.trim_end_matches(SPACE).len());
        for token in &self.tokens {
            let mut scan = Scan { json, at: start };
            (start, end) = match scan.peek()? {
                b'{' => scan.member(token)?,
                b'[' => scan.element(index_of(token)?)?,
                _ => return None,
            };
        }
        json.get(start..end)
    }
}

impl fmt::Display for Pointer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Resolves the escapes of one part, or tells at which byte there is none that exists.
fn resolve(part: &str) -> Result<String, usize> {
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

/// The number of an element: digits without leading zeros.
fn index_of(token: &str) -> Option<usize> {
    let plain = token.bytes().all(|byte| byte.is_ascii_digit());
    (plain && (token == "0" || !token.starts_with('0'))).then(|| token.parse().ok()).flatten()
}

const SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Walks over valid JSON. On other text it stops early and panics nowhere.
struct Scan<'a> {
    json: &'a str,
    at: usize,
}

impl Scan<'_> {
    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Passes a string, from its opening quote to behind its closing one.
    fn skip_string(&mut self) -> Option<()> {
        loop {
            self.at += 1;
            match self.peek()? {
                b'"' => break,
                b'\\' => self.at += 1,
                _ => {}
            }
        }
        self.at += 1;
        Some(())
    }

    /// Passes a value. Iterative, as its depth is not ours to choose.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                Some(b'"') => {
                    self.skip_string()?;
                    if depth == 0 {
                        return Some(());
                    }
                    continue;
                }
                Some(b'{' | b'[') => depth += 1,
                Some(b'}' | b']') => {
                    // The end of what a number or a word stands in.
                    if depth == 0 {
                        return Some(());
                    }
                    depth -= 1;
                    if depth == 0 {
                        self.at += 1;
                        return Some(());
                    }
                }
                Some(b',' | b' ' | b'\t' | b'\n' | b'\r') | None if depth == 0 => return Some(()),
                None => return None,
                Some(_) => {}
            }
            self.at += 1;
        }
    }

    /// Passes a comma, or the end; tells whether there is more.
    fn has_next(&mut self) -> bool {
        self.skip_space();
        let more = self.peek() == Some(b',');
        self.at += 1;
        more
    }

    /// Where the value of the last member of this name stands.
    fn member(&mut self, name: &str) -> Option<(usize, usize)> {
        let mut found = None;
        self.at += 1;
        self.skip_space();
        if self.peek()? == b'}' {
            return None;
        }
        loop {
            self.skip_space();
            let key_start = self.at;
            self.skip_string()?;
            let is_it = is_text(self.json.get(key_start..self.at)?, name);
            self.skip_space();
            self.at += 1;
            self.skip_space();
            let start = self.at;
            self.skip_value()?;
            if is_it {
                found = Some((start, self.at));
            }
            if !self.has_next() {
                return found;
            }
        }
    }

    /// Where an element of an array stands.
    fn element(&mut self, index: usize) -> Option<(usize, usize)> {
        self.at += 1;
        self.skip_space();
        if self.peek()? == b']' {
            return None;
        }
        let mut passed = 0;
        loop {
            self.skip_space();
            let start = self.at;
            self.skip_value()?;
            if passed == index {
                return Some((start, self.at));
            }
            passed += 1;
            if !self.has_next() {
                return None;
            }
        }
    }
}

/// Whether a JSON string, with its quotes, is this text.
fn is_text(written: &str, text: &str) -> bool {
    match written.contains('\\') {
        false => written.get(1..written.len() - 1) == Some(text),
        true => serde_json::from_str::<String>(written).is_ok_and(|read| read == text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn key() -> impl Strategy<Value = String> {
        let known = prop::sample::select(vec!["a", "b", "0", "1", "", "~", "/", "a/b", "é\"\\"]);
        prop_oneof![4 => known.prop_map(str::to_owned), 1 => any::<String>()]
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            key().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 40, 5, |inner| {
            let members = prop::collection::vec((key(), inner.clone()), 0..5);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                members.prop_map(|members| members.into_iter().collect()),
            ]
        })
    }

    fn pointer_text(tokens: &[String]) -> String {
        let escaped = tokens.iter().map(|token| token.replace('~', "~0").replace('/', "~1"));
        escaped.fold(String::new(), |text, token| text + "/" + &token)
    }

    proptest! {
        #[test]
        fn what_is_found_is_what_serde_json_finds(
            json in json(), tokens in prop::collection::vec(key(), 0..4), pretty: bool,
        ) {
            let text = match pretty {
                true => format!(" {}\n", serde_json::to_string_pretty(&json).unwrap()),
                false => json.to_string(),
            };
            let pointer = pointer_text(&tokens);
            let found = Pointer::parse(&pointer).unwrap().find(&text);
            let read = found.map(|found| serde_json::from_str::<Value>(found).unwrap());
            prop_assert_eq!(read.as_ref(), json.pointer(&pointer));
        }

        #[test]
        fn text_that_is_not_json_harms_nobody(text: String, tokens in prop::collection::vec(key(), 0..4)) {
            let pointer = Pointer::parse(&pointer_text(&tokens)).unwrap();
            let _ = pointer.find(&text);
            let _ = pointer.find(&format!("{{\"a\":{text}"));
        }
    }

    #[test]
    fn the_last_of_several_members_counts_and_numbers_stay_as_written() {
        let find = |pointer: &str, json: &'static str| Pointer::parse(pointer).unwrap().find(json);
        assert_eq!(find("/a", r#"{"a":1,"\u0061" : 1.50e+2 }"#), Some("1.50e+2"));
        assert_eq!(find("/a/b", r#"{"a":{"b":1},"a":2}"#), None);
        assert_eq!(find("/1", "[1, [2] ]"), Some("[2]"));
        for missing in ["/01", "/-", "/+1", "/2", "/1/0/0", "/99999999999999999999999"] {
            assert_eq!(find(missing, "[1,[2]]"), None, "{missing}");
        }
        assert_eq!(find("", " 7 "), Some("7"));
    }

    #[test]
    fn a_pointer_that_is_none_is_refused_where_it_goes_wrong() {
        let fault_at = |text: &str| Pointer::parse(text).unwrap_err().0;
        assert_eq!((fault_at("a/b"), fault_at("/a/b~2"), fault_at("/~")), (0, 4, 1));
    }
}
