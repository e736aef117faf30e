//! Stock and sales are consistent and match the answers to clients.

use super::Findings;
use crate::clients::Item;
use crate::history::{Kind, Operation, Outcome};

pub(super) fn check(
    operations: &[Operation],
    items: &[Item],
    sold: &dyn Fn(u64) -> Option<(u64, u64)>,
) -> Findings {
    let mut found = Findings::of("stock");
    for item in items {
        let Some((stock, sold)) = sold(item.id) else {
            found.add(format!("item {} is not shown", item.id));
            continue;
        };
        if stock + sold != item.stock {
            found
                .add(format!("item {}: {stock} in stock, {sold} sold, of {}", item.id, item.stock));
        }
        let name = item.id.to_string();
        let orders = operations
            .iter()
            .filter(|o| o.kind == Kind::Order && o.key == name)
            .collect::<Vec<_>>();
        let sum = |outcome| -> u64 {
            orders.iter().filter(|o| o.outcome == outcome).map(|o| o.new).sum()
        };
        let (told, doubtful) = (sum(Outcome::Done), sum(Outcome::Unknown));
        if sold < told || sold > told + doubtful {
            found.add(format!(
                "item {name}: {sold} sold, and clients were told of {told} ({doubtful} in doubt)"
            ));
        }
    }
    found
}
