//! A cursor over the events of one segment that match a query.

use super::active::ActiveIndex;
use super::lists::ListView;
use super::matching::{Intersection, Source, clamp};
use super::resolve::Resolution;
use super::sealed::{SealedIndex, SealedTerm};
use super::sealed_list::SealedList;
use super::{IndexError, SegmentIndex};
use crate::query::CompiledQuery;
use crate::work::Work;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::Range;
use std::sync::Arc;

/// Exactly the matching events, in order, found on demand. Owns its input; holds at most one
/// decoded block per posting list.
#[derive(Debug)]
pub(crate) struct Candidates {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Active(Arc<ActiveIndex>, Merge<ListView, u32>),
    Sealed(Arc<SealedIndex>, Merge<SealedList, SealedTerm>),
}

impl Candidates {
    /// Performs no look-ups yet.
    pub(super) fn new(
        index: &SegmentIndex,
        query: &Arc<CompiledQuery>,
        range: Range<u32>,
        descending: bool,
    ) -> Candidates {
        let inner = match index {
            SegmentIndex::Active(index) => {
                Inner::Active(index.clone(), Merge::new(&**index, query, range, descending))
            }
            SegmentIndex::Sealed(index) => {
                Inner::Sealed(index.clone(), Merge::new(&**index, query, range, descending))
            }
        };
        Candidates { inner }
    }

    /// Finds the posting lists without reading them. The first [`next_chunk`](Self::next_chunk)
    /// completes what is left.
    ///
    /// # Errors
    /// [`IndexError`]; after [`IndexError::Stopped`] the next call continues.
    pub(crate) fn prepare(&mut self, work: &mut Work) -> Result<(), IndexError> {
        match &mut self.inner {
            Inner::Active(index, merge) => merge.prepare(&**index, work),
            Inner::Sealed(index, merge) => merge.prepare(&**index, work),
        }
    }

    /// Appends up to `max` further events to `out`; returns whether there may be more.
    ///
    /// # Errors
    /// [`IndexError`]; nothing was appended and the cursor keeps its place, so that after
    /// [`IndexError::Stopped`] the next call continues.
    pub(crate) fn next_chunk(
        &mut self,
        out: &mut Vec<u32>,
        max: usize,
        work: &mut Work,
    ) -> Result<bool, IndexError> {
        match &mut self.inner {
            Inner::Active(index, merge) => merge.next_chunk(&**index, out, max, work),
            Inner::Sealed(index, merge) => merge.next_chunk(&**index, out, max, work),
        }
    }
}

/// A merged union of intersections.
#[derive(Debug)]
struct Merge<L, T> {
    descending: bool,
    /// The range that has not been returned yet.
    rest: Range<u32>,
    /// Whether every event in range matches.
    all: bool,
    query: Arc<CompiledQuery>,
    /// The terms found; `None` once all items have become parts.
    unresolved: Option<Box<Unresolved<T>>>,
    parts: Vec<Intersection<L>>,
    /// The next event of each part, with the part. The key is the event's number, inverted when
    /// ascending, because the heap returns the greatest.
    heap: BinaryHeap<(u32, u32)>,
    /// Parts whose next event from `rest` on is unknown: neither on the heap nor exhausted.
    unoffered: Vec<u32>,
}

/// Items that have not become parts yet.
#[derive(Debug)]
struct Unresolved<T> {
    resolution: Resolution<T>,
    /// The next item.
    next: usize,
    /// Types whose whole lists are already parts.
    plain_types: BTreeSet<u32>,
}

impl<L, T: Clone> Merge<L, T> {
    fn new<S: Source<List = L, Term = T>>(
        source: &S,
        query: &Arc<CompiledQuery>,
        range: Range<u32>,
        descending: bool,
    ) -> Merge<L, T> {
        let rest = clamp(source, range).unwrap_or(0..0);
        let all = query.is_all();
        let unresolved = (!all && !rest.is_empty()).then(|| {
            let resolution = Resolution::new(query);
            Box::new(Unresolved { resolution, next: 0, plain_types: BTreeSet::new() })
        });
        Merge {
            descending,
            rest,
            all,
            query: Arc::clone(query),
            unresolved,
            parts: Vec::new(),
            heap: BinaryHeap::new(),
            unoffered: Vec::new(),
        }
    }

