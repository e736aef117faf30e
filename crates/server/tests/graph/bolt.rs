//! Bolt as no driver sends it: versions, order, interruption, rubbish.

use crate::bolt_client::*;
use crate::closed::{Closed, PASSWORD};
use crate::process::memory_kb;
use crate::server::Server;
use serde_json::json;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const VERSIONS: [(u8, u8); 9] =
    [(4, 4), (5, 0), (5, 1), (5, 2), (5, 3), (5, 4), (5, 6), (5, 7), (5, 8)];

#[test]
fn every_version_gives_the_structures_of_its_own() {
    let server = Server::start();
    for version in VERSIONS {
        let mut client = BoltClient::ready(server.address, version);
        let statement = "CREATE (a:A {n: 1})-[r:R {k: true}]->(b:B) WITH a, r, b \
            MATCH p = (b)<--(a) RETURN a, r, p, datetime('2020-01-02T03:04:05+01:00') AS t, \
            datetime('2020-01-02T03:04:05[Europe/Berlin]') AS z";
        let Rows { rows, summary, fields } = client.run(statement, json!({})).unwrap();
        assert_eq!(fields, ["a", "r", "p", "t", "z"]);
        let [
            Packed::Struct(0x4E, node),
            Packed::Struct(0x52, relationship),
            Packed::Struct(0x50, path),
            t,
            z,
        ] = &rows[0][..]
        else {
            panic!("{version:?}: {rows:?}")
        };
        let has_ids = version >= (5, 0);
        assert_eq!((node.len(), relationship.len()), if has_ids { (4, 8) } else { (3, 5) });
        if has_ids {
            let id = node[0].int();
            assert_eq!(node[3].text(), format!("4:main:{id}"));
            assert_eq!(relationship[6].text(), format!("4:main:{id}"));
        }
        // Against the direction of the relationship: the index is negative.
        let Packed::List(indices) = &path[2] else { panic!("{path:?}") };
        assert_eq!(indices, &[Packed::Int(-1), Packed::Int(1)]);
        let Packed::List(unbound) = &path[1] else { panic!("{path:?}") };
        let Packed::Struct(0x72, unbound) = &unbound[0] else { panic!("{path:?}") };
        assert_eq!(unbound.len(), if has_ids { 4 } else { 3 });
        let (tags, seconds) =
            if has_ids { ((0x49, 0x69), 1_577_930_645) } else { ((0x46, 0x66), 1_577_934_245) };
        let Packed::Struct(tag, t) = t else { panic!("{t:?}") };
        assert_eq!((*tag, t[0].int(), t[2].int()), (tags.0, seconds, 3_600), "{version:?}");
        let Packed::Struct(tag, z) = z else { panic!("{z:?}") };
        assert_eq!(
            (*tag, z[0].int(), z[2].text()),
            (tags.1, seconds, "Europe/Berlin"),
            "{version:?}"
        );
        assert_eq!(summary.get("stats").get("nodes-created").int(), 2);
        assert!(summary.get("bookmark").text().starts_with("FB:main:"), "{summary:?}");
        assert_eq!(*summary.get("statuses") == Packed::Null, version < (5, 6), "{version:?}");
        let failure = client.ask(RUN, &[json!("RETURN"), json!({}), json!({})]);
        let name = if version >= (5, 7) { "neo4j_code" } else { "code" };
        assert_eq!(failure.fields[0].get(name).text(), "Neo.ClientError.Statement.SyntaxError");
        assert_eq!(*failure.fields[0].get("gql_status") == Packed::Null, version < (5, 7));
    }
}

#[test]
fn nothing_is_executed_before_a_logon_or_out_of_order() {
    let server = Server::start();
    for (first, fields) in [
        (RUN, vec![json!("CREATE (n)"), json!({}), json!({})]),
        (BEGIN, vec![json!({})]),
        (LOGON, vec![json!({"scheme": "none"})]),
        (RESET, vec![]),
    ] {
        let mut client = BoltClient::open(server.address, (5, 4));
        assert_eq!(client.ask(first, &fields).code(), "Neo.ClientError.Request.Invalid");
        assert!(client.is_closed(), "{first:#x}");
    }
    let mut client = BoltClient::ready(server.address, (5, 4));
    assert_eq!(client.ask(PULL, &[json!({"n": -1})]).code(), "Neo.ClientError.Request.Invalid");
    assert!(client.is_closed());
    let mut client = BoltClient::ready(server.address, (5, 4));
    assert_eq!(client.value("MATCH (n) RETURN count(n)"), Packed::Int(0));
}

