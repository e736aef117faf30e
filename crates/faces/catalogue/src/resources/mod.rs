//! The JSON interface: topics, items, prices, stock, orders.

mod body;
mod bulk;
mod items;
mod json;
mod orders;
mod topics;

#[cfg(any(test, feature = "fuzzing"))]
pub(crate) use body::reads;
pub(crate) use bulk::KNOWN_STOCK;
pub(crate) use items::{AFTER, IN_STOCK, LIMIT, SKU, TOPIC as IN_TOPIC, WITHDRAWN};
pub(crate) use items::{add, change, change_stock, item, list, prices};
pub(crate) use json::item_json;
#[cfg(feature = "search")]
pub(crate) use json::push_item;
pub(crate) use orders::{BEFORE, ITEM as OF_ITEM};
pub(crate) use orders::{cancel, list as list_orders, order, place};
pub(crate) use topics::{add as add_topic, list as list_topics, rename as rename_topic};
