//! The commands of a catalogue, their outcomes, and the reasons for refusals.

use super::event::{ItemId, OrderNumber, TopicId};
use super::money::Currency;
use super::rules;
use std::fmt;
use wellspring_types::Position;

/// What is to happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Command {
    AddTopic {
        name: String,
    },
    RenameTopic {
        topic: TopicId,
        name: String,
    },
    /// Adds a new item.
    Add(NewItem),
    /// Adds an item, or updates the one with that SKU.
    Put(NewItem, KnownStock),
    /// Changes an item; only if its last change was at this position, if one is given.
    Change {
        item: ItemId,
        changes: ItemChanges,
        unless_changed_since: Option<Position>,
    },
    /// Adds items to the stock, or takes them out.
    Stock {
        item: ItemId,
        by: i64,
    },
    /// Orders items, all or none.
    Order {
        item: ItemId,
        amount: u32,
    },
    Cancel {
        item: ItemId,
        order: OrderNumber,
    },
}

/// Handling of the stock of an existing item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KnownStock {
    /// It is kept: items sold meanwhile stay sold.
    Keep,
    /// It is set: someone has counted.
    Set,
}

/// The topic of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TopicRef {
    /// The one with this id.
    Id(TopicId),
    /// The one with this name; added if it does not exist.
    Name(String),
}

/// An item to add, with checked values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewItem {
    pub(crate) sku: Option<String>,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) topic: TopicRef,
    pub(crate) price_minor: u64,
    pub(crate) currency: Currency,
    pub(crate) stock: u32,
}

/// The changes of an item, with checked values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ItemChanges {
    pub(crate) name: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) topic: Option<TopicRef>,
    /// A decimal in the item's currency.
    pub(crate) price: Option<String>,
    pub(crate) withdrawn: Option<bool>,
}

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatalogueOutcome {
    /// Added or renamed, or already as requested.
    Topic(TopicId),
    Added(ItemId),
    /// Changed.
    Item(ItemId),
    /// Already as requested.
    Unchanged(ItemId),
    Ordered {
        item: ItemId,
        order: OrderNumber,
    },
    /// Not ordered: only this many are in stock. A retry with the same key gets the same answer.
    SoldOut {
        item: ItemId,
        amount: u32,
        stock: u32,
    },
    /// Now or earlier.
    Cancelled {
        item: ItemId,
        order: OrderNumber,
    },
}

/// Why a command is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CatalogueRefusal {
    UnknownItem(ItemId),
    UnknownTopic(TopicId),
    UnknownOrder(ItemId, OrderNumber),
    Withdrawn(ItemId),
    SkuTaken {
        sku: String,
        item: ItemId,
    },
    TopicTaken {
        name: String,
        topic: TopicId,
    },
    /// The item's price is in this currency.
    Currency(Currency),
    Price(String),
    /// More is to be taken out than the stock holds.
    TooFew {
        stock: u32,
        by: i64,
    },
    TooMany {
        stock: u32,
        by: i64,
    },
    /// The item has changed since the client read it.
    Changed(ItemId),
    Full,
}

impl fmt::Display for CatalogueRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CatalogueRefusal::UnknownItem(item) => write!(f, "there is no item {item}"),
            CatalogueRefusal::UnknownTopic(topic) => write!(f, "there is no topic {topic}"),
            CatalogueRefusal::UnknownOrder(item, order) => {
                write!(f, "there is no order {item}-{order}")
            }
            CatalogueRefusal::Withdrawn(item) => write!(f, "item {item} has been withdrawn"),
            CatalogueRefusal::SkuTaken { sku, item } => {
                write!(f, "the SKU {sku} belongs to item {item}")
            }
            CatalogueRefusal::TopicTaken { name, topic } => {
                write!(f, "{name:?} is the name of topic {topic}")
            }
            CatalogueRefusal::Currency(currency) => {
                write!(f, "the item's price is in {}, which cannot be changed", currency.as_str())
            }
            CatalogueRefusal::Price(fault) => write!(f, "the price {fault}"),
            CatalogueRefusal::TooFew { stock, by } => {
                write!(f, "{} cannot be taken out of a stock of {stock}", by.unsigned_abs())
            }
            CatalogueRefusal::TooMany { stock, by } => write!(
                f,
                "{by} cannot be added to a stock of {stock}: a stock is at most {}",
                rules::MAX_STOCK
            ),
            CatalogueRefusal::Changed(item) => {
                write!(f, "item {item} has changed since the client read it")
            }
            CatalogueRefusal::Full => f.write_str("the limit is reached"),
        }
    }
}
