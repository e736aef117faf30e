//! A client of the graph: Cypher over Neo4j's HTTP API, one connection.

use crate::client::{Answer, Client};
use serde_json::{Value, json};
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The code of a transaction that lost a conflict.
pub const OUTDATED: &str = "Neo.TransientError.Transaction.Outdated";
/// The code of a transaction that is not open or belongs to another client.
pub const NOT_FOUND: &str = "Neo.ClientError.Transaction.TransactionNotFound";

/// The size for CI, or the size in the issue if `WELLSPRING_GRAPH_FULL` is set.
pub fn size(of_ci: usize, full: usize) -> usize {
    if std::env::var_os("WELLSPRING_GRAPH_FULL").is_some() { full } else { of_ci }
}

/// A connection to one database.
pub struct GraphClient {
    pub client: Client,
    address: SocketAddr,
    /// Time of the last request.
    asked: Instant,
    database: String,
    authorization: Option<String>,
}

/// A body with one statement.
pub fn one(statement: &str, parameters: Value) -> Value {
    all(&[(statement, parameters)])
}

/// A body with these statements.
pub fn all(statements: &[(&str, Value)]) -> Value {
    let statements: Vec<Value> =
        statements.iter().map(|(text, p)| json!({"statement": text, "parameters": p})).collect();
    json!({ "statements": statements })
}

/// The code of the error in an answer's content.
pub fn code(content: &Value) -> Option<String> {
    content["errors"][0]["code"].as_str().map(str::to_owned)
}

/// The rows of the last result, or the code of the error.
pub fn rows(content: &Value) -> Result<Vec<Value>, String> {
    if let Some(code) = code(content) {
        return Err(code);
    }
    let results = content["results"].as_array().unwrap_or_else(|| panic!("{content}"));
    let data = results.last().map_or(&Value::Null, |last| &last["data"]);
    Ok(data.as_array().into_iter().flatten().map(|row| row["row"].clone()).collect())
}

impl GraphClient {
    pub fn connect(address: SocketAddr) -> io::Result<GraphClient> {
        let client = Client::connect(address)?.patient();
        let (database, authorization) = ("neo4j".to_owned(), None);
        Ok(GraphClient { client, address, asked: Instant::now(), database, authorization })
    }

    pub fn at(address: SocketAddr) -> GraphClient {
        GraphClient::connect(address).expect("the server accepts")
    }

    /// Uses this database from here on.
    pub fn of(mut self, database: &str) -> GraphClient {
        self.database = database.to_owned();
        self
    }

    /// Sends this `Authorization` from here on.
    pub fn showing(mut self, authorization: &str) -> GraphClient {
        self.authorization = Some(authorization.to_owned());
        self
    }

    /// Sends a request to a path below the database: `tx/commit`.
    pub fn ask(&mut self, method: &str, path: &str, body: &Value) -> io::Result<Answer> {
        if self.asked.elapsed() > Duration::from_secs(60) {
            // The server closes connections that are idle for longer.
            self.client = Client::connect(self.address)?.patient();
        }
        self.asked = Instant::now();
        let path = format!("/db/{}/{path}", self.database);
        let mut headers = vec![("Content-Type", "application/json")];
        headers.extend(self.authorization.as_deref().map(|shown| ("Authorization", shown)));
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.client.call(method, &path, &headers, body.as_bytes())
    }

    /// Executes one statement as a transaction; returns its rows, or the code of its error.
    pub fn try_run(&mut self, statement: &str, parameters: Value) -> Result<Vec<Value>, String> {
        let answer = self.ask("POST", "tx/commit", &one(statement, parameters)).unwrap();
        rows(&answer.expect(200))
    }

    /// The rows of one statement, which must not fail.
    #[track_caller]
    pub fn run(&mut self, statement: &str, parameters: Value) -> Vec<Value> {
        let ran = self.try_run(statement, parameters);
        ran.unwrap_or_else(|code| panic!("{code}: {statement}"))
    }

    /// The single value that a statement returns.
    #[track_caller]
    pub fn value(&mut self, statement: &str) -> Value {
        let rows = self.run(statement, json!({}));
        assert_eq!(rows.len(), 1, "{statement}");
        rows[0][0].clone()
    }

    /// Opens a transaction with this statement.
    #[track_caller]
    pub fn begin(&mut self, statement: &str, parameters: Value) -> Open {
        let answer = self.ask("POST", "tx", &one(statement, parameters)).unwrap();
        let content = answer.expect(201);
        let location = answer.header("location").expect("a place").to_owned();
        assert_eq!(content["commit"], format!("{location}/commit"));
        let (_, id) = location.rsplit_once('/').expect("an id");
        Open { path: format!("tx/{id}"), rows: rows(&content).expect("no error") }
    }

    /// Executes a statement in an open transaction; returns its rows, or the code of its error.
    pub fn go_on(
        &mut self,
        open: &Open,
        statement: &str,
        parameters: Value,
    ) -> Result<Vec<Value>, String> {
        rows(&self.ask("POST", &open.path, &one(statement, parameters)).unwrap().json())
    }

    /// Commits; returns the code of the error if that fails.
    pub fn commit(&mut self, open: &Open) -> Result<(), String> {
        let path = format!("{}/commit", open.path);
        let answer = self.ask("POST", &path, &json!({"statements": []})).unwrap();
        rows(&answer.json()).map(drop)
    }

    /// Rolls back; returns the code of the error if that fails.
    pub fn roll_back(&mut self, open: &Open) -> Result<(), String> {
        rows(&self.ask("DELETE", &open.path, &Value::Null).unwrap().json()).map(drop)
    }
}

/// An open transaction.
#[derive(Debug, Clone)]
pub struct Open {
    /// Its path below the database.
    pub path: String,
    /// The result of its first statement.
    pub rows: Vec<Value>,
}

/// Runs clients concurrently, each on a connection of its own; returns their results.
pub fn at_once<T: Send>(
    address: SocketAddr,
    clients: usize,
    work: impl Fn(&mut GraphClient, usize) -> T + Sync,
) -> Vec<T> {
    let start = std::sync::Barrier::new(clients);
    std::thread::scope(|scope| {
        let (start, work) = (&start, &work);
        let run = |number: usize| {
            scope.spawn(move || {
                let mut client = GraphClient::at(address);
                start.wait();
                work(&mut client, number)
            })
        };
        let threads: Vec<_> = (0..clients).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
