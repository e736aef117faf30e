//! The effects of clauses.

use super::graph::TestGraph;
use wellspring_cypher::context::Budget;
use wellspring_cypher::error::ErrorKind;

#[test]
fn a_node_is_created_and_counted() {
    let mut graph = TestGraph::new();
    graph.parameter("id", 7);
    let created = graph.run("CREATE (n:T {id: $id}) RETURN n.id");
    assert_eq!((created.columns, created.rows), (vec!["n.id".into()], vec![vec!["7".to_string()]]));
    assert_eq!(created.statistics.nodes_created, 1);
    assert_eq!(created.statistics.properties_set, 1);
    assert_eq!(created.statistics.labels_added, 1);
    assert_eq!(graph.column("MATCH (n:T) RETURN count(n)"), ["1"]);
    assert_eq!(graph.column("MATCH (n) RETURN count(*)"), ["1"]);
    assert_eq!(graph.column("MATCH (n:Other) RETURN count(n)"), ["0"]);
    assert_eq!(graph.run("MATCH (n:T) RETURN count(n), count(DISTINCT n.id)").rows, [["1", "1"]]);
}

/// a -> b -> c, a -> c
fn triangle() -> TestGraph {
    TestGraph::of(&[
        "CREATE (a:P {name: 'a', age: 1})-[:K {w: 1}]->(b:P {name: 'b', age: 2})-[:K {w: 2}]->
        (c:Q {name: 'c'}), (a)-[:L]->(c)",
    ])
}

#[test]
fn patterns_are_matched_in_all_directions() {
    let mut graph = triangle();
    assert_eq!(
        graph.column("MATCH (a {name: 'a'})-->(x) RETURN x.name ORDER BY x.name"),
        ["b", "c"]
    );
    assert_eq!(graph.column("MATCH (x)-->({name: 'c'}) RETURN x.name ORDER BY x.name"), ["a", "b"]);
    assert_eq!(graph.column("MATCH ({name: 'b'})--(x) RETURN x.name ORDER BY x.name"), ["a", "c"]);
    assert_eq!(graph.column("MATCH (:P)-[:K]->(:P)-[r:K]->(x:Q) RETURN r.w"), ["2"]);
    assert_eq!(graph.column("MATCH (a)-[:K|L]->(b) RETURN count(*)"), ["3"]);
    assert_eq!(graph.column("MATCH (a)-[:L]->(c), (a)-[:K]->(b)-[:K]->(c) RETURN b.name"), ["b"]);
    assert_eq!(
        graph.column("MATCH (a)-->(b)-->(c)<--(a) RETURN a.name + b.name + c.name"),
        ["abc"]
    );
    // Each relationship matches at most one of a pattern's.
    assert_eq!(graph.column("MATCH (a)-[r]-(b)-[s]-(c) WHERE r = s RETURN count(*)"), ["0"]);
    assert_eq!(graph.column("MATCH (a)-->(b) MATCH (b)<--(a) RETURN count(*)"), ["3"]);
    assert_eq!(graph.column("MATCH p = (:P)-[:K*2]->() RETURN length(p)"), ["2"]);
    assert_eq!(graph.column("MATCH ()-[r {w: 2}]-() RETURN count(r)"), ["2"]);
}

