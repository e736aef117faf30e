//! What a statement touches is known before it runs.

use wellspring_cypher::{Access, BuiltIn, prepare};

#[test]
fn statements_about_the_server_need_no_graph() {
    let needs = |text: &str| prepare(text, &BuiltIn).expect(text).needs_graph();
    for text in [
        "CALL db.ping()",
        "CALL dbms.components() YIELD name, versions UNWIND versions AS version RETURN version",
        "EXPLAIN CALL db.ping()",
        "RETURN 1 AS one UNION RETURN 2 AS one",
        "CALL { CALL db.ping() YIELD success RETURN success } RETURN success",
        "RETURN COUNT { UNWIND [1] AS x RETURN x } AS count",
    ] {
        assert!(!needs(text), "{text}");
    }
    for text in [
        "MATCH (n) RETURN n",
        "CREATE (n)",
        "CALL db.labels()",
        "CALL db.ping() YIELD success MATCH (n) RETURN n",
        "RETURN 1 AS n UNION MATCH (n) RETURN n",
        "CALL { MATCH (n) RETURN n } RETURN n",
        "RETURN EXISTS { (a)-->(b) } AS any",
        "RETURN COUNT { CALL db.labels() YIELD label RETURN label } AS count",
        "RETURN [(a)-->(b) | b] AS list",
        "CREATE INDEX FOR (n:L) ON (n.k)",
        "SHOW INDEXES",
        "FOREACH (x IN [1] | CREATE (n))",
    ] {
        assert!(needs(text), "{text}");
    }
}

#[test]
fn access_is_that_of_the_clauses() {
    let access = |text: &str| prepare(text, &BuiltIn).expect(text).access();
    assert_eq!(access("MATCH (n) RETURN n"), Access::Read);
    assert_eq!(access("CALL { CREATE (n) RETURN n } RETURN n"), Access::Write);
    assert_eq!(access("EXPLAIN CREATE (n)"), Access::Read);
    assert_eq!(access("DROP INDEX x"), Access::Schema);
}
