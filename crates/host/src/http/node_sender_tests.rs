use super::*;
use crate::access::view::{Command, PasswordHash};
use crate::cluster::{ClusterKey, NodeName};
use crate::declare::{ServedRoute, routes};
use crate::http::contract::FRESHNESS;
use crate::http::dispatch::dispatch;
use crate::http::face::Face;
use crate::http::server::Server;
use crate::http::{Answer, Content, Response, TEXT};
use crate::identity::{AccountName, Grant, Role};
use crate::settings::NoSettings;
use crate::setup::SetupError;
use crate::testing;
use crate::wire::effects::Effects;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method};
use std::net::IpAddr;
use std::sync::Arc;
use tempfile::TempDir;
use wellspring_log::CommitOn;

/// Shows how the dispatcher saw a request.
struct Mirror;

impl Face for Mirror {
    const NAME: &'static str = "mirror";
    type Settings = NoSettings;
    const ROUTES: &'static [ServedRoute<Mirror>] = routes! { |face| face;
        GET "/node" Node Node show: "For nodes." => [200 TEXT ""];
        GET "/account" Node Account show: "For accounts." .fresh(FRESHNESS) => [200 TEXT ""];
        GET "/public" Node Public show: "For everybody." => [200 TEXT ""];
    };

    fn open(_: NoSettings, _: &Arc<Host>) -> Result<Mirror, SetupError> {
        Ok(Mirror)
    }
}

async fn show(_: Arc<Mirror>, request: Box<Request>) -> Answer {
    let node = request.of_node.as_ref().map_or("-", NodeName::as_str);
    Ok(Response::text(TEXT, format!("{node} {:?}", request.client)))
}

struct Cluster {
    server: Arc<Server>,
    key: Arc<ClusterKey>,
    _dir: TempDir,
}

impl Cluster {
    fn new(key: Option<u8>) -> Cluster {
        let dir = TempDir::new().unwrap();
        let known = key.map(|byte| Arc::new(ClusterKey::known(byte)));
        let server = testing::server_of::<Mirror>(dir.path(), &[], known);
        Cluster { server, key: Arc::new(ClusterKey::known(7)), _dir: dir }
    }

    fn signed(&self, target: &str) -> HeaderValue {
        let (node, client) = (NodeName::parse("a").unwrap(), "203.0.113.9".parse().ok());
        let now_us = self.server.host.clock.wall_us();
        node_auth::sign(&self.key, ("GET", target), &node, client, now_us).parse().unwrap()
    }

