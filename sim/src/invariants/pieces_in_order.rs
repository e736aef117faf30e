//! Each piece of a source exists once, in order, without gaps.

use super::{Invariant, News, World};
use std::collections::BTreeMap;
use wellspring_types::Position;

#[derive(Default)]
pub(super) struct PiecesInOrder {
    last: BTreeMap<String, (u64, Position)>,
}

impl Invariant for PiecesInOrder {
    fn name(&self) -> &'static str {
        "each piece of a source once and in order"
    }

    fn hear(&mut self, news: &News, _: &World) -> Result<(), String> {
        let News::Seen { fact, .. } = news else { return Ok(()) };
        let Some((source, piece)) = &fact.piece else { return Ok(()) };
        let last = self.last.get(source).copied();
        let next = last.map_or(0, |(piece, _)| piece + 1);
        if last.is_some_and(|(_, position)| fact.position <= position) {
            return Ok(());
        }
        self.last.insert(source.clone(), (*piece, fact.position));
        if *piece == next {
            Ok(())
        } else {
            Err(format!("{source}: piece {piece} at {}, where {next} should be", fact.position))
        }
    }
}
