//! Numbers and texts of a snapshot as bytes: numbers are LEB128 varints; texts and lists are
//! preceded by their length.

use super::SnapshotFault;
use std::io::{self, Read, Write};

/// Maximum length of a text or list that is accepted.
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

/// Writes bytes; at most 2^20 can be read again.
///
/// # Errors
/// Those of `out`.
pub fn put_bytes(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    put(out, bytes.len() as u64)?;
    out.write_all(bytes)
}

/// Reads packed bytes without trusting them: invalid content is a fault, and no length allocates
/// memory before its bytes have been read.
#[derive(Debug)]
pub struct Input<'a, R>(&'a mut R);

impl<'a, R: Read> Input<'a, R> {
    /// Reads from `input`.
    pub fn of(input: &'a mut R) -> Input<'a, R> {
        Input(input)
    }

    /// Reads a byte.
    ///
    /// # Errors
    /// The input ends early.
    pub fn byte(&mut self) -> Result<u8, SnapshotFault> {
        let mut byte = [0];
        self.fill(&mut byte)?;
        Ok(byte[0])
    }

    /// Fills `bytes`.
    ///
    /// # Errors
    /// The input ends early.
    pub fn fill(&mut self, bytes: &mut [u8]) -> Result<(), SnapshotFault> {
        Ok(self.0.read_exact(bytes)?)
    }

    /// Reads a number.
    ///
    /// # Errors
    /// The input ends early, or the number is too long.
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

    /// Reads a number of a smaller type.
    ///
    /// # Errors
    /// As [`number`](Self::number), or it does not fit.
    pub fn small<T: TryFrom<u64>>(&mut self) -> Result<T, SnapshotFault> {
        let number = self.number()?;
        T::try_from(number).map_err(|_| SnapshotFault::Malformed("a number is too large"))
    }

    /// Reads the length of a list or text.
    ///
    /// # Errors
    /// As [`number`](Self::number), or the length exceeds the maximum.
    pub fn length(&mut self) -> Result<usize, SnapshotFault> {
        let length = self.number()?;
        if length > MOST {
            return Err(SnapshotFault::Malformed("a list is too long"));
        }
        Ok(length as usize)
    }

    /// Reads bytes that are preceded by their length.
    ///
    /// # Errors
    /// As [`length`](Self::length).
    pub fn bytes(&mut self) -> Result<Vec<u8>, SnapshotFault> {
        let mut bytes = vec![0; self.length()?];
        self.fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes), or it is not UTF-8.
    pub fn text(&mut self) -> Result<String, SnapshotFault> {
        let bytes = self.bytes()?;
        String::from_utf8(bytes).map_err(|_| SnapshotFault::Malformed("a text is not UTF-8"))
    }

    /// Reads a list; `read` reads each element.
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
