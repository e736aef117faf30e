//! Reads members of a message, each with its type.

use super::{PackedMap, TextList};
use crate::packstream::{Item, PackFault, Reader};

/// Why a message is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestFault {
    /// Not PackStream, or not of the form of a message: nothing behind it can be trusted.
    Malformed(PackFault),
    /// A structure that is no message of this version: its tag, and its number of fields.
    Unknown(Option<u8>, usize),
    /// A field that is not what it must be.
    Invalid {
        /// Its name.
        field: &'static str,
        /// What it must be.
        expected: &'static str,
    },
}

impl From<PackFault> for RequestFault {
    fn from(fault: PackFault) -> RequestFault {
        RequestFault::Malformed(fault)
    }
}

/// The result of reading.
pub(super) type Parsed<T> = Result<T, RequestFault>;

fn invalid<T>(field: &'static str, expected: &'static str) -> Parsed<T> {
    Err(RequestFault::Invalid { field, expected })
}

/// Reads the members of the map that comes next, `null` being one without any. `each` reads one
/// value, or passes over it.
pub(super) fn members<'a>(
    reader: &mut Reader<'a>,
    field: &'static str,
    mut each: impl FnMut(&'a str, &mut Reader<'a>) -> Parsed<()>,
) -> Parsed<()> {
    let entries = match reader.item()? {
        Item::Map(entries) => entries,
        Item::Null => 0,
        _ => return invalid(field, "a map"),
    };
    for _ in 0..entries {
        // The reader lets nothing but a text be a key.
        if let Item::Text(key) = reader.item()? {
            each(key, reader)?;
        }
    }
    Ok(())
}

/// A text, or `null`.
pub(super) fn text_or_null(reader: &mut Reader<'_>, field: &'static str) -> Parsed<Option<String>> {
    match reader.item()? {
        Item::Text(text) => Ok(Some(text.to_owned())),
        Item::Null => Ok(None),
        _ => invalid(field, "a text"),
    }
}

/// A text.
pub(super) fn text<'a>(reader: &mut Reader<'a>, field: &'static str) -> Parsed<&'a str> {
    match reader.item()? {
        Item::Text(text) => Ok(text),
        _ => invalid(field, "a text"),
    }
}

/// An integer of this range, or `null`.
pub(super) fn int_or_null(
    reader: &mut Reader<'_>,
    field: &'static str,
    (least, expected): (i64, &'static str),
) -> Parsed<Option<i64>> {
    match reader.item()? {
        Item::Int(int) if int >= least => Ok(Some(int)),
        Item::Null => Ok(None),
        _ => invalid(field, expected),
    }
}

/// A list of texts, `null` being an empty one.
pub(super) fn texts(reader: &mut Reader<'_>, field: &'static str) -> Parsed<TextList> {
    const EXPECTED: &str = "a list of texts";
    let items = match reader.item()? {
        Item::List(items) => items,
        Item::Null => 0,
        _ => return invalid(field, EXPECTED),
    };
    let mut packed = Vec::new();
    for _ in 0..items {
        let value = reader.value()?;
        if !matches!(value.first(), Some(0x80..=0x8F | 0xD0..=0xD2)) {
            return invalid(field, EXPECTED);
        }
        packed.extend_from_slice(value);
    }
    Ok(TextList { packed })
}

/// A map as it came, `null` being an empty one, of at most so many bytes.
pub(super) fn packed_map(
    reader: &mut Reader<'_>,
    field: &'static str,
    (most, expected): (usize, &'static str),
) -> Parsed<PackedMap> {
    let packed = map_bytes(reader, field)?;
    if packed.len() > most {
        return invalid(field, expected);
    }
    Ok(PackedMap::from_bytes(packed))
}

/// The bytes of a map; those of an empty one for `null`.
pub(super) fn map_bytes<'a>(reader: &mut Reader<'a>, field: &'static str) -> Parsed<&'a [u8]> {
    let packed = reader.value()?;
    match packed.first() {
        Some(0xA0..=0xAF | 0xD8..=0xDA) => Ok(packed),
        Some(0xC0) => Ok(&[0xA0]),
        _ => invalid(field, "a map"),
    }
}
