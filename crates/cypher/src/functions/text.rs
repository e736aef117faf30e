//! Functions on strings.

use super::arguments::{at, integer, text, unfit};
use super::catalogue::Function;
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::value::Value;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

pub(super) static TABLE: &[Function] = &[
    Function::new("btrim", 1, 2, |arguments, context| {
        trim(arguments, context, "btrim", true, true)
    }),
    Function::new("char_length", 1, 1, |arguments, _| length(arguments, "char_length")),
    Function::new("character_length", 1, 1, |arguments, _| length(arguments, "character_length")),
    Function::new("left", 2, 2, |arguments, context| {
        let text = charged("left", at(arguments, 0), context)?;
        let wanted = count("left", at(arguments, 1))?;
        Ok(Value::string(text.chars().take(wanted).collect::<String>()))
    }),
    Function::new("lTrim", 1, 2, |arguments, context| {
        trim(arguments, context, "lTrim", true, false)
    }),
    Function::new("replace", 3, 3, replace),
    Function::new("right", 2, 2, |arguments, context| {
        let text = charged("right", at(arguments, 0), context)?;
        let wanted = count("right", at(arguments, 1))?;
        let before = text.chars().count().saturating_sub(wanted);
        Ok(Value::string(text.chars().skip(before).collect::<String>()))
    }),
    Function::new("rTrim", 1, 2, |arguments, context| {
        trim(arguments, context, "rTrim", false, true)
    }),
    Function::new("split", 2, 2, split),
    Function::new("substring", 2, 3, |arguments, context| {
        let text = charged("substring", at(arguments, 0), context)?;
        let start = count("substring", at(arguments, 1))?;
        let wanted =
            arguments.get(2).map_or(Ok(usize::MAX), |length| count("substring", length))?;
        Ok(Value::string(text.chars().skip(start).take(wanted).collect::<String>()))
    }),
    Function::new("toLower", 1, 1, lower),
    Function::new("lower", 1, 1, lower),
    Function::new("toUpper", 1, 1, upper),
    Function::new("upper", 1, 1, upper),
    Function::new("trim", 1, 2, |arguments, context| trim(arguments, context, "trim", true, true)),
    Function::new("randomUUID", 0, 0, |_, context| {
        let (high, low) = (context.random.next_u64(), context.random.next_u64());
        // Version 4, variant 1 (RFC 4122).
        let (high, low) = ((high & !0xf000) | 0x4000, (low >> 2) | (1 << 63));
        let (time, middle, version) = (high >> 32, (high >> 16) & 0xffff, high & 0xffff);
        let (clock, node) = (low >> 48, low & 0xffff_ffff_ffff);
        Ok(Value::string(format!("{time:08x}-{middle:04x}-{version:04x}-{clock:04x}-{node:012x}")))
    })
    .unrepeatable(),
];

/// A string, charged as one that is copied.
fn charged<'a>(function: &str, value: &'a Value, context: &mut Context<'_>) -> Result<&'a str> {
    let text = text(function, value)?;
    context.budget.charge_bytes(text.len() as u64)?;
    Ok(text)
}

/// A number of characters.
fn count(function: &str, value: &Value) -> Result<usize> {
    let integer = integer(function, value)?;
    usize::try_from(integer).map_err(|_| {
        let message =
            format!("{function}() does not accept a negative number of characters: {integer}.");
        Error::argument(Detail::NumberOutOfRange, message)
    })
}

fn length(arguments: &[Value], function: &str) -> Result<Value> {
    Ok(Value::Integer(text(function, at(arguments, 0))?.chars().count() as i64))
}

fn lower(arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    Ok(Value::string(charged("toLower", at(arguments, 0), context)?.to_lowercase()))
}

fn upper(arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    Ok(Value::string(charged("toUpper", at(arguments, 0), context)?.to_uppercase()))
}

fn trim(
    arguments: &[Value],
    context: &mut Context<'_>,
    function: &str,
    at_start: bool,
    at_end: bool,
) -> Result<Value> {
    let mut rest = charged(function, at(arguments, 0), context)?;
    let unwanted = arguments.get(1).map(|characters| text(function, characters)).transpose()?;
    let unwanted = match unwanted {
        Some(characters) => CharacterSet::of(characters, context)?,
        None => CharacterSet::Blanks,
    };
    let is_unwanted = |character: char| unwanted.contains(character);
    if at_start {
        rest = rest.trim_start_matches(is_unwanted);
    }
    if at_end {
        rest = rest.trim_end_matches(is_unwanted);
    }
    Ok(Value::string(rest))
}

