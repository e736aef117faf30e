//! Full-text search over real sockets: what was written is found, as fresh as requested.

use crate::client::{Answer, Client};
use crate::server::Server;
use serde_json::{Value, json};
use wellspring_patience::Patience;

const NOTHING: [u64; 0] = [];
const FRESH: &str = "consistency=local&wait_ms=10000";

fn add(client: &mut Client, name: &str, description: &str, topic: u64) -> u64 {
    let item = json!({"name": name, "description": description, "topic": topic, "price": "9.90", "stock": 5});
    client.post("/v1/catalogue/items", &item).unwrap().expect(201)["id"].as_u64().unwrap()
}

fn topic(client: &mut Client, name: &str) -> u64 {
    let topic = client.post("/v1/catalogue/topics", &json!({"name": name})).unwrap();
    topic.expect(201)["id"].as_u64().unwrap()
}

fn change(client: &mut Client, item: u64, change: &Value) {
    let path = format!("/v1/catalogue/items/{item}");
    let headers = [("content-type", "application/json")];
    client.call("PATCH", &path, &headers, change.to_string().as_bytes()).unwrap().expect(200);
}

fn search(client: &mut Client, asked: &str) -> Answer {
    client.get(&format!("/v1/catalogue/search?{asked}")).unwrap()
}

/// The item numbers found.
fn found(client: &mut Client, asked: &str) -> Vec<u64> {
    let answer = search(client, asked).expect(200);
    answer["items"].as_array().unwrap().iter().map(|item| item["id"].as_u64().unwrap()).collect()
}

/// The answer once the index is ready.
fn ready(client: &mut Client, asked: &str) -> Value {
    let mut patience = Patience::new();
    loop {
        let answer = search(client, asked);
        if answer.status == 200 {
            return answer.json();
        }
        let problem = answer.problem(503);
        assert!(problem["type"].as_str().unwrap().ends_with("view-not-ready"), "{problem}");
        patience.pause(format_args!("{problem}"));
    }
}

#[test]
fn what_is_written_is_found_ranked_and_marked() {
    let server = Server::start();
    let mut client = server.client();
    assert_eq!(ready(&mut client, "q=a")["total"], 0);
    let (systems, kitchen) = (topic(&mut client, "systems"), topic(&mut client, "kitchen"));
    let rpcs =
        add(&mut client, "RPCs for Dummies", "Calls <b>far</b> away, for cooks too", systems);
    let cooking = add(&mut client, "Cooking for the Impatient Undergrad", "", kitchen);
    let creme = add(&mut client, "Crème brûlée", "A book of cookery", kitchen);

    let answer = search(&mut client, &format!("q=cook&{FRESH}"));
    let page = answer.expect(200);
    let ids: Vec<&Value> =
        page["items"].as_array().unwrap().iter().map(|item| &item["id"]).collect();
    assert_eq!(ids[0], &json!(cooking), "a name counts more: {page}");
    assert_eq!((ids.len(), &page["total"], &page["next"]), (3, &json!(3), &Value::Null));
    let head = client.get("/v1/head").unwrap().expect(200)["head"].clone();
    assert_eq!(answer.header("wellspring-position").unwrap(), head.to_string());
    let first = &page["items"][0];
    assert_eq!(first["highlights"]["name"], "<em>Cooking</em> for the Impatient Undergrad");
    let mut plain = first.clone();
    let keys = plain.as_object_mut().unwrap();
    assert!(
        keys.remove("score").unwrap().as_f64().unwrap() > 0.0
            && keys.remove("highlights").is_some()
    );
    let item = client.get(&format!("/v1/catalogue/items/{cooking}")).unwrap().expect(200);
    assert_eq!(plain, item, "an item as everywhere");
    let far = search(&mut client, "q=far").expect(200);
    let marked = "Calls &lt;b&gt;<em>far</em>&lt;/b&gt; away, for cooks too";
    assert_eq!(far["items"][0]["highlights"]["description"], marked);

    assert_eq!(found(&mut client, "q=CREME%20brul"), [creme]);
    assert_eq!(found(&mut client, "q=%22for%20dummies%22"), [rpcs]);
    assert_eq!(found(&mut client, "q=%22dummies%20for%22"), NOTHING);
    assert_eq!(found(&mut client, &format!("q=cook&topic={systems}")), [rpcs]);
    assert_eq!(search(&mut client, "q=dumimes").expect(200)["match"], "near");

    change(&mut client, cooking, &json!({"name": "Gardening"}));
    change(&mut client, rpcs, &json!({"withdrawn": true}));
    assert_eq!(found(&mut client, &format!("q=impatient&{FRESH}")), NOTHING);
    assert_eq!(found(&mut client, "q=gardening"), [cooking]);
    assert_eq!(found(&mut client, "q=dummies"), NOTHING);
    change(&mut client, rpcs, &json!({"withdrawn": false}));
    assert_eq!(found(&mut client, &format!("q=dummies&{FRESH}")), [rpcs]);
}

