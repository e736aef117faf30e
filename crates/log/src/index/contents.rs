//! The contents of an index, in the order in which a sealed index is written.

use super::IndexError;
use super::active::ActiveIndex;
use super::hash::{Domain, load};
use super::term_table::TermTable;
use wellspring_format::record::read_u32;

/// Processes a term and its events.
pub(super) type EachTerm<'f> = dyn FnMut(&[u8], &[u32]) -> Result<(), IndexError> + 'f;

/// The type of each event, as its rank among all types in byte order. Most logs have few types, and
/// a byte for each event stays in a cache where four would not.
pub(super) enum EventTypes {
    Narrow(Vec<u8>),
    Wide(Vec<u32>),
}

impl EventTypes {
    /// No events yet, of that many to come, with ranks below `types`.
    pub(super) fn new(types: u32, events: u32) -> EventTypes {
        match types {
            0..=0x100 => EventTypes::Narrow(Vec::with_capacity(events as usize)),
            _ => EventTypes::Wide(Vec::with_capacity(events as usize)),
        }
    }

    /// Adds the next event.
    pub(super) fn push(&mut self, rank: u32) {
        match self {
            EventTypes::Narrow(ranks) => ranks.push(rank as u8),
            EventTypes::Wide(ranks) => ranks.push(rank),
        }
    }

    #[inline]
    pub(super) fn get(&self, rel: u32) -> u32 {
        match self {
            EventTypes::Narrow(ranks) => ranks[rel as usize].into(),
            EventTypes::Wide(ranks) => ranks[rel as usize],
        }
    }

    /// The number of ranks up to the greatest one that occurs.
    pub(super) fn count(&self) -> u32 {
        let greatest = match self {
            EventTypes::Narrow(ranks) => ranks.iter().max().map(|&rank| rank.into()),
            EventTypes::Wide(ranks) => ranks.iter().max().copied(),
        };
        greatest.map_or(0, |greatest| greatest + 1)
    }
}

/// An index, or several to be merged, as input of the writer of a sealed index.
pub(super) trait Contents {
    /// Position of the first event.
    fn base(&self) -> u64;

    fn events(&self) -> u32;

    /// Threshold for common tags.
    fn common(&self) -> u32;

    /// Counts steps of the writer and occasionally checks whether to continue.
    ///
    /// # Errors
    /// [`IndexError::Stopped`].
    fn step(&self, _steps: usize) -> Result<(), IndexError> {
        Ok(())
    }

    /// An upper bound of the filter's number of keys, if known beforehand.
    fn filter_keys_bound(&self) -> Option<usize>;

    /// About the filter's number of keys, where there is no upper bound.
    fn filter_keys_hint(&self) -> usize {
        0
    }

    /// The offset of each event in its segment, in order.
    ///
    /// # Errors
    /// [`IndexError`].
    fn offsets(
        &self,
        each: &mut dyn FnMut(u32) -> Result<(), IndexError>,
    ) -> Result<(), IndexError>;

    /// The type of each event.
    ///
    /// # Errors
    /// [`IndexError`].
    fn event_types(&self) -> Result<EventTypes, IndexError>;

    /// Every term with events, in byte order, and its events.
    ///
    /// # Errors
    /// [`IndexError`].
    fn terms(&self, domain: Domain, each: &mut EachTerm<'_>) -> Result<(), IndexError>;
}

impl Contents for ActiveIndex {
    fn base(&self) -> u64 {
        ActiveIndex::base(self)
    }

    fn events(&self) -> u32 {
        self.len()
    }

    fn common(&self) -> u32 {
        self.tag_pairs().common()
    }

    fn filter_keys_bound(&self) -> Option<usize> {
        None
    }

    fn filter_keys_hint(&self) -> usize {
        // A tag occurs with one type, as a rule.
        let (types, tags) = self.term_counts();
        (types + 2 * tags + self.id_table().count() + self.key_table().count()) as usize
    }

    fn offsets(
        &self,
        each: &mut dyn FnMut(u32) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        (0..self.len()).try_for_each(|rel| each(self.offset(rel)?))
    }

    fn event_types(&self) -> Result<EventTypes, IndexError> {
        let types = SortedTerms::of(self.type_table());
        let mut places = vec![0u32; self.type_table().count() as usize];
        types.iter().zip(0..).for_each(|((_, id, _), place)| places[id as usize] = place);
        let mut ranks = EventTypes::new(self.type_table().count(), self.len());
        (0..self.len()).for_each(|rel| ranks.push(places[self.type_of(rel) as usize]));
        Ok(ranks)
    }