#[test]
fn chains_of_variable_length_are_walked_from_both_ends() {
    let mut graph = TestGraph::of(&[
        "UNWIND range(0, 4) AS i CREATE (:N {i: i})",
        "MATCH (a:N), (b:N) WHERE b.i = a.i + 1 CREATE (a)-[:NEXT {to: b.i}]->(b)",
    ]);
    assert_eq!(
        graph.column("MATCH (:N {i: 0})-[*]->(x) RETURN x.i ORDER BY x.i"),
        ["1", "2", "3", "4"]
    );
    assert_eq!(graph.column("MATCH (:N {i: 0})-[*0..1]->(x) RETURN x.i ORDER BY x.i"), ["0", "1"]);
    assert_eq!(
        graph.column("MATCH (:N {i: 3})<-[r:NEXT*2..]-(x) RETURN [s IN r | s.to] ORDER BY x.i"),
        ["[3,2,1]", "[3,2]"]
    );
    assert_eq!(
        graph.column("MATCH (x)-[r:NEXT*2..]->(:N {i: 3}) RETURN [s IN r | s.to] ORDER BY x.i"),
        ["[1,2,3]", "[2,3]"]
    );
    assert_eq!(
        graph.column("MATCH p = (x)-[:NEXT*2]->(:N {i: 3}) RETURN [n IN nodes(p) | n.i]"),
        ["[1,2,3]"]
    );
    assert_eq!(
        graph.column("MATCH p = shortestPath((a:N {i: 0})-[*]-(b:N {i: 4})) RETURN length(p)"),
        ["4"]
    );
    assert_eq!(graph.column("MATCH (:N {i: 0})-[*{to: 1}]->(x) RETURN x.i"), ["1"]);
    for (length, expected) in [
        ("{,2}", &["0", "1", "2"][..]),
        ("{ , 1 }", &["0", "1"]),
        ("{,}", &["0", "1", "2", "3", "4"]),
        ("{3,}", &["3", "4"]),
        ("{2}", &["2"]),
        ("{1,2}", &["1", "2"]),
    ] {
        let text = format!("MATCH (:N {{i: 0}})-[:NEXT]->{length}(x) RETURN x.i ORDER BY x.i");
        assert_eq!(graph.column(&text), expected, "{length}");
    }
    let back = "MATCH (x {i: 3}) RETURN size([p = (x)<-[:NEXT]-{,2}() | p]) AS `a {,2}`, count { (x)-->{,1}() }";
    let back = graph.run(back);
    assert_eq!(back.columns, ["a {,2}", "count { (x)-->{,1}() }"]);
    assert_eq!(back.rows, [["3", "2"]]);
}

/// From 0 to 9: through 5 in two steps, through 1 and 2 or 3 and 4 in three, through 6, 7 and 8 in
/// four.
fn ways() -> TestGraph {
    TestGraph::of(&[
        "UNWIND range(0, 9) AS i CREATE (:W {i: i})",
        "UNWIND [[0, 5], [5, 9], [0, 1], [1, 2], [2, 9], [0, 3], [3, 4], [4, 9], [0, 6], [6, 7], [7, 8], [8, 9]] AS e \
         MATCH (a:W {i: e[0]}), (b:W {i: e[1]}) CREATE (a)-[:C {w: e[0]}]->(b)",
    ])
}

#[test]
fn the_shortest_path_is_the_shortest_that_fulfils_the_predicate() {
    let mut graph = ways();
    let pattern = "((a:W {i: 0})-[r:C*]->(b:W {i: 9}))";
    let mut lengths = |which: &str, predicate: &str| {
        let text = format!("MATCH p = {which}{pattern} WHERE {predicate} RETURN length(p)");
        graph.column(&text)
    };
    // Conditions on every node or relationship.
    assert_eq!(lengths("shortestPath", "none(n IN nodes(p) WHERE n.i = 5)"), ["3"]);
    assert_eq!(lengths("allShortestPaths", "none(n IN nodes(p) WHERE n.i = 5)"), ["3", "3"]);
    assert_eq!(lengths("shortestPath", "all(n IN nodes(p) WHERE n.i IN [0, 6, 7, 8, 9])"), ["4"]);
    assert_eq!(lengths("allShortestPaths", "none(x IN r WHERE x.w = 5)"), ["3", "3"]);
    assert!(lengths("shortestPath", "none(n IN nodes(p) WHERE n.i = 9)").is_empty());
    // Conditions on the whole path.
    assert_eq!(lengths("shortestPath", "length(p) > 2"), ["3"]);
    assert_eq!(lengths("allShortestPaths", "length(p) > 2"), ["3", "3"]);
    assert_eq!(lengths("allShortestPaths", "any(n IN nodes(p) WHERE n.i = 2)"), ["3"]);
    assert_eq!(lengths("shortestPath", "size(r) > 3 AND b.i = 9"), ["4"]);
    assert!(lengths("shortestPath", "length(p) > 4").is_empty());
    assert!(lengths("allShortestPaths", "null").is_empty());
    assert_eq!(
        graph.column(&format!(
            "OPTIONAL MATCH p = shortestPath{pattern} WHERE length(p) > 4 RETURN p IS NULL"
        )),
        ["true"]
    );
    assert!(
        graph
            .column("MATCH p = shortestPath((a:W {i: 0})-[:C*..3]->(b:W {i: 9})) WHERE length(p) > 3 RETURN p")
            .is_empty()
    );
}

