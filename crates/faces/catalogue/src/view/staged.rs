//! Decisions that are not folded yet.
//!
//! A change of a number must count once, folded or not. Each pending change therefore knows its
//! position, and counts as long as the item's last folded change is before it.

use super::event::{Fact, ItemId, TopicId};
use super::item::{Change, Item, ItemState};
use super::state::State;
use std::collections::HashMap;
use wellspring_host::view::contract::Ticket;
use wellspring_types::Position;

/// Pending decisions.
#[derive(Debug, Default)]
pub(crate) struct StagedChanges {
    changes: HashMap<ItemId, Vec<StagedChange>>,
    items: Vec<StagedItem>,
    topics: Vec<StagedTopic>,
    tickets: HashMap<Ticket, Entry>,
}

/// The changes of a ticket.
#[derive(Debug, Default)]
struct Entry {
    events: u32,
    items: Vec<ItemId>,
    /// Whether items or topics are added, or topics renamed.
    has_structure: bool,
}

#[derive(Debug)]
struct StagedChange {
    ticket: Ticket,
    /// Its index among the events of its ticket.
    place: u32,
    /// Its position once it has one.
    at: Option<Position>,
    change: Change,
}

/// An item to add.
#[derive(Debug)]
struct StagedItem {
    ticket: Ticket,
    id: ItemId,
    item: Item,
}

/// A topic to add or rename.
#[derive(Debug)]
struct StagedTopic {
    ticket: Ticket,
    id: TopicId,
    name: String,
}

/// An item as a decision sees it.
pub(super) struct SeenItem<'a> {
    /// As folded, or as it will be added.
    pub(super) item: &'a Item,
    pub(super) standing: ItemState,
    /// Whether a pending decision changes it.
    pub(super) is_changing: bool,
    /// Pending changes, oldest first.
    pending: Vec<Change>,
}

impl SeenItem<'_> {
    /// The amount of an order; `None` if there is no such order.
    pub(super) fn order(&self, order: u32) -> Option<OrderSeen> {
        let is_cancelled = |change: &Change| matches!(change, Change::Cancelled { order: other, .. } if *other == order);
        let is_cancelled = self.pending.iter().any(is_cancelled);
        let (amount, stands) = match self.item.order(order) {
            Some(folded) => (folded.amount, folded.state == super::item::OrderState::Placed),
            None => self.pending.iter().find_map(|change| match change {
                Change::Ordered { order: other, amount, .. } if *other == order => {
                    Some((*amount, true))
                }
                _ => None,
            })?,
        };
        Some(if stands && !is_cancelled {
            OrderSeen::Placed { amount }
        } else {
            OrderSeen::Cancelled
        })
    }

    /// Whether names, description, topic or withdrawal are being changed.
    pub(super) fn is_being_described(&self) -> bool {
        self.pending.iter().any(|change| matches!(change, Change::Described { .. }))
    }
}

/// An order as a decision sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OrderSeen {
    Placed { amount: u32 },
    Cancelled,
}

impl StagedChanges {
    /// An item with all pending changes; `None` if it does not exist, not even pending.
    pub(super) fn see<'a>(&'a self, state: &'a State, id: ItemId) -> Option<SeenItem<'a>> {
        let staged = || self.items.iter().find(|staged| staged.id == id).map(|staged| &staged.item);
        let item = state.item(id).or_else(staged)?;
        let mut seen =
            SeenItem { item, standing: item.standing, is_changing: false, pending: Vec::new() };
        let is_pending = |staged: &&StagedChange| staged.at.is_none_or(|at| at > item.changed_at);
        for staged in self.changes.get(&id).into_iter().flatten().filter(is_pending) {
            seen.is_changing = true;
            seen.pending.push(staged.change);
            // A pending change is valid on top of its basis.
            if let Some(standing) = seen.standing.after(staged.change) {
                seen.standing = standing;
            } else {
                debug_assert!(false, "{:?} on {:?}", staged.change, seen.standing);
            }
        }
        Some(seen)
    }

