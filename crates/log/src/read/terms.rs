//! The types and tags of a log with their event counts, in pages: merged from the indexes of all
//! runs, without reading events.

use super::snapshot::Snapshot;
use crate::error::ReadError;
use crate::index::{TermKind, TermPage};
use crate::work::Work;
use std::collections::BTreeMap;

/// A type or tag and the number of events that carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermCount {
    /// The type or tag.
    pub term: String,
    /// Events that carry it.
    pub count: u64,
}

impl Snapshot {
    /// All types with their counts, in byte order. Unbounded; for a page use
    /// [`types_page`](Self::types_page).
    ///
    /// # Errors
    /// [`ReadError`].
    pub fn types(&self) -> Result<Vec<TermCount>, ReadError> {
        self.types_page(None, usize::MAX, &mut Work::unbounded())
    }

    /// The first `limit` types greater than `after`, with their counts, in byte order.
    ///
    /// # Errors
    /// [`ReadError`], also if `work` stops: partial results are lost.
    pub fn types_page(
        &self,
        after: Option<&str>,
        limit: usize,
        work: &mut Work,
    ) -> Result<Vec<TermCount>, ReadError> {
        self.page(TermKind::Type, &TermPage { after, limit, ..TermPage::ALL }, work)
    }

    /// The first `limit` tags that begin with `prefix` and are greater than `after`, with their
    /// counts, in byte order.
    ///
    /// # Errors
    /// [`ReadError`], also if `work` stops: partial results are lost.
    pub fn tags(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        work: &mut Work,
    ) -> Result<Vec<TermCount>, ReadError> {
        self.page(TermKind::Tag, &TermPage { prefix, after, limit, ..TermPage::ALL }, work)
    }

    fn page(
        &self,
        kind: TermKind,
        page: &TermPage<'_>,
        work: &mut Work,
    ) -> Result<Vec<TermCount>, ReadError> {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for run in self.runs() {
            let end = run.range(0, self.head()).end;
            // The first `limit` terms overall are among the first `limit` of each run that contains
            // them. Terms greater than the last of a full page cannot be among them.
            let full = counts.len() == page.limit;
            let last = counts.last_key_value().map(|(term, _)| term.clone()).filter(|_| full);
            let page = TermPage { until: last.as_deref(), ..*page };
            let found = run.ask(work, |index, _| index.page(kind, &page, end))?;
            work.step(found.len() as u64).map_err(ReadError::Stopped)?;
            for (term, count) in found {
                *counts.entry(term).or_insert(0) += count;
            }
            while counts.len() > page.limit {
                counts.pop_last();
            }
        }
        Ok(counts.into_iter().map(|(term, count)| TermCount { term, count }).collect())
    }
}
