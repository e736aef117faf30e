//! The snapshot of a catalogue.
//!
//! ```text
//! items_at, number of items
//! each item: SKU or empty, name, description, topic, currency, stock, sold, withdrawn,
//!     added at, added µs, changed at − added at, changed µs − added µs,
//!     prices: price, since µs − added µs
//!     number of orders; each: amount, cancelled, price, placed µs − added µs
//! topics_at, number of topics, each: name, added at, changed at − added at
//! ```
//! A reader writes it while the fold continues, so items may be later than `items_at`, and topics
//! later than items. Objects know their last change, so repeated events have no effect
//! (`apply.rs`). Topics come last: none that an item names is missing.

use super::event::{ItemAdded, ItemId, TopicId};
use super::item::{Item, MAX_PRICES, Order, OrderState, Price};
use super::rules;
use super::state::{Folded, State, Topic};
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use wellspring_host::view::contract::SnapshotFault;
use wellspring_host::view::contract::packed::{Input, put, put_bytes};

/// Items written at a time under the lock.
const ITEMS_AT_A_TIME: usize = 256;

pub(super) fn encode(folded: &Folded, out: &mut impl Write) -> io::Result<()> {
    let (items_at, count) = {
        let state = folded.read();
        (state.items_at, state.item_count())
    };
    put(out, items_at)?;
    put(out, count as u64)?;
    let mut written = 0;
    let mut bytes = Vec::new();
    while written < count {
        bytes.clear();
        {
            // Only copied under the lock: the device may be slow.
            let state = folded.read();
            let some = count.min(written + ITEMS_AT_A_TIME);
            state.items[written..some].iter().try_for_each(|item| put_item(&mut bytes, item))?;
            written = some;
        }
        out.write_all(&bytes)?;
    }
    bytes.clear();
    {
        let state = folded.read();
        put(&mut bytes, state.topics_at)?;
        put(&mut bytes, state.topics.len() as u64)?;
        for topic in &state.topics {
            put_bytes(&mut bytes, topic.name.as_bytes())?;
            put(&mut bytes, topic.added_at)?;
            put(&mut bytes, topic.changed_at - topic.added_at)?;
        }
    }
    out.write_all(&bytes)
}

fn put_item(out: &mut Vec<u8>, item: &Item) -> io::Result<()> {
    put_bytes(out, item.sku.as_deref().unwrap_or_default().as_bytes())?;
    put_bytes(out, item.name.as_bytes())?;
    put_bytes(out, item.description.as_bytes())?;
    put(out, item.topic.into())?;
    put_bytes(out, item.currency.as_str().as_bytes())?;
    put(out, item.standing.stock.into())?;
    put(out, item.standing.sold)?;
    put(out, item.standing.withdrawn.into())?;
    put(out, item.added_at)?;
    put(out, item.added_at_us)?;
    put(out, item.changed_at - item.added_at)?;
    put(out, item.changed_at_us - item.added_at_us)?;
    put(out, item.prices.len() as u64)?;
    for price in &item.prices {
        put(out, price.minor)?;
        put(out, price.since_us - item.added_at_us)?;
    }
    put(out, item.orders.len() as u64)?;
    for order in &item.orders {
        put(out, order.amount.into())?;
        put(out, (order.state == OrderState::Cancelled).into())?;
        put(out, order.price_minor)?;
        put(out, order.placed_at_us - item.added_at_us)?;
    }
    Ok(())
}

fn malformed<T>(what: &'static str) -> Result<T, SnapshotFault> {
    Err(SnapshotFault::Malformed(what))
}

