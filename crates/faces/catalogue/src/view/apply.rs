//! Applies one event after the other. Each object knows the last event that changed it, so repeated
//! events change nothing.

use super::event::{Fact, ItemAdded, ItemId, TopicName};
use super::item::Item;
use super::rules;
use super::state::{Folded, State, Topic};
use wellspring_host::view::contract::LogEvent;
use wellspring_types::Position;

/// The change made by an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AppliedChange {
    Nothing,
    Topics,
    Item(ItemId),
}

pub(super) fn apply(folded: &Folded, event: &impl LogEvent) {
    let Some(fact) = Fact::of(event.event_type(), event.tags(), event.data()) else { return };
    let mut state = folded.write();
    let applied = state.apply(&fact, event.position(), event.recorded_at_us());
    if applied != AppliedChange::Nothing {
        state.changed(event.position());
        folded.publish(&state);
    }
    drop(state);
    if let (AppliedChange::Item(item), Fact::ItemAdded(_) | Fact::ItemChanged(_)) = (applied, &fact)
    {
        folded.tell(item);
    }
}

impl State {
    pub(super) fn apply(
        &mut self,
        fact: &Fact<'_>,
        position: Position,
        at_us: u64,
    ) -> AppliedChange {
        let applied = match fact {
            Fact::TopicAdded(fact) => {
                self.add_topic(fact, position).map(|()| AppliedChange::Topics)
            }
            Fact::TopicRenamed(fact) => {
                self.rename_topic(fact, position).map(|()| AppliedChange::Topics)
            }
            Fact::ItemAdded(fact) => {
                self.add_item(fact, position, at_us).map(|()| AppliedChange::Item(fact.item))
            }
            Fact::ItemChanged(_)
            | Fact::ItemPriced(_)
            | Fact::StockChanged(_)
            | Fact::OrderPlaced(_)
            | Fact::OrderCancelled(_) => {
                let item = fact.item();
                item.and_then(|item| {
                    self.change_item(fact, item, position, at_us)
                        .map(|()| AppliedChange::Item(item))
                })
            }
            Fact::OrderRefused(_) => None,
        };
        applied.unwrap_or(AppliedChange::Nothing)
    }

    /// Whether a topic may have this name.
    fn is_free(&self, name: &str) -> bool {
        rules::name_fault(name).is_none() && !self.topic_names.contains_key(name)
    }

    fn add_topic(&mut self, fact: &TopicName<'_>, position: Position) -> Option<()> {
        let is_next = usize::try_from(fact.topic) == Ok(self.topics.len() + 1);
        let is_new = position > self.topics_at && self.topics.len() < rules::MAX_TOPICS;
        if !(is_new && is_next && self.is_free(&fact.name)) {
            return None;
        }
        self.topics_at = position;
        self.topic_names.insert(fact.name.as_ref().into(), fact.topic);
        let name = fact.name.as_ref().into();
        self.topics.push(Topic {
            name,
            added_at: position,
            changed_at: position,
            items: Default::default(),
        });
        Some(())
    }

    fn rename_topic(&mut self, fact: &TopicName<'_>, position: Position) -> Option<()> {
        if position <= self.topics_at || !self.is_free(&fact.name) {
            return None;
        }
        let topic = self.topic_mut(fact.topic)?;
        topic.changed_at = position;
        let before = std::mem::replace(&mut topic.name, fact.name.as_ref().into());
        self.topic_names.remove(&before);
        self.topic_names.insert(fact.name.as_ref().into(), fact.topic);
        self.topics_at = position;
        Some(())
    }

    /// Whether a topic of this id existed before the event at this position.
    fn had_topic(&self, topic: u32, position: Position) -> bool {
        // A snapshot may contain topics that were added later.
        self.topic(topic).is_some_and(|topic| topic.added_at < position)
    }

    fn add_item(&mut self, fact: &ItemAdded<'_>, position: Position, at_us: u64) -> Option<()> {
        let is_next = usize::try_from(fact.item) == Ok(self.items.len() + 1);
        let is_new = position > self.items_at && self.items.len() < rules::MAX_ITEMS;
        let is_known = fact.sku.as_deref().is_some_and(|sku| self.skus.contains_key(sku));
        if !(is_new && is_next && self.had_topic(fact.topic, position)) || is_known {
            return None;
        }
        let item = Item::added(fact, position, at_us)?;
        self.items_at = position;
        if let Some(sku) = &item.sku {
            self.skus.insert(sku.clone(), fact.item);
        }
        self.topic_mut(fact.topic)?.items.insert(fact.item);
        self.items.push(Box::new(item));
        Some(())
    }

    fn change_item(
        &mut self,
        fact: &Fact<'_>,
        id: ItemId,
        position: Position,
        at_us: u64,
    ) -> Option<()> {
        let item = self.item(id).filter(|item| position > item.changed_at)?;
        let change = item.change(fact)?;
        let standing = item.standing.after(change)?;
        let described = match fact {
            Fact::ItemChanged(described) => Some(described),
            _ => None,
        };
        let moved = described.and_then(|described| described.topic).map(|to| (item.topic, to));
        if let Some((from, to)) = moved {
            if !self.had_topic(to, position) {
                return None;
            }
            self.topic_mut(from)?.items.remove(&id);
            self.topic_mut(to)?.items.insert(id);
        }
        let dropped = self.item(id)?.rendered.bytes();
        self.dropped(dropped);
        let item = self.item_mut(id)?;
        item.put(change, standing, position, at_us);
        if let Some((_, to)) = moved {
            item.topic = to;
        }
        if let Some(name) = described.and_then(|described| described.name.as_deref()) {
            item.name = name.into();
        }
        if let Some(text) = described.and_then(|described| described.description.as_deref()) {
            item.description = text.into();
        }
        Some(())
    }
}