#[test]
fn the_search_for_a_path_that_fulfils_a_predicate_is_bounded() {
    let mut graph = TestGraph::of(&[
        "UNWIND range(0, 11) AS i CREATE (:W {i: i})",
        "MATCH (a:W), (b:W) WHERE a <> b CREATE (a)-[:C]->(b)",
    ]);
    let text =
        "MATCH p = shortestPath((a:W {i: 0})-[:C*]->(b:W {i: 9})) WHERE length(p) < 0 RETURN p";
    let budget = Budget::new(1_000_000, u64::MAX, || None);
    let error = graph.attempt_within(text, budget).unwrap_err();
    assert_eq!(error.kind, ErrorKind::ResourceExhausted);
}

#[test]
fn conditions_inside_of_patterns_hold() {
    let mut graph = triangle();
    assert_eq!(graph.column("MATCH (x:P WHERE x.age > 1) RETURN x.name"), ["b"]);
    assert_eq!(
        graph.column("MATCH (x)-[r:K WHERE r.w > 1 AND x.age = 2]->(y) RETURN y.name"),
        ["c"]
    );
    assert_eq!(graph.column("MATCH (x WHERE (x)-[:L]->()) RETURN x.name"), ["a"]);
    assert_eq!(
        graph.column("MATCH (x:P) RETURN [(x)-->(y WHERE y.name = 'c') | y.name]"),
        ["[c]", "[c]"]
    );
    let error = graph.attempt("MATCH (x WHERE z.age > 1) RETURN x").unwrap_err();
    let told = error.to_string();
    assert!(
        told.starts_with("Variable `z` not defined (line 1, column 16 (offset: 15))\n"),
        "{told}"
    );
    assert!(graph.attempt("CREATE (x WHERE true)").is_err());
    assert!(graph.attempt("MATCH (x)-[r*1..2 WHERE true]->(y) RETURN x").is_err());
    assert!(graph.attempt("MATCH (x:P) SET x.age += 1").is_err());
}

#[test]
fn what_is_optional_comes_with_nulls() {
    let mut graph = triangle();
    assert_eq!(
        graph
            .run("MATCH (x) OPTIONAL MATCH (x)-[r:K]->(y) RETURN x.name, y.name ORDER BY x.name")
            .rows,
        [["a", "b"], ["b", "c"], ["c", "null"]]
    );
    assert_eq!(graph.column("OPTIONAL MATCH (n:Nothing) RETURN n"), ["null"]);
    assert_eq!(graph.column("OPTIONAL MATCH (n:Nothing) WITH n MATCH (n)-->(m) RETURN m"), [""; 0]);
    assert_eq!(graph.column("OPTIONAL MATCH (n:Nothing) SET n.x = 1 RETURN n"), ["null"]);
}

#[test]
fn rows_are_projected_grouped_sorted_and_cut() {
    let mut graph = TestGraph::new();
    assert_eq!(
        graph.column("UNWIND [3, 1, 2] AS x RETURN x ORDER BY x DESC SKIP 1 LIMIT 1"),
        ["2"]
    );
    assert_eq!(
        graph.run("UNWIND [1, 2, 3, 4] AS x WITH x % 2 AS odd, sum(x) AS s, collect(x) AS xs RETURN * ORDER BY odd").rows,
        [["0", "6", "[2,4]"], ["1", "4", "[1,3]"]]
    );
    assert_eq!(graph.column("UNWIND [1, 1.0, 2] AS x RETURN DISTINCT x"), ["1", "2"]);
    assert_eq!(graph.column("UNWIND [1, 2, 3] AS x WITH x WHERE x > 1 RETURN x"), ["2", "3"]);
    assert_eq!(graph.column("UNWIND [] AS x RETURN count(x)"), ["0"]);
    assert_eq!(graph.column("UNWIND [] AS x RETURN x, count(*)"), [""; 0]);
    assert_eq!(graph.run("WITH 1 AS a, 2 AS b WITH b AS a, a AS b RETURN a, b").rows, [["2", "1"]]);
    assert_eq!(graph.column("RETURN 1 AS x UNION RETURN 2 AS x UNION RETURN 1 AS x"), ["1", "2"]);
    assert_eq!(graph.column("RETURN 1 AS x UNION ALL RETURN 1 AS x"), ["1", "1"]);
    assert_eq!(graph.column("UNWIND [2, 1] AS x WITH x ORDER BY x LIMIT 1 RETURN x"), ["1"]);
}

