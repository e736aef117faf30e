//! A plain, independent model of the catalogue, folded from JSON.

use super::*;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(super) struct Model {
    topics: Vec<String>,
    items: Vec<ModelItem>,
}

#[derive(Debug)]
struct ModelItem {
    name: String,
    topic: u64,
    price: u64,
    put_in: i64,
    withdrawn: bool,
    /// Amount, and whether it is active.
    orders: BTreeMap<u64, (i64, bool)>,
}

impl ModelItem {
    fn sold(&self) -> i64 {
        self.orders.values().filter(|(_, stands)| *stands).map(|(amount, _)| amount).sum()
    }

    fn stock(&self) -> i64 {
        self.put_in - self.sold()
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.contains('\u{1}')
}

impl Model {
    pub(super) fn of(log: &[StoredFact]) -> Model {
        let mut model = Model::default();
        for stored in log {
            let _ = model.fold(&stored.event);
        }
        model
    }

    fn fold(&mut self, event: &Event) -> Option<()> {
        let data: Value = serde_json::from_slice(&event.data).ok()?;
        let number = |field: &str| data[field].as_i64();
        let text = |field: &str| data[field].as_str();
        let kind = event.event_type.strip_prefix("Catalogue")?;
        let topic_is_free =
            |name: &&str| is_name(name) && !self.topics.iter().any(|topic| topic == name);
        match kind {
            "TopicAdded" => {
                let name = text("name").filter(topic_is_free)?;
                (number("topic")? == self.topics.len() as i64 + 1)
                    .then(|| self.topics.push(name.to_owned()))
            }
            "TopicRenamed" => {
                let name = text("name").filter(topic_is_free)?.to_owned();
                *self.topics.get_mut(number("topic")? as usize - 1)? = name;
                Some(())
            }
            _ => self.fold_item(kind, &data, &event.tags),
        }
    }

    fn fold_item(&mut self, kind: &str, data: &Value, tags: &[String]) -> Option<()> {
        let number = |field: &str| data[field].as_i64();
        let id = number("item")?;
        if !tags.contains(&format!("item:{id}")) {
            return None;
        }
        let topics = self.topics.len() as i64;
        let is_topic = |topic: &i64| (1..=topics).contains(topic);
        if kind == "ItemAdded" {
            let name = data["name"].as_str().filter(|name| is_name(name))?;
            let topic = number("topic").filter(is_topic)?;
            let is_next = id == self.items.len() as i64 + 1 && data["currency"] != "usd";
            return is_next.then(|| {
                self.items.push(ModelItem {
                    name: name.to_owned(),
                    topic: topic as u64,
                    price: data["price_minor"].as_u64().unwrap(),
                    put_in: data["stock"].as_i64().unwrap(),
                    withdrawn: false,
                    orders: BTreeMap::new(),
                });
            });
        }
        let item = self.items.get_mut(id as usize - 1)?;
        match kind {
            "ItemChanged" => {
                let name = data["name"].as_str();
                let topic = data["topic"].as_i64();
                if name.is_some_and(|name| !is_name(name))
                    || topic.is_some_and(|topic| !is_topic(&topic))
                {
                    return None;
                }
                item.name = name.unwrap_or(&item.name).to_owned();
                item.topic = topic.map_or(item.topic, |topic| topic as u64);
                item.withdrawn = data["withdrawn"].as_bool().unwrap_or(item.withdrawn);
            }
            "ItemPriced" => {
                item.price =
                    data["price_minor"].as_u64().filter(|price| *price <= 1_000_000_000_000)?;
            }
            "StockChanged" => {
                let stock = item.stock().checked_add(number("by")?)?;
                if !(0..=1_000_000_000).contains(&stock) {
                    return None;
                }
                item.put_in += number("by")?;
            }
            "OrderPlaced" => {
                let (order, amount) = (number("order")? as u64, number("amount")?);
                let is_next = order == item.orders.len() as u64 + 1;
                if item.withdrawn || !is_next || amount < 1 || amount > item.stock() {
                    return None;
                }
                item.orders.insert(order, (amount, true));
            }
            "OrderCancelled" => {
                let order = item.orders.get_mut(&(number("order")? as u64))?;
                if *order != (number("amount")?, true) {
                    return None;
                }
                order.1 = false;
            }
            _ => return None,
        }
        Some(())
    }

    pub(super) fn compare(&self, state: &State) {
        let names: Vec<_> = state.topics().map(|(_, topic)| topic.name.to_string()).collect();
        assert_eq!(names, self.topics);
        assert_eq!(state.item_count(), self.items.len());
        for ((id, item), model) in state.items_from(1).zip(&self.items) {
            let ItemState { stock, sold, price_minor, withdrawn, orders } = item.standing;
            assert_eq!((i64::from(stock), sold as i64), (model.stock(), model.sold()), "item {id}");
            assert_eq!((price_minor, withdrawn), (model.price, model.withdrawn), "item {id}");
            assert_eq!(
                (&*item.name, u64::from(item.topic)),
                (&*model.name, model.topic),
                "item {id}"
            );
            assert_eq!(u64::from(orders), model.orders.len() as u64, "item {id}");
            let topic = state.topic(item.topic).unwrap();
            assert!(topic.items.contains(&id));
        }
        let in_topics: usize = state.topics().map(|(_, topic)| topic.items.len()).sum();
        assert_eq!(in_topics, self.items.len());
    }
}

use super::super::item::ItemState;
