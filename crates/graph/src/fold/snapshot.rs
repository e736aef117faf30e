//! The fold as bytes: its version and the parts of an incomplete transaction.

use super::{GraphFold, IncompleteTransaction};
use crate::event::MAX_PARTS;
use crate::fault::SnapshotFault;
use crate::graph::{BEYOND, BlockWriter, GraphReader, next_block};
use crate::value::{Reader, put_sized, put_varint};
use std::io::{Read, Result as IoResult, Write};
use std::sync::Arc;

/// The header of an incomplete transaction, whose parts follow.
const UNFINISHED: u8 = BEYOND;
/// The payload of one part.
const PAYLOAD: u8 = BEYOND + 1;

impl GraphFold {
    /// Writes a snapshot of exactly this state, whatever is folded meanwhile.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn encode(&self, out: &mut impl Write) -> IoResult<()> {
        let mut blocks = BlockWriter::new(out);
        self.graph.encode(&mut blocks)?;
        if let Some(unfinished) = &self.unfinished {
            blocks.begin(UNFINISHED)?;
            put_varint(&mut blocks.block, unfinished.of);
            put_sized(&mut blocks.block, unfinished.transaction.as_bytes());
            for payload in &unfinished.payloads {
                blocks.begin(PAYLOAD)?;
                blocks.block.extend_from_slice(payload);
            }
        }
        blocks.finish()
    }

    /// Reads a snapshot.
    ///
    /// # Errors
    /// [`SnapshotFault`]; a damaged snapshot is refused as a whole.
    pub fn decode(input: &mut impl Read) -> Result<GraphFold, SnapshotFault> {
        let mut graph = GraphReader::default();
        let mut unfinished: Option<IncompleteTransaction> = None;
        let malformed = || SnapshotFault::Malformed("an unfinished transaction");
        while let Some((kind, block)) = next_block(input)? {
            match (kind, &mut unfinished) {
                (UNFINISHED, None) => {
                    unfinished = Some(read_head(&block).ok_or_else(malformed)?);
                }
                (PAYLOAD, Some(unfinished)) => {
                    unfinished.payloads.push(block.into());
                    if unfinished.payloads.len() as u64 >= unfinished.of {
                        return Err(malformed());
                    }
                }
                (UNFINISHED | PAYLOAD, _) => return Err(malformed()),
                _ => graph.read(kind, &block)?,
            }
        }
        if unfinished.as_ref().is_some_and(|unfinished| unfinished.payloads.is_empty()) {
            return Err(malformed());
        }
        Ok(GraphFold { graph: graph.finish()?, unfinished: unfinished.map(Arc::new) })
    }
}

fn read_head(block: &[u8]) -> Option<IncompleteTransaction> {
    let mut input = Reader::new(block);
    let of = input.varint().filter(|of| (2..=MAX_PARTS as u64).contains(of))?;
    let transaction = std::str::from_utf8(input.sized()?).ok()?.to_owned();
    input.is_empty().then_some(IncompleteTransaction { transaction, of, payloads: Vec::new() })
}