    async fn answer(&self, target: &str, headers: &[(&'static str, HeaderValue)]) -> Response {
        let mut fields = HeaderMap::new();
        fields.insert("host", "localhost".parse().unwrap());
        for (name, value) in headers {
            fields.insert(*name, value.clone());
        }
        let host = &self.server.host;
        let uri = target.parse().unwrap();
        let mut request = Request::in_process(host, Method::GET, uri, fields, "".into());
        request.client = Some(IpAddr::from([127, 0, 0, 1]));
        dispatch(Arc::clone(&self.server), request).await
    }

    async fn ask(&self, target: &str, headers: &[(&'static str, HeaderValue)]) -> (u16, String) {
        let answer = self.answer(target, headers).await;
        let Content::Full(content) = answer.content else { panic!("the answer streams") };
        (answer.status, String::from_utf8(content.to_vec()).unwrap())
    }

    async fn add_account(&self) {
        let (name, roles) = (AccountName::parse("ann").unwrap(), Grant::everywhere(Role::Admin));
        let password = PasswordHash::new("$x");
        let add = Command::AddAccount { name, password, roles: roles.into() };
        let live = self.server.host.access.live();
        live.execute(&Effects::default(), &[add], None, CommitOn::ThisThread).await.unwrap();
    }
}

const NODE: &str = "wellspring-node";

#[tokio::test]
async fn a_request_of_a_node_is_its_clients_and_passes_where_nodes_do() {
    let cluster = Cluster::new(Some(7));
    for target in ["/node", "/public", "/account?wait_ms=1"] {
        let told = cluster.ask(target, &[(NODE, cluster.signed(target))]).await;
        assert_eq!(told, (200, "a Some(203.0.113.9)".to_owned()), "{target}");
        // Nodes address each other by any name, and forward the requests of pages.
        let evil = HeaderValue::from_static("evil.example");
        let origin = HeaderValue::from_static("http://evil.example");
        let sent = [("host", evil), ("origin", origin), (NODE, cluster.signed(target))];
        assert_eq!(cluster.ask(target, &sent).await.0, 200, "{target}");
        assert_eq!(cluster.ask(target, &sent[..2]).await.0, 403, "{target}");
    }
    assert_eq!(cluster.ask("/node", &[]).await.0, 401);
    cluster.add_account().await;
    let told = cluster.ask("/node", &[(NODE, cluster.signed("/node"))]).await;
    assert_eq!(told.0, 200, "{told:?}");
    let told = cluster.ask("/account", &[(NODE, cluster.signed("/account"))]).await;
    assert!(told.0 == 401 && told.1.contains("/problems/unauthenticated"), "no role: {told:?}");
}

#[tokio::test]
async fn a_client_that_poses_as_a_node_is_refused() {
    let cluster = Cluster::new(Some(8));
    for target in ["/node", "/public", "/account"] {
        for value in [cluster.signed(target), HeaderValue::from_static("v1 rubbish")] {
            let (status, problem) = cluster.ask(target, &[(NODE, value)]).await;
            assert!(
                status == 401 && problem.contains("/problems/not-a-node"),
                "{target}: {problem}"
            );
        }
    }
    assert_eq!(cluster.ask("/public", &[]).await, (200, "- Some(127.0.0.1)".to_owned()));
}

#[tokio::test]
async fn a_server_in_no_cluster_does_nothing_that_a_node_forwards() {
    let cluster = Cluster::new(None);
    for target in ["/public", "/account", "/node"] {
        for value in [cluster.signed(target), HeaderValue::from_static("v1 rubbish")] {
            let answer = cluster.answer(target, &[(NODE, value)]).await;
            assert_eq!(answer.status, 401, "{target}");
            let waits = ("wellspring-not-leading", "nothing-done".to_owned());
            assert!(answer.headers.contains(&waits), "{target}: {:?}", answer.headers);
        }
    }
    let (status, problem) = cluster.ask("/public", &[(NODE, cluster.signed("/public"))]).await;
    assert!(status == 401 && problem.contains("in no cluster"), "{problem}");
    assert_eq!(cluster.ask("/public", &[]).await, (200, "- Some(127.0.0.1)".to_owned()));
}

#[tokio::test]
async fn nobody_waits_for_accounts_that_cannot_come_or_without_credentials() {
    let cluster = Cluster::new(None);
    let at = |position: &str| ("wellspring-min-system-position", position.parse().unwrap());
    // The log system is led here: no other node has given a position beyond its head.
    let told = cluster.ask("/account?wait_ms=60000", &[at("7")]).await;
    assert!(told.0 == 503 && told.1.contains("/problems/not-yet"), "{told:?}");
    assert!(told.1.contains("position 7 has been given by no node"), "{told:?}");
    assert_eq!(cluster.ask("/public", &[at("7")]).await.0, 200, "nobody is judged");
    for wrong in ["", "x", "-1"] {
        assert_eq!(cluster.ask("/account", &[at(wrong)]).await.0, 400, "{wrong}");
    }
    cluster.add_account().await;
    assert_eq!(cluster.ask("/account", &[at("0")]).await.0, 401);
    assert_eq!(cluster.ask("/account?wait_ms=60000", &[at("99")]).await.0, 401, "no credentials");
    let wrong = ("authorization", HeaderValue::from_static("Bearer wrong"));
    assert_eq!(cluster.ask("/account?wait_ms=60000", &[at("99"), wrong]).await.0, 503);
}
