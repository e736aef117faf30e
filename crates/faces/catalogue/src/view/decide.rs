//! Decides a command, given the fold and the pending decisions.

use super::command::{
    CatalogueOutcome, CatalogueRefusal, Command, ItemChanges, KnownStock, NewItem, TopicRef,
};
use super::event::{
    Fact, ItemAdded, ItemChanged, ItemId, ItemPriced, OrderCancelled, OrderNumber, OrderPlaced,
    StockChanged, TopicId, TopicName, item_boundary, structure_boundary,
};
use super::item::Change;
use super::money::parse_price;
use super::staged::{OrderSeen, SeenItem, StagedChanges};
use super::state::State;
use wellspring_host::view::contract::Decision;
use wellspring_types::{Position, QueryItem};

type DecisionResult = Result<Decision<CatalogueOutcome>, CatalogueRefusal>;

/// A decision in progress.
struct DecisionDraft<'a> {
    state: &'a State,
    staged: &'a StagedChanges,
    facts: Vec<Fact<'a>>,
    unless: Vec<QueryItem>,
}

pub(super) fn decide(state: &State, staged: &StagedChanges, command: &Command) -> DecisionResult {
    let mut deciding = DecisionDraft { state, staged, facts: Vec::new(), unless: Vec::new() };
    let outcome = match command {
        Command::AddTopic { name } => deciding.add_topic(name).map(CatalogueOutcome::Topic),
        Command::RenameTopic { topic, name } => deciding.rename_topic(*topic, name),
        Command::Add(new) => deciding.add(new),
        Command::Put(new, known_stock) => deciding.put(new, *known_stock),
        Command::Change { item, changes, unless_changed_since } => {
            deciding.change(*item, changes, *unless_changed_since)
        }
        Command::Stock { item, by } => deciding.stock(*item, *by),
        Command::Order { item, amount } => deciding.order(*item, *amount),
        Command::Cancel { item, order } => deciding.cancel(*item, *order),
    }?;
    let events = deciding.facts.iter().map(Fact::event).collect();
    Ok(Decision { events, unless: deciding.unless, outcome })
}

