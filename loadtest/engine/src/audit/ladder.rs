//! C12 and C15 on a whole table: its rungs against each other, and what is claimed of its figures.

use super::read::{Claim, Row, Table};
use crate::check::ratios::{Better, Claimed, Fit, Interval, Word, factors, fit, range};
use crate::numbers::{duration, percent, significant};
use crate::result::Outcome;

/// How much more than in proportion throughput may grow, as in a report of our own.
const SUPERLINEAR: f64 = 1.05;

/// What a check says, and of which row (`None` for a claim).
pub(super) type TableFinding = (u8, Option<String>, Outcome, String);

/// C12 over the rows of each series, in their order of users.
pub(super) fn scaling(table: &Table) -> Vec<TableFinding> {
    if !table.closed {
        return Vec::new();
    }
    let mut names: Vec<Option<&str>> = Vec::new();
    for row in &table.rows {
        if !names.contains(&row.series.as_deref()) {
            names.push(row.series.as_deref());
        }
    }
    names.into_iter().flat_map(|series| series_scaling(table, series)).collect()
}

fn series_scaling(table: &Table, series: Option<&str>) -> Vec<TableFinding> {
    let rows: Vec<&Row> = table.rows.iter().filter(|row| row.series.as_deref() == series).collect();
    let mut said = Vec::new();
    let shortest = rows
        .iter()
        .filter_map(|row| row.min.as_ref())
        .min_by(|a, b| a.value.low.total_cmp(&b.value.low));
    let mut rungs: Vec<(f64, Interval, &Row)> = rows
        .iter()
        .filter(|row| !row.at_most)
        .filter_map(|row| {
            Some((row.concurrency.as_ref()?.value.middle(), row.throughput.as_ref()?.value, *row))
        })
        .filter(|(_, throughput, _)| throughput.low > 0.0)
        .collect();
    rungs.sort_by(|a, b| a.0.total_cmp(&b.0));
    for (users, throughput, row) in &rungs {
        let Some(shortest) = shortest else { continue };
        let think = row.think.as_ref().map_or(0.0, |think| think.value.low);
        let most = users * 1e9 / throughput.low - think;
        if most < shortest.value.low {
            said.push((12, Some(row.name.clone()), Outcome::Stop, format!(
                "{} from {users} leave at most {} for each answer, but the shortest of all took {}.",
                row.throughput.as_ref().map_or("", |cell| cell.text.as_str()),
                duration(most),
                shortest.text
            )));
        }
    }
    // Without a ladder (one row for each number of users) there is nothing to climb.
    let ladder = rungs.windows(2).all(|pair| pair[0].0 < pair[1].0);
    for pair in rungs.windows(2).filter(|_| ladder) {
        let ((users, slow, one), (more, fast, other)) = (&pair[0], &pair[1]);
        let growth = *fast / *slow;
        let allowed = more / users;
        if growth.low > allowed * SUPERLINEAR {
            said.push((12, Some(other.name.clone()), Outcome::Care, format!(
                "Throughput grew {} from “{}” to “{}”, though there were only {} times the users: something besides their number changed.",
                factors(growth),
                one.name,
                other.name,
                significant(allowed)
            )));
        }
    }
    if said.is_empty() && ladder && rungs.len() > 1 {
        let sentence = "Throughput grows by no more than the users.";
        said.push((12, series.map(str::to_owned), Outcome::Passed, sentence.into()));
    }
    said
}

/// C15 on each claim of the table.
pub(super) fn claims(table: &Table) -> Vec<TableFinding> {
    table.claims.iter().map(judge_claim).collect()
}

fn judge_claim(claim: &Claim) -> TableFinding {
    let said = |outcome, rest: String| {
        let places = format!(
            "\u{201c}{}\u{201d} ({} against {})",
            claim.says, claim.of.place, claim.over.place
        );
        (15, None, outcome, format!("{places}: {rest}"))
    };
    let write = |allowed: Interval| match claim.value {
        Claimed::Factor(_) => factors(allowed),
        Claimed::Share(_) => range(allowed, percent),
    };
    match fit(claim.word, claim.value, claim.of.value, claim.over.value, claim.of.better) {
        Fit::Fits(allowed) => {
            said(Outcome::Passed, format!("the figures give {}.", write(allowed)))
        }
        Fit::Nearly(allowed) => said(
            Outcome::Note,
            format!("the figures give {}, which is off in the last digit.", write(allowed)),
        ),
        Fit::OtherBase(allowed) => said(
            Outcome::Care,
            format!(
                "the figures give {}; the number stated holds only as a share of the other figure.",
                write(allowed)
            ),
        ),
        Fit::WrongWay(_) => said(
            Outcome::Care,
            format!("the figures say the opposite: {}.", opposite(claim.word, claim.of.better)),
        ),
        Fit::Off(allowed) => said(Outcome::Care, format!("the figures give {}.", write(allowed))),
    }
}

fn opposite(word: Word, better: Better) -> &'static str {
    match (word, better) {
        (Word::More, _) => "the first is less than the second",
        (Word::Less, _) => "the first is more than the second",
        (Word::Faster, _) => "the first is slower than the second",
        (Word::Slower, _) => "the first is faster than the second",
        (Word::Times, _) => "they differ in another direction",
    }
}