#[test]
fn clauses_see_all_that_clauses_before_them_did() {
    let mut graph = TestGraph::of(&["CREATE (:A {n: 1}), (:A {n: 2})"]);
    // The scan does not see the nodes that it creates.
    assert_eq!(graph.run("MATCH (a:A) CREATE (:A {n: a.n + 10})").statistics.nodes_created, 2);
    assert_eq!(graph.column("MATCH (a:A) CREATE (:B) WITH a MATCH (b:B) RETURN count(*)"), ["16"]);
    assert_eq!(
        graph.column("MATCH (b:B) SET b.n = 1 WITH b LIMIT 1 MATCH (c:B {n: 1}) RETURN count(c)"),
        ["4"]
    );
    assert_eq!(graph.run("MATCH (b:B) DELETE b").statistics.nodes_deleted, 4);
    assert_eq!(graph.column("UNWIND [1, 2] AS i CREATE (n:C {i: i}) RETURN n.i LIMIT 1"), ["1"]);
    assert_eq!(graph.column("MATCH (c:C) RETURN count(c)"), ["2"]);
}

#[test]
fn merge_matches_or_creates() {
    let mut graph = TestGraph::new();
    let text =
        "UNWIND [1, 2, 1] AS i MERGE (n:M {i: i}) ON CREATE SET n.new = 1 ON MATCH SET n.again = 1
        RETURN n.i, n.new, n.again";
    assert_eq!(graph.run(text).rows, [["1", "1", "1"], ["2", "1", "null"], ["1", "1", "1"]]);
    assert_eq!(graph.run(text).statistics.nodes_created, 0);
    let text = "MATCH (a:M {i: 1}), (b:M {i: 2}) MERGE (a)-[r:R {x: 1}]->(b) RETURN r.x";
    assert_eq!(graph.run(text).statistics.relationships_created, 1);
    assert_eq!(graph.run(text).statistics.relationships_created, 0);
    assert_eq!(
        graph.run("MATCH (a:M {i: 1}) MERGE (a)-[:R]-(b:M)").statistics.relationships_created,
        0
    );
    let error = graph.attempt("MERGE (n:M {i: null})").unwrap_err();
    assert_eq!(error.code(), "Neo.ClientError.Statement.SemanticError");
}

#[test]
fn properties_and_labels_are_set_and_removed() {
    let mut graph = TestGraph::of(&["CREATE (:S {a: 1, b: 2})-[:R {x: 1}]->(:T)"]);
    graph.run("MATCH (n:S) SET n.a = 5, n += {c: 3, b: null}, n:X:Y");
    assert_eq!(
        graph.run("MATCH (n:X) RETURN n.a, n.b, n.c, labels(n)").rows[0][..3],
        ["5", "null", "3"]
    );
    graph.run("MATCH (n:S) REMOVE n.a, n:X SET n = {z: 1}");
    assert_eq!(graph.column("MATCH (n:S:Y) RETURN keys(n)"), ["[z]"]);
    assert_eq!(graph.column("MATCH (n:X) RETURN n"), [""; 0]);
    let error = graph.attempt("MATCH (n:S) DELETE n").unwrap_err();
    assert_eq!(error.code(), "Neo.ClientError.Schema.ConstraintValidationFailed");
    assert_eq!(graph.run("MATCH (n:S) DETACH DELETE n").statistics.relationships_deleted, 1);
    let error = graph.attempt("MATCH (n:T) SET n.x = {a: 1}").unwrap_err();
    assert_eq!(error.code(), "Neo.ClientError.Statement.TypeError");
}

