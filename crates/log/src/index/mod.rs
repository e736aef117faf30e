//! TEMPORARY slow stand-in until the real index lands.
#![allow(dead_code, missing_docs, unreachable_pub)]
use crate::record::RecordView;
use std::io;
use std::ops::Range;
use std::sync::{Arc, RwLock};
use wellspring_types::{Query, QueryItem};

pub trait ReadAt: Send + Sync + std::fmt::Debug {
    fn read_exact_at(&self, buf: &mut [u8], offset: u64) -> io::Result<()>;
    fn len(&self) -> io::Result<u64>;
}
#[derive(Debug)]
pub enum IndexError {
    Io(io::Error),
    Damaged { what: &'static str, offset: u64 },
    Version(u32),
}
#[derive(Debug, Clone)]
struct E {
    offset: u32,
    t: String,
    tags: Vec<String>,
    id: Option<[u8; 16]>,
    key: Option<String>,
}
#[derive(Debug)]
pub struct ActiveIndex {
    base: u64,
    v: RwLock<Vec<E>>,
}
#[derive(Debug)]
pub struct ActiveWriter(Arc<ActiveIndex>);
impl ActiveIndex {
    pub fn new(base: u64) -> (Arc<ActiveIndex>, ActiveWriter) {
        let a = Arc::new(ActiveIndex { base, v: RwLock::new(vec![]) });
        (a.clone(), ActiveWriter(a))
    }
}
impl ActiveWriter {
    pub fn push(&mut self, offset: u32, r: &RecordView<'_>) {
        self.0.v.write().unwrap().push(E {
            offset,
            t: r.event_type().into(),
            tags: r.tags().map(Into::into).collect(),
            id: r.id().map(|i| i.0),
            key: r.request_key().map(|k| k.0.to_owned()),
        });
    }
}
#[derive(Debug)]
pub struct SealedIndex;
impl SealedIndex {
    pub fn open(_: Arc<dyn ReadAt>) -> Result<SealedIndex, IndexError> {
        Err(IndexError::Damaged { what: "x", offset: 0 })
    }
    pub fn base(&self) -> u64 {
        0
    }
    pub fn len(&self) -> u32 {
        0
    }
    pub fn segment_len(&self) -> u64 {
        0
    }
}
pub struct SealedBuilder;
impl SealedBuilder {
    pub fn new(_: u64) -> Self {
        SealedBuilder
    }
    pub fn push(&mut self, _: u32, _: &RecordView<'_>) {}
    pub fn finish(self, _: u64) -> Vec<u8> {
        vec![]
    }
}
#[derive(Debug, Clone)]
pub enum SegmentIndex {
    Active(Arc<ActiveIndex>),
    Sealed(Arc<SealedIndex>),
}
#[derive(Debug)]
pub struct Candidates(std::collections::VecDeque<u32>);
impl Candidates {
    pub fn next_chunk(&mut self, out: &mut Vec<u32>, max: usize) -> Result<bool, IndexError> {
        let n = max.min(self.0.len());
        out.extend(self.0.drain(..n));
        Ok(!self.0.is_empty())
    }
}
impl SegmentIndex {
    fn a(&self) -> &ActiveIndex {
        match self {
            SegmentIndex::Active(a) => a,
            SegmentIndex::Sealed(_) => unreachable!(),
        }
    }
    pub fn offset(&self, rel: u32) -> Result<u32, IndexError> {
        Ok(self.a().v.read().unwrap()[rel as usize].offset)
    }
    pub fn offsets(&self, rels: &[u32], out: &mut Vec<u32>) -> Result<(), IndexError> {
        for r in rels {
            out.push(self.offset(*r)?);
        }
        Ok(())
    }
    pub fn newest(&self, item: &QueryItem, range: Range<u32>) -> Result<Option<u32>, IndexError> {
        let v = self.a().v.read().unwrap();
        Ok((range.start..range.end.min(v.len() as u32)).rev().find(|&i| {
            item.matches(&v[i as usize].t, v[i as usize].tags.iter().map(String::as_str))
        }))
    }
    pub fn cursor(
        &self,
        q: &Query,
        range: Range<u32>,
        desc: bool,
    ) -> Result<Candidates, IndexError> {
        let v = self.a().v.read().unwrap();
        let mut c: Vec<u32> = (range.start..range.end.min(v.len() as u32))
            .filter(|&i| {
                q.matching_item(&v[i as usize].t, v[i as usize].tags.iter().map(String::as_str))
                    .is_some()
            })
            .collect();
        if desc {
            c.reverse();
        }
        Ok(Candidates(c.into()))
    }
    pub fn find_id(&self, id: &[u8; 16], range: Range<u32>) -> Result<Option<u32>, IndexError> {
        let v = self.a().v.read().unwrap();
        Ok((range.start..range.end.min(v.len() as u32))
            .rev()
            .find(|&i| v[i as usize].id.as_ref() == Some(id)))
    }
    pub fn find_key(&self, key: &str, range: Range<u32>) -> Result<Option<u32>, IndexError> {
        let v = self.a().v.read().unwrap();
        Ok((range.start..range.end.min(v.len() as u32))
            .rev()
            .find(|&i| v[i as usize].key.as_deref() == Some(key)))
    }
    pub fn types(&self, end: u32, f: &mut dyn FnMut(&str, u64)) -> Result<(), IndexError> {
        for (k, n) in self.count(end, |e| vec![e.t.clone()]) {
            f(&k, n);
        }
        Ok(())
    }
    fn count(
        &self,
        end: u32,
        g: impl Fn(&E) -> Vec<String>,
    ) -> std::collections::BTreeMap<String, u64> {
        let mut m = std::collections::BTreeMap::new();
        for e in self.a().v.read().unwrap().iter().take(end as usize) {
            for k in g(e) {
                *m.entry(k).or_insert(0) += 1;
            }
        }
        m
    }
    pub fn tags(
        &self,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
        end: u32,
    ) -> Result<Vec<(String, u64)>, IndexError> {
        Ok(self
            .count(end, |e| e.tags.clone())
            .into_iter()
            .filter(|(k, _)| k.starts_with(prefix) && after.is_none_or(|a| k.as_str() > a))
            .take(limit)
            .collect())
    }
    pub fn cost(&self, _: &QueryItem, _: Range<u32>) -> u64 {
        0
    }
    pub fn memory_bytes(&self) -> usize {
        0
    }
}
