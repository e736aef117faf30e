//! Query parameters, each declared once: its name, description and values. The router refuses
//! undeclared ones, handlers read the declared ones, and the OpenAPI document and the table in
//! `docs/api.md` describe them.

use super::params::{Pairs, within};
use super::problem::{self, Problem};
use crate::clock::{MOMENT_RULE, parse_rfc3339};
use std::ops::RangeInclusive;

/// Longest wait a client may request, in ms.
pub const MAX_WAIT_MS: u64 = 60_000;

/// A parameter with values of a kind.
pub struct Param<K> {
    name: &'static str,
    what: &'static str,
    kind: K,
}

/// The possible values of a parameter or header, for documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// Any string, in this format of JSON Schema (`uuid`, `date-time`), or in none.
    Text(Option<&'static str>),
    /// Strings that match this regular expression of ECMA-262.
    Matching(&'static str),
    /// Strings that contain JSON.
    Json,
    /// Any strings; repeatable.
    Texts,
    /// An integer in a range.
    Integer {
        /// The least.
        least: u64,
        /// The greatest; `u64::MAX` for no limit.
        most: u64,
        /// Its default.
        default: Option<u64>,
    },
    /// One of several words: see [`AnyParam::words`].
    Words {
        /// Its default.
        default: &'static str,
    },
}

/// A parameter without its type.
pub trait AnyParam: Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Its description, a sentence.
    fn what(&self) -> &'static str;
    /// Its values.
    fn values(&self) -> Values;
    /// Its words, if it is one of several.
    fn words(&self) -> Vec<&'static str>;
    /// Checks its given values.
    ///
    /// # Errors
    /// 422, naming it.
    fn check(&self, given: &Pairs) -> Result<(), Box<Problem>>;
}

/// Values of one kind.
pub trait Kind: Sync {
    /// The value for a handler.
    type Value<'a>;
    /// Parses the parameter of that name.
    ///
    /// # Errors
    /// 422, naming it.
    fn read<'a>(
        &self,
        name: &'static str,
        given: &'a Pairs,
    ) -> Result<Self::Value<'a>, Box<Problem>>;
    /// The possible values.
    fn values(&self) -> Values;
    /// The words among them.
    fn words(&self) -> Vec<&'static str> {
        Vec::new()
    }
}

impl<K: Kind> AnyParam for Param<K> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn what(&self) -> &'static str {
        self.what
    }

    fn values(&self) -> Values {
        self.kind.values()
    }

    fn words(&self) -> Vec<&'static str> {
        self.kind.words()
    }

    fn check(&self, given: &Pairs) -> Result<(), Box<Problem>> {
        self.kind.read(self.name, given).map(drop)
    }
}

impl<K: Kind> Param<K> {
    /// Its value in a query.
    pub(super) fn read<'a>(&self, given: &'a Pairs) -> Result<K::Value<'a>, Box<Problem>> {
        self.kind.read(self.name, given)
    }
}

/// A string, or none.
pub struct Text(Values);

/// Any number of strings.
pub struct Texts;

/// A number in a range, or none.
pub struct Integer {
    least: u64,
    most: u64,
}

/// A number in a range, with a default.
pub struct IntegerOr {
    range: Integer,
    default: u64,
}

/// One of several words, each with a meaning.
pub struct Words<T: 'static> {
    words: &'static [(&'static str, T)],
    default: &'static str,
}

/// A date or a time, or none.
pub struct Moment;

impl Param<Text> {
    /// A parameter that is a string.
    pub const fn text(name: &'static str, what: &'static str) -> Param<Text> {
        Param { name, what, kind: Text(Values::Text(None)) }
    }

    /// A parameter that is a string of JSON, parsed by its handler.
    pub const fn json(name: &'static str, what: &'static str) -> Param<Text> {
        Param { name, what, kind: Text(Values::Json) }
    }
}