impl<'a> DecisionDraft<'a> {
    /// The current item, with a condition that no one else changes it.
    fn see(&mut self, item: ItemId) -> Result<SeenItem<'a>, CatalogueRefusal> {
        let seen = self.staged.see(self.state, item).ok_or(CatalogueRefusal::UnknownItem(item))?;
        self.guard(item_boundary(item));
        Ok(seen)
    }

    fn guard(&mut self, boundary: QueryItem) {
        if !self.unless.contains(&boundary) {
            self.unless.push(boundary);
        }
    }

    fn add_topic(&mut self, name: &'a str) -> Result<TopicId, CatalogueRefusal> {
        if let Some(topic) = self.staged.topic_of_name(self.state, name) {
            return Err(CatalogueRefusal::TopicTaken { name: name.to_owned(), topic });
        }
        let topic = self.staged.next_topic(self.state).ok_or(CatalogueRefusal::Full)?;
        if topic as usize > super::rules::MAX_TOPICS {
            return Err(CatalogueRefusal::Full);
        }
        self.guard(structure_boundary());
        self.facts.push(Fact::TopicAdded(TopicName { topic, name: name.into() }));
        Ok(topic)
    }

    fn rename_topic(
        &mut self,
        topic: TopicId,
        name: &'a str,
    ) -> Result<CatalogueOutcome, CatalogueRefusal> {
        if !self.staged.has_topic(self.state, topic) {
            return Err(CatalogueRefusal::UnknownTopic(topic));
        }
        match self.staged.topic_of_name(self.state, name) {
            Some(same) if same == topic => return Ok(CatalogueOutcome::Topic(topic)),
            Some(topic) => {
                return Err(CatalogueRefusal::TopicTaken { name: name.to_owned(), topic });
            }
            None => {}
        }
        self.guard(structure_boundary());
        self.facts.push(Fact::TopicRenamed(TopicName { topic, name: name.into() }));
        Ok(CatalogueOutcome::Topic(topic))
    }

    /// The topic meant; it is added if it is named and does not exist.
    fn topic(&mut self, topic: &'a TopicRef) -> Result<TopicId, CatalogueRefusal> {
        match topic {
            TopicRef::Id(id) if self.staged.has_topic(self.state, *id) => Ok(*id),
            TopicRef::Id(id) => Err(CatalogueRefusal::UnknownTopic(*id)),
            TopicRef::Name(name) => match self.staged.topic_of_name(self.state, name) {
                Some(id) => Ok(id),
                None => self.add_topic(name),
            },
        }
    }

    fn add(&mut self, new: &'a NewItem) -> Result<CatalogueOutcome, CatalogueRefusal> {
        let known = new.sku.as_deref().and_then(|sku| self.staged.item_of_sku(self.state, sku));
        if let (Some(item), Some(sku)) = (known, &new.sku) {
            return Err(CatalogueRefusal::SkuTaken { sku: sku.clone(), item });
        }
        let item = self.staged.next_item(self.state).ok_or(CatalogueRefusal::Full)?;
        if item as usize > super::rules::MAX_ITEMS {
            return Err(CatalogueRefusal::Full);
        }
        let topic = self.topic(&new.topic)?;
        self.guard(structure_boundary());
        self.facts.push(Fact::ItemAdded(ItemAdded {
            item,
            sku: new.sku.as_deref().map(Into::into),
            name: new.name.as_str().into(),
            description: new.description.as_str().into(),
            topic,
            price_minor: new.price_minor,
            currency: new.currency.as_str().to_owned().into(),
            stock: new.stock,
        }));
        Ok(CatalogueOutcome::Added(item))
    }

    fn put(
        &mut self,
        new: &'a NewItem,
        known_stock: KnownStock,
    ) -> Result<CatalogueOutcome, CatalogueRefusal> {
        let known = new.sku.as_deref().and_then(|sku| self.staged.item_of_sku(self.state, sku));
        let Some(id) = known else { return self.add(new) };
        let seen = self.see(id)?;
        if seen.item.currency != new.currency {
            return Err(CatalogueRefusal::Currency(seen.item.currency));
        }
        let topic = self.topic(&new.topic)?;
        // It may have changed by the time of the description.
        let differs = |is_other: bool| is_other || seen.is_being_described();
        let changed = ItemChanged {
            item: id,
            name: differs(*seen.item.name != *new.name).then(|| new.name.as_str().into()),
            description: differs(*seen.item.description != *new.description)
                .then(|| new.description.as_str().into()),
            topic: differs(seen.item.topic != topic).then_some(topic),
            withdrawn: seen.standing.withdrawn.then_some(false),
        };
        self.describe(changed);
        self.price(&seen, id, new.price_minor);
        let by = match known_stock {
            KnownStock::Keep => 0,
            KnownStock::Set => i64::from(new.stock) - i64::from(seen.standing.stock),
        };
        if by != 0 {
            self.facts.push(Fact::StockChanged(StockChanged { item: id, by }));
        }
        Ok(self.changed(id))
    }

    /// The outcome for an existing item.
    fn changed(&self, id: ItemId) -> CatalogueOutcome {
        if self.facts.is_empty() {
            CatalogueOutcome::Unchanged(id)
        } else {
            CatalogueOutcome::Item(id)
        }
    }

    fn describe(&mut self, changed: ItemChanged<'a>) {
        let nothing = ItemChanged { item: changed.item, ..ItemChanged::default() };
        if changed != nothing {
            self.facts.push(Fact::ItemChanged(changed));
        }
    }

    fn price(&mut self, seen: &SeenItem<'_>, item: ItemId, price_minor: u64) {
        if seen.standing.price_minor != price_minor {
            self.facts.push(Fact::ItemPriced(ItemPriced { item, price_minor }));
        }
    }

    fn change(
        &mut self,
        id: ItemId,
        changes: &'a ItemChanges,
        since: Option<Position>,
    ) -> Result<CatalogueOutcome, CatalogueRefusal> {
        let seen = self.see(id)?;
        let state = self.state;
        let is_as_seen = |since| !seen.is_changing && state.item_changed_at(seen.item) == since;
        if !since.is_none_or(is_as_seen) {
            return Err(CatalogueRefusal::Changed(id));
        }
        let topic = match &changes.topic {
            Some(topic) => Some(self.topic(topic)?),
            None => None,
        };
        self.describe(ItemChanged {
            item: id,
            name: changes.name.as_deref().map(Into::into),
            description: changes.description.as_deref().map(Into::into),
            topic,
            withdrawn: changes.withdrawn,
        });
        if let Some(price) = &changes.price {
            let minor = parse_price(price, seen.item.currency);
            let minor = minor.map_err(|fault| CatalogueRefusal::Price(fault.to_string()))?;
            self.price(&seen, id, minor);
        }
        Ok(self.changed(id))
    }

    fn stock(&mut self, id: ItemId, by: i64) -> Result<CatalogueOutcome, CatalogueRefusal> {
        let seen = self.see(id)?;
        if by == 0 {
            return Ok(CatalogueOutcome::Unchanged(id));
        }
        let stock = seen.standing.stock;
        match seen.standing.after(Change::Stocked { by }) {
            Some(_) => self.facts.push(Fact::StockChanged(StockChanged { item: id, by })),
            None if by < 0 => return Err(CatalogueRefusal::TooFew { stock, by }),
            None => return Err(CatalogueRefusal::TooMany { stock, by }),
        }
        Ok(CatalogueOutcome::Item(id))
    }

    fn order(&mut self, id: ItemId, amount: u32) -> Result<CatalogueOutcome, CatalogueRefusal> {
        let seen = self.see(id)?;
        let standing = seen.standing;
        if standing.withdrawn {
            return Err(CatalogueRefusal::Withdrawn(id));
        }
        let order = standing.orders.checked_add(1).ok_or(CatalogueRefusal::Full)?;
        let price_minor = standing.price_minor;
        Ok(match standing.after(Change::Ordered { order, amount, price_minor }) {
            Some(_) => {
                self.facts.push(Fact::OrderPlaced(OrderPlaced {
                    item: id,
                    order,
                    amount,
                    price_minor,
                }));
                CatalogueOutcome::Ordered { item: id, order }
            }
            None => CatalogueOutcome::SoldOut { item: id, amount, stock: standing.stock },
        })
    }

    fn cancel(
        &mut self,
        id: ItemId,
        order: OrderNumber,
    ) -> Result<CatalogueOutcome, CatalogueRefusal> {
        let seen = self.staged.see(self.state, id);
        let order_seen = seen.as_ref().and_then(|seen| seen.order(order));
        let (Some(seen), Some(order_seen)) = (seen, order_seen) else {
            return Err(CatalogueRefusal::UnknownOrder(id, order));
        };
        self.guard(item_boundary(id));
        let OrderSeen::Placed { amount } = order_seen else {
            return Ok(CatalogueOutcome::Cancelled { item: id, order });
        };
        let (stock, by) = (seen.standing.stock, i64::from(amount));
        if seen.standing.after(Change::Cancelled { order, amount }).is_none() {
            return Err(CatalogueRefusal::TooMany { stock, by });
        }
        self.facts.push(Fact::OrderCancelled(OrderCancelled { item: id, order, amount }));
        Ok(CatalogueOutcome::Cancelled { item: id, order })
    }
}