    fn terms(&self, domain: Domain, each: &mut EachTerm<'_>) -> Result<(), IndexError> {
        let table = match domain {
            Domain::Type => self.type_table(),
            Domain::Tag => self.tag_table(),
            Domain::Key => self.key_table(),
            Domain::Id => return self.each_id(each),
        };
        let mut rels = Vec::new();
        for (text, id, only) in SortedTerms::of(table).iter() {
            match only {
                Some(rel) => {
                    rels.clear();
                    rels.extend((rel < self.len()).then_some(rel));
                }
                None => self.elements(&table.lists, id, self.len(), &mut rels),
            }
            each(text, &rels)?;
        }
        Ok(())
    }
}

impl ActiveIndex {
    fn each_id(&self, each: &mut EachTerm<'_>) -> Result<(), IndexError> {
        let events = self.len();
        let mut ids: Vec<([u8; 16], u32)> =
            self.id_table().entries().filter(|&(_, rel)| rel < events).collect();
        ids.sort_unstable();
        let mut rels = Vec::new();
        for group in ids.chunk_by(|a, b| a.0 == b.0) {
            rels.clear();
            rels.extend(group.iter().map(|&(_, rel)| rel));
            each(&group[0].0, &rels)?;
        }
        Ok(())
    }
}

/// The texts of a table that have events, in byte order, with their numbers. One buffer holds them
/// all: a `String` for each would take more memory than the table itself.
struct SortedTerms {
    /// For each text, the event of a list with one element or [`SEVERAL`], a length byte and the
    /// text: what is read of a term when its turn comes is in one place.
    bytes: Vec<u8>,
    places: Vec<TextPlace>,
}

/// Bytes of an entry before its length byte.
const ENTRY_BYTES: usize = 4;
/// In place of the event of a longer list.
const SEVERAL: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct TextPlace {
    /// The bytes of the text that are being sorted by, zeros after its end.
    word: u64,
    /// Offset of the text's entry in [`SortedTerms::bytes`].
    at: u32,
    /// The number of the text.
    id: u32,
}

/// Groups of equal words up to this size are sorted by comparing the rest of the texts.
const COMPARED: usize = 8;

impl SortedTerms {
    fn of(table: &TermTable) -> SortedTerms {
        let mut buffer = [0; 256];
        let count = table.count();
        // To grow to some megabytes takes as long again as to fill them.
        let bytes = Vec::with_capacity(table.text_bytes() + ENTRY_BYTES * count as usize);
        let mut terms = SortedTerms { bytes, places: Vec::with_capacity(count as usize) };
        for id in 0..count {
            let event = match table.lists.only(id) {
                Ok(event) => event,
                Err(0) => continue,
                Err(_) => SEVERAL,
            };
            let text = table.bytes(id, &mut buffer);
            let place = TextPlace { word: 0, at: terms.bytes.len() as u32, id };
            terms.places.push(place);
            terms.bytes.extend_from_slice(&event.to_le_bytes());
            terms.bytes.push(text.len() as u8);
            terms.bytes.extend_from_slice(text);
        }
        sort(&terms.bytes, &mut terms.places, 0);
        terms
    }

    /// Each text with its number and, of a list with one element, that.
    fn iter(&self) -> impl Iterator<Item = (&[u8], u32, Option<u32>)> {
        self.places.iter().map(|&TextPlace { at, id, .. }| {
            let event = read_u32(&self.bytes, at as usize);
            (text_at(&self.bytes, at), id, (event != SEVERAL).then_some(event))
        })
    }
}

/// Sorts distinct texts that are equal before `depth`, eight bytes at a time: numbers are compared
/// faster than texts, most of which begin alike.
fn sort(bytes: &[u8], places: &mut [TextPlace], depth: usize) {
    if places.len() <= COMPARED {
        let rest = |place: &TextPlace| text_at(bytes, place.at).get(depth..);
        return places.sort_unstable_by(|a, b| rest(a).cmp(&rest(b)));
    }
    places.iter_mut().for_each(|place| place.word = word_at(text_at(bytes, place.at), depth));
    places.sort_unstable_by_key(|place| place.word);
    for group in places.chunk_by_mut(|a, b| a.word == b.word) {
        if group.len() == 1 {
            continue;
        }
        // Those that end within the word differ only by zeros at their end.
        group.sort_unstable_by_key(|place| text_at(bytes, place.at).len().min(depth + 9));
        let end = |place: &TextPlace| text_at(bytes, place.at).len() <= depth + 8;
        let ended = group.partition_point(end);
        sort(bytes, &mut group[ended..], depth + 8);
    }
}

/// Up to eight bytes of a text from `depth` on, as a number that compares as they do.
fn word_at(text: &[u8], depth: usize) -> u64 {
    let rest = text.get(depth..).unwrap_or_default();
    u64::from_be_bytes(match rest.first_chunk() {
        Some(whole) => *whole,
        None => load(rest).to_le_bytes(),
    })
}

/// The text of the entry at `at`.
fn text_at(bytes: &[u8], at: u32) -> &[u8] {
    let (len, rest) = bytes[at as usize + ENTRY_BYTES..].split_first().expect("a length byte");
    &rest[..usize::from(*len)]
}