#[test]
fn an_answered_write_is_found_by_a_read_that_requires_it() {
    let server = Server::start();
    let (mut client, mut other) = (server.client(), server.client());
    ready(&mut client, "q=a");
    let topic = topic(&mut client, "all");
    for i in 0..100 {
        let item =
            json!({"name": format!("thing n{i}x"), "topic": topic, "price": "1.00", "stock": 1});
        let answer = client.post("/v1/catalogue/items", &item).unwrap();
        let item = answer.expect(201)["id"].as_u64().unwrap();
        if i % 2 == 0 {
            assert_eq!(found(&mut other, &format!("q=n{i}x&{FRESH}")), [item]);
        } else {
            let position = answer.header("wellspring-position").unwrap().to_owned();
            let headers = [("wellspring-min-position", &*position)];
            let path = format!("/v1/catalogue/search?q=n{i}x&wait_ms=10000");
            let page = other.call("GET", &path, &headers, b"").unwrap().expect(200);
            assert_eq!(page["items"][0]["id"], item, "{page}");
        }
    }
    let page = search(&mut client, "q=thing&limit=30&after=90").expect(200);
    assert_eq!((&page["total"], &page["next"]), (&json!(100), &Value::Null));
    let mut seen = Vec::new();
    let mut after = json!(0);
    while !after.is_null() {
        let page = search(&mut client, &format!("q=thing&limit=30&after={after}")).expect(200);
        seen.extend(
            page["items"].as_array().unwrap().iter().map(|item| item["id"].as_u64().unwrap()),
        );
        after = page["next"].clone();
    }
    seen.sort_unstable();
    assert_eq!(seen, (1..=100).collect::<Vec<u64>>());
}

#[test]
fn the_index_is_made_anew_at_a_start_and_bad_questions_are_told() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    let topic = topic(&mut client, "all");
    let item = add(&mut client, "Cooking", "", topic);
    server.kill();
    let server = Server::start_in(dir.path(), &[]);
    let mut client = server.client();
    ready(&mut client, "q=a");
    assert_eq!(found(&mut client, "q=cook"), [item]);
    for bad in ["", "q=", "q=%20", &format!("q={}", "a".repeat(301))] {
        assert_eq!(search(&mut client, bad).problem(422)["field"], "q", "{bad}");
    }
    for (bad, field) in [
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("after=1001", "after"),
        ("topic=0", "topic"),
    ] {
        assert_eq!(search(&mut client, &format!("q=a&{bad}")).problem(422)["field"], field);
    }
    for odd in ["%22", "%22%22%22", "a%20AND%20(b", "*", "name:x", "%00", "%F0%9F%98%80"] {
        assert_eq!(found(&mut client, &format!("q={odd}")), NOTHING, "{odd}");
    }
    let metrics = client.get("/metrics").unwrap().text();
    assert!(metrics.contains("wellspring_catalogue_search_items 1\n"), "{metrics}");
}
