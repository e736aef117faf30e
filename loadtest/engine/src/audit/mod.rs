//! `bench audit`: the checks applied to tables that others have published.
//!
//! A file ([`Published::parse`] shows its form) holds the figures as they are printed, each with
//! the precision of its print. [`audit`] puts the questions to them that can be put without the raw
//! data: C1 to C5 to every row, C12 to every ladder, C15 to every stated ratio. Every figure stands
//! for all values that would be printed like it, so an objection means that no such values satisfy
//! the check. The sentences give figures and what follows from them, and nothing about anybody's
//! reasons.

mod cell;
mod ladder;
mod read;
mod render;
mod rows;

pub use cell::Cell;
pub use read::{AuditError, Claim, Figure, Published, Row, Table};
pub use render::{render_markdown, render_text};

use crate::result::{CheckId, Outcome};

/// What the checks say of a published report.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditReport {
    /// The tables as entered.
    pub published: Published,
    /// In the order of tables, then rows, then checks; ladders and claims after the rows.
    pub findings: Vec<AuditFinding>,
}

/// What one check says of one row, ladder or claim.
#[derive(Clone, Debug, PartialEq)]
pub struct AuditFinding {
    /// The table's name.
    pub table: String,
    /// The row's or series' name; `None` for a claim.
    pub row: Option<String>,
    /// Which check.
    pub check: CheckId,
    /// What came out. [`Outcome::Stop`]: the figures contradict each other;
    /// [`Outcome::Care`]: they mislead unless the sentence is read with them.
    pub outcome: Outcome,
    /// One sentence with the figures in it.
    pub sentence: String,
}

/// Applies C1 to C5, C12 and C15 to the tables.
#[must_use]
pub fn audit(published: Published) -> AuditReport {
    let mut findings = Vec::new();
    for table in &published.tables {
        let mut add = |(check, row, outcome, text): ladder::TableFinding| {
            findings.push(AuditFinding {
                table: table.name.clone(),
                row,
                check: CheckId(check),
                outcome,
                sentence: sentence(&text),
            });
        };
        for row in &table.rows {
            for (check, outcome, text) in rows::judge(row, table.closed) {
                add((check, Some(row.name.clone()), outcome, text));
            }
        }
        ladder::scaling(table).into_iter().for_each(&mut add);
        ladder::claims(table).into_iter().for_each(&mut add);
    }
    AuditReport { published, findings }
}

/// With a capital first and one full stop last.
fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first = letters.next().into_iter().flat_map(char::to_uppercase);
    first.chain(letters).chain(['.']).collect()
}

#[cfg(test)]
mod tests;