impl Param<Texts> {
    /// A repeatable parameter.
    pub const fn texts(name: &'static str, what: &'static str) -> Param<Texts> {
        Param { name, what, kind: Texts }
    }
}

impl Param<Integer> {
    /// A parameter that is an integer in this range; up to `u64::MAX`: unlimited.
    pub const fn integer(
        name: &'static str,
        what: &'static str,
        range: RangeInclusive<u64>,
    ) -> Param<Integer> {
        Param { name, what, kind: Integer { least: *range.start(), most: *range.end() } }
    }

    /// The same with a default.
    pub const fn or(self, default: u64) -> Param<IntegerOr> {
        let Param { name, what, kind: Integer { least, most } } = self;
        Param { name, what, kind: IntegerOr { range: Integer { least, most }, default } }
    }
}

impl<T: Copy + Sync> Param<Words<T>> {
    /// A parameter that is one of at least two words.
    pub const fn words(
        name: &'static str,
        what: &'static str,
        words: &'static [(&'static str, T)],
        default: &'static str,
    ) -> Param<Words<T>> {
        assert!(words.len() > 1, "there is a choice");
        Param { name, what, kind: Words { words, default } }
    }
}

impl Param<Moment> {
    /// A parameter that is a date or a time.
    pub const fn moment(name: &'static str, what: &'static str) -> Param<Moment> {
        Param { name, what, kind: Moment }
    }
}

impl Kind for Text {
    type Value<'a> = Option<&'a str>;

    fn read<'a>(
        &self,
        name: &'static str,
        given: &'a Pairs,
    ) -> Result<Option<&'a str>, Box<Problem>> {
        given.one(name)
    }

    fn values(&self) -> Values {
        self.0
    }
}

impl Kind for Texts {
    type Value<'a> = Vec<&'a str>;

    fn read<'a>(&self, name: &'static str, given: &'a Pairs) -> Result<Vec<&'a str>, Box<Problem>> {
        Ok(given.all(name).collect())
    }

    fn values(&self) -> Values {
        Values::Texts
    }
}

impl Kind for Integer {
    type Value<'a> = Option<u64>;

    fn read(&self, name: &'static str, given: &Pairs) -> Result<Option<u64>, Box<Problem>> {
        let Some(text) = given.one(name)? else { return Ok(None) };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let number = match text.parse() {
            Ok(number) if digits => within(number, self.most, name)?,
            _ => {
                let detail = format!("{name} must be a non-negative integer, not {text:?}");
                return Err(problem::INVALID.because(detail).field(name));
            }
        };
        if number < self.least {
            let detail = format!("{name} must be at least {}", self.least);
            return Err(problem::INVALID.because(detail).field(name));
        }
        Ok(Some(number))
    }

    fn values(&self) -> Values {
        Values::Integer { least: self.least, most: self.most, default: None }
    }
}

impl Kind for IntegerOr {
    type Value<'a> = u64;

    fn read(&self, name: &'static str, given: &Pairs) -> Result<u64, Box<Problem>> {
        Ok(self.range.read(name, given)?.unwrap_or(self.default))
    }

    fn values(&self) -> Values {
        let Integer { least, most } = self.range;
        Values::Integer { least, most, default: Some(self.default) }
    }
}

impl<T: Copy + Sync> Kind for Words<T> {
    type Value<'a> = T;

    fn read(&self, name: &'static str, given: &Pairs) -> Result<T, Box<Problem>> {
        let text = given.one(name)?.unwrap_or(self.default);
        if let Some((_, meaning)) = self.words.iter().find(|(word, _)| *word == text) {
            return Ok(*meaning);
        }
        let words = self.words();
        let (last, others) = words.split_last().expect("there is a choice");
        let detail = format!("{name} must be {} or {last}, not {text:?}", others.join(", "));
        Err(problem::INVALID.because(detail).field(name))
    }

    fn values(&self) -> Values {
        Values::Words { default: self.default }
    }

