//! The contents of an index, in the order in which a sealed index is written.

use super::IndexError;
use super::active::ActiveIndex;
use super::hash::Domain;
use super::term_table::TermTable;

/// Processes a term and its events.
pub(super) type EachTerm<'f> = dyn FnMut(&[u8], &[u32]) -> Result<(), IndexError> + 'f;

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

    /// The offset of each event in its segment, in order.
    ///
    /// # Errors
    /// [`IndexError`].
    fn offsets(
        &self,
        each: &mut dyn FnMut(u32) -> Result<(), IndexError>,
    ) -> Result<(), IndexError>;

    /// The type of each event, as its rank among all types in byte order.
    ///
    /// # Errors
    /// [`IndexError`].
    fn event_types(&self) -> Result<Vec<u32>, IndexError>;

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

    fn offsets(
        &self,
        each: &mut dyn FnMut(u32) -> Result<(), IndexError>,
    ) -> Result<(), IndexError> {
        (0..self.len()).try_for_each(|rel| each(self.offset(rel)?))
    }

    fn event_types(&self) -> Result<Vec<u32>, IndexError> {
        let types = SortedTerms::of(self.type_table());
        let mut places = vec![0u32; self.type_table().count() as usize];
        types.iter().zip(0..).for_each(|((_, id), place)| places[id as usize] = place);
        Ok((0..self.len()).map(|rel| places[self.type_of(rel) as usize]).collect())
    }

    fn terms(&self, domain: Domain, each: &mut EachTerm<'_>) -> Result<(), IndexError> {
        let table = match domain {
            Domain::Type => self.type_table(),
            Domain::Tag => self.tag_table(),
            Domain::Key => self.key_table(),
            Domain::Id => return self.each_id(each),
        };
        let mut rels = Vec::new();
        for (text, id) in SortedTerms::of(table).iter() {
            self.elements(&table.lists, id, self.len(), &mut rels);
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
    /// For each text, a length byte and the text.
    bytes: Vec<u8>,
    /// The offset of each text in `bytes`, and its number.
    places: Vec<(u32, u32)>,
}

impl SortedTerms {
    fn of(table: &TermTable) -> SortedTerms {
        let mut buffer = [0; 256];
        let mut terms = SortedTerms { bytes: Vec::new(), places: Vec::new() };
        for id in (0..table.count()).filter(|&id| table.lists.count(id) > 0) {
            let text = table.text(id, &mut buffer);
            terms.places.push((terms.bytes.len() as u32, id));
            terms.bytes.push(text.len() as u8);
            terms.bytes.extend_from_slice(text.as_bytes());
        }
        let SortedTerms { bytes, places } = &mut terms;
        places.sort_unstable_by(|a, b| text_at(bytes, a.0).cmp(text_at(bytes, b.0)));
        terms
    }

    fn iter(&self) -> impl Iterator<Item = (&[u8], u32)> {
        self.places.iter().map(|&(at, id)| (text_at(&self.bytes, at), id))
    }
}

/// The text whose length byte is at `at`.
fn text_at(bytes: &[u8], at: u32) -> &[u8] {
    let (len, rest) = bytes[at as usize..].split_first().expect("a length byte");
    &rest[..usize::from(*len)]
}
