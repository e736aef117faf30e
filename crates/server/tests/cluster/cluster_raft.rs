//! Nodes that order their logs themselves: founding and joining, restarts, and whom they trust.

use crate::following::{flags_of, new_key};
use crate::nodes::{NAMES, Nodes, RAFT, append_somewhere, event, position_of, until};
use crate::program::{ProgramOutput, run};
use crate::server::Server;
use crate::tls_certificates::{Ground, config, over_tls, text};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use wellspring_patience::free_port;

/// Nodes that wait for a cluster, with a key of their own.
struct Waiting {
    dir: tempfile::TempDir,
    key: PathBuf,
}

impl Waiting {
    fn new() -> Waiting {
        let dir = tempfile::tempdir().unwrap();
        let key = new_key(dir.path());
        Waiting { dir, key }
    }

    fn node(&self, name: &str) -> Server {
        self.node_with(name, &self.key, &[])
    }

    fn node_with(&self, name: &str, key: &Path, flags: &[&str]) -> Server {
        let own = flags_of(name, RAFT, key);
        let flags: Vec<&str> =
            own.iter().map(String::as_str).chain(flags.iter().copied()).collect();
        Server::start_waiting(None, &self.dir.path().join(name), &flags)
    }
}

fn init(nodes: &[&Server], flags: &[&str]) -> ProgramOutput {
    let urls: Vec<String> = nodes.iter().map(|node| node.url()).collect();
    let words = ["cluster", "init"].into_iter().chain(flags.iter().copied());
    run(&words.chain(urls.iter().map(String::as_str)).collect::<Vec<_>>())
}

fn group(address: SocketAddr) -> Value {
    let mut client = crate::client::Client::connect(address).unwrap();
    client.get("/v1/cluster").unwrap().expect(200)["engine"]["group"].clone()
}

#[test]
fn a_cluster_is_founded_once_and_says_what_it_waits_for() {
    let waiting = Waiting::new();
    let [a, b] = ["a", "b"].map(|name| waiting.node(name));
    let told = a.client().get("/health/ready").unwrap().problem(503);
    assert_eq!(told["type"], "/problems/waiting-for-cluster", "{told}");
    assert!(told["detail"].as_str().unwrap().contains("cluster init or join"), "{told}");
    a.client().get("/health/live").unwrap().expect(200);
    a.client().post("/v1/append", &event(1)).unwrap().problem(503);
    a.client().get("/v1/cluster/member").unwrap().problem(401);
    run(&["cluster", "status", "--url", &a.url()]).failed(69, "waits for cluster init or join");
    init(&[&a, &b], &[]).failed(64, "--even");
    let nobody = format!("http://127.0.0.1:{}", free_port());
    run(&["cluster", "init", &a.url(), &b.url(), &nobody]).failed(69, "cannot reach");
    let mut stopped = waiting.node("stopped");
    assert_eq!(stopped.terminate().code(), Some(0));
    let c = waiting.node("c");
    let founded = init(&[&a, &b, &c], &[]).done();
    assert!(founded.contains("was founded by a, b, c"), "{founded}");
    let [a, b, c] = [a, b, c].map(Server::ready);
    let again = init(&[&c, &b, &a], &[]).done();
    assert!(again.contains("was founded before, by a, b, c"), "{again}");
    init(&[&a], &[]).failed(1, "wellspring cluster join");
    // A fourth node founds nothing with them, and joins them.
    let d = waiting.node("d");
    init(&[&d, &a, &b], &[]).failed(1, "wellspring cluster join");
    let appended = position_of(&b.client().post("/v1/append", &event("before")).unwrap());
    let joined = run(&["cluster", "join", "--url", &c.url(), &d.url()]).done();
    assert!(joined.contains("d is a voter"), "{joined}");
    let d = d.ready();
    let path = format!("/v1/events/{appended}?consistency=linearizable&wait_ms=30000");
    assert_eq!(d.client().get(&path).unwrap().expect(200)["data"], "before");
    until("all know four voters", || {
        let voters = |server: &Server| {
            let members = group(server.address)["members"].clone();
            let members = members.as_array().unwrap().clone();
            members.iter().filter(|m| m["votes"] == true && m["reachable"] == true).count()
        };
        [&a, &b, &c, &d].into_iter().all(|server| voters(server) == 4)
    });
    position_of(&d.client().post("/v1/append", &event("by d")).unwrap());
    let status = run(&["cluster", "status", "--url", &d.url()]).done();
    assert!(status.contains("4 of 4 voters reachable"), "{status}");
    assert!(status.contains("4 voters survive no more failures than 3"), "{status}");
}

