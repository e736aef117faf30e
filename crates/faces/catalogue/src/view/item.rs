//! An item and the effect of its events.

use super::event::{Fact, ItemAdded, OrderNumber, TopicId};
use super::money::{Currency, MAX_PRICE_MINOR};
use super::rules;
use std::sync::OnceLock;
use wellspring_types::Position;

/// Most prices stored per item: the latest ones.
pub(crate) const MAX_PRICES: usize = 1_000;

/// An item as it is folded.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    pub(crate) sku: Option<Box<str>>,
    pub(crate) name: Box<str>,
    pub(crate) description: Box<str>,
    pub(crate) topic: TopicId,
    pub(crate) currency: Currency,
    pub(crate) standing: ItemState,
    /// Position of the event that added it.
    pub(crate) added_at: Position,
    /// Time of that, in µs since 1970 UTC.
    pub(crate) added_at_us: u64,
    /// The last event that changed it.
    pub(crate) changed_at: Position,
    /// Time of that, in µs since 1970 UTC.
    pub(crate) changed_at_us: u64,
    /// Its prices with their times, oldest first; at least one.
    pub(crate) prices: Vec<Price>,
    /// Its orders by number.
    pub(crate) orders: Vec<Order>,
    pub(super) rendered: Renderings,
}

/// A price and the time it was set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Price {
    pub(crate) minor: u64,
    /// µs since 1970 UTC.
    pub(crate) since_us: u64,
}

/// An order of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) amount: u32,
    pub(crate) state: OrderState,
    /// The unit price when it was placed.
    pub(crate) price_minor: u64,
    /// µs since 1970 UTC.
    pub(crate) placed_at_us: u64,
}

/// The state of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OrderState {
    Placed,
    Cancelled,
}

/// The forms in which an item is rendered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rendering {
    /// For the bookstore's clients.
    Original,
    /// For the JSON interface.
    Resource,
}

/// The renderings of an item, made on demand and valid until an event changes it.
#[derive(Debug, Clone, Default)]
pub(super) struct Renderings([OnceLock<KeptRendering>; 2]);

/// A rendering of an item.
#[derive(Debug, Clone)]
pub(super) struct KeptRendering {
    /// The last change of its topic then, whose name it contains.
    pub(super) topic_changed_at: Position,
    pub(super) bytes: Box<[u8]>,
}

impl Renderings {
    pub(super) fn of(&self, rendering: Rendering) -> &OnceLock<KeptRendering> {
        &self.0[rendering as usize]
    }

    /// Bytes of all of them.
    pub(super) fn bytes(&self) -> usize {
        self.0.iter().filter_map(OnceLock::get).map(|rendered| rendered.bytes.len()).sum()
    }
}

/// The part of an item that orders depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ItemState {
    /// Units in stock.
    pub(crate) stock: u32,
    /// Units ordered, without cancelled orders. Together with the stock: all units ever put in,
    /// minus those taken out.
    pub(crate) sold: u64,
    /// The unit price.
    pub(crate) price_minor: u64,
    /// Whether it is withdrawn from sale.
    pub(crate) withdrawn: bool,
    /// Number of orders ever placed.
    pub(crate) orders: OrderNumber,
}

/// The change that an event makes to an item's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Change {
    /// Name, description or topic, and perhaps withdrawal.
    Described {
        withdrawn: Option<bool>,
    },
    Priced {
        price_minor: u64,
    },
    Stocked {
        by: i64,
    },
    Ordered {
        order: OrderNumber,
        amount: u32,
        price_minor: u64,
    },
    /// `amount`: that of the order, which is active.
    Cancelled {
        order: OrderNumber,
        amount: u32,
    },
}

impl Change {
    /// The effect of an event on its item.
    pub(super) fn of(fact: &Fact<'_>) -> Option<Change> {
        Some(match fact {
            Fact::ItemChanged(fact) => Change::Described { withdrawn: fact.withdrawn },
            Fact::ItemPriced(fact) => Change::Priced { price_minor: fact.price_minor },
            Fact::StockChanged(fact) => Change::Stocked { by: fact.by },
            Fact::OrderPlaced(fact) => Change::Ordered {
                order: fact.order,
                amount: fact.amount,
                price_minor: fact.price_minor,
            },
            Fact::OrderCancelled(fact) => {
                Change::Cancelled { order: fact.order, amount: fact.amount }
            }
            Fact::TopicAdded(_)
            | Fact::TopicRenamed(_)
            | Fact::ItemAdded(_)
            | Fact::OrderRefused(_) => return None,
        })
    }
}

impl ItemState {
    /// The result of a change; `None` if it makes no sense. Used by decisions and by the fold.
    pub(crate) fn after(self, change: Change) -> Option<ItemState> {
        let stocked = |by: i64| {
            let stock = i64::from(self.stock).checked_add(by)?;
            u32::try_from(stock).ok().filter(|stock| *stock <= rules::MAX_STOCK)
        };
        Some(match change {
            Change::Described { withdrawn } => {
                ItemState { withdrawn: withdrawn.unwrap_or(self.withdrawn), ..self }
            }
            Change::Priced { price_minor } if price_minor <= MAX_PRICE_MINOR => {
                ItemState { price_minor, ..self }
            }
            Change::Priced { .. } => return None,
            Change::Stocked { by } => ItemState { stock: stocked(by)?, ..self },
            Change::Ordered { order, amount, price_minor } => {
                let is_next = self.orders.checked_add(1) == Some(order);
                let may_be = !self.withdrawn && amount > 0 && price_minor <= MAX_PRICE_MINOR;
                if !is_next || !may_be {
                    return None;
                }
                let stock = stocked(-i64::from(amount))?;
                ItemState { stock, sold: self.sold + u64::from(amount), orders: order, ..self }
            }
            Change::Cancelled { order, amount } if order <= self.orders => {
                let sold = self.sold.checked_sub(u64::from(amount))?;
                ItemState { stock: stocked(i64::from(amount))?, sold, ..self }
            }
            Change::Cancelled { .. } => return None,
        })
    }
}

