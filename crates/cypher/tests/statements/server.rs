//! What statements say of the server around the graph.

use crate::graph::TestGraph;
use std::sync::Arc;
use wellspring_cypher::context::Budget;
use wellspring_cypher::error::{Detail, Error, ErrorKind};
use wellspring_cypher::value::Value;
use wellspring_cypher::{Account, Database, EachRecord, EventSink, EventsWanted, LogEvent, Server};

/// A server with two databases and `system`.
struct TestServer;

fn database(name: &str) -> Database {
    Database {
        name: name.into(),
        aliases: Vec::new(),
        is_writer: true,
        is_writable: name != "system",
        is_default: name == "main",
        is_system: name == "system",
        address: "localhost:7687".into(),
        unavailable: None,
    }
}

impl Server for TestServer {
    fn databases(&self) -> Vec<Database> {
        let aliases = vec!["neo4j".into()];
        let main = Database { aliases, ..database("main") };
        let old = Database { unavailable: Some("no space".into()), ..database("my-old.log") };
        vec![main, old, database("system")]
    }

    fn account(&self) -> Option<Account> {
        Some(Account { name: "ann".into(), roles: vec!["reader".into()] })
    }

    fn events(&self, wanted: &EventsWanted, sink: &mut dyn EventSink) -> Result<(), Error> {
        assert_eq!(&*wanted.database, "test");
        for position in 1..=5_u64 {
            sink.searched(1)?;
            if position <= wanted.after || wanted.until.is_some_and(|until| position > until) {
                continue;
            }
            sink.event(LogEvent {
                position,
                kind: wanted.types.join("|").as_str().into(),
                tags: wanted.tags.clone(),
                data: Value::map([("n".into(), Value::Integer(position as i64 * 10))]),
                recorded_us: 1_700_000_000_000_001,
            })?;
        }
        sink.parsing(wanted.limit)
    }

