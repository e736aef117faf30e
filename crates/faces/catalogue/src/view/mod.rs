//! The catalogue as a view: decide, fold, answer. No clock, no disk, no HTTP.
//!
//! The condition of a decision about an item covers that item's events only, so orders of other
//! items never interfere; orders of one item are decided on top of each other and share a barrier.
//! Items, topics and an item's orders are numbered without gaps.
//!
//! ```text
//! order ──► decide: the item as folded + its changes on their way ──► OrderPlaced, if no other event of this item came ──► folded: stock falls
//! ```
//!
//! Everything is behind one readers' lock, so every answer shows the catalogue at one position; the
//! fold takes the lock for one event at a time. A pending change that is already folded counts
//! once: it knows its position, and the item knows its last one (decision 0030).

mod apply;
mod command;
mod decide;
mod event;
mod item;
mod listeners;
mod money;
mod rules;
mod snapshot;
mod staged;
mod state;
#[cfg(test)]
mod tests;

pub(crate) use command::{
    CatalogueOutcome, CatalogueRefusal, Command, ItemChanges, KnownStock, NewItem, TopicRef,
};
pub(crate) use event::{ItemId, OrderNumber, PREFIX, TYPES, TopicId};
pub(crate) use item::{Item, Order, OrderState, Rendering};
#[cfg(feature = "search")]
pub(crate) use listeners::ListenerState;
pub(crate) use money::{Currency, parse_price, push_price, push_short_price};
pub(crate) use rules::{MAX_STOCK, description_fault, name_fault, sku_fault};
pub(crate) use state::{Folded, State, Topic};

use event::{Fact, OrderRefused};
use staged::StagedChanges;
use std::io;
use std::sync::Arc;
use wellspring_host::view::contract::{
    ConditionStart, Decision, LogEvent, SnapshotFault, Ticket, View,
};
use wellspring_types::{Event, Position, Query};

/// The view's writing side.
pub(crate) struct Catalogue {
    folded: Arc<Folded>,
}

impl View for Catalogue {
    const NAME: &'static str = "catalogue";
    const VERSION: u32 = 1;
    const CONDITION_START: ConditionStart = ConditionStart::OwnLast;

    type Folded = Folded;
    type Staged = StagedChanges;
    type Command = Command;
    type Context = ();
    type Outcome = CatalogueOutcome;
    type Refusal = CatalogueRefusal;

    fn new() -> Self {
        Catalogue { folded: Arc::default() }
    }

    fn query() -> Query {
        Query::item(&TYPES, &[])
    }

    fn folded(&self) -> &Arc<Folded> {
        &self.folded
    }

    fn apply(&mut self, event: &impl LogEvent) {
        apply::apply(&self.folded, event);
    }

    fn outcome(event: &impl LogEvent) -> Option<CatalogueOutcome> {
        Some(match Fact::of(event.event_type(), event.tags(), event.data())? {
            Fact::TopicAdded(fact) | Fact::TopicRenamed(fact) => {
                CatalogueOutcome::Topic(fact.topic)
            }
            Fact::ItemAdded(fact) => CatalogueOutcome::Added(fact.item),
            Fact::ItemChanged(fact) => CatalogueOutcome::Item(fact.item),
            Fact::ItemPriced(fact) => CatalogueOutcome::Item(fact.item),
            Fact::StockChanged(fact) => CatalogueOutcome::Item(fact.item),
            Fact::OrderPlaced(fact) => {
                CatalogueOutcome::Ordered { item: fact.item, order: fact.order }
            }
            Fact::OrderCancelled(fact) => {
                CatalogueOutcome::Cancelled { item: fact.item, order: fact.order }
            }
            Fact::OrderRefused(OrderRefused { item, amount, stock }) => {
                CatalogueOutcome::SoldOut { item, amount, stock }
            }
        })
    }

    fn remember(outcome: &CatalogueOutcome) -> Option<Event> {
        let CatalogueOutcome::SoldOut { item, amount, stock } = *outcome else { return None };
        Some(Fact::OrderRefused(OrderRefused { item, amount, stock }).event())
    }

    fn decide(
        folded: &Folded,
        staged: &StagedChanges,
        (): &(),
        command: &Command,
    ) -> Result<Decision<CatalogueOutcome>, CatalogueRefusal> {
        decide::decide(&folded.read(), staged, command)
    }

    fn stage(staged: &mut StagedChanges, decision: &Decision<CatalogueOutcome>, ticket: Ticket) {
        for event in &decision.events {
            let tags = event.tags.iter().map(String::as_str);
            if let Some(fact) = Fact::of(&event.event_type, tags, &event.data) {
                staged.stage(&fact, ticket);
            }
        }
    }

    fn placed(staged: &mut StagedChanges, ticket: Ticket, last: Position) {
        staged.placed(ticket, last);
    }

    fn settle(staged: &mut StagedChanges, ticket: Ticket) {
        staged.settle(ticket);
    }

    fn encode(folded: &Folded, out: &mut impl io::Write) -> io::Result<()> {
        snapshot::encode(folded, out)
    }

    fn decode(input: &mut impl io::Read) -> Result<Self, SnapshotFault> {
        let folded = Arc::new(Folded::of(snapshot::decode(input)?));
        Ok(Catalogue { folded })
    }
}