pub(super) fn decode(input: &mut impl Read) -> Result<State, SnapshotFault> {
    let mut input = Input::of(input);
    let mut state = State::default();
    state.items_at = input.number()?;
    let count = input.number()?;
    if count > rules::MAX_ITEMS as u64 {
        return malformed("there are too many items");
    }
    for _ in 0..count {
        let item = read_item(&mut input)?;
        state.changed_at = state.changed_at.max(item.changed_at);
        state.items.push(Box::new(item));
    }
    state.topics_at = input.number()?;
    let topics = input.number()?;
    if topics > rules::MAX_TOPICS as u64 {
        return malformed("there are too many topics");
    }
    for id in 1..=topics {
        let topic = read_topic(&mut input)?;
        state.changed_at = state.changed_at.max(topic.changed_at);
        if state.topic_names.insert(topic.name.clone(), id as TopicId).is_some() {
            return malformed("a topic's name is repeated");
        }
        state.topics.push(topic);
    }
    let State { items, topics, skus, .. } = &mut state;
    for (id, item) in (1..).zip(items) {
        if let Some(sku) = &item.sku
            && skus.insert(sku.clone(), id).is_some()
        {
            return malformed("a SKU is repeated");
        }
        let topic = topics.get_mut((item.topic as usize).wrapping_sub(1));
        let Some(topic) = topic else { return malformed("an item's topic is missing") };
        topic.items.insert(id as ItemId);
    }
    Ok(state)
}

fn read_topic<R: Read>(input: &mut Input<'_, R>) -> Result<Topic, SnapshotFault> {
    let name = input.text()?.into_boxed_str();
    if rules::name_fault(&name).is_some() {
        return malformed("a topic's name breaks a rule");
    }
    let added_at = input.number()?;
    let changed_at = added_at.saturating_add(input.number()?);
    Ok(Topic { name, added_at, changed_at, items: BTreeSet::new() })
}

fn read_item<R: Read>(input: &mut Input<'_, R>) -> Result<Item, SnapshotFault> {
    let sku = Some(input.text()?).filter(|sku| !sku.is_empty());
    let (name, description) = (input.text()?, input.text()?);
    let topic = input.small()?;
    let currency = input.text()?;
    let (stock, sold): (u32, u64) = (input.small()?, input.number()?);
    let withdrawn = flag(input)?;
    let (added_at, added_at_us) = (input.number()?, input.number()?);
    let changed_at = added_at.saturating_add(input.number()?);
    let changed_at_us = added_at_us.saturating_add(input.number()?);
    let prices = input.list(|input| {
        let minor = input.number()?;
        Ok(Price { minor, since_us: added_at_us.saturating_add(input.number()?) })
    })?;
    let mut orders = Vec::new();
    for _ in 0..input.small::<u32>()? {
        orders.push(read_order(input, added_at_us)?);
    }
    let Some(price) = prices.last().filter(|_| prices.len() <= MAX_PRICES) else {
        return malformed("an item has no price, or too many");
    };
    let fact = ItemAdded {
        item: 0,
        sku: sku.map(Into::into),
        name: name.into(),
        description: description.into(),
        topic,
        price_minor: price.minor,
        currency: currency.into(),
        stock,
    };
    let Some(mut item) = Item::added(&fact, added_at, added_at_us) else {
        return malformed("an item breaks a rule");
    };
    let standing = orders.iter().filter(|order| order.state == OrderState::Placed);
    if standing.map(|order| u64::from(order.amount)).sum::<u64>() != sold {
        return malformed("an item's orders do not add up");
    }
    item.standing.sold = sold;
    item.standing.withdrawn = withdrawn;
    item.standing.orders = orders.len() as u32;
    (item.changed_at, item.changed_at_us) = (changed_at, changed_at_us);
    (item.prices, item.orders) = (prices, orders);
    Ok(item)
}

fn read_order<R: Read>(input: &mut Input<'_, R>, added_at_us: u64) -> Result<Order, SnapshotFault> {
    let amount = input.small()?;
    let state = if flag(input)? { OrderState::Cancelled } else { OrderState::Placed };
    let price_minor = input.number()?;
    let placed_at_us = added_at_us.saturating_add(input.number()?);
    Ok(Order { amount, state, price_minor, placed_at_us })
}

fn flag<R: Read>(input: &mut Input<'_, R>) -> Result<bool, SnapshotFault> {
    match input.byte()? {
        0 => Ok(false),
        1 => Ok(true),
        _ => malformed("a flag is neither 0 nor 1"),
    }
}
