//! The append condition: what must not have happened for an append to be allowed.

use crate::position::Position;
use crate::query::Query;
use crate::valid::Invalid;

/// Judged by the sequencer against everything staged before the append.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppendCondition {
    /// Fails if any event after [`after`](Self::after) matches. `None` = this clause is not judged.
    pub fail_if_events_match: Option<Query>,
    /// Exclusive lower bound for `fail_if_events_match` only; `None` = from the beginning.
    /// May be higher than the head: then nothing can match yet.
    pub after: Option<Position>,
    /// Fails if any event at all matches, wherever it stands.
    pub fail_if_exists: Option<Query>,
}

/// Which clause of an append condition failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clause {
    /// `failIfEventsMatch`
    FailIfEventsMatch,
    /// `failIfExists`
    FailIfExists,
}

impl Clause {
    /// Its name in the HTTP API.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Clause::FailIfEventsMatch => "failIfEventsMatch",
            Clause::FailIfExists => "failIfExists",
        }
    }
}

/// Why an append condition failed: the newest event that offends, of the first clause that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conflict {
    /// Position of the newest matching event at the time of judging.
    pub position: Position,
    /// The clause it offends.
    pub clause: Clause,
    /// Index of the lowest-numbered item of that clause's query that matches it.
    pub item: usize,
}

impl AppendCondition {
    /// Fails if an event after `after` matches `query`.
    #[must_use]
    pub fn no_match_after(query: Query, after: Position) -> AppendCondition {
        AppendCondition {
            fail_if_events_match: Some(query),
            after: Some(after),
            fail_if_exists: None,
        }
    }

    /// Fails if any event matches `query`.
    #[must_use]
    pub fn not_exists(query: Query) -> AppendCondition {
        AppendCondition { fail_if_events_match: None, after: None, fail_if_exists: Some(query) }
    }

    /// Checks the queries' lengths, counts and characters.
    ///
    /// # Errors
    /// [`Invalid`] with a path that starts at the clause.
    pub fn check(&self) -> Result<(), Invalid> {
        for (clause, query, _) in self.clauses() {
            query.check().map_err(|fault| fault.within(clause.name()))?;
        }
        Ok(())
    }

    /// Types and tags that its queries name, each counted as often as it is named.
    #[must_use]
    pub fn term_count(&self) -> usize {
        self.clauses().map(|(_, query, _)| query.term_count()).sum()
    }

    /// The clauses to be judged, in order: each query with its exclusive lower bound.
    pub fn clauses(&self) -> impl Iterator<Item = (Clause, &Query, Position)> {
        let matching = self
            .fail_if_events_match
            .iter()
            .map(|query| (Clause::FailIfEventsMatch, query, self.after.unwrap_or(0)));
        let existing = self.fail_if_exists.iter().map(|query| (Clause::FailIfExists, query, 0));
        matching.chain(existing)
    }
}
