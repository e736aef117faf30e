//! Reads values that a client sent.

use super::marker;
use std::fmt;

/// Deepest nesting of lists, maps and structures in one message.
pub const MAX_DEPTH: usize = 127;

/// The next part of a value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Item<'a> {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A floating point number.
    Float(f64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// A text.
    Text(&'a str),
    /// A list: so many values follow.
    List(usize),
    /// A map: so many pairs of a text and a value follow.
    Map(usize),
    /// A structure: its fields follow.
    Struct {
        /// What the structure is.
        tag: u8,
        /// Number of values that follow.
        fields: usize,
    },
}

impl Item<'_> {
    /// The type, for messages about a wrong one.
    #[must_use]
    pub fn type_name(&self) -> &'static str {
        match self {
            Item::Null => "null",
            Item::Bool(_) => "a boolean",
            Item::Int(_) => "an integer",
            Item::Float(_) => "a float",
            Item::Bytes(_) => "bytes",
            Item::Text(_) => "a text",
            Item::List(_) => "a list",
            Item::Map(_) => "a map",
            Item::Struct { .. } => "a structure",
        }
    }
}

/// What is wrong with the bytes of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PackFaultKind {
    /// The bytes end within a value, or a length says more than is left.
    Truncated,
    /// A first byte that means nothing.
    Marker(u8),
    /// A text that is not UTF-8.
    NotUtf8,
    /// A key of a map that is not a text.
    KeyNotText,
    /// Nested deeper than [`MAX_DEPTH`].
    TooDeep,
}

/// Bytes that are no PackStream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackFault {
    /// Offset of the item, in bytes.
    pub at: usize,
    /// What is wrong.
    pub kind: PackFaultKind,
}

impl fmt::Display for PackFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            PackFaultKind::Truncated => write!(f, "the message ends within a value")?,
            PackFaultKind::Marker(byte) => write!(f, "the marker {byte:#04X} is not assigned")?,
            PackFaultKind::NotUtf8 => write!(f, "a text is not UTF-8")?,
            PackFaultKind::KeyNotText => write!(f, "a key of a map is not a text")?,
            PackFaultKind::TooDeep => write!(f, "values are nested deeper than {MAX_DEPTH}")?,
        }
        write!(f, ", at byte {}", self.at)
    }
}

impl std::error::Error for PackFault {}

/// Set in what is left of a map: its keys are those with an even rest.
const OF_MAP: u32 = 1 << 31;

/// Pulls items out of bytes. What a header announces is checked against the bytes that are left,
/// nesting against [`MAX_DEPTH`], keys and texts for what they must be; so a caller may recurse,
/// and reserve room for what is announced.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Items still to be read of each list, map and structure around the next one.
    left: [u32; MAX_DEPTH],
    depth: usize,
}

