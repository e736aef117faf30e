//! The query of a URL: parameters by name, decoded and checked.

use super::problem::{self, Problem};
use std::time::Duration;

/// Longest wait a client may ask for, in ms.
pub(crate) const MAX_WAIT_MS: u64 = 60_000;

/// Wait for a position if the client does not say how long, in ms.
const DEFAULT_WAIT_MS: u64 = 1_000;
/// Parameters that every read knows.
const FRESHNESS: [&str; 2] = ["consistency", "wait_ms"];

/// The parameters of a URL, decoded, in order.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Decodes the query of a read, if there is one. Besides `known` it may hold the parameters that
    /// every read has.
    ///
    /// # Errors
    /// 400 for a malformed escape, 422 for an unknown name. A retry does not help.
    pub(crate) fn parse_read(query: Option<&str>, known: &[&str]) -> Result<Params, Box<Problem>> {
        let Some(query) = query else { return Ok(Params::default()) };
        let known: Vec<&str> = known.iter().chain(&FRESHNESS).copied().collect();
        Params::parse_known(query, &known)
    }

    /// Decodes a query that may hold these names and no others.
    ///
    /// # Errors
    /// 400 for a malformed escape, 422 for an unknown name. A retry does not help.
    pub(crate) fn parse_known(query: &str, known: &[&str]) -> Result<Params, Box<Problem>> {
        let params = Params::parse(query)?;
        match params.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(problem::INVALID
                .because(format!(
                    "{name} is not a known parameter; known here: {}",
                    known.join(", ")
                ))
                .field(name.as_str())),
            None => Ok(params),
        }
    }

    fn parse(query: &str) -> Result<Params, Box<Problem>> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((percent_decode(name, true)?, percent_decode(value, true)?))
        });
        pairs.collect::<Result<_, Box<Problem>>>().map(Params)
    }

    /// Every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that may be given once.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Box<Problem>> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => Err(problem::INVALID
                .because(format!("{name} stands twice; give it once"))
                .field(name)),
        }
    }

    /// The value of a parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Box<Problem>> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Some(number)),
            _ => Err(problem::INVALID
                .because(format!("{name} must be an integer of 0 or more, not {text:?}"))
                .field(name)),
        }
    }

    /// What a parameter chooses of at least two `(word, meaning)`; `None` if it is not given.
    pub(crate) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Box<Problem>> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        if let Some((_, meaning)) = choices.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*meaning));
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let (last, others) = words.split_last().expect("there is a choice");
        let others = others.join(", ");
        Err(problem::INVALID
            .because(format!("{name} must be {others} or {last}, not {text:?}"))
            .field(name))
    }

    /// How long the client is ready to wait.
    pub(crate) fn wait(&self) -> Result<Duration, Box<Problem>> {
        self.wait_or(DEFAULT_WAIT_MS)
    }

    /// How long the client is ready to wait, `default_ms` if it does not say.
    pub(crate) fn wait_or(&self, default_ms: u64) -> Result<Duration, Box<Problem>> {
        let wait_ms = self.number("wait_ms")?.unwrap_or(default_ms);
        within(wait_ms, MAX_WAIT_MS, "wait_ms").map(Duration::from_millis)
    }
}

/// A number that has an upper limit.
pub(crate) fn within(number: u64, limit: u64, field: &str) -> Result<u64, Box<Problem>> {
    if number <= limit {
        return Ok(number);
    }
    Err(problem::INVALID
        .because(format!("{field} is {number}; the limit is {limit}"))
        .field(field)
        .limit(limit))
}

/// How much a page may hold: what the client asks for, from 1 to `most`.
pub(crate) fn page_limit(asked: Option<u64>, default: u64, most: u64) -> Result<u64, Box<Problem>> {
    match within(asked.unwrap_or(default), most, "limit")? {
        0 => Err(problem::INVALID.because("limit must be at least 1").field("limit")),
        limit => Ok(limit),
    }
}

/// Resolves `%XX`, and `+` as a space where that is its meaning.
pub(crate) fn percent_decode(text: &str, plus_is_space: bool) -> Result<String, Box<Problem>> {
    let wrong = || {
        problem::BAD_REQUEST.because(format!("the URL holds {text:?}, which is not encoded UTF-8"))
    };
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || (bytes.next()? as char).to_digit(16);
                let (Some(high), Some(low)) = (digit(), digit()) else { return Err(wrong()) };
                out.push((high << 4 | low) as u8);
            }
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let params = Params::parse("tag=a%3A1&tag=b+c&limit=5&x").unwrap();
        assert_eq!(params.all("tag").collect::<Vec<_>>(), ["a:1", "b c"]);
        assert_eq!(params.number("limit").unwrap(), Some(5));
        assert_eq!(params.one("x").unwrap(), Some(""));
        assert!(params.one("tag").is_err());
        for bad in ["a=%", "a=%2", "a=%zz", "a=%ff"] {
            assert_eq!(Params::parse(bad).unwrap_err().kind.status, 400, "{bad}");
        }
        for bad in ["n=", "n=-1", "n=+1", "n=1.0", "n=99999999999999999999"] {
            assert!(Params::parse(bad).unwrap().number("n").is_err(), "{bad}");
        }
    }
}