    fn csv(&self, source: &str, terminator: u8, each: &mut EachRecord<'_>) -> Result<(), Error> {
        if source != "file:///people.csv" {
            let detail = Detail::Refused;
            return Err(Error::runtime(ErrorKind::SemanticError, detail, "no such file"));
        }
        let end = if terminator == b';' { ";" } else { "" };
        for fields in [["id", "name"], ["1", "Ann"], ["2", "Bob"], ["3", ""]] {
            let fields = fields.map(|field| format!("{field}{end}").into());
            if each(fields.to_vec())?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn transaction_metadata(&self) -> Vec<(Arc<str>, Value)> {
        vec![("app".into(), Value::string("test"))]
    }
}

fn graph() -> TestGraph {
    let mut graph = TestGraph::new();
    graph.server = Box::new(TestServer);
    graph
}

#[test]
fn databases_are_listed() {
    let mut graph = graph();
    let all = graph.run("SHOW DATABASES");
    assert_eq!(
        all.columns.join(" "),
        "name type aliases access address role writer requestedStatus currentStatus statusMessage default home constituents"
    );
    let rows: Vec<String> = all.rows.iter().map(|row| row.join(" ")).collect();
    assert_eq!(
        rows,
        [
            "main standard [neo4j] read-write localhost:7687 primary true online online  true true []",
            "my-old.log standard [] read-write localhost:7687 primary true online offline no space false false []",
            "system system [] read-only localhost:7687 primary true online online  false false []",
        ]
    );
    let mut names = |text: &str| graph.column(text).join(" ");
    assert_eq!(names("SHOW DEFAULT DATABASE YIELD name"), "main");
    assert_eq!(names("SHOW HOME DATABASE"), "main");
    assert_eq!(names("SHOW DATABASE neo4j"), "main");
    assert_eq!(names("SHOW DATABASE my-old.log YIELD name, currentStatus"), "my-old.log");
    assert_eq!(names("SHOW DATABASES WHERE NOT default"), "my-old.log system");
    assert_eq!(
        names(
            "SHOW DATABASES YIELD name AS n, default ORDER BY n DESC SKIP 1 LIMIT 2 WHERE default"
        ),
        "main"
    );
    assert_eq!(names("SHOW DATABASES YIELD * WHERE type = 'system' RETURN name, store"), "system");
    assert_eq!(names("SHOW DATABASES YIELD name RETURN count(*) AS number"), "3");
    graph.parameter("name", "neo4j");
    assert_eq!(graph.column("SHOW DATABASE $name").join(" "), "main");
    assert!(TestGraph::new().run("SHOW DATABASES").rows.is_empty());
}

#[test]
fn procedures_are_those_that_can_be_called() {
    let mut graph = graph();
    let all = graph.run("SHOW PROCEDURES YIELD *");
    assert_eq!(
        all.columns.join(" "),
        "name description mode worksOnSystem signature argumentDescription returnDescription admin rolesExecution rolesBoostedExecution isDeprecated deprecatedBy option"
    );
    assert!(all.rows.iter().all(|row| !row[0].starts_with("show.") && !row[1].is_empty()));
    let signature = graph.column(
        "SHOW PROCEDURES YIELD name, signature WHERE name = 'db.awaitIndex' RETURN signature",
    );
    let expected = "db.awaitIndex(indexName :: STRING, timeOutSeconds = null :: INTEGER)";
    assert_eq!(signature, [expected]);
    let system = graph.column("SHOW PROCEDURES EXECUTABLE WHERE worksOnSystem");
    assert!(system.contains(&"db.ping".to_owned()), "{system:?}");
    assert!(!system.contains(&"db.labels".to_owned()), "{system:?}");
}

#[test]
fn functions_are_those_of_the_language() {
    let mut graph = graph();
    let names = graph.column("SHOW FUNCTIONS");
    for name in ["count", "toUpper", "date.truncate", "point.distance"] {
        assert!(names.contains(&name.to_owned()), "{name}");
    }
    let aggregating = graph
        .column("SHOW FUNCTIONS YIELD name, aggregating WHERE aggregating RETURN collect(name)");
    assert!(aggregating[0].starts_with("[avg,collect,count"), "{aggregating:?}");
    assert!(graph.run("SHOW USER DEFINED FUNCTIONS").rows.is_empty());
}

#[test]
fn the_current_user_is_the_account() {
    let mut graph = graph();
    let shown = graph.run("SHOW CURRENT USER");
    assert_eq!(shown.columns.join(" "), "user roles passwordChangeRequired suspended home");
    assert_eq!(shown.rows, [["ann", "[reader]", "false", "false", "main"]]);
    assert_eq!(graph.column("SHOW CURRENT USER YIELD user WHERE user = 'bob'").len(), 0);
    assert!(TestGraph::new().run("SHOW CURRENT USER").rows.is_empty());
}

#[test]
fn procedures_tell_about_the_server() {
    let mut graph = graph();
    assert_eq!(graph.column("CALL tx.getMetaData() YIELD metadata RETURN metadata.app"), ["test"]);
    assert_eq!(graph.column("CALL db.info() YIELD name"), ["test"]);
    let settings = "CALL dbms.clientConfig() YIELD name, value WHERE value = 'true' RETURN name";
    assert_eq!(graph.column(settings), ["browser.retain_connection_credentials"]);
    assert!(graph.run("CALL db.awaitIndexes()").rows.is_empty());
    assert!(graph.run("CALL db.awaitIndexes(300)").rows.is_empty());
    assert!(graph.run("CALL db.awaitIndexes").rows.is_empty());
    let error = graph.attempt("CALL db.awaitIndex()").unwrap_err();
    assert!(error.message.contains("provides 0 arguments, but 1 are required"), "{error}");
    let error = graph.attempt("CALL db.nothing()").unwrap_err();
    assert_eq!(error.code(), "Neo.ClientError.Procedure.ProcedureNotFound");
}

#[test]
fn schema_items_are_listed_by_kind() {
    let mut graph = graph();
    for statement in [
        "CREATE INDEX by_name FOR (n:`A b`) ON (n.name)",
        "CREATE CONSTRAINT one FOR (n:A) REQUIRE (n.a, n.b) IS UNIQUE",
        "CREATE CONSTRAINT has FOR ()-[r:R]-() REQUIRE r.w IS NOT NULL",
    ] {
        graph.run(statement);
    }
    let mut names = |text: &str| graph.column(text).join(" ");
    assert_eq!(names("SHOW INDEXES YIELD name"), "by_name one");
    assert_eq!(names("SHOW RANGE INDEXES YIELD name"), "by_name one");
    assert_eq!(names("SHOW FULLTEXT INDEXES YIELD name"), "");
    assert_eq!(names("SHOW UNIQUE CONSTRAINTS YIELD name"), "one");
    assert_eq!(names("SHOW NODE UNIQUENESS CONSTRAINTS YIELD name"), "one");
    assert_eq!(names("SHOW RELATIONSHIP PROPERTY EXISTENCE CONSTRAINTS YIELD name"), "has");
    assert_eq!(names("SHOW KEY CONSTRAINTS YIELD name"), "");
    assert_eq!(
        names("SHOW INDEXES YIELD name, options WHERE name = 'one' RETURN options.indexProvider"),
        "range-1.0"
    );
    assert_eq!(
        graph.run("SHOW INDEXES").columns.join(" "),
        "id name state populationPercent type entityType labelsOrTypes properties indexProvider owningConstraint lastRead readCount"
    );
    assert_eq!(
        graph.run("SHOW CONSTRAINTS").columns.join(" "),
        "id name type entityType labelsOrTypes properties ownedIndex propertyType"
    );
}

#[test]
fn statements_that_create_schema_items_create_them_again() {
    let mut graph = TestGraph::of(&[
        "CREATE INDEX by_name FOR (n:`A b`) ON (n.name)",
        "CREATE CONSTRAINT one FOR (n:A) REQUIRE (n.a, n.`b``c`) IS UNIQUE",
        "CREATE CONSTRAINT has FOR ()-[r:R]-() REQUIRE r.w IS NOT NULL",
        "CREATE CONSTRAINT keyed FOR (n:A) REQUIRE n.k IS NODE KEY",
    ]);
    let mut shown = graph.column("SHOW CONSTRAINTS YIELD createStatement");
    shown.extend(graph.column(
        "SHOW INDEXES YIELD createStatement, owningConstraint WHERE owningConstraint IS NULL \
         RETURN createStatement",
    ));
    let mut again = TestGraph::new();
    for statement in &shown {
        again.run(statement);
    }
    let all = "SHOW INDEXES YIELD *";
    assert_eq!(again.run(all).rows, graph.run(all).rows);
    let all = "SHOW CONSTRAINTS YIELD *";
    assert_eq!(again.run(all).rows, graph.run(all).rows);
}

#[test]
fn events_are_joined_with_the_graph() {
    let mut graph = graph();
    graph.run("CREATE (:N {n: 30, name: 'thirty'}), (:N {n: 40, name: 'forty'})");
    let joined = "CALL wellspring.events({types: ['A', 'B'], tags: ['t'], after: 1, until: 3}) \
         YIELD position, type, tags, data, recordedAt \
         MATCH (n:N {n: data.n}) RETURN n.name, position, type, tags, toString(recordedAt)";
    assert_eq!(
        graph.run(joined).rows,
        [["thirty", "3", "A|B", "[t]", "2023-11-14T22:13:20.000001Z"]]
    );
    assert_eq!(graph.run("CALL wellspring.events()").rows.len(), 5);
    assert_eq!(graph.column("CALL wellspring.events({types: 'A', tags: null}) YIELD type")[0], "A");
    for wrong in
        ["{limit: 10001}", "{limit: -1}", "{after: 'x'}", "{types: [1]}", "{tag: 'x'}", "5"]
    {
        let error = graph.attempt(&format!("CALL wellspring.events({wrong})")).unwrap_err();
        assert!(error.code().starts_with("Neo.ClientError.Statement."), "{wrong}: {error}");
    }
    // Nothing is read where statements must be short.
    let budget = Budget::new(1 << 16, 1 << 20, || None);
    assert!(graph.attempt_within("CALL wellspring.events()", budget).is_err());
}

#[test]
fn records_of_a_file_are_rows() {
    let mut graph = graph();
    let load = "LOAD CSV WITH HEADERS FROM 'file:///people.csv' AS row ";
    graph.run(&format!("{load} CREATE (:P {{id: toInteger(row.id), name: row.name}})"));
    assert_eq!(graph.column("MATCH (p:P) RETURN p.name ORDER BY p.id"), ["Ann", "Bob", "null"]);
    assert_eq!(graph.column(&format!("{load} RETURN row.id LIMIT 2")), ["1", "2"]);
    let lists = "LOAD CSV FROM $from AS row FIELDTERMINATOR ';' RETURN row[0], size(row)";
    graph.parameter("from", "file:///people.csv");
    assert_eq!(graph.run(lists).rows[0], ["id;", "2"]);
    let twice = "UNWIND ['file:///people.csv', 'file:///people.csv'] AS from \
                 LOAD CSV WITH HEADERS FROM from AS row RETURN count(row)";
    assert_eq!(graph.column(twice), ["6"]);
    let merged = "MATCH (p:P) WITH count(p) AS before \
                  LOAD CSV WITH HEADERS FROM 'file:///people.csv' AS row \
                  MERGE (p:P {id: toInteger(row.id)}) RETURN before, count(DISTINCT p)";
    assert_eq!(graph.run(merged).rows, [["3", "3"]]);
    for wrong in [
        "LOAD CSV FROM 'file:///none.csv' AS row RETURN row",
        "LOAD CSV FROM 5 AS row RETURN row",
        "LOAD CSV FROM 'file:///people.csv' AS row FIELDTERMINATOR ';;' RETURN row",
        "LOAD CSV FROM 'file:///people.csv' AS row FIELDTERMINATOR '\"' RETURN row",
        "LOAD CSV FROM 'file:///people.csv' AS row",
    ] {
        assert!(graph.attempt(wrong).is_err(), "{wrong}");
    }
    let budget = Budget::new(1 << 16, 1 << 20, || None);
    assert!(graph.attempt_within(lists, budget).is_err());
    let error =
        TestGraph::new().attempt("LOAD CSV FROM 'file:///a' AS row RETURN row").unwrap_err();
    assert!(error.message.contains("LOAD CSV reads no files here"), "{error}");
}
