//! An array that grows and never moves: one writer adds, any number of readers read, and no thread
//! waits.

use std::sync::OnceLock;

/// Elements per chunk.
const CHUNK: usize = 4_096;
/// Block b has 2^b chunks: room for 2^32 - 1 chunks, which is just under 2^44 elements.
const BLOCKS: usize = 32;

type Chunk<T> = OnceLock<Box<[T]>>;

/// Elements in chunks that are allocated by the first write to them. Elements are atomics or cells,
/// so sharing the array is safe if sharing them is.
#[derive(Debug)]
pub struct ChunkedArray<T> {
    blocks: [OnceLock<Box<[Chunk<T>]>>; BLOCKS],
}

impl<T> Default for ChunkedArray<T> {
    fn default() -> Self {
        ChunkedArray { blocks: [const { OnceLock::new() }; BLOCKS] }
    }
}

/// Block, chunk in the block, element in the chunk.
fn place(index: u64) -> (usize, usize, usize) {
    let index = usize::try_from(index).unwrap_or(usize::MAX - CHUNK);
    let chunk = index / CHUNK + 1;
    let block = chunk.ilog2() as usize;
    (block, chunk - (1 << block), index % CHUNK)
}

impl<T: Default> ChunkedArray<T> {
    /// The element, if its chunk has been allocated.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u64) -> Option<&T> {
        self.run(index).map(|run| &run[0])
    }

    /// The element and those after it in the same chunk, if it has been allocated.
    #[inline]
    #[must_use]
    pub fn run(&self, index: u64) -> Option<&[T]> {
        let (block, chunk, at) = place(index);
        self.blocks.get(block)?.get()?[chunk].get().map(|elements| &elements[at..])
    }

    /// The element; allocates its chunk if necessary.
    ///
    /// # Panics
    /// If the index is 2^44 - 4096 or more: no machine has the memory.
    pub fn make(&self, index: u64) -> &T {
        let (block, chunk, at) = place(index);
        let chunks = self.blocks[block]
            .get_or_init(|| (0..1usize << block).map(|_| OnceLock::new()).collect());
        let elements = chunks[chunk].get_or_init(|| (0..CHUNK).map(|_| T::default()).collect());
        &elements[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[test]
    fn every_index_has_a_place_of_its_own() {
        let mut seen = HashSet::new();
        for index in (0..40_000).chain(1 << 30..(1 << 30) + 9_000) {
            assert!(seen.insert(place(index)), "{index}");
        }
    }

    #[test]
    fn elements_stay_where_they_are() {
        let array = ChunkedArray::<AtomicU64>::default();
        assert!(array.get(0).is_none());
        for index in 0..20_000 {
            array.make(index).store(index * 3, Relaxed);
        }
        let first = std::ptr::from_ref(array.make(0));
        for index in 0..20_000 {
            assert_eq!(array.get(index).unwrap().load(Relaxed), index * 3);
        }
        assert_eq!(first, std::ptr::from_ref(array.make(0)));
        assert!(array.get(1 << 40).is_none());
        assert_eq!(array.run(CHUNK as u64 - 2).unwrap().len(), 2);
    }
}
