//! Which events count, so that they can be written as rows: the rule of the log, followed beside
//! the entries.
//!
//! An entry of an old leader may be placed and count for nobody; its events must not show in SQL.
//! So rows are not written for an entry but for a verdict. A node that has seen everything up to a
//! place knows what the next entry comes to *if it stands right behind it*, and the
//! compare-and-swap makes sure that it stands there or nowhere.
//!
//! Up to which place the rows are complete stands in `ws_end` as the *cursor*, with the rule's
//! state there. Each statement that places an entry moves the cursor along, if it stands where the
//! node has it. If it does not (a node without rows has placed something), no rows are written with
//! the entry, and the node fills them in from the cursor on. So `ws_event` is always what counts,
//! up to the cursor, without gaps.

use std::fmt::Write as _;
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use wellspring_log::RecordView;
use wellspring_log::shared::Place;
use wellspring_log::shared::entry::{ClusterId, EntryFault};
use wellspring_log::shared::rule::{AcceptedBatch, Rule, Verdict};
use wellspring_types::DataKind;

/// The rule's state at a place where no batch is half there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) place: Place,
    pub(crate) epoch: i64,
    pub(crate) head: i64,
    pub(crate) chain: i64,
    pub(crate) cluster: Option<String>,
}

/// The rule, followed up to a place.
#[derive(Debug, Clone)]
pub(crate) struct RowsState {
    rule: Rule,
    /// The last entry it was given.
    judged: Place,
    /// Where the cursor is, if everybody moves it.
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
    /// From the cursor on.
    pub(crate) fn at(cursor: Cursor) -> RowsState {
        let cluster: Option<ClusterId> =
            cursor.cluster.as_ref().and_then(|cluster| cluster.parse().ok());
        let rule = Rule::at(cursor.epoch as u64, cursor.head as u64, cursor.chain as u32, cluster);
        RowsState { rule, judged: cursor.place, cursor }
    }

    /// The last entry it was given.
    pub(crate) fn judged(&self) -> Place {
        self.judged
    }

    /// Where the cursor is.
    pub(crate) fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// What stands at the next place, and the events that count by it.
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
            Verdict::Accepted(accepted) => Some(accepted),
            _ => None,
        })
    }
}

impl EventColumns {
    /// Adds the events of a batch that counts. What cannot be read is left out: then the log itself
    /// is damaged, which its readers find.
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
        // JSON as text: what a server's own parser thinks of it must not stop the log.
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

/// PostgreSQL's texts hold no U+0000.
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
