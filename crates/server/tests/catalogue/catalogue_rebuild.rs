//! One catalogue, however it was built: by its writes, rebuilt from its events, from a snapshot
//! taken while clients wrote, or by export and import. Compared byte for byte.

use crate::catalogue_client::*;
use crate::client::{Answer, Client};
use crate::numbered::Coins;
use crate::server::Server;
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Words to search for, among them one without results and one that is more than a word.
const WORDS: [&str; 5] = ["topic", "TOPIC%203", "new", "neverland", "%C3%A9"];
const PRICES: [&str; 4] = ["0", "19.9", "1234567.89", "9999999999.99"];

/// Keys used so far: each is used once.
static KEYS: AtomicU64 = AtomicU64::new(0);

/// A random write; those that violate a rule are refused.
fn write(client: &mut Client, coins: &mut Coins, items: u64) -> io::Result<Answer> {
    let id = 1 + coins.below(items);
    let json = [("Content-Type", "application/json")];
    let mut patch =
        |path: String, body: Value| client.call("PATCH", &path, &json, body.to_string().as_bytes());
    match coins.below(16) {
        0 => patch(
            format!("/v1/catalogue/topics/{}", 1 + coins.below(7)),
            json!({"name": format!("Topic é {}", coins.below(50))}),
        ),
        1 => patch(
            format!("/v1/catalogue/items/{id}"),
            json!({"name": format!("Name {} \"\\", coins.below(99)), "description": "two\nlines \u{1f980}"}),
        ),
        2 => patch(
            format!("/v1/catalogue/items/{id}"),
            json!({"topic": format!("New {}", coins.below(9))}),
        ),
        3 => patch(
            format!("/v1/catalogue/items/{id}"),
            json!({"price": PRICES[coins.below(4) as usize]}),
        ),
        4 => patch(format!("/v1/catalogue/items/{id}"), json!({"withdrawn": coins.below(3) == 0})),
        5 => client.post(&format!("/v1/catalogue/items/{id}/stock"), &json!({"by": 50})),
        6 => client.post(&format!("/v1/catalogue/items/{id}/stock"), &json!({"by": -7})),
        7 => client.post("/v1/catalogue/items", &new_item("More", "1.5", coins.below(5))),
        8 => cancel(client, &format!("{id}-{}", 1 + coins.below(20))),
        9 => {
            // The answer "sold out" is kept under its key.
            let key = format!("key-{}", KEYS.fetch_add(1, Relaxed));
            order(client, id, 1_000_000, Some(&key))
        }
        10..13 => order(client, id, 1 + coins.below(4), None),
        _ => buy(client, id, 1 + coins.below(4), None),
    }
}

/// Writes until the server refuses, at most `most` times.
fn live(address: SocketAddr, seed: u64, most: usize) {
    let Ok(client) = Client::connect(address) else { return };
    let (mut client, mut coins) = (client.patient(), Coins::new(seed));
    for _ in 0..most {
        let Ok(answer) = write(&mut client, &mut coins, 60) else { return };
        match answer.status {
            200 | 201 | 404 | 409 | 410 => {}
            // The server stops.
            500 | 503 => return,
            status => panic!("{status}: {}", answer.text()),
        }
    }
}

fn live_all(address: SocketAddr, seed: u64, most: usize) {
    std::thread::scope(|scope| {
        for client in 0..4 {
            scope.spawn(move || live(address, seed + client, most));
        }
    });
}

/// All answers of the catalogue, with their entity tags.
fn dump(client: &mut Client) -> Vec<String> {
    let mut lines = Vec::new();
    let mut ask = |path: String| {
        let answer = client.get(&path).unwrap();
        lines.push(format!(
            "{path} {} {:?} {}",
            answer.status,
            answer.header("etag"),
            answer.text()
        ));
        answer.json()
    };
    ask("/lookup".to_owned());
    ask("/v1/catalogue/topics".to_owned());
    ask("/v1/catalogue/items?in_stock=true&limit=1000".to_owned());
    WORDS.iter().for_each(|word| drop(ask(format!("/search/{word}"))));
    (1..=20)
        .for_each(|topic| drop(ask(format!("/v1/catalogue/items?topic={topic}&withdrawn=true"))));
    let mut after = json!(0);
    while !after.is_null() {
        let page = ask(format!("/v1/catalogue/items?withdrawn=true&limit=999&after={after}"));
        for item in page["items"].as_array().unwrap() {
            let id = number(item, "id");
            ask(format!("/v1/catalogue/items/{id}"));
            ask(format!("/lookup/{id}"));
            ask(format!("/v1/catalogue/items/{id}/prices"));
            if let Some(sku) = item["sku"].as_str() {
                ask(format!("/v1/catalogue/items?sku={sku}&withdrawn=true"));
            }
            let mut before = json!(u32::MAX);
            while !before.is_null() {
                let page = format!("/v1/catalogue/orders?item={id}&limit=500&before={before}");
                before = ask(page)["next"].clone();
            }
        }
        after = page["next"].clone();
    }
    lines
}

#[track_caller]
fn the_same(are: &[String], were: &[String]) {
    for (is, was) in are.iter().zip(were) {
        assert!(is == was, "is:  {is}\nwas: {was}");
    }
    assert_eq!(are.len(), were.len());
}

