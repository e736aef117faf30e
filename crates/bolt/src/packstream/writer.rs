//! Writes values, each in its shortest form.

use super::marker;

/// Appends values to a buffer. A header says how many values follow; the caller writes them.
#[derive(Debug)]
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Writer<'a> {
    /// Appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Writer<'a> {
        Writer { out }
    }

    /// The same, for a callee.
    pub fn by_ref(&mut self) -> Writer<'_> {
        Writer { out: self.out }
    }

    /// Bytes in the buffer, with those from before.
    #[must_use]
    pub fn written_bytes(&self) -> usize {
        self.out.len()
    }

    /// Appends values that are written already.
    #[inline]
    pub fn packed(&mut self, packed: &[u8]) {
        self.out.extend_from_slice(packed);
    }

    /// `null`.
    #[inline]
    pub fn null(&mut self) {
        self.out.push(marker::NULL);
    }

    /// `true` or `false`.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.out.push(if value { marker::TRUE } else { marker::FALSE });
    }

    /// An integer.
    #[inline]
    pub fn int(&mut self, value: i64) {
        if let -16..=127 = value {
            self.out.push(value as u8);
        } else if let Ok(value) = i8::try_from(value) {
            self.out.extend_from_slice(&[marker::INT_8, value as u8]);
        } else if let Ok(value) = i16::try_from(value) {
            let [a, b] = value.to_be_bytes();
            self.out.extend_from_slice(&[marker::INT_16, a, b]);
        } else if let Ok(value) = i32::try_from(value) {
            let [a, b, c, d] = value.to_be_bytes();
            self.out.extend_from_slice(&[marker::INT_32, a, b, c, d]);
        } else {
            self.out.push(marker::INT_64);
            self.out.extend_from_slice(&value.to_be_bytes());
        }
    }

    /// A floating point number. Its bits are kept, also those of a NaN.
    #[inline]
    pub fn float(&mut self, value: f64) {
        self.out.push(marker::FLOAT);
        self.out.extend_from_slice(&value.to_be_bytes());
    }

    /// Bytes.
    ///
    /// # Panics
    /// 4 GiB or more.
    pub fn bytes(&mut self, value: &[u8]) {
        self.length(marker::BYTES, value.len());
        self.out.extend_from_slice(value);
    }

    /// A text.
    ///
    /// # Panics
    /// 4 GiB or more.
    #[inline]
    pub fn text(&mut self, value: &str) {
        self.header(marker::TINY_TEXT, marker::TEXT, value.len());
        self.out.extend_from_slice(value.as_bytes());
    }

    /// The header of a list of `items` values.
    ///
    /// # Panics
    /// 2³² items or more.
    #[inline]
    pub fn list(&mut self, items: usize) {
        self.header(marker::TINY_LIST, marker::LIST, items);
    }

    /// The header of a map of `entries`; each is a text and a value.
    ///
    /// # Panics
    /// 2³² entries or more.
    #[inline]
    pub fn map(&mut self, entries: usize) {
        self.header(marker::TINY_MAP, marker::MAP, entries);
    }

    /// The header of a structure.
    ///
    /// # Panics
    /// More than 15 fields.
    #[inline]
    pub fn structure(&mut self, tag: u8, fields: u8) {
        assert!(fields < 16, "a structure has at most 15 fields");
        self.out.extend_from_slice(&[marker::STRUCT | fields, tag]);
    }

    #[inline]
    fn header(&mut self, tiny: u8, marker: u8, length: usize) {
        if length < 16 {
            self.out.push(tiny | length as u8);
        } else {
            self.length(marker, length);
        }
    }

    fn length(&mut self, marker: u8, length: usize) {
        if let Ok(length) = u8::try_from(length) {
            self.out.extend_from_slice(&[marker, length]);
        } else if let Ok(length) = u16::try_from(length) {
            let [a, b] = length.to_be_bytes();
            self.out.extend_from_slice(&[marker + 1, a, b]);
        } else {
            let length = u32::try_from(length).expect("less than 4 GiB");
            let [a, b, c, d] = length.to_be_bytes();
            self.out.extend_from_slice(&[marker + 2, a, b, c, d]);
        }
    }
}