impl Item {
    /// A new item; `None` if a value breaks a rule.
    pub(super) fn added(fact: &ItemAdded<'_>, position: Position, at_us: u64) -> Option<Item> {
        let currency = Currency::known(&fact.currency)?;
        let is_fine = rules::name_fault(&fact.name).is_none()
            && rules::description_fault(&fact.description).is_none()
            && fact.sku.as_deref().is_none_or(|sku| rules::sku_fault(sku).is_none())
            && fact.stock <= rules::MAX_STOCK
            && fact.price_minor <= MAX_PRICE_MINOR;
        is_fine.then(|| Item {
            sku: fact.sku.as_deref().map(Box::from),
            name: fact.name.as_ref().into(),
            description: fact.description.as_ref().into(),
            topic: fact.topic,
            currency,
            standing: ItemState {
                stock: fact.stock,
                sold: 0,
                price_minor: fact.price_minor,
                withdrawn: false,
                orders: 0,
            },
            added_at: position,
            added_at_us: at_us,
            changed_at: position,
            changed_at_us: at_us,
            prices: vec![Price { minor: fact.price_minor, since_us: at_us }],
            orders: Vec::new(),
            rendered: Renderings::default(),
        })
    }

    /// A placed order.
    pub(crate) fn order(&self, order: OrderNumber) -> Option<&Order> {
        self.orders.get(usize::try_from(order).ok()?.checked_sub(1)?)
    }

    /// The change an event of this item makes; `None` if it makes none, or no sense. Whether the
    /// topic it names exists is not checked here.
    pub(super) fn change(&self, fact: &Fact<'_>) -> Option<Change> {
        let change = Change::of(fact)?;
        let makes_sense = match (change, fact) {
            (Change::Described { .. }, Fact::ItemChanged(fact)) => {
                fact.name.as_deref().is_none_or(|name| rules::name_fault(name).is_none())
                    && fact
                        .description
                        .as_deref()
                        .is_none_or(|text| rules::description_fault(text).is_none())
            }
            (Change::Cancelled { order, amount }, _) => self
                .order(order)
                .is_some_and(|order| order.state == OrderState::Placed && order.amount == amount),
            _ => true,
        };
        makes_sense.then_some(change)
    }

    /// Applies a valid change. Names are handled elsewhere.
    pub(super) fn put(
        &mut self,
        change: Change,
        standing: ItemState,
        position: Position,
        at_us: u64,
    ) {
        self.standing = standing;
        self.changed_at = position;
        self.changed_at_us = at_us;
        self.rendered = Renderings::default();
        match change {
            Change::Described { .. } | Change::Stocked { .. } => {}
            Change::Priced { price_minor } => {
                if self.prices.len() == MAX_PRICES {
                    self.prices.remove(0);
                }
                self.prices.push(Price { minor: price_minor, since_us: at_us });
            }
            Change::Ordered { amount, price_minor, .. } => {
                let state = OrderState::Placed;
                self.orders.push(Order { amount, state, price_minor, placed_at_us: at_us });
            }
            Change::Cancelled { order, .. } => {
                let order = usize::try_from(order).unwrap_or(usize::MAX) - 1;
                if let Some(order) = self.orders.get_mut(order) {
                    order.state = OrderState::Cancelled;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: ItemState =
        ItemState { stock: 10, sold: 0, price_minor: 990, withdrawn: false, orders: 0 };

    #[test]
    fn no_more_is_sold_than_there_is() {
        let ordered = |order, amount| Change::Ordered { order, amount, price_minor: 990 };
        let after = NEW.after(ordered(1, 7)).unwrap();
        assert_eq!((after.stock, after.sold, after.orders), (3, 7, 1));
        for bad in
            [ordered(2, 4), ordered(2, 0), ordered(1, 1), ordered(3, 1), ordered(2, u32::MAX)]
        {
            assert_eq!(after.after(bad), None, "{bad:?}");
        }
        let cancelled = after.after(Change::Cancelled { order: 1, amount: 7 }).unwrap();
        assert_eq!((cancelled.stock, cancelled.sold, cancelled.orders), (10, 0, 1));
        let withdrawn = NEW.after(Change::Described { withdrawn: Some(true) }).unwrap();
        assert_eq!(withdrawn.after(ordered(1, 1)), None);
        for by in [-11, i64::MIN, i64::MAX, i64::from(rules::MAX_STOCK)] {
            assert_eq!(NEW.after(Change::Stocked { by }), None, "{by}");
        }
        assert_eq!(NEW.after(Change::Priced { price_minor: u64::MAX }), None);
    }
}
