//! Accounts on a node of a cluster: tokens are signed with a secret derived from the cluster's key,
//! and changes of accounts return their position in the system log.

use bytes::Bytes;
use hyper::{HeaderMap, Method};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use wellspring_face_accounts::AccountFace;
use wellspring_host::cluster::ClusterKey;
use wellspring_host::http::dispatch::dispatch;
use wellspring_host::http::server::Server;
use wellspring_host::http::{Content, Request};
use wellspring_host::testing;

struct Node(Arc<Server>);

/// Status, position and content of an answer.
type Answer = (u16, Option<u64>, Value);

impl Node {
    fn new(data: &Path, key: Option<u8>) -> Node {
        let key = key.map(|byte| Arc::new(ClusterKey::known(byte)));
        Node(testing::server_of::<AccountFace>(data, &["--audit", "off"], key))
    }

    async fn ask(&self, credentials: &str, method: &str, path: &str, content: &str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.append("host", "localhost".parse().expect("a header's value"));
        headers.append("content-type", "application/json".parse().expect("a header's value"));
        if !credentials.is_empty() {
            let value = format!("Bearer {credentials}");
            headers.append("authorization", value.parse().expect("a header's value"));
        }
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let (uri, content) = (path.parse().expect("a path"), Bytes::from(content.to_owned()));
        let request = Request::in_process(&self.0.host, method, uri, headers, content);
        let response = dispatch(Arc::clone(&self.0), request).await;
        let position = response.named_position();
        let Content::Full(content) = response.content else { panic!("it streams") };
        (response.status, position, serde_json::from_slice(&content).unwrap_or_default())
    }

    /// Creates the first account, if necessary; a token of it.
    async fn token(&self) -> String {
        let root = r#"{"username":"root","password":"correct horse","roles":["admin"]}"#;
        let root = root.replace("username", "name");
        self.ask("", "POST", "/v1/accounts", &root).await;
        let login = r#"{"username":"root","password":"correct horse"}"#;
        let (status, position, told) = self.ask("", "POST", "/auth/token", login).await;
        assert!(status == 200 && position >= Some(1), "{told}");
        told["access_token"].as_str().expect("a token").to_owned()
    }
}

#[tokio::test]
async fn a_rotation_in_a_cluster_is_an_event_and_a_restart_knows_it() {
    let dir = TempDir::new().expect("a folder");
    let node = Node::new(dir.path(), Some(7));
    let first = node.token().await;
    assert!(!dir.path().join("token-secret").exists(), "nothing is kept that could differ");
    let (status, position, told) = node.ask(&first, "POST", "/auth/rotate", "").await;
    assert_eq!((status, position, &told["secrets"]), (200, Some(2), &Value::from(2)));
    let second = node.token().await;
    for token in [&first, &second] {
        assert_eq!(node.ask(token, "GET", "/auth/me", "").await.0, 200);
    }
    let retire = r#"{"retire":true}"#;
    let (status, position, told) = node.ask(&second, "POST", "/auth/rotate", retire).await;
    assert_eq!((status, position, &told["secrets"]), (200, Some(3), &Value::from(1)));
    assert_eq!(node.ask(&first, "GET", "/auth/me", "").await.0, 401);
    node.0.host.node.close();
    drop(node);
    let again = Node::new(dir.path(), Some(7));
    assert_eq!(again.ask(&first, "GET", "/auth/me", "").await.0, 401);
    assert_eq!(again.ask(&second, "GET", "/auth/me", "").await.0, 200);
    again.0.host.node.close();
    drop(again);
    let with_another_key = Node::new(dir.path(), Some(8));
    assert_eq!(with_another_key.ask(&second, "GET", "/auth/me", "").await.0, 401);
}

#[tokio::test]
async fn whatever_changes_accounts_keys_or_tokens_says_where() {
    let dir = TempDir::new().expect("a folder");
    let node = Node::new(dir.path(), None);
    let token = node.token().await;
    let ann = r#"{"name":"ann","roles":["reader"]}"#;
    let password = r#"{"password":"another horse"}"#;
    let key = r#"{"role":"reader"}"#;
    let steps = [
        ("POST", "/v1/accounts", ann, 201),
        ("PATCH", "/v1/accounts/ann", r#"{"enabled":false}"#, 200),
        ("PUT", "/v1/accounts/ann/password", password, 204),
        ("DELETE", "/v1/accounts/ann", "", 204),
        ("POST", "/v1/keys", key, 201),
        ("POST", "/v1/keys/{id}/rotate", "", 201),
        ("DELETE", "/v1/keys/{id}", "", 204),
    ];
    let (mut id, mut before) = (String::new(), 1);
    for (method, path, content, wanted) in steps {
        let path = path.replace("{id}", &id);
        let (status, position, told) = node.ask(&token, method, &path, content).await;
        assert_eq!(status, wanted, "{method} {path}: {told}");
        let position = position.expect("a position");
        assert!(position > before, "{method} {path}: {position} after {before}");
        before = position;
        id = told["id"].as_str().map_or(id, str::to_owned);
    }
    // The log of a node outside a cluster has no position; the answer names what it reflects.
    let (status, position, _) = node.ask(&token, "POST", "/auth/rotate", "").await;
    assert_eq!((status, position), (200, Some(before)));
    let (status, position, _) = node.ask(&token, "POST", "/auth/logout", "").await;
    assert!(status == 200 && position > Some(before), "{position:?}");
}
