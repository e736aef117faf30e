//! Every read that begins after an answer shows what was answered, over any connection, stack and
//! protocol, and however often the answer was rendered before: no read shows less, and no old
//! entity tag matches.

use crate::catalogue_client::*;
use crate::client::{Answer, Client};
use crate::numbered::Coins;
use crate::server::Server;
use bytes::Bytes;
use h2::client::SendRequest;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::runtime::Runtime;

const WRITERS: usize = 8;

/// A way to read.
enum AccessPath {
    /// A connection that the lean loop serves as long as all requests are for it.
    Lean(Client),
    /// A connection of the general stack.
    General(Client),
    /// Streams of HTTP/2.
    Streams(Runtime, SendRequest<Bytes>),
}

impl AccessPath {
    fn all(address: SocketAddr) -> [AccessPath; 3] {
        let client = || Client::connect(address).unwrap().patient();
        let mut general = client();
        general.get("/v1/head").unwrap().expect(200);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let sender = runtime.block_on(async {
            let socket = tokio::net::TcpStream::connect(address).await.unwrap();
            socket.set_nodelay(true).unwrap();
            let (sender, connection) = h2::client::handshake(socket).await.unwrap();
            tokio::spawn(connection);
            sender
        });
        [
            AccessPath::Lean(client()),
            AccessPath::General(general),
            AccessPath::Streams(runtime, sender),
        ]
    }

    fn get(&mut self, path: &str, headers: &[(&str, &str)]) -> Answer {
        match self {
            AccessPath::Lean(client) | AccessPath::General(client) => {
                client.call("GET", path, headers, b"").unwrap()
            }
            AccessPath::Streams(runtime, sender) => runtime.block_on(get(sender, path, headers)),
        }
    }
}

