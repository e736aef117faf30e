//! The head of a request as a fast path sees it, whichever stack has parsed it.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use wellspring_types::Position;

/// The head of a request that a path has claimed.
#[derive(Clone, Copy)]
pub struct Head<'a> {
    /// `HEAD` is claimed as `GET`; this tells them apart. The lean loop never has any.
    pub method: &'a str,
    /// Path and query, as claimed.
    pub target: &'a str,
    /// The headers.
    pub headers: Headers<'a>,
}

impl Head<'_> {
    /// The position that the client has seen (`Wellspring-Min-Position`); 0 if it names none. The
    /// greatest if it is no position: nothing is as new, and the general stack words the refusal.
    pub fn least_position(&self) -> Position {
        let Some(value) = self.headers.get("wellspring-min-position") else { return 0 };
        let position = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
        position.unwrap_or(Position::MAX)
    }
}

/// The headers of a request.
#[derive(Clone, Copy)]
pub enum Headers<'a> {
    /// Parsed by the lean loop.
    Parsed(&'a [httparse::Header<'a>]),
    /// Parsed by hyper.
    Mapped(&'a HeaderMap),
}

impl<'a> Headers<'a> {
    /// The first value of a header, trimmed. `name` in lower case.
    pub fn get(&self, name: &str) -> Option<&'a [u8]> {
        let value = match self {
            Headers::Parsed(headers) => {
                let is = |header: &&httparse::Header<'a>| header.name.eq_ignore_ascii_case(name);
                headers.iter().find(is)?.value
            }
            Headers::Mapped(headers) => headers.get(name)?.as_bytes(),
        };
        Some(value.trim_ascii())
    }

    /// All of them as handlers see them; `None`: one is not as hyper would have it.
    pub(crate) fn to_map(self) -> Option<HeaderMap> {
        let headers = match self {
            Headers::Mapped(headers) => return Some(headers.clone()),
            Headers::Parsed(headers) => headers,
        };
        let mut map = HeaderMap::with_capacity(headers.len());
        for header in headers {
            let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
            map.append(name, HeaderValue::from_bytes(header.value.trim_ascii()).ok()?);
        }
        Some(map)
    }

    /// The value of the first header of a name that differs from `but`. `name` in lower case.
    pub fn other_than(&self, name: &str, but: &str) -> Option<&'a [u8]> {
        let differs = |value: &&[u8]| !value.eq_ignore_ascii_case(but.as_bytes());
        match self {
            Headers::Parsed(headers) => {
                let these = headers.iter().filter(|header| header.name.eq_ignore_ascii_case(name));
                these.map(|header| header.value.trim_ascii()).find(differs)
            }
            Headers::Mapped(headers) => {
                let values = headers.get_all(name).into_iter();
                values.map(|value| value.as_bytes().trim_ascii()).find(differs)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_readings_of_a_head_say_the_same() {
        let parsed = [("Accept", " a "), ("X-Two", "1"), ("x-two", "2")]
            .map(|(name, value)| httparse::Header { name, value: value.as_bytes() });
        let mut mapped = HeaderMap::new();
        for header in &parsed {
            let name = HeaderName::from_bytes(header.name.as_bytes()).unwrap();
            mapped.append(name, HeaderValue::from_bytes(header.value).unwrap());
        }
        for headers in [Headers::Parsed(&parsed), Headers::Mapped(&mapped)] {
            assert_eq!(headers.get("accept"), Some(&b"a"[..]));
            assert_eq!(headers.get("x-two"), Some(&b"1"[..]));
            assert_eq!(headers.get("x-three"), None);
            assert_eq!(headers.other_than("x-two", "1"), Some(&b"2"[..]));
            assert_eq!(headers.other_than("accept", "A"), None);
        }
    }
}