#[test]
fn subqueries_are_asked_row_by_row() {
    let mut graph = triangle();
    assert_eq!(graph.column("MATCH (x) WHERE (x)-[:L]->() RETURN x.name"), ["a"]);
    assert_eq!(graph.column("MATCH (x) WHERE NOT (x)-->() RETURN x.name"), ["c"]);
    assert_eq!(graph.column("MATCH (x:P) RETURN [(x)-->(y) | y.name] ORDER BY x.name")[1], "[c]");
    assert_eq!(
        graph.column("MATCH (x) WHERE EXISTS { (x)-->(y) WHERE y.name = 'b' } RETURN x.name"),
        ["a"]
    );
    assert_eq!(
        graph.column("MATCH (x) WHERE EXISTS { MATCH (x)<--(y) RETURN y } RETURN count(x)"),
        ["2"]
    );
    assert_eq!(graph.column("MATCH (x {name: 'a'}) RETURN COUNT { (x)-->() }"), ["2"]);
    assert_eq!(
        graph.run("MATCH (x) CALL { WITH x MATCH (x)-->(y) RETURN count(y) AS c } RETURN x.name, c ORDER BY c, x.name").rows,
        [["c", "0"], ["b", "1"], ["a", "2"]]
    );
    assert_eq!(
        graph.column("MATCH (x:Q) CALL (x) { RETURN x.name AS y UNION RETURN 1 AS y } RETURN y"),
        ["c", "1"]
    );
    assert_eq!(
        graph.run("UNWIND [1, 2] AS i CALL { WITH i CREATE (:Z {i: i}) }").statistics.nodes_created,
        2
    );
    graph.run("MATCH (z:Z) WITH collect(z) AS zs FOREACH (z IN zs | SET z.i = z.i + 1)");
    assert_eq!(graph.column("MATCH (z:Z) RETURN z.i ORDER BY z.i"), ["2", "3"]);
    assert_eq!(
        graph.column("CALL db.labels() YIELD label RETURN label ORDER BY label"),
        ["P", "Q", "Z"]
    );
    assert_eq!(graph.run("CALL db.propertyKeys").columns, ["propertyKey"]);
}

#[test]
fn what_tools_write_around_subqueries_is_understood() {
    let mut graph = TestGraph::of(&["UNWIND [1, 2] AS i CREATE (:A {i: i, v: 0})"]);
    assert_eq!(graph.column("WITH 1 AS a, 2 AS b CALL (*) { RETURN a + b AS c } RETURN c"), ["3"]);
    assert_eq!(
        graph.column(
            "UNWIND [1, 2] AS a CALL (*) { RETURN a AS c UNION ALL WITH * RETURN -a AS c } RETURN c"
        ),
        ["1", "-1", "2", "-2"]
    );
    for nested in [
        "UNWIND [1, 2] AS a CALL (*) { CALL (*) { RETURN a AS c } RETURN c } RETURN c",
        "UNWIND [1, 2] AS a CALL (a) { CALL (*) { RETURN a AS c } RETURN c } RETURN c",
        "UNWIND [1, 2] AS a WITH a, COLLECT { CALL (*) { RETURN a AS z } RETURN z } AS e RETURN e[0]",
    ] {
        assert_eq!(graph.column(nested), ["1", "2"], "{nested}");
    }
    let undefined = graph.attempt("WITH 1 AS a CALL (*) { RETURN b AS c } RETURN c");
    assert!(undefined.is_err());
    // Words of the language are names of variables, too.
    for name in ["node", "end", "index", "n"] {
        let text = format!("MATCH ({name}:A) WITH {name} {{ .i, v: 7 }} AS m RETURN m.i + m.v");
        assert_eq!(graph.column(&text), ["8", "9"], "{name}");
    }
    // A subquery may end with the call of a procedure.
    let set = "MATCH (n:A) CALL (n) { WITH n WHERE n.i = 2 UNWIND ['w'] AS k \
        CALL db.create.setNodeVectorProperty(n, k, [1.0]) } RETURN count(*)";
    assert_eq!(graph.column(set), ["2"], "a subquery without RETURN keeps the rows");
    assert_eq!(graph.column("MATCH (n:A) WHERE n.w IS NOT NULL RETURN n.i"), ["2"]);
    let cleaned =
        "MATCH (n:A) CALL (n) { SET n.v = null } IN TRANSACTIONS OF 1 ROWS ON ERROR CONTINUE";
    assert_eq!(graph.run(cleaned).statistics.properties_set, 2);
}

