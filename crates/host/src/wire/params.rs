//! The query of a URL: decoded, checked against its route's declaration, and read parameter by
//! parameter.

use super::param::{AnyParam, Kind, Param};
use super::problem::{self, Problem};

/// The parameters that a query may contain.
#[derive(Clone, Copy, Default)]
pub struct KnownParams {
    /// The route's own.
    pub own: &'static [&'static dyn AnyParam],
    /// Those it shares with other routes.
    pub shared: &'static [&'static dyn AnyParam],
}

impl KnownParams {
    /// All of them, in order.
    pub fn iter(self) -> impl Iterator<Item = &'static dyn AnyParam> {
        self.own.iter().chain(self.shared).copied()
    }

    /// Whether there is one of this name.
    pub fn has(self, name: &str) -> bool {
        self.iter().any(|param| param.name() == name)
    }
}

/// Names and values of a query, decoded, in order.
#[derive(Debug, Default)]
pub struct Pairs(Vec<(String, String)>);

/// The parameters of a URL, all of them known and with valid values.
#[derive(Default)]
pub struct Params {
    known: KnownParams,
    given: Pairs,
}

impl Params {
    /// Decodes and checks a query that may contain only these parameters.
    ///
    /// # Errors
    /// 400 for a malformed escape, 422 for an unknown name or a bad value. A retry does not help.
    pub fn of(query: Option<&str>, known: KnownParams) -> Result<Params, Box<Problem>> {
        let Some(query) = query else { return Ok(Params { known, given: Pairs::default() }) };
        let given = Pairs::parse(query)?;
        if let Some((name, _)) = given.0.iter().find(|(name, _)| !known.has(name)) {
            let names: Vec<&str> = known.iter().map(|param| param.name()).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(problem::INVALID
                .because(format!("{name} is not a known parameter; known parameters: {known}"))
                .field(name.as_str()));
        }
        known.iter().try_for_each(|param| param.check(&given))?;
        Ok(Params { known, given })
    }

    /// The value of a parameter, which must be one of the known ones.
    ///
    /// # Errors
    /// None, for what was checked when the query was read.
    pub fn get<K: Kind>(&self, param: &Param<K>) -> Result<K::Value<'_>, Box<Problem>> {
        debug_assert!(self.known.has(param.name()), "{} is not declared", param.name());
        param.read(&self.given)
    }
}

impl Pairs {
    fn parse(query: &str) -> Result<Pairs, Box<Problem>> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((percent_decode(name, true)?, percent_decode(value, true)?))
        });
        pairs.collect::<Result<_, Box<Problem>>>().map(Pairs)
    }

    /// Every value of a parameter.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that must not be repeated.
    pub(super) fn one(&self, name: &str) -> Result<Option<&str>, Box<Problem>> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => Err(problem::INVALID
                .because(format!("{name} is given more than once; remove the repetition"))
                .field(name)),
        }
    }
}

/// A number that has an upper limit.
pub fn within(number: u64, limit: u64, field: &str) -> Result<u64, Box<Problem>> {
    if number <= limit {
        return Ok(number);
    }
    Err(problem::INVALID
        .because(format!("{field} is {number}; the maximum is {limit}"))
        .field(field)
        .limit(limit))
}

/// Decodes `%XX`, and `+` as a space where that is its meaning.
pub fn percent_decode(text: &str, plus_is_space: bool) -> Result<String, Box<Problem>> {
    let wrong = || {
        problem::BAD_REQUEST
            .because(format!("the URL contains {text:?}, which is not percent-encoded UTF-8"))
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
    fn a_query_is_decoded() {
        let pairs = Pairs::parse("tag=a%3A1&tag=b+c&limit=5&x").unwrap();
        assert_eq!(pairs.all("tag").collect::<Vec<_>>(), ["a:1", "b c"]);
        assert_eq!(pairs.one("x").unwrap(), Some(""));
        assert!(pairs.one("tag").is_err());
        for bad in ["a=%", "a=%2", "a=%zz", "a=%ff"] {
            assert_eq!(Pairs::parse(bad).unwrap_err().kind.status, 400, "{bad}");
        }
    }
}
