//! The index: its fields, writing and searching.

use super::compile::compile;
use super::query::Query;
use super::words::analyzer;
use crate::view::{Item, ItemId, TopicId};
use tantivy::collector::sort_key::{SortBySimilarityScore, SortByStaticFastValue};
use tantivy::collector::{Count, TopDocs};
use tantivy::directory::RamDirectory;
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::{
    Index, IndexReader, IndexWriter, Order, ReloadPolicy, TantivyDocument, TantivyError, Term,
};

/// Memory for uncommitted entries, in bytes.
const WRITER_BYTES: usize = 32 << 20;
/// Share of deleted documents at which a segment is rewritten.
const MOST_DELETED: f32 = 0.3;
const ANALYZER: &str = "words";
const ID: &str = "id";

/// The fields of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields {
    pub(super) id: Field,
    pub(super) topic: Field,
    pub(super) name: Field,
    pub(super) description: Field,
}

/// The reading side.
#[derive(Clone)]
pub(super) struct Searcher {
    fields: Fields,
    reader: IndexReader,
    files: RamDirectory,
}

/// The writing side; there is one.
pub(super) struct Writer {
    fields: Fields,
    index: Index,
    /// There from the first entry on: the engine's writer has threads and queues, which a shop
    /// without items does not pay for.
    writer: Option<IndexWriter>,
    reader: IndexReader,
}

/// The searchable fields of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct ItemText<'a> {
    pub(super) name: &'a str,
    pub(super) description: &'a str,
    pub(super) topic: TopicId,
}

impl ItemText<'_> {
    /// `None` for withdrawn items.
    pub(super) fn of(item: &Item) -> Option<ItemText<'_>> {
        let Item { name, description, topic, standing, .. } = item;
        (!standing.withdrawn).then_some(ItemText { name, description, topic: *topic })
    }
}

/// An item as indexed. `None`: not searchable.
pub(super) type Entry = (ItemId, Option<TantivyDocument>);

/// Whether an earlier entry of the item may be in the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EarlierEntry {
    Nothing,
    Perhaps,
}

/// How a result matches the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    /// It contains every part.
    Exact,
    /// No item does; this one matches with at most one typo in each longer word.
    Near,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SearchHits {
    /// The best matches with their scores, best first; equal scores by number.
    pub(super) best: Vec<(ItemId, f32)>,
    /// Total number of matches.
    pub(super) total: usize,
    pub(super) matched: Match,
}

/// An empty index.
///
/// # Errors
/// Lack of memory or threads.
pub(super) fn create() -> Result<(Writer, Searcher), TantivyError> {
    let mut schema = Schema::builder();
    let words = TextFieldIndexing::default()
        .set_tokenizer(ANALYZER)
        .set_index_option(IndexRecordOption::WithFreqsAndPositions);
    let text = TextOptions::default().set_indexing_options(words);
    let number = NumericOptions::default().set_indexed();
    let fields = Fields {
        id: schema.add_u64_field(ID, number.clone().set_fast()),
        topic: schema.add_u64_field("topic", number),
        name: schema.add_text_field("name", text.clone()),
        description: schema.add_text_field("description", text),
    };
    let files = RamDirectory::create();
    let index = Index::builder().schema(schema.build()).open_or_create(files.clone())?;
    index.tokenizers().register(ANALYZER, analyzer());
    let reader = index.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
    let searcher = Searcher { fields, reader: IndexReader::clone(&reader), files };
    Ok((Writer { fields, index, writer: None, reader }, searcher))
}

fn open_writer(index: &Index) -> Result<IndexWriter, TantivyError> {
    let options = IndexWriterOptions::builder()
        .num_worker_threads(1)
        .memory_budget_per_thread(WRITER_BYTES)
        .num_merge_threads(1)
        .build();
    let writer: IndexWriter = index.writer_with_options(options)?;
    let mut merging = LogMergePolicy::default();
    merging.set_del_docs_ratio_before_merge(MOST_DELETED);
    writer.set_merge_policy(Box::new(merging));
    Ok(writer)
}

impl Writer {
    /// The index entry of an item.
    pub(super) fn entry(&self, id: ItemId, described: Option<ItemText<'_>>) -> Entry {
        let Some(described) = described else { return (id, None) };
        let Fields { id: number, topic, name, description } = self.fields;
        let mut document = TantivyDocument::new();
        document.add_u64(number, id.into());
        document.add_u64(topic, described.topic.into());
        document.add_text(name, described.name);
        document.add_text(description, described.description);
        (id, Some(document))
    }

    /// Replaces the entry of an item. Visible after [`commit`](Self::commit). May wait for earlier
    /// entries.
    pub(super) fn put(
        &mut self,
        (id, document): Entry,
        before: EarlierEntry,
    ) -> Result<(), TantivyError> {
        let writer = match &self.writer {
            Some(writer) => writer,
            None => self.writer.insert(open_writer(&self.index)?),
        };
        if before == EarlierEntry::Perhaps {
            writer.delete_term(Term::from_field_u64(self.fields.id, id.into()));
        }
        if let Some(document) = document {
            writer.add_document(document)?;
        }
        Ok(())
    }

    /// Makes the new entries visible.
    pub(super) fn commit(&mut self) -> Result<(), TantivyError> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.commit()?;
        self.reader.reload()
    }

    /// Releases segments that were merged since they became visible.
    pub(super) fn tidy(&self) -> Result<(), TantivyError> {
        let shown = self.reader.searcher().segment_readers().len();
        if self.index.searchable_segment_ids()?.len() != shown {
            self.reader.reload()?;
        }
        Ok(())
    }
}

impl Searcher {
    /// The best items for a query, optionally in this topic.
    pub(super) fn find(
        &self,
        query: &Query,
        topic: Option<TopicId>,
        most: usize,
    ) -> Result<SearchHits, TantivyError> {
        let exact = self.matching(query, topic, most, Match::Exact)?;
        if exact.total > 0 || query.is_empty() {
            return Ok(exact);
        }
        let near = self.matching(query, topic, most, Match::Near)?;
        Ok(if near.total > 0 { near } else { exact })
    }

    fn matching(
        &self,
        query: &Query,
        topic: Option<TopicId>,
        most: usize,
        matched: Match,
    ) -> Result<SearchHits, TantivyError> {
        let compiled = compile(self.fields, query, topic, matched);
        let by_id = (SortByStaticFastValue::<u64>::for_field(ID), Order::Asc);
        let best = TopDocs::with_limit(most.max(1)).order_by((SortBySimilarityScore, by_id));
        let (best, total) = self.reader.searcher().search(&*compiled, &(best, Count))?;
        let best = best.into_iter().take(most).filter_map(|((score, id), _)| {
            id.and_then(|id| ItemId::try_from(id).ok()).map(|id| (id, score))
        });
        Ok(SearchHits { best: best.collect(), total, matched })
    }

    /// Number of searchable items.
    pub(super) fn items(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// Memory of the index in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.files.total_mem_usage() as u64
    }
}
