//! The segments of all nodes are equal except for local header fields: the same files with the same
//! batches.

use super::{Invariant, News, World};
use crate::engine::Engine;
use std::collections::BTreeMap;
use wellspring_format::batch::{BATCH_HEADER_BYTES, BATCH_MAGIC};
use wellspring_format::segment::SEGMENT_HEADER_BYTES;
use wellspring_log::shared::{Place, PlacedEntry};
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct CopiesAreEqual;

/// A batch: position, events, time, epoch, place and records.
type Batch = (u64, u32, u64, u64, u64, Vec<u8>);

fn number<const N: usize>(bytes: &[u8], at: usize) -> u64 {
    let mut wide = [0; 8];
    wide[..N].copy_from_slice(&bytes[at..at + N]);
    u64::from_le_bytes(wide)
}

fn batches(file: &[u8]) -> Vec<Batch> {
    let mut found = Vec::new();
    let mut at = SEGMENT_HEADER_BYTES;
    while at + BATCH_HEADER_BYTES <= file.len() && number::<4>(file, at) as u32 == BATCH_MAGIC {
        let header = &file[at..at + BATCH_HEADER_BYTES];
        let length = number::<4>(header, 20) as usize;
        let body = at + BATCH_HEADER_BYTES;
        if body + length > file.len() {
            break;
        }
        let (first, count) = (number::<8>(header, 8), number::<4>(header, 16) as u32);
        let (epoch, recorded) = (number::<8>(header, 32), number::<8>(header, 40));
        let place = number::<8>(header, 56);
        found.push((first, count, recorded, epoch, place, file[body..body + length].to_vec()));
        at = body + length;
    }
    found
}

fn segments(world: &World, node: usize) -> BTreeMap<String, Vec<Batch>> {
    let files = world.nodes[node].storage.contents();
    let segments = files.iter().filter(|(name, _)| name.ends_with(".seg"));
    segments
        .map(|(name, file)| (name.clone(), batches(file)))
        .filter(|(_, batches)| !batches.is_empty())
        .collect()
}

/// What a node tells another whose copy lacks everything.
fn told_in_pieces(world: &World, node: usize) -> Result<Vec<PlacedEntry>, String> {
    let mut told: Vec<PlacedEntry> = Vec::new();
    let Some(log) = &world.nodes[node].log else { return Ok(told) };
    loop {
        let after = told.last().map_or(Place(0), |(place, _)| *place);
        let most = (after.0 % 7) as usize * 1000;
        let more = log.accepted_after(after, most).map_err(|error| error.to_string())?;
        if more.is_empty() {
            return Ok(told);
        }
        told.extend(more);
    }
}

impl Invariant for CopiesAreEqual {
    fn name(&self) -> &'static str {
        "the copies are equal"
    }

    fn hear(&mut self, _: &News, _: &World) -> Result<(), String> {
        Ok(())
    }

    fn at_the_end(&mut self, world: &World) -> Result<(), String> {
        let first = segments(world, 0);
        let last: Position = first
            .values()
            .flatten()
            .map(|batch| batch.0 + u64::from(batch.1) - 1)
            .max()
            .unwrap_or(0);
        let head = world.nodes[0].log.as_ref().map_or(0, |log| log.head());
        if last != head {
            return Err(format!("n0 shows {head}, its segments end with {last}"));
        }
        let told = match &world.engine {
            Engine::Simulated(log) => log.accepted(),
            Engine::Raft(_) => told_in_pieces(world, 0)?,
        };
        for node in 0..world.nodes.len() {
            if !told_in_pieces(world, node)?.iter().eq(&told) {
                return Err(format!("n{node} would complete another copy with other batches"));
            }
        }
        for node in 1..world.nodes.len() {
            let others = segments(world, node);
            let names = |of: &BTreeMap<String, Vec<Batch>>| of.keys().cloned().collect::<Vec<_>>();
            if names(&first) != names(&others) {
                return Err(format!(
                    "n0 has {:?}, n{node} has {:?}",
                    names(&first),
                    names(&others)
                ));
            }
            for (name, batches) in &first {
                let other = &others[name];
                let differs = batches.iter().zip(other).position(|(a, b)| a != b);
                if differs.is_some() || batches.len() != other.len() {
                    let at = differs.unwrap_or(batches.len().min(other.len()));
                    let brief = |of: &[Batch]| {
                        of.get(at).map(|b| {
                            format!("{:?} and {} bytes", (b.0, b.1, b.2, b.3, b.4), b.5.len())
                        })
                    };
                    let (a, b) = (brief(batches), brief(other));
                    return Err(format!("{name}, batch {at}: n0 has {a:?}, n{node} has {b:?}"));
                }
            }
        }
        Ok(())
    }
}
