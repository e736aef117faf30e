//! Each log is a graph of its own; graph events appended by others change it or are ignored; and
//! open transactions end with their log.

use crate::client::Answer;
use crate::graph_client::*;
use crate::server::Server;
use serde_json::json;

const NO_DATABASE: &str = "Neo.ClientError.Database.DatabaseNotFound";

fn log(client: &mut GraphClient, method: &str, name: &str) -> Answer {
    let confirm = if method == "DELETE" { format!("?confirm={name}") } else { String::new() };
    client.client.call(method, &format!("/v1/logs/{name}{confirm}"), &[], b"").unwrap()
}

#[test]
fn each_log_is_a_graph_of_its_own() {
    let server = Server::start();
    let client = |database: &str| GraphClient::at(server.address).of(database);
    for name in ["x", "y-2"] {
        log(&mut client("main"), "PUT", name).expect(201);
    }
    let count = "MATCH (n:N) RETURN collect(n.of)";
    client("main").run("CREATE (:N {of: 'main'})", json!({}));
    client("x").run("CREATE CONSTRAINT FOR (n:N) REQUIRE n.of IS UNIQUE", json!({}));
    client("x").run("CREATE (:N {of: 'x'})-[:R]->(:N {of: 'x2'})", json!({}));
    assert_eq!(client("y-2").value(count), json!([]));
    // Constraints of one graph do not apply to another, and ids start at 0.
    client("y-2").run("UNWIND [1, 1] AS i CREATE (:N {of: 'y'})", json!({}));
    assert_eq!(client("y-2").value("MATCH (n:N) RETURN collect(id(n))"), json!([0, 1]));
    for (database, nodes) in [
        ("main", json!(["main"])),
        ("x", json!(["x", "x2"])),
        ("y-2", json!(["y", "y"])),
        ("neo4j", json!(["main"])),
        ("nornic", json!(["main"])),
    ] {
        assert_eq!(client(database).value(count), nodes, "{database}");
        let told = client(database).client.get(&format!("/db/{database}")).unwrap().expect(200);
        assert_eq!(told["nodeCount"], json!(nodes.as_array().unwrap().len()), "{database}");
    }
    // A log named neo4j takes precedence over the default log of that name.
    log(&mut client("main"), "PUT", "neo4j").expect(201);
    let own = ["neo4j", "nornic"].map(|database| client(database).value(count));
    assert_eq!(own, [json!([]), json!(["main"])]);
    for nothing in ["nodb", "system", "x2", "%00", "..", "_system"] {
        for path in ["tx/commit", "tx"] {
            let answer = client(nothing).ask("POST", path, &one("RETURN 1", json!({}))).unwrap();
            let code = code(&answer.json());
            assert!((400..500).contains(&answer.status), "{nothing}: {answer:?}");
            assert!(code.is_some_and(|code| code.starts_with("Neo.ClientError")), "{nothing}");
        }
    }
    let answer = client("nodb").ask("POST", "tx/commit", &one("RETURN 1", json!({}))).unwrap();
    assert_eq!(code(&answer.expect(404)).as_deref(), Some(NO_DATABASE));
}

#[test]
fn with_its_log_a_graph_and_its_open_transactions_end() {
    let server = Server::start();
    let mut client = GraphClient::at(server.address).of("x");
    log(&mut client, "PUT", "x").expect(201);
    client.run("CREATE (:N {of: 'before'})", json!({}));
    let write = "MATCH (n:N) SET n.of = 'changed' CREATE (:N {of: 'open'})";
    let open = [(); 6].map(|()| client.begin(write, json!({})));
    log(&mut client, "DELETE", "x").expect(200);
    assert_eq!(client.go_on(&open[0], write, json!({})), Err(NO_DATABASE.to_owned()));
    assert_eq!(client.commit(&open[1]), Err(NO_DATABASE.to_owned()));
    assert_eq!(client.roll_back(&open[2]), Err(NO_DATABASE.to_owned()));
    log(&mut client, "PUT", "x").expect(201);
    assert_eq!(client.value("MATCH (n) RETURN count(n)"), json!(0));
    let read = "MATCH (n:N) RETURN collect(n.of)";
    for open in &open {
        assert_eq!(client.go_on(open, read, json!({})), Err(NOT_FOUND.to_owned()));
        assert_eq!(client.commit(open), Err(NOT_FOUND.to_owned()));
    }
    // Repeatedly, with a database that is first used after its log was recreated.
    for round in 0..5 {
        let open = [(); 2].map(|()| client.begin("CREATE (:N {of: 'open'})", json!({})));
        client.run("UNWIND range(0, $n) AS i CREATE (:N {of: 'then'})", json!({"n": round}));
        log(&mut client, "DELETE", "x").expect(200);
        log(&mut client, "PUT", "x").expect(201);
        client.run("UNWIND range(1, 3) AS i CREATE (:N {of: 'now'})", json!({}));
        assert_eq!(client.commit(&open[0]), Err(NOT_FOUND.to_owned()));
        assert_eq!(client.go_on(&open[1], read, json!({})), Err(NOT_FOUND.to_owned()));
        assert_eq!(client.value(read), json!(["now", "now", "now"]));
    }
}

#[test]
fn logs_are_deleted_and_made_under_load() {
    const NOT_NOW: [&str; 4] =
        [NO_DATABASE, NOT_FOUND, OUTDATED, "Neo.TransientError.General.DatabaseUnavailable"];
    let server = Server::start();
    log(&mut GraphClient::at(server.address), "PUT", "x").expect(201);
    let done = crate::done::StopSignal::default();
    std::thread::scope(|scope| {
        let enough = done.at_the_end();
        for number in 0..4 {
            let (server, done) = (&server, &done);
            scope.spawn(move || {
                let mut client = GraphClient::at(server.address).of("x");
                while !done.is_set() {
                    let pair = "CREATE (a:A)-[:R]->(b:B)";
                    let told = if number % 2 == 0 {
                        let answer = client.ask("POST", "tx/commit", &one(pair, json!({})));
                        rows(&answer.unwrap().json()).map(drop)
                    } else {
                        let answer = client.ask("POST", "tx", &one(pair, json!({}))).unwrap();
                        match answer.header("location") {
                            Some(place) => {
                                let (_, id) = place.rsplit_once('/').unwrap();
                                let open = Open { path: format!("tx/{id}"), rows: vec![] };
                                client.go_on(&open, pair, json!({})).and(client.commit(&open))
                            }
                            None => rows(&answer.json()).map(drop),
                        }
                    };
                    if let Err(code) = told {
                        assert!(NOT_NOW.contains(&code.as_str()), "{code}");
                    }
                }
            });
        }
        let mut client = GraphClient::at(server.address).of("x");
        for _ in 0..size(10, 200) {
            std::thread::sleep(std::time::Duration::from_millis(30));
            log(&mut client, "DELETE", "x").expect(200);
            log(&mut client, "PUT", "x").expect(201);
        }
        drop(enough);
    });
    let mut client = GraphClient::at(server.address).of("x");
    let counts = "MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN count(n), count(r)";
    let counts = &client.run(counts, json!({}))[0];
    assert_eq!(counts[0].as_u64().unwrap(), 2 * counts[1].as_u64().unwrap());
    client.run("CREATE (:A)", json!({}));
}
