//! The dictionaries of the active segment: texts, event ids and (type, tag)
//! pairs to dense numbers, exactly: bytes are compared, never hashes alone.

use super::append_vec::AppendVec;
use super::hash::{Domain, Keyed};
use super::lists::Lists;
use super::probe_table::ProbeTable;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

const MAX_WORDS: usize = 32;

/// A text of at most 255 bytes as words: its length in the lowest byte, then its bytes, then zeros.
pub(super) struct Text {
    words: [u64; MAX_WORDS],
    used: usize,
}

impl Text {
    /// `None` if the text is longer than any term can be.
    pub(super) fn new(text: &str) -> Option<Text> {
        let len = u8::try_from(text.len()).ok()?;
        let mut words = [0; MAX_WORDS];
        let bytes = text.as_bytes();
        let (first, rest) = bytes.split_at(bytes.len().min(7));
        words[0] = u64::from(len) | load(first) << 8;
        let mut used = 1;
        // Whole words apart from the tail: their copies are single loads.
        let (whole, tail) = rest.as_chunks::<8>();
        for chunk in whole {
            words[used] = u64::from_le_bytes(*chunk);
            used += 1;
        }
        if !tail.is_empty() {
            words[used] = load(tail);
            used += 1;
        }
        Some(Text { words, used })
    }

    fn words(&self) -> &[u64] {
        &self.words[..self.used]
    }
}

#[inline]
fn load(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Texts, each with the list of events that carry it.
#[derive(Debug)]
pub(super) struct TermTable {
    domain: Domain,
    words: AppendVec<AtomicU64>,
    words_used: AtomicU32,
    count: AtomicU32,
    table: ProbeTable,
    /// The events of each text, by its number; the label is where its words begin.
    pub(super) lists: Lists,
}

impl TermTable {
    pub(super) fn new(domain: Domain) -> TermTable {
        TermTable {
            domain,
            words: AppendVec::new(),
            words_used: AtomicU32::new(0),
            count: AtomicU32::new(0),
            table: ProbeTable::new(),
            lists: Lists::new(),
        }
    }

    /// Number of texts. Every number below it can be read.
    pub(super) fn count(&self) -> u32 {
        self.count.load(Acquire)
    }

    /// The number of a text.
    pub(super) fn find(&self, keyed: &Keyed, text: &str) -> Option<u32> {
        let text = Text::new(text)?;
        self.find_words(self.hash(keyed, &text), &text)
    }

    fn hash(&self, keyed: &Keyed, text: &Text) -> u32 {
        (keyed.words(self.domain, text.words()) >> 32) as u32
    }

    fn find_words(&self, hash: u32, text: &Text) -> Option<u32> {
        self.table.find(hash, |id| {
            let start = self.lists.label(id) as u32;
            // The first word holds the length: if it differs, no more is read.
            text.words().iter().zip(start..).all(|(&word, at)| self.words.get(at) == word)
        })
    }

    /// The number of a text, a new one if need be. Only the one writer may call this.
    pub(super) fn intern(&self, keyed: &Keyed, text: &str) -> u32 {
        let text = Text::new(text).expect("a record's texts have one-byte lengths");
        let hash = self.hash(keyed, &text);
        if let Some(id) = self.find_words(hash, &text) {
            return id;
        }
        let id = self.count.load(Relaxed);
        let start = self.words_used.load(Relaxed);
        for (&word, at) in text.words().iter().zip(start..) {
            self.words.set(at, word);
        }
        self.words_used.store(start + text.used as u32, Relaxed);
        self.lists.begin(id, u64::from(start));
        self.table.insert(hash, id);
        // Release: pairs with `count`, for those who walk over all texts.
        self.count.store(id + 1, Release);
        id
    }

    /// The text with a number below the count, in `buffer`.
    pub(super) fn text<'b>(&self, id: u32, buffer: &'b mut [u8; 256]) -> &'b str {
        let start = self.lists.label(id) as u32;
        let len = (self.words.get(start) & 0xff) as usize;
        for (chunk, at) in buffer.chunks_exact_mut(8).zip(start..=start + (len / 8) as u32) {
            chunk.copy_from_slice(&self.words.get(at).to_le_bytes());
        }
        std::str::from_utf8(&buffer[1..=len]).expect("stored from a text")
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.words_used.load(Relaxed) as usize * 8
            + Lists::memory_bytes(self.count.load(Relaxed))
            + self.table.memory_bytes()
    }
}