/// A figure of a node; 0 while it does not answer.
fn figure(nodes: &Nodes, node: usize, name: &str) -> u64 {
    let Ok(answer) = nodes.client(node).get("/metrics") else { return 0 };
    let text = answer.text();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.and_then(|value| value.parse().ok()).unwrap_or(0)
}

#[test]
fn who_was_away_while_entries_were_dropped_reads_the_copies_of_the_others() {
    let mut nodes = Nodes::start(RAFT.to_owned(), &["--raft-keep-bytes", "1"]);
    let addresses = [0, 1, 2].map(|node| nodes.address(node));
    let append = |count: usize, what: &str| {
        let one = |n| append_somewhere(&addresses, n, &format!("{what}{n}"), &event(n as u64));
        (0..count).map(one).max().unwrap()
    };
    let before = append(60, "before");
    nodes.kill(2);
    let meanwhile = append(200, "meanwhile");
    // A start begins another file; whole ones go.
    for node in [0, 1] {
        nodes.kill(node);
        nodes.start_again(node);
    }
    let last = append(5, "then");
    assert!(before < meanwhile && meanwhile < last);
    let dropped = |node| figure(&nodes, node, "wellspring_raft_dropped_index");
    until("entries are dropped", || dropped(0) > 200 && dropped(1) > 200);
    nodes.start_again(2);
    let all = nodes.events(0, last);
    assert_eq!(all.len() as u64, last);
    assert!(nodes.events(2, last) == all, "the copies have the same events");
    // Nor does it need the others for what it has read.
    nodes.kill(2);
    nodes.start_again(2);
    assert!(nodes.events(2, last) == all);
}

#[test]
fn of_two_foundings_at_once_at_most_one_succeeds() {
    let waiting = Waiting::new();
    let nodes = NAMES.map(|name| waiting.node(name));
    let [one, other] = thread::scope(|scope| {
        let [a, b, c] = [&nodes[0], &nodes[1], &nodes[2]];
        let orders = [[a, b, c], [c, b, a]];
        let threads = orders.map(|order| scope.spawn(move || init(&order, &[])));
        threads.map(|thread| thread.join().unwrap())
    });
    let successes = [&one, &other].iter().filter(|run| run.code == Some(0)).count();
    assert!(successes >= 1, "{one:?} {other:?}");
    let nodes = nodes.map(Server::ready);
    let clusters = [0, 1, 2].map(|node: usize| group(nodes[node].address)["cluster"].clone());
    assert!(clusters[0] == clusters[1] && clusters[1] == clusters[2], "{clusters:?}");
    position_of(&nodes[1].client().post("/v1/append", &event(1)).unwrap());
}

#[test]
fn a_node_with_another_key_is_refused_by_name() {
    let waiting = Waiting::new();
    let [a, b] = ["a", "b"].map(|name| waiting.node(name));
    let other = waiting.dir.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let c = waiting.node_with("c", &new_key(&other), &[]);
    init(&[&a, &b, &c], &[]).failed(69, "cluster key");
    // Nor does it get a stream: a member comes back with the other key.
    let d = waiting.node("d");
    init(&[&a, &b, &d], &[]).done();
    let [a, _b, d] = [a, b, d].map(Server::ready);
    let data = d.kill();
    let own = flags_of("d", RAFT, &other.join("cluster.key"));
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let d = Server::start_waiting(None, &data, &own);
    d.logged(&["no stream with a node", "another cluster key"]);
    until("the others name it", || {
        let told = a.client().get("/v1/cluster").unwrap().expect(200);
        let trouble = told["engine"]["trouble"].as_str().unwrap_or_default().to_owned();
        trouble.contains("d: it has another cluster key")
    });
    // If it has ordered, another node does by now.
    until("two go on", || {
        let status = run(&["cluster", "status", "--url", &a.url()]);
        status.code == Some(0) && status.out.contains("2 of 3 voters reachable")
    });
}

#[test]
fn a_node_that_stops_while_it_orders_is_answered_until_all_is_stored() {
    let mut nodes = Nodes::start(RAFT.to_owned(), &[]);
    let mut taken = 0;
    for _ in 0..3 {
        let orderer = nodes.leader();
        let mut client = nodes.client(orderer);
        for _ in 0..200 {
            let answer = client.post("/e?type=Taken", &json!({"n": taken})).unwrap();
            taken += u64::from(answer.status == 202);
        }
        let begun = Instant::now();
        nodes.stop(orderer);
        assert!(begun.elapsed() < Duration::from_secs(8), "after {:?}", begun.elapsed());
        nodes.start_again(orderer);
    }
    let path = "/v1/head?consistency=linearizable&wait_ms=30000";
    assert_eq!(nodes.client(0).get(path).unwrap().expect(200)["head"], taken);
}

