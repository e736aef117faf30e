//! Reading a sealed index as a whole, so that damage shows before a query meets it.

use super::IndexError;
use super::file::{Header, Part};
use super::hash::Domain;
use super::sealed::SealedIndex;

/// Told of bytes that have been read, as they are.
pub(crate) type Pass<'a> = &'a mut dyn FnMut(u64) -> Result<(), IndexError>;

impl SealedIndex {
    /// Reads and checks everything in the file, as the device has it. `pass` is told of the bytes
    /// of each section once it has been read, and may stop.
    ///
    /// # Errors
    /// The first fault, or that of `pass`.
    pub(crate) fn scrub(&self, pass: Pass<'_>) -> Result<(), IndexError> {
        let Some(file) = self.file_past_cache() else { return self.check(pass) };
        let stored = SealedIndex::open(file)?;
        let identity = |index: &SealedIndex| (index.base(), index.len(), index.salt());
        // A device that has lost a write has what was there before.
        if identity(&stored) != identity(self) {
            return Err(IndexError::Damaged { what: "the header of another index", offset: 0 });
        }
        stored.check(pass)
    }

    fn check(&self, pass: Pass<'_>) -> Result<(), IndexError> {
        Header::read(self.file())?;
        self.segments()?;
        let domains = [
            (Domain::Type, Part::Types),
            (Domain::Tag, Part::Tags),
            (Domain::Id, Part::Ids),
            (Domain::Key, Part::Keys),
        ];
        let mut rels = Vec::new();
        for (domain, part) in domains {
            let mut terms = self.scan(domain)?;
            while terms.next(self.file())?.is_some() {
                rels.clear();
                terms.list().read_all(self.file(), self.len(), 0, &mut rels)?;
            }
            pass(self.section_bytes(part))?;
        }
        let mut pairs = self.scan_pairs()?;
        while pairs.next(self.file())?.is_some() {
            rels.clear();
            pairs.list().read_all(self.file(), self.len(), 0, &mut rels)?;
        }
        pass(self.section_bytes(Part::Pairs) + self.section_bytes(Part::Postings))?;
        self.each_offset(&mut |_| Ok(()))?;
        self.each_type(&mut |_| Ok(()))?;
        pass(self.section_bytes(Part::Offsets) + self.section_bytes(Part::TypeColumn))?;
        self.check_filter()?;
        pass(self.section_bytes(Part::Filter))
    }
}
