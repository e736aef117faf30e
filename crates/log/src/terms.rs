//! The types and tags of a log with the number of events that carry them, in pages: merged from the
//! indexes of all runs, no event is read.

use crate::error::ReadError;
use crate::index::{TermKind, TermPage};
use crate::read::{Snapshot, TermCount};
use std::collections::BTreeMap;

impl Snapshot {
    /// All types with their counts, in byte order. As long as there are types: for a page of them
    /// ask [`types_page`](Self::types_page).
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn types(&self) -> Result<Vec<TermCount>, ReadError> {
        self.types_page(None, usize::MAX)
    }

    /// The first `limit` types greater than `after`, with their counts, in byte order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn types_page(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TermCount>, ReadError> {
        self.page(TermKind::Type, &TermPage { after, limit, ..TermPage::ALL })
    }

    /// The first `limit` tags that begin with `prefix` and are greater than `after`, with their
    /// counts, in byte order.
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn tags(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<TermCount>, ReadError> {
        self.page(TermKind::Tag, &TermPage { prefix, after, limit, ..TermPage::ALL })
    }

    fn page(&self, kind: TermKind, page: &TermPage<'_>) -> Result<Vec<TermCount>, ReadError> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for run in self.runs() {
            let end = run.range(0, self.head()).end;
            // The first `limit` overall are among the first `limit` of each run, and a term
            // among them is among the first of every run that has it. Nothing greater than
            // the last of a full page can be among them.
            let full = counts.len() == page.limit;
            let last = counts.last_key_value().map(|(term, _)| term.clone()).filter(|_| full);
            let page = TermPage { until: last.as_deref(), ..*page };
            for (term, count) in run.ask(|index| index.page(kind, &page, end))? {
                *counts.entry(term).or_insert(0) += count;
            }
            while counts.len() > page.limit {
                counts.pop_last();
            }
        }
        Ok(counts.into_iter().map(|(term, count)| TermCount { term, count }).collect())
    }
}