async fn get(sender: &SendRequest<Bytes>, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut request = http::Request::get(format!("http://test{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut sender = sender.clone().ready().await.unwrap();
    let (answer, _) = sender.send_request(request.body(()).unwrap(), true).unwrap();
    let answer = answer.await.unwrap();
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    let (status, headers) =
        (answer.status().as_u16(), answer.headers().iter().map(header).collect());
    let mut body = Vec::new();
    let mut content = answer.into_body();
    while let Some(data) = content.data().await {
        let data = data.unwrap();
        content.flow_control().release_capacity(data.len()).unwrap();
        body.extend_from_slice(&data);
    }
    Answer { status, headers, body }
}

/// The paths under which an item is shown.
fn paths(id: u64) -> [String; 6] {
    [
        format!("/v1/catalogue/items/{id}"),
        format!("/lookup/{id}"),
        "/lookup".to_owned(),
        "/search/thing".to_owned(),
        format!("/v1/catalogue/items?after={}&limit=1", id - 1),
        format!("/v1/catalogue/items/{id}?consistency=linearizable"),
    ]
}

/// The item's entry in the answer to one of its paths.
fn entry(answer: &Value, id: u64) -> &Value {
    let list = answer["items"].as_array().or(answer["result"].as_array());
    match list {
        Some(list) => {
            list.iter().find(|item| item["id"] == id).unwrap_or_else(|| panic!("{answer}"))
        }
        None if answer["result"].is_object() => &answer["result"],
        None => answer,
    }
}

/// Writes an item; returns the entity tag of the answer, if it has one.
fn write(
    client: &mut Client,
    id: u64,
    turn: u64,
    stock: &mut u64,
    price: &mut u64,
) -> Option<String> {
    let answer = match turn % 4 {
        0 => {
            *stock -= 2;
            order(client, id, 2, None).unwrap()
        }
        1 => {
            *stock -= 1;
            assert!(is_done(&buy(client, id, 1, None).unwrap()));
            return None;
        }
        2 => {
            *stock += 5;
            restock(client, id, 5)
        }
        _ => {
            *price = 1 + turn;
            change(client, id, &json!({"price": format!("{turn}.01")}), &[])
        }
    };
    assert!([200, 201].contains(&answer.status), "{}", answer.text());
    answer.header("etag").map(str::to_owned)
}

/// Writes an item of its own, and looks at it after each answer by some other way. Gives how often
/// it was told that nothing had changed.
fn write_and_look(address: SocketAddr, id: u64, trials: usize) -> usize {
    let mut writer = Client::connect(address).unwrap().patient();
    let mut ways = AccessPath::all(address);
    let mut coins = Coins::new(id);
    let (mut stock, mut price, mut unchanged) = (1_000_000, 0, 0);
    // What each way showed last under each path.
    let mut known: Vec<[Option<String>; 6]> =
        ways.iter().map(|_| <[Option<String>; 6]>::default()).collect();
    for turn in 1..=trials as u64 {
        let written = write(&mut writer, id, turn, &mut stock, &mut price);
        let (by, at) = (coins.below(3) as usize, coins.below(6) as usize);
        let (way, path) = (&mut ways[by], &paths(id)[at]);
        let old = known[by][at].clone();
        let headers: Vec<(&str, &str)> =
            old.iter().map(|old| ("If-None-Match", old.as_str())).collect();
        let answer = way.get(path, &headers);
        let shown = answer.expect(200);
        let shown = entry(&shown, id);
        assert_eq!(number(shown, "stock"), stock, "{path}: {shown}");
        if price > 0 {
            let text = format!("{}.01", price - 1);
            assert_eq!(shown["price"].to_string().trim_matches('"'), text, "{path}: {shown}");
        }
        let Some(etag) = answer.header("etag").map(str::to_owned) else { continue };
        assert!(old.as_ref() != Some(&etag), "{path}: {etag} is what it was");
        let is_of_item = at == 0 || at == 1;
        assert!(!is_of_item || written.is_none_or(|written| written == etag), "{path}: {etag}");
        if is_of_item && coins.below(2) == 0 {
            // No other client writes this item.
            let again = way.get(path, &[("If-None-Match", &etag)]);
            assert_eq!((again.status, again.body.len()), (304, 0), "{path}: {etag}");
            assert_eq!(again.header("etag"), Some(etag.as_str()));
            unchanged += 1;
        }
        known[by][at] = Some(etag);
    }
    unchanged
}

#[test]
fn no_read_after_an_answered_write_shows_less() {
    for lean in crate::server::BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let mut client = server.client();
        for _ in 0..WRITERS {
            add(&mut client, &new_item("Own", "0.01", 1_000_000));
        }
        let trials = size(200, 10_000);
        let unchanged = at_once(server.address, WRITERS, |_, number| {
            write_and_look(server.address, number as u64 + 1, trials)
        });
        assert!(unchanged.iter().all(|count| *count > trials / 20), "{unchanged:?}");
    }
}

#[test]
fn what_depends_on_a_topic_changes_with_its_name() {
    let server = Server::start();
    let mut client = server.client();
    add(&mut client, &new_item("Named", "1", 1));
    let mut ways = AccessPath::all(server.address);
    for turn in 0..size(60, 1_000) {
        let before: Vec<Answer> =
            ways.iter_mut().flat_map(|way| paths(1).map(|path| way.get(&path, &[]))).collect();
        let name = format!("Things {turn}");
        let headers = [("Content-Type", "application/json")];
        let body = json!({"name": name}).to_string();
        client
            .call("PATCH", "/v1/catalogue/topics/1", &headers, body.as_bytes())
            .unwrap()
            .expect(200);
        let mut before = before.iter();
        for way in &mut ways {
            for path in paths(1) {
                let old = before.next().unwrap().header("etag");
                let headers: Vec<_> = old.map(|old| ("If-None-Match", old)).into_iter().collect();
                let answer = way.get(&path, &headers);
                assert_eq!(answer.status, 200, "{path}");
                assert!(answer.text().contains(&name), "{path}: {}", answer.text());
            }
        }
    }
}

#[test]
fn a_read_waits_for_what_it_demands_or_says_not_yet() {
    let server = Server::start();
    let mut client = server.client();
    add(&mut client, &new_item("Demanded", "1", 1));
    for mut way in AccessPath::all(server.address) {
        for path in paths(1).iter().take(5).chain(&["/v1/catalogue/topics".to_owned()]) {
            let join = if path.contains('?') { '&' } else { '?' };
            let answer = way.get(path, &[("Wellspring-Min-Position", "2")]);
            assert_eq!(answer.status, 200, "{path}");
            let position: u64 = answer.header("wellspring-position").unwrap().parse().unwrap();
            assert!(position >= 2, "{path}: {position}");
            let demanding = format!("{path}{join}wait_ms=20");
            let answer = way.get(&demanding, &[("Wellspring-Min-Position", "99")]);
            assert_eq!(fault(&answer).0, 503, "{path}");
            let answer = way.get(path, &[("Wellspring-Min-Position", "two")]);
            assert_eq!(fault(&answer).0, 400, "{path}");
            for consistency in ["cached", "local", "linearizable"] {
                let asked = format!("{path}{join}consistency={consistency}");
                assert_eq!(way.get(&asked, &[]).status, 200, "{asked}");
            }
        }
    }
}
