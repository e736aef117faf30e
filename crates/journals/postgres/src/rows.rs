//! Determines which events take effect, so that they can be written as rows: applies the log's rule
//! to the entries.
//!
//! An entry of a former leader may be placed but void; its events must not appear in SQL. Rows are
//! therefore written for a verdict, not for an entry. A node that has seen everything up to a place
//! knows the verdict on the next entry *if it follows immediately*, and the compare-and-swap
//! ensures that it is placed there or nowhere.
//!
//! `ws_end` holds the *cursor*, the place up to which the rows are complete, with the rule's state
//! there. Each statement that places an entry advances the cursor if it is where the node expects
//! it. Otherwise (a node without rows has placed an entry) no rows are written with the entry, and
//! the node fills them in from the cursor on. `ws_event` thus always contains exactly the valid
//! events up to the cursor.

use bytes::BytesMut;
use std::fmt::Write as _;
use std::sync::Arc;
use tokio_postgres::types::{IsNull, Kind, ToSql, Type, to_sql_checked};
use wellspring_log::RecordView;
use wellspring_log::shared::Place;
use wellspring_log::shared::entry::{ClusterId, EntryFault};
use wellspring_log::shared::rule::{AcceptedBatch, EntryEffect, Rule};
use wellspring_types::DataKind;

/// Number of columns of `ws_event`.
const COLUMNS: i32 = 9;
/// The moment from which PostgreSQL counts, in Unix time.
const EPOCH_US: i64 = 946_684_800_000_000;

/// The rule's state at a place without an incomplete batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) place: Place,
    pub(crate) epoch: i64,
    pub(crate) head: i64,
    pub(crate) chain: i64,
    pub(crate) cluster: Option<String>,
}

/// The rule's state up to a place.
#[derive(Debug, Clone)]
pub(crate) struct RowsState {
    rule: Rule,
    /// The last entry judged.
    judged: Place,
    /// The cursor, provided that every node advances it.
    cursor: Cursor,
}

/// Events as one parameter of the type `ws_event[]`, in PostgreSQL's binary format: the server
/// makes rows of it without parsing text.
#[derive(Debug)]
pub(crate) struct EventRecords {
    log: String,
    count: i32,
    bytes: Vec<u8>,
}

impl RowsState {
    /// Starts at the cursor.
    pub(crate) fn at(cursor: Cursor) -> RowsState {
        let cluster: Option<ClusterId> =
            cursor.cluster.as_ref().and_then(|cluster| cluster.parse().ok());
        let rule = Rule::at(cursor.epoch as u64, cursor.head as u64, cursor.chain as u32, cluster);
        RowsState { rule, judged: cursor.place, cursor }
    }

    /// The last entry judged.
    pub(crate) fn judged(&self) -> Place {
        self.judged
    }

    pub(crate) fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// Judges the entry at the next place; returns the events that take effect.
    pub(crate) fn judge(
        &mut self,
        place: Place,
        entry: Arc<[u8]>,
    ) -> Result<Option<AcceptedBatch>, EntryFault> {
        let verdict = self.rule.judge(entry)?;
        self.judged = place;
        if !self.rule.awaits_parts() {
            self.cursor = Cursor {
                place,
                epoch: self.rule.epoch() as i64,
                head: self.rule.head() as i64,
                chain: i64::from(self.rule.chain()),
                cluster: self.rule.cluster().map(|cluster| cluster.to_string()),
            };
        }
        Ok(match verdict {
            EntryEffect::Accepted(accepted) => Some(accepted),
            _ => None,
        })
    }
}

impl EventRecords {
    pub(crate) fn of_log(log: &str) -> EventRecords {
        EventRecords { log: log.to_owned(), count: 0, bytes: Vec::new() }
    }

    /// Adds the events of a valid batch. Unreadable ones are omitted: then the log itself is
    /// damaged, which its readers detect.
    pub(crate) fn add(&mut self, accepted: &AcceptedBatch) {
        let joined;
        let mut slices = accepted.body_slices();
        let mut body: &[u8] = match (slices.next(), slices.next()) {
            (Some(only), None) => only,
            _ => {
                joined = accepted.body_slices().collect::<Vec<_>>().concat();
                &joined
            }
        };
        while let Some(length) = RecordView::length(body).filter(|length| *length <= body.len()) {
            let (record, rest) = body.split_at(length);
            if let Ok(record) = RecordView::parse(record) {
                self.push(&record);
            }
            body = rest;
        }
    }