    /// Turns the remaining items into parts.
    fn prepare<S: Source<List = L, Term = T>>(
        &mut self,
        source: &S,
        work: &mut Work,
    ) -> Result<(), IndexError> {
        let Some(unresolved) = &mut self.unresolved else { return Ok(()) };
        let query = &*self.query;
        while let Some(item) = query.items().get(unresolved.next) {
            work.step(1)?;
            // The lists of types without tags, each once: items that share types are common.
            let types = query.types_of(item);
            let plain = query.tags_of(item).is_empty();
            if !plain || !types.iter().all(|name| unresolved.plain_types.contains(name)) {
                unresolved.resolution.parts(source, query, item, work, &mut self.parts)?;
            }
            if plain {
                unresolved.plain_types.extend(types);
            }
            unresolved.next += 1;
        }
        self.unresolved = None;
        self.unoffered = (0..self.parts.len() as u32).collect();
        Ok(())
    }

    fn next_chunk<S: Source<List = L, Term = T>>(
        &mut self,
        source: &S,
        out: &mut Vec<u32>,
        max: usize,
        work: &mut Work,
    ) -> Result<bool, IndexError> {
        self.prepare(source, work)?;
        let before = out.len();
        let filled = if self.all {
            self.fill_all(out, max);
            Ok(())
        } else if self.parts.len() == 1 {
            self.fill_one(source, out, max, work)
        } else {
            self.fill_merged(source, out, max, work)
        };
        if let Err(error) = filled {
            // Events found before are returned first, so that retries make progress.
            return if out.len() > before { Ok(true) } else { Err(error) };
        }
        Ok(!self.rest.is_empty())
    }

    /// Where reading continues.
    fn from(&self) -> Option<u32> {
        let from = if self.descending { self.rest.end.checked_sub(1)? } else { self.rest.start };
        self.rest.contains(&from).then_some(from)
    }

    /// Everything up to and including `rel` has been returned.
    fn passed(&mut self, rel: u32) {
        if self.descending {
            self.rest.end = rel;
        } else {
            self.rest.start = rel + 1;
        }
    }

    fn finish(&mut self) {
        self.rest = 0..0;
    }

    fn fill_all(&mut self, out: &mut Vec<u32>, max: usize) {
        let take = self.rest.len().min(max) as u32;
        if self.descending {
            let start = self.rest.end - take;
            out.extend((start..self.rest.end).rev());
            self.rest.end = start;
        } else {
            let end = self.rest.start + take;
            out.extend(self.rest.start..end);
            self.rest.start = end;
        }
    }

    fn fill_one<S: Source<List = L, Term = T>>(
        &mut self,
        source: &S,
        out: &mut Vec<u32>,
        max: usize,
        work: &mut Work,
    ) -> Result<(), IndexError> {
        for _ in 0..max {
            let Some(from) = self.from() else { break };
            match self.parts[0].seek(source, from, &self.rest, self.descending, work)? {
                Some(rel) => {
                    out.push(rel);
                    self.passed(rel);
                }
                None => self.finish(),
            }
        }
        Ok(())
    }

    fn fill_merged<S: Source<List = L, Term = T>>(
        &mut self,
        source: &S,
        out: &mut Vec<u32>,
        max: usize,
        work: &mut Work,
    ) -> Result<(), IndexError> {
        for _ in 0..max {
            let Some(from) = self.from() else { break };
            while let Some(&part) = self.unoffered.last() {
                self.offer(source, part, from, work)?;
                self.unoffered.pop();
            }
            let Some(&(key, _)) = self.heap.peek() else {
                self.finish();
                break;
            };
            let rel = if self.descending { key } else { !key };
            out.push(rel);
            self.passed(rel);
            while let Some(&(_, part)) = self.heap.peek().filter(|&&(other, _)| other == key) {
                self.heap.pop();
                self.unoffered.push(part);
            }
        }
        Ok(())
    }

    /// Pushes a part's next event at or beyond `from` on the heap.
    fn offer<S: Source<List = L, Term = T>>(
        &mut self,
        source: &S,
        part: u32,
        from: u32,
        work: &mut Work,
    ) -> Result<(), IndexError> {
        let part_at = &mut self.parts[part as usize];
        let found = part_at.seek(source, from, &self.rest, self.descending, work)?;
        if let Some(rel) = found {
            self.heap.push((if self.descending { rel } else { !rel }, part));
        }
        Ok(())
    }
}
