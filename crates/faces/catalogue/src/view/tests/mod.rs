//! The catalogue against any history, without a log.

mod history;
mod model;
mod snapshots;

use super::event::Fact;
use super::state::State;
use super::*;
use std::fmt::Write as _;
use wellspring_types::Event;

/// An event of a log.
#[derive(Debug, Clone)]
struct StoredFact {
    position: Position,
    event: Event,
}

impl LogEvent for StoredFact {
    fn position(&self) -> Position {
        self.position
    }

    fn recorded_at_us(&self) -> u64 {
        1_700_000_000_000_000 + self.position * 1_000
    }

    fn event_type(&self) -> &str {
        &self.event.event_type
    }

    fn tags(&self) -> impl Iterator<Item = &str> {
        self.event.tags.iter().map(String::as_str)
    }

    fn data(&self) -> &[u8] {
        &self.event.data
    }
}

/// All visible state, in one order.
fn dump(state: &State) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "changed at {}", state.changed_at());
    for (id, topic) in state.topics() {
        let Topic { name, added_at, changed_at, items } = topic;
        let _ = writeln!(out, "topic {id} {name:?} {added_at} {changed_at} {items:?}");
    }
    for (id, item) in state.items_from(1) {
        let Item { sku, name, description, topic, currency, standing, prices, orders, .. } = item;
        let at = (item.added_at, item.added_at_us, item.changed_at, item.changed_at_us);
        let _ = writeln!(
            out,
            "item {id} {sku:?} {name:?} {description:?} {topic} {currency:?} {standing:?} {at:?}"
        );
        let _ = writeln!(out, "  {prices:?} {orders:?} {:?}", state.item_changed_at(item));
        assert_eq!(
            sku.as_deref().map(|sku| state.item_of_sku(sku)),
            sku.as_ref().map(|_| Some(id))
        );
    }
    out
}

fn folded(log: &[StoredFact]) -> Catalogue {
    let mut view = Catalogue::new();
    log.iter().for_each(|stored| view.apply(stored));
    view
}

fn facts_of(stored: &StoredFact) -> Option<Fact<'_>> {
    Fact::of(stored.event_type(), stored.tags(), stored.data())
}
