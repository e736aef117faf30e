//! The blocks of a snapshot: kind, length, bytes. Reading is bounded by the available input,
//! whatever a length says.

use crate::fault::SnapshotFault;
use crate::value::{Reader, put_varint};
use std::io::{self, Read, Write};

/// Size at which a block is written.
const FULL: usize = 64 << 10;

/// Collects bytes of one kind.
pub(crate) struct BlockWriter<'a, W> {
    out: &'a mut W,
    kind: u8,
    pub(crate) block: Vec<u8>,
}

impl<'a, W: Write> BlockWriter<'a, W> {
    pub(crate) fn new(out: &'a mut W) -> BlockWriter<'a, W> {
        BlockWriter { out, kind: 0, block: Vec::new() }
    }

    /// Starts a section of this kind.
    pub(crate) fn begin(&mut self, kind: u8) -> io::Result<()> {
        self.flush()?;
        self.kind = kind;
        Ok(())
    }

    /// Marks a place where a block may end.
    pub(crate) fn may_end(&mut self) -> io::Result<()> {
        if self.block.len() >= FULL { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.block.is_empty() {
            let mut head = vec![self.kind];
            put_varint(&mut head, self.block.len() as u64);
            self.out.write_all(&head)?;
            self.out.write_all(&self.block)?;
            self.block.clear();
        }
        Ok(())
    }

    /// Ends the snapshot.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush()?;
        self.out.write_all(&[0])
    }
}

fn byte(input: &mut impl Read) -> Result<u8, SnapshotFault> {
    let mut byte = [0];
    input.read_exact(&mut byte)?;
    Ok(byte[0])
}

/// Reads the next block; `None` at the end.
pub(crate) fn next_block(input: &mut impl Read) -> Result<Option<(u8, Vec<u8>)>, SnapshotFault> {
    let kind = byte(input)?;
    if kind == 0 {
        return Ok(None);
    }
    let mut length = Vec::new();
    while length.last().is_none_or(|last| *last >= 0x80) && length.len() < 10 {
        length.push(byte(input)?);
    }
    let length = Reader::new(&length).varint().ok_or(SnapshotFault::Malformed("a length"))?;
    let mut block = Vec::new();
    input.take(length).read_to_end(&mut block)?;
    if block.len() as u64 == length {
        Ok(Some((kind, block)))
    } else {
        Err(SnapshotFault::Malformed("a block that ends early"))
    }
}
