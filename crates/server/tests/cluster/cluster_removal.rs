//! Nodes that order their logs themselves: a member is removed, and a lost one replaced.

use crate::following::flags_of;
use crate::nodes::{NAMES, Nodes, RAFT, append_somewhere, event, position_of, until};
use crate::program::run;
use crate::server::Server;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The voters of the group as a node sees them.
fn voters(nodes: &Nodes, node: usize) -> Vec<String> {
    let told = nodes.client(node).get("/v1/cluster").unwrap().expect(200);
    let members = told["engine"]["group"]["members"].as_array().unwrap().clone();
    let voters = members.iter().filter(|member| member["votes"] == true);
    voters.map(|member| member["node"].as_str().unwrap().to_owned()).collect()
}

fn remove(nodes: &Nodes, asked: usize, node: usize) -> crate::program::ProgramOutput {
    run(&["cluster", "remove", NAMES[node], "--url", &nodes.node(asked).url()])
}

#[test]
fn a_removed_node_learns_it_and_those_that_stay_go_on() {
    let mut nodes = Nodes::start(RAFT.to_owned(), &[]);
    position_of(&nodes.client(0).post("/v1/append", &event(1)).unwrap());
    let orderer = nodes.leader();
    let [one, other] = nodes.followers()[..] else { panic!("two follow") };
    assert_eq!(nodes.events(other, 1).len(), 1);
    let url = nodes.node(orderer).url();
    run(&["cluster", "remove", "nobody", "--url", &url]).failed(64, "nobody");
    // Without it, the other one would not be a majority.
    nodes.kill(one);
    until("it is not reached", || {
        let status = run(&["cluster", "status", "--url", &url]);
        status.out.contains("2 of 3 voters reachable")
    });
    let missed = format!("not reached: {}", NAMES[one]);
    remove(&nodes, orderer, other).failed(1, &missed);
    nodes.start_again(one);
    until("it is reached", || {
        let status = run(&["cluster", "status", "--url", &url]);
        status.out.contains("3 of 3 voters reachable")
    });
    // Any node passes it on.
    remove(&nodes, one, other).done();
    for node in [orderer, one] {
        until("the others are two", || voters(&nodes, node).len() == 2);
    }
    until("it knows", || {
        let ready = nodes.client(other).get("/health/ready").unwrap();
        ready.status == 503 && {
            let told = ready.problem(503);
            told["detail"].as_str().unwrap().contains("removed from the cluster")
        }
    });
    let told = nodes.client(other).get("/v1/cluster").unwrap().expect(200);
    let stopped = told["engine"]["group"]["stopped"].as_str().unwrap();
    assert!(
        stopped.contains("this node was removed") && stopped.contains("cluster join"),
        "{told}"
    );
    let local = nodes.client(other).get("/v1/events?consistency=local").unwrap().expect(200);
    assert_eq!(local["head"], 1);
    nodes.client(other).post("/v1/append", &event(2)).unwrap().problem(503);
    position_of(&nodes.client(one).post("/v1/append", &event(2)).unwrap());
    // That it still knocks is no trouble of those that stay.
    until("the others are well without it", || {
        let told = nodes.client(orderer).get("/v1/cluster").unwrap().expect(200);
        let is_listed = told["nodes"].as_array().unwrap().iter().any(|n| n["node"] == NAMES[other]);
        told["engine"]["trouble"].is_null() && !is_listed
    });
    let forget = ["cluster", "forget", "--url", &url, NAMES[one]];
    run(&forget).failed(64, "use wellspring cluster remove");
    remove(&nodes, orderer, other).done();
    // Not under the id under which it has acknowledged what the others no longer count on.
    let its = nodes.node(other).url();
    run(&["cluster", "join", &its, "--url", &url]).failed(1, "was removed from the cluster");
    nodes.kill(other);
    let again = nodes.waiting(other, None);
    again.logged(&["removed from the cluster"]);
    drop(again);
    // The node that orders has the other one do so before.
    remove(&nodes, orderer, orderer).done();
    until("one is left", || voters(&nodes, one) == [NAMES[one]]);
    remove(&nodes, one, one).failed(1, "only voter");
    let head = append_somewhere(&[nodes.address(one)], 0, "last", &event(3));
    assert_eq!(head, 3);
}

