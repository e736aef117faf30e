//! Pending decisions: placed in the log's order, but not folded yet.
//!
//! They depend on each other. If one fails, all later ones must; so each records the number of
//! setbacks when it was placed, and the log refuses any other number.

use super::freshness::NotFresh;
use super::{Live, lock};
use crate::view::contract::{ConditionStart, Ticket, View};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;
use wellspring_log::{AppendError, Appended};
use wellspring_types::{Position, QueryItem};

/// How often a decision that depends on others checks their outcome.
const LOOK: Duration = Duration::from_millis(1);

/// The decisions that are not folded yet.
pub(super) struct PendingDecisions<V: View> {
    pub(super) staged: V::Staged,
    next_ticket: Ticket,
    /// Decisions neither folded nor failed, oldest first.
    pub(super) open: Vec<OpenDecision>,
}

/// A decision whose events have positions and are not folded yet.
pub(super) struct OpenDecision {
    pub(super) ticket: Ticket,
    /// Position of its last event.
    pub(super) last: Position,
    /// The log's number of setbacks when it was placed.
    pub(super) setbacks: u64,
    /// Its append condition.
    pub(super) guard: Guard,
    pub(super) is_durable: bool,
}

/// The items of a decision's append condition, as hashes: they keep matching foreign events from
/// lying before the decision's own. If two items share a hash, a decision at worst conflicts with
/// its own view and is decided again.
#[derive(Default)]
pub(super) struct Guard(Vec<u64>);

impl Guard {
    /// The items of a view's condition.
    pub(super) fn of<V: View>(unless: &[QueryItem]) -> Guard {
        match V::CONDITION_START {
            ConditionStart::Folded => Guard::default(),
            ConditionStart::OwnLast => Guard(unless.iter().map(hash).collect()),
        }
    }

    /// Whether no foreign event that matches this item lies before the decision.
    fn covers(&self, item: u64) -> bool {
        self.0.contains(&item)
    }
}

fn hash(item: &QueryItem) -> u64 {
    let mut hasher = DefaultHasher::new();
    item.hash(&mut hasher);
    hasher.finish()
}

/// A finished append.
pub(super) struct FinishedAppend {
    ticket: Ticket,
    end: End,
}

/// How an append ended.
enum End {
    /// Its events are durable.
    Durable,
    /// It appended nothing, or its outcome is unknown.
    Nothing,
}

impl FinishedAppend {
    pub(super) fn new(ticket: Ticket, outcome: &Result<Appended, AppendError>) -> FinishedAppend {
        let end = match outcome {
            Ok(Appended { replayed: false, .. }) => End::Durable,
            Ok(_) | Err(_) => End::Nothing,
        };
        FinishedAppend { ticket, end }
    }
}

impl<V: View> Default for PendingDecisions<V> {
    fn default() -> Self {
        PendingDecisions { staged: V::Staged::default(), next_ticket: 1, open: Vec::new() }
    }
}

impl<V: View> PendingDecisions<V> {
    /// A ticket for the decisions made now.
    pub(super) fn ticket(&mut self) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        ticket
    }

    /// The number of setbacks that a further decision depends on.
    pub(super) fn setbacks(&self) -> Option<u64> {
        // Durable decisions come before the others.
        let staged = &self.open[self.open.partition_point(|open| open.is_durable)..];
        let (first, last) = (staged.first()?, staged.last()?);
        // The log has accepted each of them on top of the previous ones, and the number never
        // falls.
        assert!(first.setbacks == last.setbacks, "one number of setbacks");
        Some(first.setbacks)
    }

    /// The position after which a condition on these items must hold, if everything up to `folded`
    /// is folded.
    pub(super) fn after(&self, folded: Position, guard: &Guard) -> Position {
        // Events appended under no condition, or another one, may come after a foreign event.
        let own_last = |&item: &u64| {
            let own = self.open.iter().rev().find(|open| open.guard.covers(item));
            own.map_or(folded, |open| folded.max(open.last))
        };
        guard.0.iter().map(own_last).min().unwrap_or(folded)
    }
}

