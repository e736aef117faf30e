//! Numbers and texts of a snapshot as bytes: numbers are LEB128 varints, texts and lists have their
//! length before them.

use super::SnapshotFault;
use std::io::{self, Read, Write};

/// Longest text or list that is believed.
const MOST: u64 = 1 << 20;

/// Writes a number.
///
/// # Errors
/// Those of `out`.
pub fn put(out: &mut impl Write, mut number: u64) -> io::Result<()> {
    while number >= 0x80 {
        out.write_all(&[number as u8 | 0x80])?;
        number >>= 7;
    }
    out.write_all(&[number as u8])
}

/// Writes bytes, of which there are at most 2^20 if they are to be read again.
///
/// # Errors
/// Those of `out`.
pub fn put_bytes(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    put(out, bytes.len() as u64)?;
    out.write_all(bytes)
}

/// Reads what was written. Nothing it holds is believed: what cannot be is a fault, and no length
/// is room taken before the bytes are there.
#[derive(Debug)]
pub struct Input<'a, R>(&'a mut R);

impl<'a, R: Read> Input<'a, R> {
    /// Reads from here.
    pub fn of(input: &'a mut R) -> Input<'a, R> {
        Input(input)
    }

    /// A byte.
    ///
    /// # Errors
    /// It ends before.
    pub fn byte(&mut self) -> Result<u8, SnapshotFault> {
        let mut byte = [0];
        self.fill(&mut byte)?;
        Ok(byte[0])
    }

    /// So many bytes.
    ///
    /// # Errors
    /// It ends before.
    pub fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotFault> {
        Ok(self.0.read_exact(bytes)?)
    }

    /// A number.
    ///
    /// # Errors
    /// It ends before, or is longer than a number is.
    pub fn number(&mut self) -> Result<u64, SnapshotFault> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(SnapshotFault::Malformed("a number is too long"))
    }

    /// A number of fewer bits.
    ///
    /// # Errors
    /// As [`number`](Self::number), or it does not fit.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Result<T, SnapshotFault> {
        let number = self.number()?;
        T::try_from(number).map_err(|_| SnapshotFault::Malformed("a number is too large"))
    }

    /// The length of a list or a text.
    ///
    /// # Errors
    /// As [`number`](Self::number), or no list is that long.
    pub fn length(&mut self) -> Result<usize, SnapshotFault> {
        let length = self.number()?;
        if length > MOST {
            return Err(SnapshotFault::Malformed("a list is too long"));
        }
        Ok(length as usize)
    }

    /// Bytes with their length before them.
    ///
    /// # Errors
    /// As [`length`](Self::length).
    pub fn bytes(&mut self) -> Result<Vec<u8>, SnapshotFault> {
        let mut bytes = vec![0; self.length()?];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// A text.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), or it is not UTF-8.
    pub fn text(&mut self) -> Result<String, SnapshotFault> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| SnapshotFault::Malformed("a text is not UTF-8"))
    }

    /// A list of what `read` reads.
    ///
    /// # Errors
    /// As [`length`](Self::length), and those of `read`.
    pub fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Result<T, SnapshotFault>,
    ) -> Result<Vec<T>, SnapshotFault> {
        let length = self.length()?;
        (0..length).map(|_| read(self)).collect()
    }
}
