//! Orders of the catalogue, each repeated until its outcome is known.

use super::{TrialClient, World, WriteAnswer};
use crate::cluster::Cluster;
use crate::history::Kind;
use crate::http::{Client, Request};
use crate::plant::Plant;
use serde_json::json;
use std::time::{Duration, Instant};

/// An item and its initial stock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Item {
    pub(crate) id: u64,
    pub(crate) stock: u64,
}

/// Some items sell out soon, one never does.
const STOCKS: [u64; 4] = [100, 1000, 1000, 1_000_000];
/// How long after the end of the trial an order may remain in doubt.
const PATIENCE: Duration = Duration::from_secs(60);

/// Adds items to the catalogue, through the leader.
pub(crate) fn add_items(cluster: &Cluster) -> Result<Vec<Item>, String> {
    let leader = cluster.leader().ok_or("no node leads")?;
    let mut items = Vec::new();
    for (index, stock) in STOCKS.into_iter().enumerate() {
        let item = json!({"name": format!("Item {index}"), "topic": "Things", "price": "1.50", "stock": stock});
        let request = Request::post("/v1/catalogue/items", &item);
        let request = request.header("Idempotency-Key", format!("item-{index}"));
        let answer = Client::default().ask(leader.address, &request);
        let answer = answer.map_err(|failure| failure.to_string())?;
        let id = answer.json()["id"].as_u64().filter(|_| answer.status < 300);
        let told = || format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body));
        items.push(Item { id: id.ok_or_else(told)?, stock });
    }
    Ok(items)
}

pub(super) fn run(mut client: TrialClient<'_>) {
    while !client.world.has_ended() {
        let item = client.dice.one(&client.world.items);
        let amount = client.dice.between(1, 3);
        order(&mut client, item, amount);
        client.pause();
        client.pause();
    }
}

fn order(client: &mut TrialClient<'_>, item: Item, amount: u64) {
    let world: &World = client.world;
    let mut line = client.line(Kind::Order, &world.cluster.nodes[0]);
    (line.key, line.new) = (item.id.to_string(), amount);
    let key = format!("order-{}", world.history.number());
    let body = json!({"item": item.id, "amount": amount});
    let request = Request::post("/v1/catalogue/orders", &body).header("Idempotency-Key", key);
    let mut ended: Option<Instant> = None;
    let told = loop {
        if world.arguments.plant == Some(Plant::Oversold) && client.dice.percent(10) {
            line.outcome = crate::history::Outcome::Done;
            world.history.add(line);
            return;
        }
        let node = client.any_node();
        (line.node, line.life) = (node.name.clone(), node.life());
        match client.write(node, &request) {
            told @ (WriteAnswer::Done(_) | WriteAnswer::Conflict(_)) => break told,
            told => {
                if world.has_ended() && ended.get_or_insert_with(Instant::now).elapsed() > PATIENCE
                {
                    break told;
                }
            }
        }
        std::thread::sleep(Duration::from_millis(client.dice.between(20, 200)));
    };
    client.note(line, told);
}