#[test]
fn a_node_whose_disk_is_lost_is_replaced_under_its_name() {
    let mut nodes = Nodes::start(RAFT.to_owned(), &["--raft-keep-bytes", "1"]);
    let lost = nodes.followers()[0];
    let left: Vec<usize> = (0..3).filter(|node| *node != lost).collect();
    let addresses: Vec<_> = left.iter().map(|node| nodes.address(*node)).collect();
    let is_over = AtomicBool::new(false);
    let last = thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut last = 0;
            for n in 0.. {
                last = append_somewhere(&addresses, n, &format!("k{n}"), &event(n as u64));
                if is_over.load(Ordering::Relaxed) {
                    break;
                }
            }
            last
        });
        let url = nodes.node(left[0]).url();
        let twin = nodes.dir().join("twin");
        let own = flags_of(NAMES[lost], RAFT, &nodes.key);
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let alive = Server::start_waiting(None, &twin, &own);
        let join = |server: &Server, flags: &[&str]| {
            run(&[&["cluster", "join", &server.url(), "--url", &url], flags].concat())
        };
        join(&alive, &[]).failed(1, "--replace");
        join(&alive, &["--replace"]).failed(1, "is not lost");
        drop(alive);
        nodes.kill(lost);
        // Rot is refused with what to do.
        let state = nodes.data(lost).join("raft/state");
        let mut bytes = std::fs::read(&state).unwrap();
        bytes[100] ^= 1;
        std::fs::write(&state, bytes).unwrap();
        let data = nodes.data(lost);
        let serve = ["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
        let advertise = ["--advertise", "http://127.0.0.1:9"];
        run(&[&serve[..], &advertise, &own].concat()).failed(1, "cluster join URL --replace");
        std::fs::remove_dir_all(&data).unwrap();
        let server = nodes.waiting(lost, Some(nodes.address(lost)));
        let joined = join(&server, &["--replace"]).done();
        assert!(joined.contains(&format!("{} is a voter", NAMES[lost])), "{joined}");
        nodes.put(lost, server.ready());
        is_over.store(true, Ordering::Relaxed);
        load.join().unwrap()
    });
    let all = nodes.events(left[0], last);
    assert_eq!(all.len() as u64, last);
    assert!((0..3).all(|node| nodes.events(node, last) == all));
    assert_eq!(voters(&nodes, left[0]).len(), 3);
    // It counts: another one may fail now.
    nodes.kill(left[1]);
    let up = [nodes.address(left[0]), nodes.address(lost)];
    append_somewhere(&up, 0, "after", &event("after"));
}

#[test]
fn after_the_loss_of_a_majority_one_node_goes_on_and_old_cursors_are_refused() {
    let mut nodes = Nodes::start(RAFT.to_owned(), &[]);
    let addresses = [0, 1, 2].map(|node| nodes.address(node));
    for n in 0..30 {
        append_somewhere(&addresses, n, &format!("k{n}"), &event(n as u64));
    }
    let before = nodes.events(0, 30);
    let history = |nodes: &Nodes, node: usize, log: &str| {
        let answer = nodes.client(node).get(&format!("/v1/logs/{log}/head")).unwrap();
        answer.header("wellspring-history").unwrap().to_owned()
    };
    let old = history(&nodes, 0, "main");
    assert_eq!(history(&nodes, 2, "main"), old);
    let data = nodes.data(0).to_str().unwrap().to_owned();
    let recover = |flags: &[&str]| run(&[&["cluster", "recover", "--data", &data], flags].concat());
    recover(&["--inspect"]).failed(69, "in use");
    (0..3).for_each(|node| nodes.kill(node));
    recover(&[]).failed(64, "--i-may-lose-acknowledged-events");
    let told = recover(&["--inspect"]).done();
    assert!(told.contains("generation 1") && told.contains("the voters: a, b, c"), "{told}");
    let told: Value = serde_json::from_str(&recover(&["--inspect", "--json"]).done()).unwrap();
    let main = told["logs"].as_array().unwrap().iter().find(|log| log["log"] == "main");
    assert_eq!(main.unwrap()["head"], 30, "{told}");
    // Two disks are lost; one of them turns up again later.
    let found_again = nodes.dir().join("found-again");
    std::fs::rename(nodes.data(1), &found_again).unwrap();
    std::fs::remove_dir_all(nodes.data(2)).unwrap();
    for again in ["", "repeated"] {
        let told = recover(&["--i-may-lose-acknowledged-events"]).done();
        assert!(told.contains("a is the only node of generation "), "{again}: {told}");
    }
    nodes.start_again(0);
    let confirmed = "/v1/events?consistency=linearizable&wait_ms=30000&limit=1000";
    assert_eq!(nodes.client(0).get(confirmed).unwrap().expect(200)["events"], json!(before));
    let new = history(&nodes, 0, "main");
    assert_ne!(new, old);
    // Whoever comes from the old history is told so.
    let headers = [("Wellspring-History", old.as_str())];
    for path in ["/v1/events?after=12", "/v1/head"] {
        let told = nodes.client(0).call("GET", path, &headers, b"").unwrap().problem(409);
        assert_eq!(told["type"], "/problems/another-history");
    }
    let headers = [("Accept", "text/event-stream"), ("Last-Event-ID", &format!("31@{old}"))];
    let told = nodes.client(0).call("GET", "/v1/events", &headers, b"").unwrap();
    assert_eq!(told.problem(409)["type"], "/problems/another-history");
    let own = flags_of("b", RAFT, &nodes.key);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let stale = Server::start_waiting(Some(addresses[1]), &found_again, &own);
    stale.logged(&["is of generation ", "move its data folder away"]);
    drop(stale);
    let url = nodes.node(0).url();
    for node in [1, 2] {
        let server = nodes.waiting(node, None);
        let joined = run(&["cluster", "join", &server.url(), "--url", &url]).done();
        assert!(joined.contains("is a voter"), "{joined}");
        nodes.put(node, server.ready());
    }
    let appended = position_of(&nodes.client(2).post("/v1/append", &event("after")).unwrap());
    let all = nodes.events(0, appended);
    assert_eq!((appended, &all[..30]), (31, &before[..]));
    for node in [1, 2] {
        assert!(nodes.events(node, appended) == all && history(&nodes, node, "main") == new);
        let shown = nodes.client(node).get(confirmed).unwrap().expect(200);
        assert_eq!(shown["events"].as_array().unwrap().len(), 31);
    }
    nodes.kill(0);
    append_somewhere(&[nodes.address(1), nodes.address(2)], 0, "last", &event("last"));
}