#[test]
fn indexes_and_constraints_come_and_go() {
    let mut graph = TestGraph::of(&["CREATE (:T {id: 1}), (:T {id: 2})"]);
    assert_eq!(graph.run("CREATE INDEX t_id FOR (n:T) ON (n.id)").statistics.indexes_added, 1);
    assert_eq!(graph.column("MATCH (n:T {id: 2}) RETURN n.id"), ["2"]);
    assert_eq!(graph.column("MATCH (n:T) WHERE n.id = 1.0 RETURN n.id"), ["1"]);
    assert!(graph.attempt("CREATE INDEX t_id FOR (n:T) ON (n.id)").is_err());
    assert_eq!(
        graph.run("CREATE INDEX t_id IF NOT EXISTS FOR (n:T) ON (n.id)").statistics.indexes_added,
        0
    );
    graph.run("DROP INDEX t_id");
    graph.run("CREATE CONSTRAINT one FOR (n:T) REQUIRE n.id IS UNIQUE");
    let error = graph.attempt("CREATE (:T {id: 2})").unwrap_err();
    assert_eq!(error.code(), "Neo.ClientError.Schema.ConstraintValidationFailed");
    graph.run("DROP CONSTRAINT one IF EXISTS");
    graph.run("CREATE CONSTRAINT there FOR (n:T) REQUIRE n.id IS NOT NULL");
    assert!(graph.attempt("CREATE (:T)").is_err());
    graph.run("DROP CONSTRAINT there");
    graph.run("CREATE (:T {id: 2})");
    assert!(graph.attempt("DROP CONSTRAINT one").is_err());
    assert_eq!(graph.run("EXPLAIN CREATE (:T)").statistics.nodes_created, 0);
}

#[test]
fn ids_values_and_relationships_are_looked_up() {
    let mut graph = triangle();
    let id = graph.column("MATCH (n {name: 'b'}) RETURN id(n)").remove(0);
    let element = graph.column("MATCH (n {name: 'b'}) RETURN elementId(n)").remove(0);
    assert_eq!(graph.column(&format!("MATCH (n) WHERE id(n) = {id} RETURN n.name")), ["b"]);
    assert_eq!(
        graph.column(&format!("MATCH (n) WHERE id(n) IN [{id}, {id}, 99, null] RETURN n.name")),
        ["b"]
    );
    assert_eq!(
        graph.column(&format!("MATCH (n) WHERE elementId(n) = '{element}' RETURN n.name")),
        ["b"]
    );
    assert_eq!(graph.column(&format!("MATCH (n)-->(m) WHERE id(m) = {id} RETURN n.name")), ["a"]);
    assert_eq!(
        graph.column(&format!("MATCH (n) WHERE elementId(n) = '4:other:{id}' RETURN n")),
        [""; 0]
    );
    let id = graph.column("MATCH ()-[r:K {w: 2}]->() RETURN id(r)").remove(0);
    assert_eq!(
        graph.column(&format!("MATCH (a)-[r]->(b) WHERE id(r) = {id} RETURN a.name + b.name")),
        ["bc"]
    );
    assert_eq!(
        graph.column(&format!(
            "MATCH (a)-[r]-(b) WHERE id(r) = {id} RETURN a.name + b.name ORDER BY a.name"
        )),
        ["bc", "cb"]
    );
    assert_eq!(
        graph.column(
            "MATCH (n:P) WHERE n.name IN ['a', 'x', 'b', 'a', null] RETURN n.name ORDER BY n.name"
        ),
        ["a", "b"]
    );
    assert_eq!(graph.column("MATCH (n:P) WHERE n.age IN [1, 1.0] RETURN n.name"), ["a"]);
    assert_eq!(graph.column("MATCH ()-[r:K]->() RETURN count(r)"), ["2"]);
    assert_eq!(graph.column("MATCH ()-->() RETURN count(*)"), ["3"]);
    assert_eq!(graph.column("MATCH ()-[r:K]-() RETURN count(r)"), ["4"]);
    assert_eq!(
        graph.column("MATCH (x)-[r:K|L]->(y) RETURN x.name + y.name ORDER BY x.name + y.name"),
        ["ab", "ac", "bc"]
    );
    graph.run("MATCH (n {name: 'a'}) CREATE (n)-[:LOOP]->(n)");
    assert_eq!(graph.column("MATCH (x)-[:LOOP]-(y) RETURN x.name + y.name"), ["aa"]);
    assert_eq!(graph.column("MATCH (x)-[:LOOP]->(x) RETURN x.name"), ["a"]);
    assert_eq!(graph.column("MATCH (x)-[:K]->(x) RETURN count(*)"), ["0"]);
}