/// Without times: an import has its own.
fn timeless(lines: &[String]) -> Vec<String> {
    let digits = |c: char| c.is_ascii_digit();
    let blank = |line: &String| {
        let mut out = String::new();
        // Another log has another history, which its entity tags name.
        let mut rest = line.as_str();
        if let Some((tag, after)) = rest.split_once('@') {
            out.push_str(tag);
            rest = after.trim_start_matches(|c: char| c.is_ascii_hexdigit());
        }
        while let Some((at, name)) = ["_at\":\"", "since\":\""]
            .iter()
            .filter_map(|name| rest.find(name).map(|at| (at, *name)))
            .min()
        {
            let (before, after) = rest.split_at(at + name.len());
            assert!(after.starts_with(digits), "a moment: {after:.40}");
            out.push_str(before);
            rest = after.split_once('"').map_or("", |(_, rest)| rest);
        }
        out + rest
    };
    lines.iter().map(blank).collect()
}

/// The snapshot file of the catalogue below a folder, if there is one.
fn snapshot(dir: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter_map(|path| {
            if path.is_dir() {
                snapshot(&path)
            } else {
                path.ends_with("catalogue.snapshot").then_some(path)
            }
        })
        .next()
}

/// Position of the snapshot from which the catalogue started, or 0.
fn began_at(client: &mut Client) -> u64 {
    let views = client.get("/v1/views").unwrap().expect(200);
    let views = views["views"].as_array().unwrap();
    let view = views.iter().find(|view| view["view"] == "catalogue").expect("the catalogue");
    assert_eq!(view["state"], "live", "{view}");
    number(view, "snapshot")
}

/// Foreign events: enough that a snapshot is written when the server stops, or while it runs.
fn fill(client: &mut Client, events: usize) {
    let some = json!({"events": vec![json!({"type": "Other", "data": 1}); 1_000]});
    for _ in 0..events.div_ceil(1_000) {
        client.post("/v1/append", &some).unwrap().expect(200);
    }
}

#[test]
fn live_rebuilt_from_a_snapshot_and_imported_are_the_same_to_the_byte() {
    let dir = tempfile::tempdir().unwrap();
    let start = || {
        let server = Server::start_in(dir.path(), &[]);
        let client = server.client().patient();
        (server, client)
    };
    let (server, mut client) = start();
    stock_up(&mut client, 60, 30);
    live_all(server.address, 7, size(400, 20_000));
    // The first connection may have been idle for longer than the server keeps it.
    let first = dump(&mut server.client().patient());
    let bytes: usize = first.iter().map(String::len).sum();
    assert!(bytes > 100_000, "{bytes} bytes are compared");
    server.kill();
    let (mut server, mut client) = start();
    assert_eq!((began_at(&mut client), snapshot(dir.path())), (0, None));
    the_same(&dump(&mut client), &first);

    // A snapshot while clients write.
    fill(&mut client, size(12_000, 1_100_000));
    let address = server.address;
    std::thread::scope(|scope| {
        scope.spawn(move || live_all(address, 17, usize::MAX));
        std::thread::sleep(Duration::from_millis(size(500, 5_000) as u64));
        assert!(server.terminate().success());
    });
    let file = snapshot(dir.path()).expect("a snapshot when the server stops");
    let (server, mut client) = start();
    assert!(began_at(&mut client) > 12_000, "the snapshot is used");
    assert!(dump(&mut client) != first, "it has gone on");
    live_all(server.address, 27, 50);
    let with_more = dump(&mut server.client().patient());
    server.kill();
    let (server, mut client) = start();
    assert!(began_at(&mut client) > 12_000, "an old snapshot, and what came after it");
    the_same(&dump(&mut client), &with_more);
    server.kill();

    // A damaged snapshot is detected and not used; without it everything is unchanged.
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 4;
    for bytes in [&damaged, &whole[..whole.len() / 3].to_vec()] {
        std::fs::write(&file, bytes).unwrap();
        let (server, mut client) = start();
        assert_eq!(began_at(&mut client), 0, "a damaged snapshot is not used");
        the_same(&dump(&mut client), &with_more);
        server.kill();
    }
    drop(std::fs::remove_dir_all(file.parent().unwrap()));
    let (server, mut client) = start();
    assert_eq!(began_at(&mut client), 0);
    the_same(&dump(&mut client), &with_more);

    let other = Server::start_with(&[ACCEPTS]);
    let events = dir.path().join("events.ndjson.gz");
    tool(&server, &["export", "-o", events.to_str().unwrap()]);
    tool(&other, &["import", events.to_str().unwrap()]);
    let mut client = other.client().patient();
    // An import is not a write of the catalogue itself: a cached read may lack its end.
    let path = "/v1/catalogue/topics?consistency=local&wait_ms=60000";
    client.get(path).unwrap().expect(200);
    the_same(&timeless(&dump(&mut client)), &timeless(&with_more));
    live_all(other.address, 37, 50);
    println!("{bytes} bytes, then {}", with_more.iter().map(String::len).sum::<usize>());
}