impl<'a> Reader<'a> {
    /// At the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { bytes, at: 0, left: [0; MAX_DEPTH], depth: 0 }
    }

    /// Offset of the next item, in bytes.
    #[must_use]
    pub fn at(&self) -> usize {
        self.at
    }

    /// Whether everything has been read.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// Reads the next item.
    ///
    /// # Errors
    /// The bytes are no PackStream. The reader is not used after that.
    pub fn item(&mut self) -> Result<Item<'a>, PackFault> {
        let is_key = self.enter();
        let start = self.at;
        let fault = |kind| PackFault { at: start, kind };
        let item = self.head().map_err(fault)?;
        if is_key && !matches!(item, Item::Text(_)) {
            return Err(fault(PackFaultKind::KeyNotText));
        }
        let announced = match item {
            Item::List(items) => (items, 0),
            Item::Map(entries) => (entries.saturating_mul(2), OF_MAP),
            Item::Struct { fields, .. } => (fields, 0),
            _ => return Ok(item),
        };
        self.nest(announced).map_err(fault)?;
        Ok(item)
    }

    /// Reads the next value as a whole, checked, and returns its bytes.
    ///
    /// # Errors
    /// As [`Reader::item`].
    pub fn value(&mut self) -> Result<&'a [u8], PackFault> {
        let start = self.at;
        let mut left = 1;
        while left > 0 {
            left -= 1;
            left += match self.item()? {
                Item::List(items) => items,
                Item::Map(entries) => 2 * entries,
                Item::Struct { fields, .. } => fields,
                _ => 0,
            };
        }
        Ok(&self.bytes[start..self.at])
    }

    /// Passes over the next value, checked.
    ///
    /// # Errors
    /// As [`Reader::item`].
    pub fn skip(&mut self) -> Result<(), PackFault> {
        self.value().map(drop)
    }

    /// Counts the next item; returns whether it is a key.
    fn enter(&mut self) -> bool {
        while self.depth > 0 {
            let left = &mut self.left[self.depth - 1];
            if *left & !OF_MAP > 0 {
                let is_key = *left & OF_MAP != 0 && left.is_multiple_of(2);
                *left -= 1;
                return is_key;
            }
            self.depth -= 1;
        }
        false
    }

    /// Enters a list, map or structure.
    fn nest(&mut self, (items, kind): (usize, u32)) -> Result<(), PackFaultKind> {
        // Each item has a byte at least.
        if items > self.bytes.len() - self.at || items >= OF_MAP as usize {
            return Err(PackFaultKind::Truncated);
        }
        let left = self.left.get_mut(self.depth).ok_or(PackFaultKind::TooDeep)?;
        *left = items as u32 | kind;
        self.depth += 1;
        Ok(())
    }

    fn head(&mut self) -> Result<Item<'a>, PackFaultKind> {
        let [first] = self.array()?;
        let small = usize::from(first & 0x0F);
        Ok(match first {
            0x00..=0x7F | 0xF0..=0xFF => Item::Int(i64::from(first as i8)),
            0x80..=0x8F => self.text(small)?,
            0x90..=0x9F => Item::List(small),
            0xA0..=0xAF => Item::Map(small),
            0xB0..=0xBF => {
                let [tag] = self.array()?;
                Item::Struct { tag, fields: small }
            }
            marker::NULL => Item::Null,
            marker::FLOAT => Item::Float(f64::from_be_bytes(self.array()?)),
            marker::FALSE => Item::Bool(false),
            marker::TRUE => Item::Bool(true),
            marker::INT_8 => Item::Int(i8::from_be_bytes(self.array()?).into()),
            marker::INT_16 => Item::Int(i16::from_be_bytes(self.array()?).into()),
            marker::INT_32 => Item::Int(i32::from_be_bytes(self.array()?).into()),
            marker::INT_64 => Item::Int(i64::from_be_bytes(self.array()?)),
            0xCC..=0xCE => {
                let length = self.length(first - marker::BYTES)?;
                Item::Bytes(self.take(length)?)
            }
            0xD0..=0xD2 => {
                let length = self.length(first - marker::TEXT)?;
                self.text(length)?
            }
            0xD4..=0xD6 => Item::List(self.length(first - marker::LIST)?),
            0xD8..=0xDA => Item::Map(self.length(first - marker::MAP)?),
            _ => return Err(PackFaultKind::Marker(first)),
        })
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], PackFaultKind> {
        let rest = &self.bytes[self.at..];
        let taken = rest.get(..length).ok_or(PackFaultKind::Truncated)?;
        self.at += length;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PackFaultKind> {
        let rest = &self.bytes[self.at..];
        let taken = rest.first_chunk().ok_or(PackFaultKind::Truncated)?;
        self.at += N;
        Ok(*taken)
    }

    /// A length of 8, 16 or 32 bits.
    fn length(&mut self, size: u8) -> Result<usize, PackFaultKind> {
        Ok(match size {
            0 => usize::from(u8::from_be_bytes(self.array()?)),
            1 => usize::from(u16::from_be_bytes(self.array()?)),
            _ => u32::from_be_bytes(self.array()?) as usize,
        })
    }

    fn text(&mut self, length: usize) -> Result<Item<'a>, PackFaultKind> {
        let text = str::from_utf8(self.take(length)?).map_err(|_| PackFaultKind::NotUtf8)?;
        Ok(Item::Text(text))
    }
}