    /// The id of the next item.
    pub(super) fn next_item(&self, state: &State) -> Option<ItemId> {
        let folded = ItemId::try_from(state.item_count()).ok()?;
        self.items.iter().map(|staged| staged.id).fold(folded, ItemId::max).checked_add(1)
    }

    /// The id of the next topic.
    pub(super) fn next_topic(&self, state: &State) -> Option<TopicId> {
        let folded = TopicId::try_from(state.topics().len()).ok()?;
        self.topics.iter().map(|staged| staged.id).fold(folded, TopicId::max).checked_add(1)
    }

    /// The item of a SKU.
    pub(super) fn item_of_sku(&self, state: &State, sku: &str) -> Option<ItemId> {
        let is_it = |staged: &&StagedItem| staged.item.sku.as_deref() == Some(sku);
        state.item_of_sku(sku).or_else(|| self.items.iter().find(is_it).map(|staged| staged.id))
    }

    /// The topic of a name.
    pub(super) fn topic_of_name(&self, state: &State, name: &str) -> Option<TopicId> {
        // A pending name of a topic hides its current one.
        let named = |id: TopicId| self.topics.iter().rev().find(|staged| staged.id == id);
        let staged = self.topics.iter().rev().find(|staged| staged.name == name);
        let staged = staged.map(|staged| staged.id);
        let folded =
            state.topic_of_name(name).filter(|id| named(*id).is_none_or(|s| s.name == name));
        folded.or(staged)
    }

    /// Whether a topic exists, at least pending.
    pub(super) fn has_topic(&self, state: &State, id: TopicId) -> bool {
        state.topic(id).is_some() || self.topics.iter().any(|staged| staged.id == id)
    }

    /// Records a decision, in the order of its events.
    pub(super) fn stage(&mut self, fact: &Fact<'_>, ticket: Ticket) {
        let StagedChanges { changes, items, topics, tickets } = self;
        let entry = tickets.entry(ticket).or_default();
        let place = entry.events;
        entry.events += 1;
        match fact {
            Fact::TopicAdded(fact) | Fact::TopicRenamed(fact) => {
                entry.has_structure = true;
                topics.push(StagedTopic {
                    ticket,
                    id: fact.topic,
                    name: fact.name.clone().into_owned(),
                });
            }
            Fact::ItemAdded(fact) => {
                entry.has_structure = true;
                // Positions start at 1: every change comes later.
                if let Some(item) = Item::added(fact, 0, 0) {
                    items.push(StagedItem { ticket, id: fact.item, item });
                }
            }
            Fact::ItemChanged(_)
            | Fact::ItemPriced(_)
            | Fact::StockChanged(_)
            | Fact::OrderPlaced(_)
            | Fact::OrderCancelled(_) => {
                let (Some(id), Some(change)) = (fact.item(), Change::of(fact)) else { return };
                entry.items.push(id);
                changes.entry(id).or_default().push(StagedChange {
                    ticket,
                    place,
                    at: None,
                    change,
                });
            }
            Fact::OrderRefused(_) => {}
        }
    }

    /// Records the positions of a ticket's events.
    pub(super) fn placed(&mut self, ticket: Ticket, last: Position) {
        let Some(entry) = self.tickets.get(&ticket) else { return };
        let first = last + 1 - Position::from(entry.events);
        for id in &entry.items {
            let changes = self.changes.get_mut(id).into_iter().flatten();
            for change in changes.rev().take_while(|change| change.ticket == ticket) {
                change.at = Some(first + Position::from(change.place));
            }
        }
    }

    /// Removes the changes of a ticket.
    pub(super) fn settle(&mut self, ticket: Ticket) {
        let Some(entry) = self.tickets.remove(&ticket) else { return };
        for id in entry.items {
            let Some(changes) = self.changes.get_mut(&id) else { continue };
            changes.retain(|change| change.ticket != ticket);
            if changes.is_empty() {
                self.changes.remove(&id);
            }
        }
        if entry.has_structure {
            self.items.retain(|staged| staged.ticket != ticket);
            self.topics.retain(|staged| staged.ticket != ticket);
        }
    }
}
