//! A cursor over the events of one segment that match a query.

use super::active::ActiveIndex;
use super::lists::ListView;
use super::matching::{Intersection, Source, clamp, parts};
use super::sealed::SealedIndex;
use super::sealed_list::SealedList;
use super::{IndexError, SegmentIndex};
use crate::work::Work;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;
use wellspring_types::Query;

/// The matching events, exactly, each once, in order, found as they are asked
/// for. Owns what it reads; holds at most a decoded block per posting list.
#[derive(Debug)]
pub(crate) struct Candidates {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Active(Arc<ActiveIndex>, Merge<ListView>),
    Sealed(Arc<SealedIndex>, Merge<SealedList>),
}

impl Candidates {
    /// Finds the posting lists; reads none of them yet.
    pub(super) fn new(
        index: &SegmentIndex,
        query: &Query,
        range: Range<u32>,
        descending: bool,
    ) -> Result<Candidates, IndexError> {
        let inner = match index {
            SegmentIndex::Active(index) => {
                Inner::Active(index.clone(), Merge::new(&**index, query, range, descending)?)
            }
            SegmentIndex::Sealed(index) => {
                Inner::Sealed(index.clone(), Merge::new(&**index, query, range, descending)?)
            }
        };
        Ok(Candidates { inner })
    }

    /// Appends up to `max` further events to `out`; whether there may be more.
    ///
    /// # Errors
    /// [`IndexError`]; nothing was appended and the cursor stays where it was, so that after
    /// [`IndexError::Stopped`] the next call goes on.
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

/// The union of intersections, merged.
#[derive(Debug)]
struct Merge<L> {
    descending: bool,
    /// What has not been answered yet.
    rest: Range<u32>,
    /// Every event in range matches.
    all: bool,
    parts: Vec<Intersection<L>>,
    /// The next event of a part, with the part. A key is the event's number, inverted when
    /// ascending: the heap gives the greatest.
    heap: BinaryHeap<(u32, u32)>,
    /// Parts to be asked for their next event from `rest` on: neither on the heap nor exhausted.
    unoffered: Vec<u32>,
}

impl<L> Merge<L> {
    fn new<S: Source<List = L>>(
        source: &S,
        query: &Query,
        range: Range<u32>,
        descending: bool,
    ) -> Result<Merge<L>, IndexError> {
        let rest = clamp(source, range).unwrap_or(0..0);
        let all = query.is_all();
        let parts = if all || rest.is_empty() { Vec::new() } else { parts(source, &query.items)? };
        let unoffered = (0..parts.len() as u32).collect();
        Ok(Merge { descending, rest, all, parts, heap: BinaryHeap::new(), unoffered })
    }

    fn next_chunk<S: Source<List = L>>(
        &mut self,
        source: &S,
        out: &mut Vec<u32>,
        max: usize,
        work: &mut Work,
    ) -> Result<bool, IndexError> {
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
            // What was found before is given first, so that retries make progress.
            return if out.len() > before { Ok(true) } else { Err(error) };
        }
        Ok(!self.rest.is_empty())
    }

    /// Where reading goes on.
    fn from(&self) -> Option<u32> {
        let from = if self.descending { self.rest.end.checked_sub(1)? } else { self.rest.start };
        self.rest.contains(&from).then_some(from)
    }

    /// Everything up to and including `rel` has been answered.
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

    fn fill_one<S: Source<List = L>>(
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

    fn fill_merged<S: Source<List = L>>(
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

    /// Puts a part's next event at `from` or beyond on the heap.
    fn offer<S: Source<List = L>>(
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