#[test]
fn nodes_speak_to_each_other_by_tls() {
    let ground = Ground::new();
    let waiting = Waiting::new();
    let trusted = ["--cluster-cacert", text(&ground.authority.file)];
    let flags = [&ground.pair.flags()[..], &trusted].concat();
    let nodes = NAMES.map(|name| waiting.node_with(name, &waiting.key, &flags));
    let urls: Vec<String> = nodes.iter().map(|node| format!("https://{}", node.address)).collect();
    let words = ["cluster", "init", "--cacert", text(&ground.authority.file)];
    let urls = urls.iter().map(String::as_str);
    let founded = run(&words.into_iter().chain(urls).collect::<Vec<_>>()).done();
    assert!(founded.contains("was founded by a, b, c"), "{founded}");
    let nodes = nodes.map(Server::ready);
    let client =
        |node: usize| over_tls(nodes[node].address, config(&ground.authority, None)).unwrap();
    assert_eq!(position_of(&client(1).post("/v1/append", &event("by b")).unwrap()), 1);
    for node in 0..3 {
        let path = "/v1/head?consistency=linearizable&wait_ms=30000";
        assert_eq!(client(node).get(path).unwrap().expect(200)["head"], 1);
    }
}

#[test]
fn a_folder_of_a_single_server_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let mut alone = Server::start_in(dir.path(), &[]);
    position_of(&alone.client().post("/v1/append", &event(1)).unwrap());
    alone.terminate();
    let key_dir = tempfile::tempdir().unwrap();
    let key = new_key(key_dir.path());
    let own = flags_of("a", RAFT, &key);
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let listen = format!("127.0.0.1:{}", free_port());
    let words = ["serve", "--data", dir.path().to_str().unwrap(), "--listen", &listen];
    run(&[&words[..], &own].concat()).failed(1, "holds the log of a single server");
}

#[test]
fn what_was_acknowledged_survives_the_end_of_all_nodes_also_at_other_addresses() {
    let mut nodes = Nodes::start(RAFT.to_owned(), &[]);
    let addresses = |nodes: &Nodes| (0..3).map(|node| nodes.address(node)).collect::<Vec<_>>();
    let mut head = 0;
    let mut append = |nodes: &Nodes, round: usize| {
        for n in 0..20 {
            let key = format!("{round}-{n}");
            head = append_somewhere(&addresses(nodes), n, &key, &event(json!([round, n])));
        }
        head
    };
    append(&nodes, 0);
    // All at once.
    (0..3).for_each(|node| nodes.kill(node));
    let at = [0, 1, 2].map(|node| Some(nodes.address(node)));
    nodes.start_all_again(at);
    let head_before = append(&nodes, 1);
    assert_eq!(nodes.events(2, head_before).len(), 40);
    // One elsewhere: it tells the others where it is.
    let moved = nodes.followers()[0];
    nodes.kill(moved);
    nodes.start_elsewhere(moved);
    let head = append(&nodes, 2);
    assert_eq!(nodes.events(moved, head).len(), 60);
    // Without a majority nothing is confirmed, and status says so.
    let [one, other] = [(moved + 1) % 3, (moved + 2) % 3];
    nodes.kill(one);
    nodes.kill(other);
    let url = nodes.node(moved).url();
    until("status counts voters", || {
        let status = run(&["cluster", "status", "--url", &url]);
        status.code == Some(69) && status.err.contains("1 of 3 voters reachable")
    });
    let mut client = nodes.client(moved);
    let path = "/v1/head?consistency=linearizable&wait_ms=300";
    client.get(path).unwrap().problem(503);
    assert_eq!(client.get("/v1/events?consistency=local").unwrap().expect(200)["head"], 60);
    nodes.kill(moved);
    // All elsewhere: a repeated founding tells each where the others are.
    let servers = [0, 1, 2].map(|node| nodes.waiting(node, None));
    init(&[&servers[0], &servers[1], &servers[2]], &["--wait", "60s"]).done();
    let servers = servers.map(Server::ready);
    let path = "/v1/head?consistency=linearizable&wait_ms=30000";
    for server in &servers {
        assert_eq!(server.client().get(path).unwrap().expect(200)["head"], 60);
    }
}
