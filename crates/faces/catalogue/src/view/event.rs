//! The events of a catalogue, read and written. A log may contain any event from any source:
//! nonsense is ignored.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use wellspring_host::view::contract;
use wellspring_types::{Event, QueryItem};

/// Number of an item, from 1.
pub(crate) type ItemId = u32;
/// Number of a topic, from 1.
pub(crate) type TopicId = u32;
/// Number of an order among those of its item, from 1.
pub(crate) type OrderNumber = u32;

const TOPIC_ADDED: &str = "CatalogueTopicAdded";
const TOPIC_RENAMED: &str = "CatalogueTopicRenamed";
const ITEM_ADDED: &str = "CatalogueItemAdded";
const ITEM_CHANGED: &str = "CatalogueItemChanged";
const ITEM_PRICED: &str = "CatalogueItemPriced";
const STOCK_CHANGED: &str = "CatalogueStockChanged";
const ORDER_PLACED: &str = "CatalogueOrderPlaced";
const ORDER_CANCELLED: &str = "CatalogueOrderCancelled";
/// Changes nothing: it preserves the answer "sold out" for a retry with the same key.
const ORDER_REFUSED: &str = "CatalogueOrderRefused";

/// The common prefix of these types.
pub(crate) const PREFIX: &str = "Catalogue";
/// The event types that the catalogue reads, or answers from.
pub(crate) const TYPES: [&str; 9] = [
    TOPIC_ADDED,
    TOPIC_RENAMED,
    ITEM_ADDED,
    ITEM_CHANGED,
    ITEM_PRICED,
    STOCK_CHANGED,
    ORDER_PLACED,
    ORDER_CANCELLED,
    ORDER_REFUSED,
];
/// Those that define items and topics.
const STRUCTURE: [&str; 3] = [TOPIC_ADDED, TOPIC_RENAMED, ITEM_ADDED];
/// Those that change one item.
const OF_AN_ITEM: [&str; 5] =
    [ITEM_CHANGED, ITEM_PRICED, STOCK_CHANGED, ORDER_PLACED, ORDER_CANCELLED];

/// A topic and its name: [`Fact::TopicAdded`], [`Fact::TopicRenamed`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TopicName<'a> {
    pub(crate) topic: TopicId,
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
}

/// A new item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemAdded<'a> {
    pub(crate) item: ItemId,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) sku: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub(crate) name: Cow<'a, str>,
    #[serde(borrow, default, skip_serializing_if = "str::is_empty")]
    pub(crate) description: Cow<'a, str>,
    pub(crate) topic: TopicId,
    pub(crate) price_minor: u64,
    #[serde(borrow)]
    pub(crate) currency: Cow<'a, str>,
    pub(crate) stock: u32,
}

/// Changes of an item's description.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemChanged<'a> {
    pub(crate) item: ItemId,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Cow<'a, str>>,
    #[serde(borrow, default, skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) topic: Option<TopicId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) withdrawn: Option<bool>,
}

/// A new price.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ItemPriced {
    pub(crate) item: ItemId,
    pub(crate) price_minor: u64,
}

/// A change of a stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StockChanged {
    pub(crate) item: ItemId,
    pub(crate) by: i64,
}

/// This many units of an item were sold at this price each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderPlaced {
    pub(crate) item: ItemId,
    pub(crate) order: OrderNumber,
    pub(crate) amount: u32,
    pub(crate) price_minor: u64,
}

/// An order was cancelled, and its items are back in stock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderCancelled {
    pub(crate) item: ItemId,
    pub(crate) order: OrderNumber,
    /// That of the order.
    pub(crate) amount: u32,
}

/// An order that could not be placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderRefused {
    pub(crate) item: ItemId,
    pub(crate) amount: u32,
    pub(crate) stock: u32,
}