    /// A row: its columns in the order of the table, each with its type and length.
    fn push(&mut self, record: &RecordView<'_>) {
        self.count += 1;
        let recorded_at = record.recorded_at_us() as i64 - EPOCH_US;
        let id = record.id();
        // JSON as text, because objections of a server's own parser must not stop the log.
        let text = (record.kind() == DataKind::Json && !record.data().contains(&0))
            .then(|| std::str::from_utf8(record.data()).ok())
            .flatten();
        let (log, position) = (&self.log, record.position() as i64);
        sized(&mut self.bytes, |row| {
            row.extend(COLUMNS.to_be_bytes());
            column(row, &Type::TEXT, |out| out.extend(log.as_bytes()));
            column(row, &Type::INT8, |out| out.extend(position.to_be_bytes()));
            column(row, &Type::TIMESTAMPTZ, |out| out.extend(recorded_at.to_be_bytes()));
            column(row, &Type::TEXT, |out| push_text(out, record.event_type()));
            column(row, &Type::TEXT_ARRAY, |out| push_tags(out, record));
            match id {
                Some(id) => column(row, &Type::UUID, |out| out.extend(id.0)),
                None => null(row, &Type::UUID),
            }
            column(row, &Type::JSONB, |out| push_metadata(out, record));
            match text {
                Some(text) => column(row, &Type::TEXT, |out| out.extend(text.as_bytes())),
                None => null(row, &Type::TEXT),
            }
            match text {
                None => column(row, &Type::BYTEA, |out| out.extend(record.data())),
                Some(_) => null(row, &Type::BYTEA),
            }
        });
    }
}

impl ToSql for EventRecords {
    fn to_sql(
        &self,
        of: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        let Kind::Array(row) = of.kind() else { return Err("not an array of rows".into()) };
        push_array(out, row, self.count);
        out.extend_from_slice(&self.bytes);
        Ok(IsNull::No)
    }

    fn accepts(of: &Type) -> bool {
        matches!(of.kind(), Kind::Array(row) if matches!(row.kind(), Kind::Composite(_)))
    }

    to_sql_checked!();
}

/// The header of an array without nulls.
fn push_array(out: &mut impl Extend<u8>, of: &Type, count: i32) {
    let dimensions = i32::from(count > 0);
    let header = [dimensions, 0, of.oid() as i32, count, 1];
    let words = if count > 0 { &header[..] } else { &header[..3] };
    out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
}

/// What `content` adds, after its length in bytes.
fn sized(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend([0; 4]);
    content(out);
    let length = (out.len() - at - 4) as i32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

fn column(row: &mut Vec<u8>, of: &Type, content: impl FnOnce(&mut Vec<u8>)) {
    row.extend(of.oid().to_be_bytes());
    sized(row, content);
}

fn null(row: &mut Vec<u8>, of: &Type) {
    row.extend(of.oid().to_be_bytes());
    row.extend((-1_i32).to_be_bytes());
}

fn push_tags(out: &mut Vec<u8>, record: &RecordView<'_>) {
    push_array(out, &Type::TEXT, record.tags().count() as i32);
    for tag in record.tags() {
        sized(out, |out| push_text(out, tag));
    }
}

fn push_metadata(out: &mut Vec<u8>, record: &RecordView<'_>) {
    let mut metadata = String::from("{");
    for (at, (key, value)) in record.metadata().enumerate() {
        metadata.push_str(if at == 0 { "" } else { "," });
        quote(key, &mut metadata);
        metadata.push(':');
        quote(value, &mut metadata);
    }
    metadata.push('}');
    // The version of the binary format.
    out.push(1);
    out.extend(metadata.as_bytes());
}

/// PostgreSQL texts cannot contain U+0000.
fn push_text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.replace('\0', "\u{fffd}").as_bytes());
}

fn quote(text: &str, json: &mut String) {
    json.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => json.extend(['\\', c]),
            '\0' => json.push('\u{fffd}'),
            c if (c as u32) < 0x20 => {
                let _ = write!(json, "\\u{:04x}", c as u32);
            }
            c => json.push(c),
        }
    }
    json.push('"');
}