#[test]
fn rows_come_as_many_as_are_asked_for_and_the_rest_is_passed_over() {
    let server = Server::start();
    let mut client = BoltClient::ready(server.address, (5, 4));
    client.ask(RUN, &[json!("UNWIND range(1, 10) AS x RETURN x"), json!({}), json!({})]).success();
    let pulled = |client: &mut BoltClient, tag, n: i64| {
        client.send(tag, &[json!({"n": n})]);
        let mut rows = Vec::new();
        loop {
            let message = client.receive().unwrap();
            match message.tag {
                RECORD => rows.push(message.fields[0].clone()),
                _ => return (rows.len(), *message.success().get("has_more") == Packed::Bool(true)),
            }
        }
    };
    assert_eq!(pulled(&mut client, PULL, 3), (3, true));
    assert_eq!(pulled(&mut client, DISCARD, 2), (0, true));
    assert_eq!(pulled(&mut client, PULL, 4), (4, true));
    assert_eq!(pulled(&mut client, PULL, 4), (1, false));
    // Two results of one transaction, in turns.
    client.ask(BEGIN, &[json!({})]).success();
    for _ in 0..2 {
        let run = [json!("UNWIND range(1, 4) AS x RETURN x"), json!({}), json!({})];
        client.ask(RUN, &run).success();
    }
    for (qid, more) in [(0, true), (1, true), (0, false), (1, false)] {
        client.send(PULL, &[json!({"n": 2, "qid": qid})]);
        let rows: Vec<u8> = (0..3).map(|_| client.receive().unwrap()).map(|m| m.tag).collect();
        assert_eq!(rows, [RECORD, RECORD, SUCCESS], "{qid} {more}");
    }
    client.ask(COMMIT, &[]).success();
}

#[test]
fn a_reset_gives_up_what_is_under_way_and_leaves_nothing() {
    let server = Server::start();
    let mut client = BoltClient::ready(server.address, (5, 4));
    // Not executed before its first rows are asked for.
    client.ask(RUN, &[json!("CREATE (:X)"), json!({}), json!({})]).success();
    client.ask(RESET, &[]).success();
    // In the middle of an execution that would take minutes.
    let long = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a + b < 0 CREATE (:X) RETURN 1";
    client.ask(RUN, &[json!(long), json!({}), json!({})]).success();
    let begun = Instant::now();
    client.send(PULL, &[json!({"n": -1})]);
    std::thread::sleep(Duration::from_millis(200));
    client.send(RESET, &[]);
    assert_eq!(client.receive().unwrap().tag, IGNORED);
    client.receive().unwrap().success();
    assert!(begun.elapsed() < Duration::from_secs(20), "it was not given up");
    // In a transaction, with more behind it.
    client.ask(BEGIN, &[json!({})]).success();
    client.run("CREATE (:X)", json!({})).unwrap();
    client.send(RUN, &[json!(long), json!({}), json!({})]);
    client.send(PULL, &[json!({"n": -1})]);
    client.send(COMMIT, &[]);
    client.send(RESET, &[]);
    let tags: Vec<u8> = (0..4).map(|_| client.receive().unwrap().tag).collect();
    assert_eq!(tags, [IGNORED, IGNORED, IGNORED, SUCCESS]);
    assert_eq!(client.value("MATCH (n:X) RETURN count(n)"), Packed::Int(0));
}

#[test]
fn a_transaction_ends_with_its_connection_and_with_its_time() {
    let server = Server::start();
    let mut client = BoltClient::ready(server.address, (5, 4));
    client.ask(BEGIN, &[json!({})]).success();
    client.run("CREATE (:X)", json!({})).unwrap();
    drop(client);
    let mut client = BoltClient::ready(server.address, (5, 4));
    assert_eq!(client.value("MATCH (n:X) RETURN count(n)"), Packed::Int(0));
    client.ask(BEGIN, &[json!({"tx_timeout": 300})]).success();
    let long = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a + b < 0 RETURN 1";
    assert_eq!(
        client.run(long, json!({})).unwrap_err(),
        "Neo.ClientError.Transaction.TransactionTimedOut"
    );
    // Also if it did nothing meanwhile.
    client.ask(BEGIN, &[json!({"tx_timeout": 100})]).success();
    std::thread::sleep(Duration::from_millis(150));
    let late = client.ask(COMMIT, &[]);
    assert_eq!(late.code(), "Neo.ClientError.Transaction.TransactionTimedOut");
    client.ask(RESET, &[]).success();
    // Metadata is there for the statements of the transaction.
    client.ask(BEGIN, &[json!({"tx_metadata": {"job": "nightly"}})]).success();
    let told = client.value("CALL tx.getMetaData() YIELD metadata RETURN metadata.job");
    assert_eq!(told, Packed::Text("nightly".to_owned()));
    client.ask(ROLLBACK, &[]).success();
}