/// (type, tag) pairs by their numbers, each with the list of events that have both.
#[derive(Debug)]
pub(super) struct PairTable {
    count: AtomicU32,
    table: ProbeTable,
    /// The events of each pair, by its number; the label is the pair.
    pub(super) lists: Lists,
}

impl PairTable {
    pub(super) fn new() -> PairTable {
        PairTable { count: AtomicU32::new(0), table: ProbeTable::new(), lists: Lists::new() }
    }

    fn key(keyed: &Keyed, event_type: u32, tag: u32) -> (u64, u32) {
        let key = u64::from(event_type) << 32 | u64::from(tag);
        (key, (keyed.pair(u64::from(event_type), u64::from(tag)) >> 32) as u32)
    }

    /// The number of a pair.
    pub(super) fn find(&self, keyed: &Keyed, event_type: u32, tag: u32) -> Option<u32> {
        let (key, hash) = Self::key(keyed, event_type, tag);
        self.table.find(hash, |id| self.lists.label(id) == key)
    }

    /// The number of a pair, a new one if need be. Only the one writer may call this.
    pub(super) fn intern(&self, keyed: &Keyed, event_type: u32, tag: u32) -> u32 {
        let (key, hash) = Self::key(keyed, event_type, tag);
        self.table.find(hash, |id| self.lists.label(id) == key).unwrap_or_else(|| {
            let id = self.count.load(Relaxed);
            self.lists.begin(id, key);
            self.table.insert(hash, id);
            self.count.store(id + 1, Relaxed);
            id
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        Lists::memory_bytes(self.count.load(Relaxed)) + self.table.memory_bytes()
    }
}

/// Event ids and where they stand. The log refuses an id it has; should one
/// stand twice all the same, both are kept and the newest in range is found.
#[derive(Debug)]
pub(super) struct IdTable {
    halves: AppendVec<AtomicU64>,
    rels: AppendVec<AtomicU32>,
    count: AtomicU32,
    table: ProbeTable,
}

impl IdTable {
    pub(super) fn new() -> IdTable {
        IdTable {
            halves: AppendVec::new(),
            rels: AppendVec::new(),
            count: AtomicU32::new(0),
            table: ProbeTable::new(),
        }
    }

    fn split(id: &[u8; 16]) -> [u64; 2] {
        let (low, high) = id.split_at(8);
        [load(low), load(high)]
    }

    fn at(&self, entry: u32) -> [u64; 2] {
        [self.halves.get(entry * 2), self.halves.get(entry * 2 + 1)]
    }

    /// Adds an id. Only the one writer may call this.
    pub(super) fn push(&self, keyed: &Keyed, id: &[u8; 16], rel: u32) {
        let words = Self::split(id);
        let entry = self.count.load(Relaxed);
        self.halves.set(entry * 2, words[0]);
        self.halves.set(entry * 2 + 1, words[1]);
        self.rels.set(entry, rel);
        self.table.insert((keyed.words(Domain::Id, &words) >> 32) as u32, entry);
        // Release: pairs with `for_each`.
        self.count.store(entry + 1, Release);
    }

    /// The newest event in range with this id.
    pub(super) fn find(
        &self,
        keyed: &Keyed,
        id: &[u8; 16],
        range: std::ops::Range<u32>,
    ) -> Option<u32> {
        let words = Self::split(id);
        let mut newest = None;
        self.table.find((keyed.words(Domain::Id, &words) >> 32) as u32, |entry| {
            let rel = self.rels.get(entry);
            if range.contains(&rel) && self.at(entry) == words {
                newest = newest.max(Some(rel));
            }
            false
        });
        newest
    }

    /// Every id with its event, in the order they came.
    pub(super) fn entries(&self) -> impl Iterator<Item = ([u8; 16], u32)> + '_ {
        (0..self.count.load(Acquire)).map(|entry| {
            let mut id = [0; 16];
            let [low, high] = self.at(entry);
            id[..8].copy_from_slice(&low.to_le_bytes());
            id[8..].copy_from_slice(&high.to_le_bytes());
            (id, self.rels.get(entry))
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.count.load(Relaxed) as usize * 20 + self.table.memory_bytes()
    }
}
