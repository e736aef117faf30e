//! The dictionaries of the active segment, which map texts, event ids and (type, tag) pairs to
//! dense numbers exactly: bytes are compared, not just hashes.

use super::append_vec::{AppendVec, Cell};
use super::bucket_table::BucketTable;
use super::hash::{Domain, Keyed, load};
use super::lists::Lists;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Replaces the event in the entry of a removed id: no range contains it.
const BLANK: u32 = u32::MAX;

/// Texts of at most 255 bytes, each with the list of its events.
///
/// A text is stored as words: its length in the lowest byte of the first, then its bytes, then
/// zeros. It is compared in place, and all its words are contiguous.
#[derive(Debug)]
pub(super) struct TermTable {
    domain: Domain,
    words: AppendVec<AtomicU64>,
    words_used: AtomicU32,
    count: AtomicU32,
    table: BucketTable,
    /// The events of each text, by its number; the label is the offset of its words.
    pub(super) lists: Lists,
}

/// The words of a text.
fn words(text: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (first, rest) = text.split_at(text.len().min(7));
    let (whole, tail) = rest.as_chunks::<8>();
    let first = text.len() as u64 | load(first) << 8;
    let tail = (!tail.is_empty()).then(|| load(tail));
    std::iter::once(first).chain(whole.iter().map(|word| u64::from_le_bytes(*word))).chain(tail)
}

/// A prefix of a text, as it appears in the text's first word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Beginning {
    word: u64,
    mask: u64,
}

impl Beginning {
    pub(super) fn new(prefix: &str) -> Beginning {
        let bytes = &prefix.as_bytes()[..prefix.len().min(7)];
        let mask = u64::MAX.checked_shr(64 - 8 * bytes.len() as u32).unwrap_or(0) << 8;
        Beginning { word: load(bytes) << 8, mask }
    }
}

/// Number of words of a text with this many bytes.
fn word_count(len: usize) -> usize {
    (len + 1).div_ceil(8)
}

impl TermTable {
    pub(super) fn new(domain: Domain) -> TermTable {
        TermTable {
            domain,
            words: AppendVec::new(),
            words_used: AtomicU32::new(0),
            count: AtomicU32::new(0),
            table: BucketTable::new(),
            lists: Lists::new(),
        }
    }

    /// Number of texts. Every lower number can be read.
    pub(super) fn count(&self) -> u32 {
        self.count.load(Acquire)
    }

    /// The number of a text; `None` also if it is longer than any term can be.
    pub(super) fn find(&self, keyed: &Keyed, text: &str) -> Option<u32> {
        u8::try_from(text.len()).ok()?;
        self.find_hashed(self.hash(keyed, text), text)
    }

    fn hash(&self, keyed: &Keyed, text: &str) -> u32 {
        (keyed.bytes(self.domain, text.as_bytes()) >> 32) as u32
    }

    #[inline]
    fn find_hashed(&self, hash: u32, text: &str) -> Option<u32> {
        let text = text.as_bytes();
        self.table.find(hash, |id| {
            // The first word contains the length, so equal first words imply equal numbers of
            // words.
            let stored = self.words.run(self.lists.label(id) as u32, word_count(text.len()));
            stored.iter().zip(words(text)).all(|(stored, word)| stored.get() == word)
        })
    }

    /// The number of a text, added if necessary. Only the writer may call this.
    pub(super) fn intern(&self, keyed: &Keyed, text: &str) -> u32 {
        assert!(text.len() <= 255, "a record's texts have one-byte lengths");
        let hash = self.hash(keyed, text);
        if let Some(id) = self.find_hashed(hash, text) {
            return id;
        }
        let id = self.count.load(Relaxed);
        let len = word_count(text.len());
        let start = AppendVec::<AtomicU64>::fit(self.words_used.load(Relaxed), len);
        for (word, at) in words(text.as_bytes()).zip(start..) {
            self.words.set(at, word);
        }
        self.words_used.store(start + len as u32, Relaxed);
        self.lists.begin(id, u64::from(start));
        self.table.insert(hash, id);
        // Release: pairs with `count`, for iteration over all texts.
        self.count.store(id + 1, Release);
        id
    }

    /// Whether a text may begin with a prefix: compares seven bytes in place.
    #[inline]
    pub(super) fn may_begin(&self, id: u32, beginning: Beginning) -> bool {
        let first = self.words.get(self.lists.label(id) as u32);
        (first ^ beginning.word) & beginning.mask == 0
    }

    /// An upper bound of the size of all texts.
    pub(super) fn text_bytes(&self) -> usize {
        self.words_used.load(Relaxed) as usize * 8
    }