#[test]
fn a_read_transaction_writes_nothing_and_a_bookmark_is_waited_for() {
    let server = Server::start();
    let mut client = BoltClient::ready(server.address, (5, 4));
    client.ask(BEGIN, &[json!({"mode": "r"})]).success();
    let refused = client.run("CREATE (:X)", json!({})).unwrap_err();
    assert_eq!(refused, "Neo.ClientError.Statement.AccessMode");
    client.ask(BEGIN, &[json!({})]).success();
    client.run("CREATE (:X)", json!({})).unwrap();
    let bookmark = client.ask(COMMIT, &[]).success().get("bookmark").text().to_owned();
    assert_eq!(bookmark, "FB:main:1");
    let begun = client.ask(BEGIN, &[json!({"bookmarks": [bookmark, "FB:other:9"]})]);
    begun.success();
    client.ask(ROLLBACK, &[]).success();
    let begun = client.ask(BEGIN, &[json!({"bookmarks": ["rubbish"]})]);
    assert_eq!(begun.code(), "Neo.ClientError.Transaction.InvalidBookmark");
    client.ask(RESET, &[]).success();
    let routed = client.ask(ROUTE, &[json!({"address": "db.example:7687"}), json!([]), json!({})]);
    let table = routed.success().get("rt").clone();
    assert_eq!(table.get("ttl").int(), 300);
    assert!(format!("{table:?}").contains("db.example:7687"), "{table:?}");
}

#[test]
fn rubbish_ends_its_own_connection_and_no_other() {
    let server = Server::start();
    let mut other = BoltClient::ready(server.address, (5, 4));
    // A greeting of 16 MiB, in chunks.
    let mut client = BoltClient::open(server.address, (5, 4));
    let large = vec![0x81; 16 << 20];
    let _ = client.stream.write_all(&chunked(&large));
    let _ = client.receive();
    assert!(client.is_closed());
    for rubbish in [
        chunked(&[0xB1, 0x01, 0xDA, 0xFF, 0xFF, 0xFF, 0xFF]),
        chunked(&[0xB1, 0x10]),
        chunked(&[0xFF; 40]),
        chunked(&[[0x91; 200].as_slice(), &[0xC0]].concat()),
    ] {
        let mut client = BoltClient::ready(server.address, (5, 4));
        client.stream.write_all(&rubbish).unwrap();
        assert_eq!(client.receive().unwrap().code(), "Neo.ClientError.Request.Invalid");
        assert!(client.is_closed());
    }
    // No version that is served.
    let mut offer = vec![0x60, 0x60, 0xB0, 0x17, 0, 0, 0, 9];
    offer.resize(20, 0);
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(&offer).unwrap();
    let mut told = Vec::new();
    stream.read_to_end(&mut told).unwrap();
    assert_eq!(told, [0; 4]);
    assert_eq!(other.value("RETURN 1"), Packed::Int(1));
    // HTTP is served beside it.
    assert_eq!(server.client().get("/health").unwrap().status, 200);
}

#[test]
fn a_message_may_come_byte_by_byte_and_in_any_number_of_chunks() {
    let server = Server::start();
    let mut client = BoltClient::ready(server.address, (5, 4));
    let mut message = Vec::new();
    let fields = [json!("RETURN $x AS x"), json!({"x": "y".repeat(300)}), json!({})];
    Packed::Struct(RUN, fields.iter().map(Packed::from).collect()).write(&mut message);
    let mut sent: Vec<u8> = message.iter().flat_map(|byte| [0, 1, *byte]).collect();
    sent.extend_from_slice(&[0, 0, 0, 0, 0, 0]);
    sent.extend_from_slice(&framed(PULL, &[json!({"n": -1})]));
    for byte in sent {
        client.stream.write_all(&[byte]).unwrap();
    }
    client.receive().unwrap().success();
    assert_eq!(
        client.receive().unwrap().fields[0],
        Packed::List(vec![Packed::Text("y".repeat(300))])
    );
    client.receive().unwrap().success();
}

