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

use std::fmt::Write as _;
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use wellspring_log::RecordView;
use wellspring_log::shared::Place;
use wellspring_log::shared::entry::{ClusterId, EntryFault};
use wellspring_log::shared::rule::{AcceptedBatch, EntryEffect, Rule};
use wellspring_types::DataKind;

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

/// Events as columns of `ws_event`.
#[derive(Debug, Default)]
pub(crate) struct EventColumns {
    pub(crate) positions: Vec<i64>,
    recorded_at_us: Vec<i64>,
    types: Vec<String>,
    tags: Vec<String>,
    ids: Vec<Option<String>>,
    metadata: Vec<String>,
    data: Vec<Option<String>>,
    data_bytes: Vec<Option<Vec<u8>>>,
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

impl EventColumns {
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

    fn push(&mut self, record: &RecordView<'_>) {
        self.positions.push(record.position() as i64);
        self.recorded_at_us.push(record.recorded_at_us() as i64);
        self.types.push(without_nul(record.event_type()));
        let mut tags = String::from("{");
        for (at, tag) in record.tags().enumerate() {
            tags.push_str(if at == 0 { "\"" } else { ",\"" });
            for c in without_nul(tag).chars() {
                if matches!(c, '"' | '\\') {
                    tags.push('\\');
                }
                tags.push(c);
            }
            tags.push('"');
        }
        tags.push('}');
        self.tags.push(tags);
        self.ids.push(record.id().map(|id| {
            id.0.iter().fold(String::with_capacity(32), |mut text, byte| {
                let _ = write!(text, "{byte:02x}");
                text
            })
        }));
        let mut metadata = String::from("{");
        for (at, (key, value)) in record.metadata().enumerate() {
            metadata.push_str(if at == 0 { "" } else { "," });
            quote(key, &mut metadata);
            metadata.push(':');
            quote(value, &mut metadata);
        }
        metadata.push('}');
        self.metadata.push(metadata);
        // JSON as text, because objections of a server's own parser must not stop the log.
        let text = (record.kind() == DataKind::Json && !record.data().contains(&0))
            .then(|| std::str::from_utf8(record.data()).ok())
            .flatten();
        self.data.push(text.map(str::to_owned));
        self.data_bytes.push(text.is_none().then(|| record.data().to_vec()));
    }

    /// As parameters, in the order of the statements.
    pub(crate) fn parameters(&self) -> [&(dyn ToSql + Sync); 8] {
        [
            &self.positions,
            &self.recorded_at_us,
            &self.types,
            &self.tags,
            &self.ids,
            &self.metadata,
            &self.data,
            &self.data_bytes,
        ]
    }
}

/// PostgreSQL texts cannot contain U+0000.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
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
