//! Catalogues by `wellspring import --preset`, and the bookstore's own load against one.

use crate::load_tester;
use crate::server::Server;
use serde_json::Value;
use std::process::{Command, Output};

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/catalogue.toml");
const DIAMONDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../datasets/diamonds.csv.gz");

fn wellspring(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wellspring")).args(arguments).output().unwrap()
}

/// Runs an import and returns its last message.
#[track_caller]
fn import(server: &Server, arguments: &[&str]) -> String {
    let url = server.url();
    let output = wellspring(&[&["import", "--url", &url, "--preset"], arguments].concat());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    said.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn the_bookstore_is_imported_once_and_its_own_load_fails_nowhere() {
    let server = Server::start();
    let said = import(&server, &["bookstore"]);
    assert!(said.starts_with("Imported 4 items: 4 added, 0 changed, 0 unchanged"), "{said}");
    let said = import(&server, &["bookstore"]);
    assert!(said.starts_with("Imported 4 items: 0 added, 0 changed, 4 unchanged"), "{said}");
    let dir = tempfile::tempdir().unwrap();
    let result = dir.path().join("r.json");
    let (url, result) = (server.url(), result.to_str().unwrap());
    let load = ["scenario", SCENARIO, "--url", &url, "--users", "20", "-z", "2s"];
    let Some(mut bench) = load_tester::bench() else { return };
    let output = bench.args(load).args(["--no-headroom", "--json", result]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result: Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    let endpoints = result["steps"][0]["runs"][0]["endpoints"].as_array().unwrap();
    assert_eq!(endpoints.len(), 4, "all, one, search, order");
    for endpoint in endpoints {
        let counters = &endpoint["counters"];
        assert_eq!(counters["sent"], counters["successes"], "{endpoint}");
        assert!(counters["sent"].as_u64() > Some(10), "{counters}");
    }
    let mut client = server.client();
    for item in client.get("/v1/catalogue/items").unwrap().expect(200)["items"].as_array().unwrap()
    {
        let had = [10, 20, 25, 15][item["id"].as_u64().unwrap() as usize - 1];
        let (stock, sold) = (item["stock"].as_u64().unwrap(), item["sold"].as_u64().unwrap());
        assert_eq!(stock + sold, had, "{item}");
    }
}

#[test]
fn a_real_catalogue_is_imported_from_a_table_and_again_after_it_has_changed() {
    let server = Server::start();
    let fields = [
        "sku=diamond-{#}",
        "name={carat} ct {cut} diamond, color {color}, clarity {clarity}",
        "topic={cut}",
        "stock=1",
    ];
    let mut arguments = vec!["items", DIAMONDS];
    fields.iter().for_each(|field| arguments.extend(["--field", field]));
    let said = import(&server, &arguments);
    assert!(said.starts_with("Imported 53,940 items: 53,940 added"), "{said}");
    let mut client = server.client();
    let first = client.get("/v1/catalogue/items/1").unwrap().expect(200);
    assert_eq!(first["name"], "0.23 ct Ideal diamond, color E, clarity SI2");
    assert_eq!((&first["price"], &first["stock"]), (&"326.00".into(), &1.into()));
    let topics = client.get("/v1/catalogue/topics").unwrap().expect(200);
    let topics = topics["topics"].as_array().unwrap();
    let items: u64 = topics.iter().map(|topic| topic["items"].as_u64().unwrap()).sum();
    assert_eq!((topics.len(), items), (5, 53_940));
    assert_eq!(client.call("POST", "/order/1", &[], b"").unwrap().text(), "true");
    let said = import(&server, &arguments);
    let again = "Imported 53,940 items: 0 added, 0 changed, 53,940 unchanged";
    assert!(said.starts_with(again), "what was sold stays sold: {said}");
    arguments.push("--set-stock");
    let said = import(&server, &arguments);
    let counted = "Imported 53,940 items: 0 added, 1 changed, 53,939 unchanged";
    assert!(said.starts_with(counted), "what was sold is there again: {said}");
}
