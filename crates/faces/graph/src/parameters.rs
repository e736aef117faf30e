//! Parsing parameters while accounting for their memory: some bytes of JSON can become a hundred
//! times as many.

use crate::render::ValueForm;
use crate::typed_value;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use wellspring_cypher::context::Parameters;
use wellspring_cypher::value::{Entries, Value};

/// Overhead of any value, a list, a map, an entry of one, a string.
pub(crate) const VALUE_BYTES: usize = 2 * size_of::<Value>();
pub(crate) const LIST_BYTES: usize = 64;
pub(crate) const MAP_BYTES: usize = 512;
pub(crate) const ENTRY_BYTES: usize = 48;
pub(crate) const STRING_BYTES: usize = 24;

/// The memory budget of parameters.
pub(crate) struct ParameterRoom {
    most: usize,
    taken: Cell<usize>,
    /// A number beyond all integers was read: a float, or an integer that does not fit.
    has_huge: Cell<bool>,
    /// How values are written.
    form: ValueForm,
    /// Whether the value read last was text itself, rather than a typed value.
    was_text: Cell<bool>,
}

impl ParameterRoom {
    pub(crate) fn new(most: usize) -> ParameterRoom {
        ParameterRoom {
            most,
            taken: Cell::new(0),
            has_huge: Cell::new(false),
            form: ValueForm::Plain,
            was_text: Cell::new(false),
        }
    }

    /// The same for values of this form.
    pub(crate) fn of(self, form: ValueForm) -> ParameterRoom {
        ParameterRoom { form, ..self }
    }

    /// Bytes in all.
    pub(crate) fn most(&self) -> usize {
        self.most
    }

    /// Bytes used.
    pub(crate) fn taken(&self) -> usize {
        self.taken.get()
    }

    /// Whether more was needed than available.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.taken.get() > self.most
    }

    /// Parses an object of parameters. `None` if the text is not one. Integers are exact to 64
    /// bits.
    ///
    /// # Errors
    /// Not JSON, or not a valid parameter; or the budget is exhausted.
    pub(crate) fn read(&self, text: &RawValue) -> serde_json::Result<Option<Parameters>> {
        if !text.get().starts_with('{') {
            return Ok(None);
        }
        self.take(VALUE_BYTES)?;
        let mut deserializer = serde_json::Deserializer::from_str(text.get());
        let parameters = deserializer.deserialize_map(ParametersSeed(self))?;
        if self.has_huge.take()
            && let Some(number) = huge_integer(text.get())
        {
            return Err(no_integer(number));
        }
        Ok(Some(parameters))
    }

    /// Takes some of it; whether there was enough.
    pub(crate) fn charge(&self, bytes: usize) -> bool {
        self.taken.set(self.taken.get().saturating_add(bytes));
        !self.is_exceeded()
    }

    fn take<E: Error>(&self, bytes: usize) -> Result<(), E> {
        if !self.charge(bytes) { Err(E::custom("the parameters are too large")) } else { Ok(()) }
    }
}

/// 2⁶³: JSON integers that are not floats are below.
const HUGE: f64 = 9_223_372_036_854_775_808.0;

fn no_integer<E: Error>(number: &str) -> E {
    // Longest number accepted, as a sanity limit.
    let shown: String = number.chars().take(40).collect();
    let dots = if shown.len() < number.len() { "…" } else { "" };
    E::custom(format!(
        "{shown}{dots} is not a 64-bit integer; write it with a decimal point (1.0) for a \
         float, or as a string"
    ))
}

/// The first integer in a JSON text that does not fit 64 bits.
fn huge_integer(json: &str) -> Option<&str> {
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[at..];
        let end = match rest.strip_prefix('"') {
            Some(inside) => 1 + string_end(inside),
            None => {
                let is_part = |c: char| c.is_ascii_digit() || ".eE+-".contains(c);
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                let number = &rest[..end];
                if !number.contains(['.', 'e', 'E']) && number.parse::<i64>().is_err() {
                    return Some(number);
                }
                end
            }
        };
        rest = &rest[end..];
    }
    None
}

/// The end of a JSON string, after its first quote.
fn string_end(inside: &str) -> usize {
    let mut is_escaped = false;
    let end = inside.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(inside.len(), |end| end + 1)
}

/// Parses one value.
#[derive(Clone, Copy)]
struct ParameterSeed<'r>(&'r ParameterRoom);

impl<'de> DeserializeSeed<'de> for ParameterSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.0.take(VALUE_BYTES)?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ParameterSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Boolean(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        let integer = i64::try_from(value);
        integer.map(Value::Integer).map_err(|_| no_integer(&value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        // Integers of 2⁶⁴ and more, or less than -2⁶³, arrive as floats, too.
        if value.abs() >= HUGE {
            self.0.has_huge.set(true);
        }
        Ok(Value::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        self.0.take(STRING_BYTES + value.len())?;
        self.0.was_text.set(true);
        Ok(Value::string(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.0.take(LIST_BYTES)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        self.0.was_text.set(false);
        Ok(Value::list(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Value, A::Error> {
        let ReadObject { entries, type_name } = self.entries(entries)?;
        if let (ValueForm::Typed, Some(name)) = (self.0.form, type_name) {
            return typed_value::read(&name, entries).map_err(A::Error::custom);
        }
        Ok(Value::Map(Arc::new(entries.into())))
    }
}

/// An object of values.
struct ReadObject {
    entries: Entries,
    /// The text of its member `$type`, if that is text itself.
    type_name: Option<Arc<str>>,
}

impl ParameterSeed<'_> {
    fn entries<'de, A: MapAccess<'de>>(self, mut entries: A) -> Result<ReadObject, A::Error> {
        self.0.take(MAP_BYTES)?;
        let (mut map, mut type_name) = (Entries::new(), None);
        while let Some(key) = entries.next_key::<Cow<'de, str>>()? {
            self.0.take(ENTRY_BYTES + key.len())?;
            self.0.was_text.set(false);
            let value = entries.next_value_seed(self)?;
            if let (true, "$type", Value::String(name)) = (self.0.was_text.get(), &*key, &value) {
                type_name = Some(Arc::clone(name));
            }
            if map.insert(Arc::from(&*key), value).is_some() {
                return Err(A::Error::custom(format!("the name {key:?} is repeated")));
            }
        }
        // What contains this is no text.
        self.0.was_text.set(false);
        Ok(ReadObject { entries: map, type_name })
    }
}

/// Reads an object of parameters.
struct ParametersSeed<'r>(&'r ParameterRoom);

impl<'de> Visitor<'de> for ParametersSeed<'_> {
    type Value = Parameters;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters by name")
    }

    fn visit_map<A: MapAccess<'de>>(self, entries: A) -> Result<Parameters, A::Error> {
        Ok(ParameterSeed(self.0).entries(entries)?.entries)
    }
}