/// A set of characters, whose look-up takes constant time.
enum CharacterSet<'a> {
    Blanks,
    /// The characters of a short text.
    Few(&'a str),
    /// A bit for each character there is.
    Many(Box<[u64]>),
}

impl<'a> CharacterSet<'a> {
    /// Length up to which a text is searched, in bytes.
    const FEW_BYTES: usize = 32;
    /// Number of words of bits for all characters.
    const WORDS: usize = (char::MAX as usize + 1) / 64;

    fn of(text: &'a str, context: &mut Context<'_>) -> Result<Self> {
        if text.len() <= Self::FEW_BYTES {
            return Ok(Self::Few(text));
        }
        context.budget.charge_steps(Self::WORDS as u64 / 64)?;
        context.budget.charge_bytes(Self::WORDS as u64 * 8)?;
        let mut words = vec![0; Self::WORDS];
        for character in text.chars() {
            if let Some(word) = words.get_mut(character as usize / 64) {
                *word |= 1 << (character as usize % 64);
            }
        }
        Ok(Self::Many(words.into()))
    }

    fn contains(&self, character: char) -> bool {
        match self {
            Self::Blanks => character.is_whitespace(),
            Self::Few(text) => text.contains(character),
            Self::Many(words) => {
                let word = words.get(character as usize / 64);
                word.is_some_and(|word| word >> (character as usize % 64) & 1 == 1)
            }
        }
    }
}

fn replace(arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    let original = charged("replace", at(arguments, 0), context)?;
    let (old, new) = (text("replace", at(arguments, 1))?, text("replace", at(arguments, 2))?);
    let places = original.matches(&**old).count() as u64;
    context.budget.charge_steps(places)?;
    context.budget.charge_bytes(places.saturating_mul(new.len() as u64))?;
    Ok(Value::string(original.replace(&**old, new)))
}

/// Memory of an automaton's state while it is built: one for each byte of the delimiters.
const STATE_BYTES: u64 = 64;
/// Memory of a part apart from its characters.
const PART_BYTES: u64 = 40;

/// `split(text, delimiter)`, or at any of a list of delimiters. An empty delimiter splits between
/// all characters.
fn split(arguments: &[Value], context: &mut Context<'_>) -> Result<Value> {
    let original = charged("split", at(arguments, 0), context)?;
    let delimiters: Vec<&str> = match at(arguments, 1) {
        Value::String(delimiter) => vec![delimiter],
        Value::List(delimiters) => {
            let texts = delimiters.iter().map(|delimiter| Ok(&**text("split", delimiter)?));
            texts.collect::<Result<_>>()?
        }
        other => return Err(unfit("split", other, "a String or a List of Strings as delimiter")),
    };
    if delimiters.contains(&"") {
        super::lists::charge(context, original.len())?;
        let mut buffer = [0; 4];
        let characters =
            original.chars().map(|character| Value::string(character.encode_utf8(&mut buffer)));
        return Ok(Value::list(characters.collect()));
    }
    // One pass, whatever the number and the lengths of the delimiters. At each position the first
    // matching delimiter of the list splits.
    let automaton = match delimiters.as_slice() {
        [_] => None,
        several => {
            let bytes = several.iter().map(|delimiter| delimiter.len() as u64).sum::<u64>();
            context.budget.charge_steps(bytes)?;
            context.budget.charge_bytes(bytes.saturating_mul(STATE_BYTES))?;
            let automaton = AhoCorasick::builder()
                .kind(Some(AhoCorasickKind::ContiguousNFA))
                .match_kind(MatchKind::LeftmostFirst)
                .build(several);
            let too_many = |_| Error::argument(Detail::LimitExceeded, "Too many delimiters.");
            Some(automaton.map_err(too_many)?)
        }
    };
    let mut cut = |places: &mut dyn Iterator<Item = (usize, usize)>| {
        let (mut parts, mut start) = (Vec::new(), 0);
        let mut push = |part: &str| -> Result<()> {
            context.budget.charge_steps(1)?;
            context.budget.charge_bytes(PART_BYTES)?;
            parts.push(Value::string(part));
            Ok(())
        };
        for (at, end) in places {
            push(original.get(start..at).unwrap_or_default())?;
            start = end;
        }
        push(original.get(start..).unwrap_or_default())?;
        Ok(Value::list(parts))
    };
    match automaton {
        None => {
            let places = original.match_indices(delimiters.first().copied().unwrap_or_default());
            cut(&mut places.map(|(at, delimiter)| (at, at + delimiter.len())))
        }
        Some(automaton) => {
            let places = automaton.find_iter(original);
            cut(&mut places.map(|found| (found.start(), found.end())))
        }
    }
}
