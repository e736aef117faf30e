//! Allocates places for records and reuses the ones that links have left, so memory grows with
//! links, not with changes.
//!
//! The first record of a link takes exactly its size. Changed records take one of a few sizes, a
//! quarter apart, so that a freed place fits a later change of similar length.

use super::record::Record;

/// Sizes of places, in words, ascending: 4, 5, 6, 7, 8, 10, 12, 14, 16, …
fn size(class: usize) -> u64 {
    (4 + class as u64 % 4) << (class / 4)
}

/// The smallest size class that holds this many words.
fn class_for(words: u64) -> usize {
    (0..).find(|&class| size(class) >= words).expect("sizes never end")
}

/// The writer's allocator; see the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Places {
    /// End of the used words.
    end: u64,
    /// Free places by size class.
    left: Vec<Vec<u64>>,
}

impl Places {
    /// Allocates a place for a record. Readers may still be reading what it held before.
    pub(super) fn take(&mut self, record: &Record) -> u64 {
        if record.changed == record.created {
            let place = self.end;
            self.end += record.words();
            return place;
        }
        let class = class_for(record.words());
        if let Some(place) = self.left.get_mut(class).and_then(Vec::pop) {
            return place;
        }
        let place = self.end;
        self.end += size(class);
        place
    }

    /// Frees the place of a record.
    pub(super) fn leave(&mut self, place: u64, record: &Record) {
        let fits = class_for(record.words());
        let class = if record.changed != record.created || size(fits) == record.words() {
            fits
        } else {
            // A first record is of exact size, so it may not fill its class.
            match fits.checked_sub(1) {
                Some(smaller) => {
                    debug_assert!(size(smaller) < record.words(), "no later record overlaps");
                    smaller
                }
                None => return,
            }
        };
        if self.left.len() <= class {
            self.left.resize_with(class + 1, Vec::new);
        }
        self.left[class].push(place);
    }

    #[cfg(test)]
    pub(super) fn end(&self) -> u64 {
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ascend_by_a_quarter_at_most() {
        for class in 0..40 {
            assert!(size(class) < size(class + 1) && size(class + 1) * 4 <= size(class) * 5);
            assert_eq!(class_for(size(class)), class);
            assert_eq!(class_for(size(class) + 1), class + 1);
        }
    }
}
