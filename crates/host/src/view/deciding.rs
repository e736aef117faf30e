//! Decisions on their way: placed in the log's order, not folded yet.
//!
//! They rest on each other. If one comes to nothing, everything behind it must; so each is known by
//! the number of setbacks at which it was placed, and the log refuses what names another number.

use super::freshness::NotFresh;
use super::{Live, lock};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;
use wellspring_log::{AppendError, Appended};
use wellspring_types::{Position, QueryItem};
use wellspring_views::view::{After, Ticket, View};

/// How often a decision that hangs on others' looks what became of them.
const LOOK: Duration = Duration::from_millis(1);

/// What is decided and not folded yet.
pub(super) struct Deciding<V: View> {
    pub(super) staged: V::Staged,
    next_ticket: Ticket,
    /// Decisions neither folded nor come to nothing, oldest first.
    pub(super) open: Vec<OpenDecision>,
}

/// A decision whose events have positions and are not folded yet.
pub(super) struct OpenDecision {
    pub(super) ticket: Ticket,
    /// Position of its last event.
    pub(super) last: Position,
    /// The log's number of setbacks when it was placed.
    pub(super) setbacks: u64,
    /// What it was appended on.
    pub(super) guard: Guard,
    pub(super) is_durable: bool,
}

/// The items of a decision's append condition, as hashes: what keeps events of others that match
/// one of them from lying before the decision's own. Two items of one hash make a decision conflict
/// with its own view at worst, which is then decided again.
#[derive(Default)]
pub(super) struct Guard(Vec<u64>);

impl Guard {
    /// Of the items of a view's condition.
    pub(super) fn of<V: View>(unless: &[QueryItem]) -> Guard {
        match V::AFTER {
            After::Folded => Guard::default(),
            After::OwnLast => Guard(unless.iter().map(hash).collect()),
        }
    }

    /// Whether nobody else's event that matches this item lies before the decision.
    fn covers(&self, item: u64) -> bool {
        self.0.contains(&item)
    }
}

fn hash(item: &QueryItem) -> u64 {
    let mut hasher = DefaultHasher::new();
    item.hash(&mut hasher);
    hasher.finish()
}

/// An append that came to an end.
pub(super) struct Ended {
    ticket: Ticket,
    end: End,
}

/// How an append ended.
enum End {
    /// Its events are durable.
    Durable,
    /// It appended nothing, or nobody knows what.
    Nothing,
}

impl Ended {
    pub(super) fn new(ticket: Ticket, outcome: &Result<Appended, AppendError>) -> Ended {
        let end = match outcome {
            Ok(Appended { replayed: false, .. }) => End::Durable,
            Ok(_) | Err(_) => End::Nothing,
        };
        Ended { ticket, end }
    }
}

impl<V: View> Default for Deciding<V> {
    fn default() -> Self {
        Deciding { staged: V::Staged::default(), next_ticket: 1, open: Vec::new() }
    }
}

impl<V: View> Deciding<V> {
    /// A ticket for what is decided now.
    pub(super) fn ticket(&mut self) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        ticket
    }

    /// The number of setbacks that a further decision rests on.
    pub(super) fn setbacks(&self) -> Option<u64> {
        // What is durable stands before what is not.
        let staged = &self.open[self.open.partition_point(|open| open.is_durable)..];
        let (first, last) = (staged.first()?, staged.last()?);
        // The log has taken each of them on top of those before it, and the number never falls.
        assert!(first.setbacks == last.setbacks, "one number of setbacks");
        Some(first.setbacks)
    }

    /// The position after which a condition on these items holds, if everything up to `folded` is
    /// folded.
    pub(super) fn after(&self, folded: Position, guard: &Guard) -> Position {
        // What was appended on no condition, or on another, may lie behind an event of others.
        let own_last = |&item: &u64| {
            let own = self.open.iter().rev().find(|open| open.guard.covers(item));
            own.map_or(folded, |open| folded.max(open.last))
        };
        guard.0.iter().map(own_last).min().unwrap_or(folded)
    }
}

impl<V: View> Live<V> {
    /// Shows `look` what is folded and what is decided on top of it, as a decision sees them;
    /// nothing, while the view is being rebuilt. No decision is made meanwhile, so `look` takes no
    /// time. What it sees staged may come to nothing: nobody is told of it before it is folded.
    pub fn peek<R>(&self, look: impl FnOnce(&V::Folded, &V::Staged) -> R) -> Option<R> {
        let folded = self.folded()?;
        let mut deciding = lock(&self.deciding);
        self.sweep(&mut deciding);
        Some(look(folded, &deciding.staged))
    }

    /// Forgets decisions that are folded or have come to nothing. Gives the position up to which
    /// they are: a decision goes by no later one, or what is staged could hide what others appended
    /// behind it.
    pub(super) fn sweep(&self, deciding: &mut Deciding<V>) -> Position {
        let Deciding { staged, open, .. } = deciding;
        for Ended { ticket, end } in lock(&self.ended).drain(..) {
            // What was given no place, and what is folded, is forgotten already.
            let Ok(at) = open.binary_search_by_key(&ticket, |open| open.ticket) else { continue };
            match end {
                // What it was placed on is durable with it, told or not.
                End::Durable => {
                    let before = open[..=at].iter_mut().rev();
                    before
                        .take_while(|open| !open.is_durable)
                        .for_each(|open| open.is_durable = true);
                }
                End::Nothing => {
                    open.remove(at);
                    V::came_to_nothing(staged, ticket);
                }
            }
        }
        let position = self.position();
        // Without a setback since then, a place is still whose it was: it need not be told to be
        // durable. Who tells may be late, and in another order.
        let setbacks = self.log.setbacks();
        // Those that are not folded yet stand behind, and are not looked at: there may be a hundred
        // of them.
        let passed = open.partition_point(|open| open.last <= position);
        let is_settled = |open: &mut OpenDecision| open.is_durable || open.setbacks == setbacks;
        open.extract_if(..passed, is_settled).for_each(|open| V::settle(staged, open.ticket));
        position
    }

    /// Waits until no decision up to `ticket` is open.
    ///
    /// # Errors
    /// The view goes no further, so that what is durable would stay open.
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
        let mut deciding = Deciding::<Chain>::default();
        assert_eq!(deciding.after(3, &guard(&["a"])), 3, "nothing is on its way");
        for (ticket, last, tags) in
            [(1, 5, &["a"][..]), (2, 7, &["b"]), (3, 9, &["a", "b"]), (4, 10, &["c"])]
        {
            let open =
                OpenDecision { ticket, last, setbacks: 0, guard: guard(tags), is_durable: false };
            deciding.open.push(open);
        }
        // What others appended to d between is behind none of these decisions.
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