#[test]
fn what_is_left_open_is_dropped_after_its_time() {
    let server =
        Server::start_with(&["--graph-transaction-timeout-ms", "300", "--body-timeout-ms", "300"]);
    let timed_out = "Neo.ClientError.Transaction.TransactionTimedOut";
    let mut client = BoltClient::ready(server.address, (5, 4));
    let run = [json!("UNWIND range(1, 10) AS x RETURN x"), json!({}), json!({})];
    // A statement that is not fetched, one that is fetched in part, a transaction.
    client.ask(RUN, &run).success();
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(client.ask(PULL, &[json!({"n": 1})]).code(), timed_out);
    client.ask(RESET, &[]).success();
    client.ask(RUN, &run).success();
    assert_eq!(client.ask(PULL, &[json!({"n": 1})]).tag, RECORD);
    client.receive().unwrap().success();
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(client.ask(PULL, &[json!({"n": 1})]).code(), timed_out);
    client.ask(RESET, &[]).success();
    client.ask(BEGIN, &[json!({})]).success();
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(client.ask(COMMIT, &[]).code(), timed_out);
    client.ask(RESET, &[]).success();
    assert_eq!(client.value("RETURN 1"), Packed::Int(1));
    // A part of a message whose rest does not come.
    client.stream.write_all(&[0xFF, 0xFF, 0xB3, 0x10]).unwrap();
    assert!(client.is_closed());
}

/// A connection to a server with accounts that shows these credentials: what it is told.
fn log_on(closed: &Closed, auth: &serde_json::Value) -> (BoltClient, Message) {
    let mut client = BoltClient::open(closed.server.address, (5, 4));
    client.ask(HELLO, &[json!({"user_agent": "test/1.0"})]).success();
    let told = client.ask(LOGON, std::slice::from_ref(auth));
    (client, told)
}

#[test]
fn who_connects_proves_it_and_may_what_its_account_may() {
    let closed = Closed::start();
    let token = closed.add("ann", &["reader:main"]);
    let basic =
        |password: &str| json!({"scheme": "basic", "principal": "ann", "credentials": password});
    for refused in [
        basic("wrong"),
        json!({"scheme": "none"}),
        json!({"scheme": "kerberos", "credentials": "x"}),
        json!({"scheme": "bearer", "credentials": "nonsense"}),
    ] {
        let (mut client, told) = log_on(&closed, &refused);
        assert_eq!(told.code(), "Neo.ClientError.Security.Unauthorized", "{refused}");
        assert!(client.is_closed(), "{refused}");
    }
    for accepted in [basic(PASSWORD), json!({"scheme": "bearer", "credentials": token})] {
        let (mut client, told) = log_on(&closed, &accepted);
        told.success();
        assert_eq!(client.value("MATCH (n) RETURN count(n)"), Packed::Int(0));
        let refused = client.run("CREATE (n)", json!({})).unwrap_err();
        assert_eq!(refused, "Neo.ClientError.Security.Forbidden");
        // Logs that it may not read are not in its lists.
        closed.ask(&closed.root, "PUT", "/v1/logs/secret", &serde_json::Value::Null);
        client.send(RUN, &[json!("SHOW DATABASES YIELD name"), json!({}), json!({"db": "system"})]);
        client.send(PULL, &[json!({"n": -1})]);
        client.receive().unwrap().success();
        let mut names = Vec::new();
        loop {
            match client.receive().unwrap() {
                Message { tag: RECORD, fields } => names.push(format!("{:?}", fields[0])),
                end => break drop(end.success()),
            }
        }
        assert!(names.len() == 2 && !names.concat().contains("secret"), "{names:?}");
    }
    // A role that is lost between a statement and its first rows.
    closed.add("wen", &["writer:main"]);
    let of_wen = json!({"scheme": "basic", "principal": "wen", "credentials": PASSWORD});
    let (mut client, told) = log_on(&closed, &of_wen);
    told.success();
    client.ask(RUN, &[json!("CREATE (:Sneaked)"), json!({}), json!({})]).success();
    let less = json!({"roles": ["reader:main"]});
    closed.ask(&closed.root, "PATCH", "/v1/accounts/wen", &less).expect(200);
    let refused = client.ask(PULL, &[json!({"n": -1})]);
    assert_eq!(refused.code(), "Neo.ClientError.Security.Forbidden");
    // Another log of the name.
    let root = json!({"scheme": "bearer", "credentials": closed.root});
    let (mut client, told) = log_on(&closed, &root);
    told.success();
    let nothing = serde_json::Value::Null;
    closed.ask(&closed.root, "PUT", "/v1/logs/short", &nothing).expect(201);
    let of_short = json!({"db": "short"});
    client.ask(RUN, &[json!("CREATE (:Sneaked)"), json!({}), of_short]).success();
    closed.ask(&closed.root, "DELETE", "/v1/logs/short?confirm=short", &nothing);
    closed.ask(&closed.root, "PUT", "/v1/logs/short", &nothing).expect(201);
    let refused = client.ask(PULL, &[json!({"n": -1})]);
    assert_eq!(refused.code(), "Neo.ClientError.Database.DatabaseNotFound");
    // What writes is told that there is no graph, not that a role is missing.
    let written = json!({"statement": "CREATE (:Sneaked)"});
    let told = closed.ask(&token, "POST", "/db/system/query/v2", &written).expect(400);
    assert!(told["errors"][0]["message"].as_str().unwrap().contains("no graph"), "{told}");
    // An account that is disabled meanwhile.
    let (mut client, told) = log_on(&closed, &basic(PASSWORD));
    told.success();
    client.ask(BEGIN, &[json!({})]).success();
    let off = json!({"enabled": false});
    closed.ask(&closed.root, "PATCH", "/v1/accounts/ann", &off).expect(200);
    let refused = client.run("RETURN 1", json!({})).unwrap_err();
    assert_eq!(refused, "Neo.ClientError.Security.AuthorizationExpired");
}