/// The content of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fact<'a> {
    TopicAdded(TopicName<'a>),
    TopicRenamed(TopicName<'a>),
    ItemAdded(ItemAdded<'a>),
    ItemChanged(ItemChanged<'a>),
    ItemPriced(ItemPriced),
    StockChanged(StockChanged),
    OrderPlaced(OrderPlaced),
    OrderCancelled(OrderCancelled),
    OrderRefused(OrderRefused),
}

/// The tag of an item.
pub(crate) fn item_tag(item: ItemId) -> String {
    format!("item:{item}")
}

/// The tag of a topic.
fn topic_tag(topic: TopicId) -> String {
    format!("topic:{topic}")
}

impl<'a> Fact<'a> {
    /// The content of an event with this type, these tags and data; `None` if it means nothing
    /// here. An event about an item must carry its tag, by which the conditions of decisions find
    /// it.
    pub(crate) fn of<'t>(
        event_type: &str,
        mut tags: impl Iterator<Item = &'t str>,
        data: &'a [u8],
    ) -> Option<Fact<'a>> {
        fn read<'a, T: Deserialize<'a>>(data: &'a [u8]) -> Option<T> {
            // An object: serde would also accept an array of the same values.
            let is_object = data.trim_ascii_start().starts_with(b"{");
            is_object.then(|| serde_json::from_slice(data).ok())?
        }
        let fact = match event_type {
            TOPIC_ADDED => Fact::TopicAdded(read(data)?),
            TOPIC_RENAMED => Fact::TopicRenamed(read(data)?),
            ITEM_ADDED => Fact::ItemAdded(read(data)?),
            ITEM_CHANGED => Fact::ItemChanged(read(data)?),
            ITEM_PRICED => Fact::ItemPriced(read(data)?),
            STOCK_CHANGED => Fact::StockChanged(read(data)?),
            ORDER_PLACED => Fact::OrderPlaced(read(data)?),
            ORDER_CANCELLED => Fact::OrderCancelled(read(data)?),
            ORDER_REFUSED => Fact::OrderRefused(read(data)?),
            _ => return None,
        };
        let has_tag = match fact.item() {
            Some(item) => tags.any(|tag| is_number_after(tag, "item:", item)),
            None => true,
        };
        has_tag.then_some(fact)
    }

    /// The item concerned, if any.
    pub(super) fn item(&self) -> Option<ItemId> {
        match self {
            Fact::TopicAdded(_) | Fact::TopicRenamed(_) => None,
            Fact::ItemAdded(fact) => Some(fact.item),
            Fact::ItemChanged(fact) => Some(fact.item),
            Fact::ItemPriced(fact) => Some(fact.item),
            Fact::StockChanged(fact) => Some(fact.item),
            Fact::OrderPlaced(fact) => Some(fact.item),
            Fact::OrderCancelled(fact) => Some(fact.item),
            Fact::OrderRefused(fact) => Some(fact.item),
        }
    }

    /// The event for it.
    pub(crate) fn event(&self) -> Event {
        let order_tag = |item, order| format!("order:{item}-{order}");
        match self {
            Fact::TopicAdded(fact) => event(TOPIC_ADDED, vec![topic_tag(fact.topic)], fact),
            Fact::TopicRenamed(fact) => event(TOPIC_RENAMED, vec![topic_tag(fact.topic)], fact),
            Fact::ItemAdded(fact) => {
                let mut tags = vec![item_tag(fact.item), topic_tag(fact.topic)];
                tags.extend(fact.sku.as_ref().map(|sku| format!("sku:{sku}")));
                event(ITEM_ADDED, tags, fact)
            }
            Fact::ItemChanged(fact) => event(ITEM_CHANGED, vec![item_tag(fact.item)], fact),
            Fact::ItemPriced(fact) => event(ITEM_PRICED, vec![item_tag(fact.item)], fact),
            Fact::StockChanged(fact) => event(STOCK_CHANGED, vec![item_tag(fact.item)], fact),
            Fact::OrderPlaced(fact) => event(
                ORDER_PLACED,
                vec![item_tag(fact.item), order_tag(fact.item, fact.order)],
                fact,
            ),
            Fact::OrderCancelled(fact) => event(
                ORDER_CANCELLED,
                vec![item_tag(fact.item), order_tag(fact.item, fact.order)],
                fact,
            ),
            Fact::OrderRefused(fact) => event(ORDER_REFUSED, vec![item_tag(fact.item)], fact),
        }
    }
}

/// Whether a tag is this prefix followed by this number, in canonical form.
fn is_number_after(tag: &str, letters: &str, number: u32) -> bool {
    let Some(digits) = tag.strip_prefix(letters) else { return false };
    !digits.starts_with('0') && digits.parse() == Ok(number) && !digits.starts_with('+')
}

fn event(event_type: &str, tags: Vec<String>, data: &impl Serialize) -> Event {
    contract::event(event_type, tags, contract::json(data))
}

/// The foreign events that a decision about new or renamed items or topics excludes.
pub(crate) fn structure_boundary() -> QueryItem {
    QueryItem::new(&STRUCTURE, &[])
}

/// The foreign events that a decision about an item excludes: only those of that item.
pub(crate) fn item_boundary(item: ItemId) -> QueryItem {
    QueryItem::new(&OF_AN_ITEM, &[&item_tag(item)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Vec<Fact<'static>> {
        let topic = TopicName { topic: 1, name: "Graduate School".into() };
        let item = ItemAdded {
            item: 7,
            sku: Some("A-7".into()),
            name: "Xen and the \"Art\"".into(),
            description: "two\nlines".into(),
            topic: 1,
            price_minor: 990,
            currency: "USD".into(),
            stock: 25,
        };
        let changed = ItemChanged { item: 7, withdrawn: Some(true), ..ItemChanged::default() };
        vec![
            Fact::TopicAdded(topic.clone()),
            Fact::TopicRenamed(topic),
            Fact::ItemAdded(item),
            Fact::ItemChanged(changed),
            Fact::ItemPriced(ItemPriced { item: 7, price_minor: 1 }),
            Fact::StockChanged(StockChanged { item: 7, by: -3 }),
            Fact::OrderPlaced(OrderPlaced { item: 7, order: 2, amount: 1, price_minor: 990 }),
            Fact::OrderCancelled(OrderCancelled { item: 7, order: 2, amount: 1 }),
            Fact::OrderRefused(OrderRefused { item: 7, amount: 9, stock: 1 }),
        ]
    }

    #[test]
    fn what_is_written_is_read_and_every_type_is_known() {
        let mut types: Vec<_> = Vec::new();
        for fact in facts() {
            let event = fact.event();
            let tags = event.tags.iter().map(String::as_str);
            assert_eq!(Fact::of(&event.event_type, tags, &event.data), Some(fact));
            assert!(event.event_type.starts_with(PREFIX));
            types.push(event.event_type);
        }
        assert_eq!(types, TYPES);
    }

    #[test]
    fn what_lacks_its_tag_is_no_fact_and_boundaries_find_their_own() {
        for fact in facts() {
            let event = fact.event();
            let Some(item) = fact.item() else { continue };
            for tags in [&[][..], &["item:8"], &["item:07"], &["item:+7"], &["items:7"]] {
                assert_eq!(Fact::of(&event.event_type, tags.iter().copied(), &event.data), None);
            }
            let tags = event.tags.iter().map(String::as_str);
            let boundaries = [structure_boundary(), item_boundary(item), item_boundary(8)];
            let met = boundaries.map(|b| b.matches(&event.event_type, tags.clone()));
            match fact {
                Fact::ItemAdded(_) => assert_eq!(met, [true, false, false]),
                Fact::OrderRefused(_) => assert_eq!(met, [false, false, false]),
                _ => assert_eq!(met, [false, true, false]),
            }
        }
    }
}
