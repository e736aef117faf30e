//! Answers to refused commands of the catalogue.

use crate::problems;
use crate::view::{CatalogueRefusal, ItemId, OrderNumber};
use wellspring_host::wire::problem::{self, Problem};

/// The answer to a refused command.
pub(crate) fn of_refusal(refusal: &CatalogueRefusal) -> Box<Problem> {
    let detail = refusal.to_string();
    match refusal {
        CatalogueRefusal::UnknownItem(_) => problems::ITEM_NOT_FOUND.because(detail).field("item"),
        CatalogueRefusal::UnknownTopic(_) => {
            problems::TOPIC_NOT_FOUND.because(detail).field("topic")
        }
        CatalogueRefusal::UnknownOrder(..) => {
            problems::ORDER_NOT_FOUND.because(detail).field("order")
        }
        CatalogueRefusal::Withdrawn(_) => problems::ITEM_WITHDRAWN.because(detail).field("item"),
        CatalogueRefusal::SkuTaken { item, .. } => {
            problems::SKU_TAKEN.because(detail).field("sku").with("item", item.to_string())
        }
        CatalogueRefusal::TopicTaken { topic, .. } => {
            problems::TOPIC_TAKEN.because(detail).field("name").with("topic", topic.to_string())
        }
        CatalogueRefusal::Currency(_) => problem::INVALID.because(detail).field("currency"),
        CatalogueRefusal::Price(_) => problem::INVALID.because(detail).field("price"),
        CatalogueRefusal::TooFew { stock, .. } => {
            problems::STOCK_TOO_LOW.because(detail).field("by").with("stock", stock.to_string())
        }
        CatalogueRefusal::TooMany { .. } => problem::INVALID.because(detail).field("by"),
        CatalogueRefusal::Changed(_) => problems::ITEM_CHANGED.because(detail).field("If-Match"),
        CatalogueRefusal::Full => problems::CATALOGUE_FULL.because(detail),
    }
}

/// Not enough in stock.
pub(crate) fn sold_out(item: ItemId, amount: u32, stock: u32) -> Box<Problem> {
    let detail = format!("item {item}: {amount} were ordered, {stock} are in stock");
    problems::SOLD_OUT.because(detail).field("amount").with("stock", stock.to_string())
}

/// No item has this number.
pub(crate) fn unknown_item(item: ItemId) -> Box<Problem> {
    of_refusal(&CatalogueRefusal::UnknownItem(item))
}

/// No order has this id.
pub(crate) fn unknown_order(item: ItemId, order: OrderNumber) -> Box<Problem> {
    of_refusal(&CatalogueRefusal::UnknownOrder(item, order))
}

/// The key was used for something else.
pub(crate) fn another_request() -> Box<Problem> {
    problem::KEY_REUSED.because("the idempotency key was used with a request of another kind")
}
