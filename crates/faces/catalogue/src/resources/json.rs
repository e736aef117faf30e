//! Resources as JSON.

use crate::view::{
    Currency, Item, ItemId, Order, OrderNumber, OrderState, State, Topic, TopicId, push_price,
};
use wellspring_host::clock::push_rfc3339;
use wellspring_host::wire::json::{push_string, push_u64};

pub(crate) fn item_json(state: &State, id: ItemId, item: &Item) -> Vec<u8> {
    let mut out = Vec::with_capacity(320 + item.name.len() + item.description.len());
    push_item(&mut out, state, id, item);
    out
}

/// Appends an item.
pub(crate) fn push_item(out: &mut Vec<u8>, state: &State, id: ItemId, item: &Item) {
    out.extend_from_slice(b"{\"id\":");
    push_u64(out, id.into());
    out.extend_from_slice(b",\"sku\":");
    match &item.sku {
        Some(sku) => push_string(out, sku),
        None => out.extend_from_slice(b"null"),
    }
    out.extend_from_slice(b",\"name\":");
    push_string(out, &item.name);
    out.extend_from_slice(b",\"description\":");
    push_string(out, &item.description);
    out.extend_from_slice(b",\"topic\":{\"id\":");
    push_u64(out, item.topic.into());
    out.extend_from_slice(b",\"name\":");
    push_string(out, state.topic(item.topic).map_or("", |topic| &topic.name));
    out.extend_from_slice(b"},\"price\":\"");
    push_price(out, item.standing.price_minor, item.currency);
    out.extend_from_slice(b"\",\"currency\":");
    push_string(out, item.currency.as_str());
    out.extend_from_slice(b",\"stock\":");
    push_u64(out, item.standing.stock.into());
    out.extend_from_slice(b",\"sold\":");
    push_u64(out, item.standing.sold);
    out.extend_from_slice(b",\"withdrawn\":");
    let withdrawn: &[u8] = if item.standing.withdrawn { b"true" } else { b"false" };
    out.extend_from_slice(withdrawn);
    push_moment(out, "added_at", item.added_at_us);
    push_moment(out, "changed_at", item.changed_at_us);
    out.push(b'}');
}

/// Appends `,"name":"…"` with a time.
fn push_moment(out: &mut Vec<u8>, name: &str, us: u64) {
    out.extend_from_slice(format!(",\"{name}\":\"").as_bytes());
    push_rfc3339(out, us);
    out.push(b'"');
}

/// Appends a topic.
pub(super) fn push_topic(out: &mut Vec<u8>, id: TopicId, topic: &Topic) {
    out.extend_from_slice(b"{\"id\":");
    push_u64(out, id.into());
    out.extend_from_slice(b",\"name\":");
    push_string(out, &topic.name);
    out.extend_from_slice(b",\"items\":");
    push_u64(out, topic.items.len() as u64);
    out.push(b'}');
}

/// Appends an order of an item.
pub(super) fn push_order(
    out: &mut Vec<u8>,
    id: ItemId,
    item: &Item,
    number: OrderNumber,
    order: &Order,
) {
    out.extend_from_slice(
        format!("{{\"order\":\"{id}-{number}\",\"item\":{id},\"amount\":").as_bytes(),
    );
    push_u64(out, order.amount.into());
    out.extend_from_slice(b",\"price\":\"");
    push_price(out, order.price_minor, item.currency);
    out.extend_from_slice(b"\",\"total\":\"");
    push_total(out, order.price_minor, order.amount, item.currency);
    out.extend_from_slice(b"\",\"currency\":");
    push_string(out, item.currency.as_str());
    out.extend_from_slice(b",\"state\":");
    let state = match order.state {
        OrderState::Placed => "placed",
        OrderState::Cancelled => "cancelled",
    };
    push_string(out, state);
    push_moment(out, "placed_at", order.placed_at_us);
    out.push(b'}');
}

/// Appends the total price: up to 10^9 at 10^12 of the smallest unit, which 64 bits do not hold.
fn push_total(out: &mut Vec<u8>, price_minor: u64, amount: u32, currency: Currency) {
    let total = u128::from(price_minor) * u128::from(amount);
    let decimals = currency.decimals();
    let unit = 10u128.pow(decimals as u32);
    out.extend_from_slice((total / unit).to_string().as_bytes());
    if decimals > 0 {
        out.extend_from_slice(format!(".{:0decimals$}", total % unit).as_bytes());
    }
}

/// Appends the prices of an item, newest first.
pub(super) fn push_prices(out: &mut Vec<u8>, id: ItemId, item: &Item) {
    out.extend_from_slice(format!("{{\"item\":{id},\"currency\":").as_bytes());
    push_string(out, item.currency.as_str());
    out.extend_from_slice(b",\"prices\":");
    wellspring_host::wire::json::push_list(out, item.prices.iter().rev(), |out, price| {
        out.extend_from_slice(b"{\"price\":\"");
        push_price(out, price.minor, item.currency);
        out.push(b'"');
        push_moment(out, "since", price.since_us);
        out.push(b'}');
    });
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_is_exact_however_large() {
        let total = |price_minor, amount, code| {
            let mut out = Vec::new();
            push_total(&mut out, price_minor, amount, Currency::in_use(code).unwrap());
            String::from_utf8(out).unwrap()
        };
        assert_eq!(total(1990, 3, "USD"), "59.70");
        assert_eq!(total(500, 2, "JPY"), "1000");
        assert_eq!(total(5, 1, "KWD"), "0.005");
        let most = total(1_000_000_000_000, 1_000_000_000, "USD");
        assert_eq!(most, "10000000000000000000.00");
    }
}