    /// The text with a number below the count, in `buffer`.
    pub(super) fn text<'b>(&self, id: u32, buffer: &'b mut [u8; 256]) -> &'b str {
        std::str::from_utf8(self.bytes(id, buffer)).expect("stored from a text")
    }

    /// The bytes of the text with a number below the count, in `buffer`.
    pub(super) fn bytes<'b>(&self, id: u32, buffer: &'b mut [u8; 256]) -> &'b [u8] {
        let start = self.lists.label(id) as u32;
        let len = (self.words.get(start) & 0xff) as usize;
        let stored = self.words.run(start, word_count(len));
        for (chunk, word) in buffer.as_chunks_mut::<8>().0.iter_mut().zip(stored) {
            *chunk = word.get().to_le_bytes();
        }
        &buffer[1..=len]
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let count = self.count.load(Relaxed);
        self.words_used.load(Relaxed) as usize * 8
            + Lists::memory_bytes(count)
            + self.table.memory_bytes()
    }
}

/// (type, tag) pairs by their numbers, each with the list of events that have both.
#[derive(Debug)]
pub(super) struct PairTable {
    count: AtomicU32,
    table: BucketTable,
    /// The events of each pair, by its number; the label is the pair.
    pub(super) lists: Lists,
}

impl PairTable {
    pub(super) fn new() -> PairTable {
        PairTable { count: AtomicU32::new(0), table: BucketTable::new(), lists: Lists::new() }
    }

    fn key(keyed: &Keyed, event_type: u32, tag: u32) -> (u64, u32) {
        let key = u64::from(event_type) << 32 | u64::from(tag);
        (key, (keyed.pair(u64::from(event_type), u64::from(tag)) >> 32) as u32)
    }

    /// Whether there has never been a pair.
    pub(super) fn is_empty(&self) -> bool {
        self.count.load(Relaxed) == 0
    }

    /// The number of a pair.
    pub(super) fn find(&self, keyed: &Keyed, event_type: u32, tag: u32) -> Option<u32> {
        let (key, hash) = Self::key(keyed, event_type, tag);
        self.table.find(hash, |id| self.lists.label(id) == key)
    }

    /// The number of a pair, added if necessary. Only the writer may call this.
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
        let count = self.count.load(Relaxed);
        Lists::memory_bytes(count) + self.table.memory_bytes()
    }
}

/// Event ids and their events. The log refuses a repeated id; if one occurs anyway, both are kept
/// and the newest in range is found.
#[derive(Debug)]
pub(super) struct IdTable {
    halves: AppendVec<AtomicU64>,
    rels: AppendVec<AtomicU32>,
    count: AtomicU32,
    table: BucketTable,
}

impl IdTable {
    pub(super) fn new() -> IdTable {
        IdTable {
            halves: AppendVec::new(),
            rels: AppendVec::new(),
            count: AtomicU32::new(0),
            table: BucketTable::new(),
        }
    }

    fn split(id: &[u8; 16]) -> [u64; 2] {
        let (low, high) = id.split_at(8);
        [load(low), load(high)]
    }

    fn hash(keyed: &Keyed, words: &[u64; 2]) -> u32 {
        (keyed.words(Domain::Id, words) >> 32) as u32
    }

    fn at(&self, entry: u32) -> [u64; 2] {
        [self.halves.get(entry * 2), self.halves.get(entry * 2 + 1)]
    }

    /// Adds an id. Only the writer may call this.
    pub(super) fn push(&self, keyed: &Keyed, id: &[u8; 16], rel: u32) {
        let words = Self::split(id);
        let entry = self.count.load(Relaxed);
        self.halves.set(entry * 2, words[0]);
        self.halves.set(entry * 2 + 1, words[1]);
        self.rels.set(entry, rel);
        self.table.insert(Self::hash(keyed, &words), entry);
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
        self.table.find(Self::hash(keyed, &words), |entry| {
            let rel = self.rels.get(entry);
            if range.contains(&rel) && self.at(entry) == words {
                newest = newest.max(Some(rel));
            }
            false
        });
        newest
    }

    /// Removes an id of an event at or after `bound`. Only the writer may call this. The entry
    /// stays and is marked as unused: a probe table cannot delete entries.
    pub(super) fn blank(&self, keyed: &Keyed, id: &[u8; 16], bound: u32) {
        let words = Self::split(id);
        self.table.find((keyed.words(Domain::Id, &words) >> 32) as u32, |entry| {
            if self.rels.get(entry) >= bound && self.at(entry) == words {
                self.rels.set(entry, BLANK);
            }
            false
        });
    }

    /// Number of entries.
    pub(super) fn count(&self) -> u32 {
        self.count.load(Acquire)
    }

    /// Every id with its event, in order of insertion.
    pub(super) fn entries(&self) -> impl Iterator<Item = ([u8; 16], u32)> + '_ {
        let all = 0..self.count.load(Acquire);
        all.filter(|&entry| self.rels.get(entry) != BLANK).map(|entry| {
            let mut id = [0; 16];
            let [low, high] = self.at(entry);
            id[..8].copy_from_slice(&low.to_le_bytes());
            id[8..].copy_from_slice(&high.to_le_bytes());
            (id, self.rels.get(entry))
        })
    }

    pub(super) fn memory_bytes(&self) -> usize {
        let count = self.count.load(Relaxed);
        count as usize * 20 + self.table.memory_bytes()
    }
}