#[test]
fn a_client_that_does_not_read_keeps_its_rows_for_a_time_and_no_longer() {
    let server = Server::start_with(&["--write-timeout-ms", "500"]);
    let mut client = BoltClient::ready(server.address, (5, 4));
    let text = "x".repeat(100);
    let statement = format!("UNWIND range(1, 200000) AS i RETURN i, '{text}' AS t");
    client.send(RUN, &[json!(statement), json!({}), json!({})]);
    client.send(PULL, &[json!({"n": -1})]);
    let open = || {
        let page = server.client().call("GET", "/metrics", &[], b"").unwrap();
        let text = String::from_utf8(page.body.clone()).unwrap();
        let line = text.lines().find(|line| line.starts_with("wellspring_bolt_connections "));
        line.map(str::to_owned)
    };
    wellspring_patience::until("it is disconnected", || {
        open().as_deref() == Some("wellspring_bolt_connections 0")
    });
    drop(client);
}

#[test]
fn a_million_rows_that_are_read_slowly_take_no_more_than_the_memory_of_a_query() {
    const ROWS: i64 = 1_000_000;
    const QUERY_KB: u64 = 64 << 10;
    let server = Server::start();
    let mut client = BoltClient::ready(server.address, (5, 4));
    let mut other = BoltClient::ready(server.address, (5, 4));
    assert_eq!(other.value("RETURN 1"), Packed::Int(1));
    let before_kb = memory_kb(&server, "VmHWM:");
    let statement = format!("UNWIND range(1, {ROWS}) AS i RETURN i, 'a row of some length' AS t");
    client.ask(RUN, &[json!(statement), json!({}), json!({})]).success();
    let mut expected = 1;
    loop {
        client.send(PULL, &[json!({"n": 50_000})]);
        let end = loop {
            match client.receive().unwrap() {
                Message { tag: RECORD, fields } => {
                    let Packed::List(row) = &fields[0] else { panic!("{fields:?}") };
                    assert_eq!(row[0].int(), expected);
                    expected += 1;
                }
                end => break end,
            }
        };
        // Others are served meanwhile.
        assert_eq!(other.value("RETURN 1"), Packed::Int(1));
        if *end.success().get("has_more") != Packed::Bool(true) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(expected, ROWS + 1);
    // The most there was at any time: a growing buffer is copied.
    let grown_kb = memory_kb(&server, "VmHWM:").saturating_sub(before_kb);
    assert!(grown_kb < 2 * QUERY_KB, "{grown_kb} kB");
}