    fn words(&self) -> Vec<&'static str> {
        self.words.iter().map(|(word, _)| *word).collect()
    }
}

impl Kind for Moment {
    /// µs since 1970 UTC.
    type Value<'a> = Option<u64>;

    fn read(&self, name: &'static str, given: &Pairs) -> Result<Option<u64>, Box<Problem>> {
        let Some(text) = given.one(name)? else { return Ok(None) };
        match parse_rfc3339(text) {
            Some(moment_us) => Ok(Some(moment_us)),
            // A `+` that was not encoded has become a space.
            None => Err(problem::INVALID
                .because(format!("{name} {MOMENT_RULE} (a + is written %2B here), not {text:?}"))
                .field(name)),
        }
    }

    fn values(&self) -> Values {
        Values::Text(Some("date-time"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::params::{KnownParams, Params};
    use super::*;

    static NUMBER: Param<Integer> = Param::integer("n", "A number.", 1..=10);
    static SIZE: Param<IntegerOr> = Param::integer("size", "A size.", 0..=u64::MAX).or(7);
    static WORD: Param<Words<bool>> =
        Param::words("word", "A word.", &[("no", false), ("yes", true), ("aye", true)], "yes");
    static FROM: Param<Moment> = Param::moment("from", "A moment.");
    static TAG: Param<Texts> = Param::texts("tag", "Tags.");
    static NAME: Param<Text> = Param::text("name", "A name.");

    fn params(query: &str) -> Result<Params, Box<Problem>> {
        const OWN: &[&dyn AnyParam] = &[&NUMBER, &SIZE, &WORD, &FROM, &TAG, &NAME];
        Params::of(Some(query), KnownParams { own: OWN, shared: &[] })
    }

    #[test]
    fn values_are_read_as_what_they_are_declared() {
        let given = params("n=10&tag=a%3A1&tag=b+c&word=aye&name=").unwrap();
        assert_eq!(given.get(&NUMBER).unwrap(), Some(10));
        assert_eq!(given.get(&SIZE).unwrap(), 7);
        assert!(given.get(&WORD).unwrap());
        assert_eq!(given.get(&TAG).unwrap(), ["a:1", "b c"]);
        assert_eq!(given.get(&NAME).unwrap(), Some(""));
        assert_eq!(given.get(&FROM).unwrap(), None);
    }

    #[test]
    fn what_breaks_a_rule_is_refused_and_named() {
        for (query, field, detail) in [
            ("n=0", "n", "n must be at least 1"),
            ("n=11", "n", "n is 11; the maximum is 10"),
            ("n=-1", "n", "n must be a non-negative integer, not \"-1\""),
            ("n=+1", "n", "n must be a non-negative integer, not \" 1\""),
            ("n=", "n", "n must be a non-negative integer, not \"\""),
            ("size=99999999999999999999", "size", "size must be a non-negative integer"),
            ("word=maybe", "word", "word must be no, yes or aye, not \"maybe\""),
            ("name=a&name=b", "name", "name is given more than once; remove the repetition"),
            ("from=now", "from", "from must be"),
            (
                "m=1",
                "m",
                "m is not a known parameter; known parameters: n, size, word, from, tag, name",
            ),
        ] {
            let problem = params(query).err().unwrap();
            assert_eq!((problem.kind.status, problem.field.as_deref()), (422, Some(field)));
            assert!(problem.detail.starts_with(detail), "{}", problem.detail);
        }
    }

    #[test]
    fn moments_are_dates_or_times() {
        let of = |query: &str| params(query).and_then(|given| given.get(&FROM));
        assert_eq!(of("from=1970-01-02").unwrap(), Some(86_400_000_000));
        assert_eq!(of("from=1970-01-01T01:00:00%2B01:00").unwrap(), Some(0));
        assert!(of("from=1970-01-01T01:00:00+01:00").err().unwrap().detail.contains("%2B"));
    }
}