impl<V: View> Live<V> {
    /// Shows `look` the fold and the decisions on top of it, as a decision sees them; nothing while
    /// the view is being rebuilt. No decision is made meanwhile, so `look` must be fast. Staged
    /// decisions may still fail: report none before it is folded.
    pub fn peek<R>(&self, look: impl FnOnce(&V::Folded, &V::Staged) -> R) -> Option<R> {
        let folded = self.folded()?;
        let mut deciding = lock(&self.deciding);
        self.sweep(&mut deciding);
        Some(look(folded, &deciding.staged))
    }

    /// Forgets decisions that are folded or have failed. Returns the position up to which they are:
    /// a decision must use no later one, or staged events could hide what others appended behind
    /// them.
    pub(super) fn sweep(&self, deciding: &mut PendingDecisions<V>) -> Position {
        let PendingDecisions { staged, open, .. } = deciding;
        for FinishedAppend { ticket, end } in lock(&self.ended).drain(..) {
            // Decisions without a place, or folded, are forgotten already.
            let Ok(at) = open.binary_search_by_key(&ticket, |open| open.ticket) else { continue };
            match end {
                // What it depends on is durable with it, reported or not.
                End::Durable => {
                    let before = open[..=at].iter_mut().rev();
                    before
                        .take_while(|open| !open.is_durable)
                        .for_each(|open| open.is_durable = true);
                }
                End::Nothing => {
                    open.remove(at);
                    V::discarded(staged, ticket);
                }
            }
        }
        let position = self.position();
        // Without a setback since then, a place still belongs to its decision, so durability need
        // not be reported. Reports may be late and out of order.
        let setbacks = self.log.setbacks();
        // Those not folded yet come last and are not examined: there may be a hundred of them.
        let passed = open.partition_point(|open| open.last <= position);
        let is_settled = |open: &mut OpenDecision| open.is_durable || open.setbacks == setbacks;
        open.extract_if(..passed, is_settled).for_each(|open| V::settle(staged, open.ticket));
        position
    }

    /// Waits until no decision up to `ticket` is pending.
    ///
    /// # Errors
    /// The view has stopped, so durable decisions would stay pending.
    pub(super) async fn settled(&self, ticket: Ticket) -> Result<(), NotFresh> {
        loop {
            let hopeless = self.hopeless();
            {
                let mut deciding = lock(&self.deciding);
                self.sweep(&mut deciding);
                if deciding.open.iter().all(|open| open.ticket > ticket) {
                    return Ok(());
                }
            }
            if let Some(reason) = hopeless {
                return Err(reason);
            }
            self.fold_here();
            tokio::time::sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::chain::Chain;
    use super::*;

    fn guard(tags: &[&str]) -> Guard {
        let items: Vec<_> = tags.iter().map(|&tag| QueryItem::new(&["T"], &[tag])).collect();
        Guard::of::<Chain>(&items)
    }

    #[test]
    fn a_condition_holds_after_the_last_decision_on_the_same_item() {
        let mut deciding = PendingDecisions::<Chain>::default();
        assert_eq!(deciding.after(3, &guard(&["a"])), 3, "nothing is on its way");
        for (ticket, last, tags) in
            [(1, 5, &["a"][..]), (2, 7, &["b"]), (3, 9, &["a", "b"]), (4, 10, &["c"])]
        {
            let open =
                OpenDecision { ticket, last, setbacks: 0, guard: guard(tags), is_durable: false };
            deciding.open.push(open);
        }
        // The foreign event appended to d in between is behind none of these decisions.
        let cases = [
            (&["a"][..], 9),
            (&["b"], 9),
            (&["c"], 10),
            (&["d"], 3),
            (&["a", "c"], 9),
            (&["a", "d"], 3),
            (&[], 3),
        ];
        for (tags, after) in cases {
            assert_eq!(deciding.after(3, &guard(tags)), after, "{tags:?}");
        }
        assert_eq!(deciding.after(20, &guard(&["a"])), 20, "they are folded");
    }
}