#[test]
fn labels_are_combined() {
    let mut graph =
        TestGraph::of(&["CREATE (:A {n: 'a'}), (:B {n: 'b'}), (:A:B {n: 'ab'}), ({n: ''})"]);
    let mut names =
        |pattern: &str| graph.column(&format!("MATCH {pattern} RETURN x.n ORDER BY x.n")).join(",");
    assert_eq!(names("(x:A|B)"), "a,ab,b");
    assert_eq!(names("(x:A&B)"), "ab");
    assert_eq!(names("(x:A:B)"), "ab");
    assert_eq!(names("(x:!A)"), ",b");
    assert_eq!(names("(x:A&!B)"), "a");
    assert_eq!(names("(x:%)"), "a,ab,b");
    assert_eq!(names("(x) WHERE x:A AND NOT x:B"), "a");
    assert_eq!(names("(x) WHERE x:A|B"), "a,ab,b");
}

#[test]
fn what_follows_a_count_that_the_graph_knows_has_its_own_place() {
    let mut graph = TestGraph::of(&["CREATE (:A)-[:R]->(:A)-[:R]->(:B)"]);
    for (text, expected) in [
        (
            "MATCH (n:A) WITH count(n) AS c MATCH ()-[r]->() WITH c, count(r) AS d RETURN c * 10 + d",
            &["22"][..],
        ),
        (
            "MATCH (n) WITH count(n) AS c UNWIND range(1, c) AS x RETURN x ORDER BY x DESC",
            &["3", "2", "1"],
        ),
        (
            "MATCH ()-[r:R]->() WITH count(r) AS c UNWIND [c, c, 7] AS x RETURN DISTINCT x",
            &["2", "7"],
        ),
        ("MATCH (n) WITH count(*) AS c UNWIND range(1, c) AS x RETURN x SKIP 1 LIMIT 1", &["2"]),
        ("MATCH (n:A) WITH count(n) AS c CREATE (:C {c: c}) WITH c MATCH (m:C) RETURN m.c", &["2"]),
    ] {
        assert_eq!(graph.column(text), expected, "{text}");
    }
}

#[test]
fn operators_bind_alike_in_all_parts_of_a_query() {
    let mut graph = TestGraph::new();
    for (expression, value) in
        [("2 ^ 3 ^ 2", "64.0"), ("0 < 0 <= 3", "false"), ("3 IN [1] + 2 + [3]", "true")]
    {
        for text in [
            "RETURN @",
            "WITH 1 AS one RETURN @",
            "WITH 1 AS one WITH one, @ AS it RETURN it",
            "UNWIND [1] AS one WITH one CALL { WITH one WITH one RETURN @ AS it } RETURN it",
            "WITH 1 AS one RETURN COLLECT { WITH 2 AS two RETURN @ }[0]",
            "RETURN 0.0 UNION WITH 1 AS one RETURN @ AS `0.0`",
        ] {
            let text = text.replace('@', expression);
            let column = graph.column(&text);
            assert_eq!(column.last().map(String::as_str), Some(value), "{text}");
        }
    }
}

#[test]
fn a_sign_after_a_relationship_is_a_length() {
    let mut graph = TestGraph::of(&["CREATE (:A {n: 1})-[:R]->(:A {n: 2})-[:R]->(:A {n: 3})"]);
    let mut numbers = |pattern: &str| {
        let text = format!("MATCH (a:A {{n: 2}}){pattern}(b) RETURN b.n ORDER BY b.n");
        graph.column(&text).join(" ")
    };
    assert_eq!(numbers("-[:R]->+"), "3");
    assert_eq!(numbers("-[r:R]->*"), "2 3");
    assert_eq!(numbers("<-[:R]-*"), "1 2");
    assert_eq!(numbers("-->+"), "3");
    assert_eq!(numbers("-[:R]-+"), "1 3");
    assert_eq!(graph.column("RETURN 5 -+(2), [1, 2][0]-+(1)"), ["3"]);
}
