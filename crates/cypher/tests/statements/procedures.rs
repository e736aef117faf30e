//! Procedures and functions that tools of Neo4j call.

use crate::graph::TestGraph;
use wellspring_cypher::context::Budget;
use wellspring_cypher::{Access, BuiltIn, prepare};

fn films() -> TestGraph {
    TestGraph::of(&[
        "CREATE INDEX FOR (n:Film) ON (n.title)",
        "CREATE CONSTRAINT FOR (n:Person) REQUIRE n.name IS UNIQUE",
        "CREATE CONSTRAINT FOR ()-[r:ACTED_IN]-() REQUIRE r.roles IS NOT NULL",
        "CREATE (a:Person {name: 'Ann', born: 1960}), (b:Person:Director {name: 'Bob', born: 1.5}), \
         (c:Person {name: 'Cyd', born: 1970}), (f:Film {title: 'F', tags: ['x']}), \
         (g:Film {title: 'G', day: date('2020-01-01')}), (:Empty), \
         (a)-[:ACTED_IN {roles: ['r']}]->(f), (a)-[:ACTED_IN {roles: ['s']}]->(g), \
         (c)-[:ACTED_IN {roles: ['t']}]->(f), (b)-[:DIRECTED]->(f)",
    ])
}

fn rows(graph: &mut TestGraph, text: &str) -> Vec<String> {
    graph.run(text).rows.iter().map(|row| row.join(" ")).collect()
}

#[test]
fn the_schema_is_found_in_the_data() {
    let mut graph = films();
    let properties = "CALL apoc.meta.data({sample: 100}) YIELD label, property, count, unique, \
         index, existence, type, array, elementType WHERE type <> 'RELATIONSHIP' \
         RETURN label, property, count, unique, index, existence, type, array, elementType";
    assert_eq!(
        rows(&mut graph, properties),
        [
            "Director born 1 false false false FLOAT false node",
            "Director name 1 false false false STRING false node",
            "Film day 1 false false false DATE false node",
            "Film tags 1 false false false LIST true node",
            "Film title 2 false true false STRING false node",
            "Person born 3 false false false INTEGER false node",
            "Person name 3 true true false STRING false node",
            "ACTED_IN roles 3 false false true LIST true relationship",
        ]
    );
    let relationships = "CALL apoc.meta.data() YIELD label, property, count, type, array, left, \
         right, other, elementType WHERE type = 'RELATIONSHIP' \
         RETURN label, property, count, array, left, right, other, elementType";
    assert_eq!(
        rows(&mut graph, relationships),
        [
            "Director DIRECTED 1 false 1 1 [Film] node",
            "Person ACTED_IN 3 true 1 1 [Film] node",
            "Person DIRECTED 1 false 1 1 [Film] node",
            "ACTED_IN Person 3 false 0 0 [Film] relationship",
            "DIRECTED Director 1 false 0 0 [Film] relationship",
            "DIRECTED Person 1 false 0 0 [Film] relationship",
        ]
    );
    let chosen = "CALL apoc.meta.data({includeLabels: ['Film'], excludeRels: ['ACTED_IN']}) \
                  YIELD label RETURN DISTINCT label";
    assert_eq!(rows(&mut graph, chosen), ["Film", "DIRECTED"]);
    assert_eq!(graph.run("CALL apoc.meta.data").columns.len(), 14);
    assert!(graph.attempt("CALL apoc.meta.data({sample: 'x'})").is_err());
    assert!(graph.attempt("CALL apoc.meta.data(5)").is_err());
}

#[test]
fn what_langchain_asks_is_answered() {
    let mut graph = films();
    let asked = "CALL apoc.meta.data({sample: 10}) YIELD label, other, elementType, type, property \
         WHERE type = \"RELATIONSHIP\" AND elementType = \"node\" UNWIND other AS other_node \
         WITH * WHERE NOT label IN ['Director'] AND NOT other_node IN ['Director'] \
         RETURN label, property, toString(other_node)";
    assert_eq!(rows(&mut graph, asked), ["Person ACTED_IN Film", "Person DIRECTED Film"]);
    let asked = "CALL apoc.schema.nodes() YIELD label, properties, type, size, valuesSelectivity \
         WHERE type = 'RANGE' RETURN *, size * valuesSelectivity AS distinctValues";
    assert_eq!(rows(&mut graph, asked), ["Film [title] 2 RANGE 1.0 2.0"]);
}

#[test]
fn property_types_are_listed_for_labels_and_types() {
    let mut graph = films();
    assert_eq!(
        rows(&mut graph, "CALL db.schema.nodeTypeProperties()"),
        [
            ":`Director`:`Person` [Director,Person] born [Double] true",
            ":`Director`:`Person` [Director,Person] name [String] true",
            ":`Empty` [Empty] null null false",
            ":`Film` [Film] day [Date] false",
            ":`Film` [Film] tags [StringArray] false",
            ":`Film` [Film] title [String] true",
            ":`Person` [Person] born [Long] true",
            ":`Person` [Person] name [String] true",
        ]
    );
    assert_eq!(
        rows(&mut graph, "CALL db.schema.relTypeProperties()"),
        [":`ACTED_IN` roles [StringArray] true", ":`DIRECTED` null null false"]
    );
    assert_eq!(
        rows(&mut graph, "CALL apoc.schema.relationships() YIELD name, type, status"),
        [":ACTED_IN(roles) RELATIONSHIP_PROPERTY_EXISTENCE ONLINE"]
    );
}

#[test]
fn a_survey_is_a_sample_within_the_budget() {
    let mut graph = TestGraph::of(&["UNWIND range(1, 5000) AS i CREATE (:A {i: i})-[:R]->(:B)"]);
    let counts = "CALL apoc.meta.data({sample: 100}) YIELD property, count \
                  WHERE property = 'i' RETURN count";
    assert_eq!(graph.column(counts), ["100"]);
    let all = counts.replace("100", "-1");
    assert_eq!(graph.column(&all), ["5000"]);
    let budget = Budget::new(2_000, 1 << 20, || None);
    assert!(graph.attempt_within(&all, budget).is_err());
    let budget = Budget::new(1 << 20, 1_000, || None);
    assert!(graph.attempt_within(counts, budget).is_err());
}

#[test]
fn nodes_and_relationships_are_merged() {
    let mut graph = TestGraph::of(&["CREATE INDEX FOR (n:A) ON (n.id)"]);
    let merge = "UNWIND [{type: 'A', id: 1}, {type: 'B', id: 2}, {type: 'A', id: 1}] AS row \
         CALL apoc.merge.node(['N', row.type], {id: row.id}, {new: row.id}, {old: true}) \
         YIELD node RETURN DISTINCT 'done'";
    assert_eq!(rows(&mut graph, merge), ["done"]);
    assert_eq!(
        rows(&mut graph, "MATCH (n) RETURN n.id, n.new, n.old ORDER BY n.id"),
        ["1 1 true", "2 2 null"]
    );
    let merge = "MATCH (a:A), (b:B) UNWIND [1, 2, 1] AS w \
         CALL apoc.merge.relationship(a, 'R', {w: w}, {made: true}, b) YIELD rel RETURN count(rel)";
    assert_eq!(rows(&mut graph, merge), ["3"]);
    assert_eq!(rows(&mut graph, "MATCH ()-[r:R]->() RETURN r.w, r.made"), ["1 true", "2 true"]);
    let added = "MATCH (n:N) CALL apoc.create.addLabels([id(n)], ['C']) YIELD node \
         CALL apoc.create.addLabels(n, ['D']) YIELD node AS again RETURN count(again)";
    assert_eq!(rows(&mut graph, added), ["2"]);
    assert_eq!(graph.column("MATCH (n:C:D) RETURN count(n)"), ["2"]);
    for wrong in [
        "CALL apoc.merge.node(['N'], {})",
        "CALL apoc.merge.node(['N'], {id: null})",
        "CALL apoc.merge.node([''], {id: 1})",
        "CALL apoc.merge.node([5], {id: 1})",
        "MATCH (a:A) CALL apoc.merge.relationship(a, '', {}, {}, a) YIELD rel RETURN rel",
        "RETURN COUNT { CALL apoc.merge.node(['N'], {id: 1}) YIELD node RETURN node } AS c",
    ] {
        assert!(graph.attempt(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_procedure_that_writes_is_a_write() {
    let access = |text: &str| prepare(text, &BuiltIn).expect(text).access();
    assert_eq!(access("CALL apoc.merge.node(['N'], {id: 1})"), Access::Write);
    let nested = "CALL { CALL apoc.merge.node(['N'], {id: 1}) YIELD node RETURN node } RETURN node";
    assert_eq!(access(nested), Access::Write);
    assert_eq!(access("CALL apoc.meta.data()"), Access::Read);
}

#[test]
fn vectors_are_set_and_compared() {
    let mut graph = TestGraph::of(&["CREATE (:A {id: 1})-[:R]->(:A {id: 2})"]);
    graph.run("MATCH (n:A {id: 1}) CALL db.create.setNodeVectorProperty(n, 'v', [1, 0.5])");
    graph.run(
        "MATCH ()-[r:R]->() CALL db.create.setRelationshipVectorProperty(r, 'v', [2, 1]) RETURN 1",
    );
    assert_eq!(
        rows(&mut graph, "MATCH (n:A {id: 1})-[r]->() RETURN n.v, r.v"),
        ["[1.0,0.5] [2.0,1.0]"]
    );
    let compared = "MATCH (n:A {id: 1})-[r]->() RETURN vector.similarity.cosine(n.v, r.v) > 0.9999, \
         vector.similarity.cosine([1, 0], [-1, 0]), vector.similarity.cosine([1, 0], [0, 3]), \
         vector.similarity.euclidean([1, 1], [1, 1]), vector.similarity.euclidean([0, 0], [0, 3]), \
         vector.similarity.cosine(null, [1])";
    assert_eq!(rows(&mut graph, compared), ["true 0.0 0.5 1.0 0.1 null"]);
    for wrong in ["[], []", "[1], [1, 2]", "[0, 0], [1, 1]", "['a'], [1]", "[1e308, 1e308], [1, 1]"]
    {
        let text = format!("RETURN vector.similarity.cosine({wrong})");
        assert!(graph.attempt(&text).is_err(), "{text}");
    }
    let wrong = "MATCH (n:A) CALL db.create.setNodeVectorProperty(n, 'v', ['x'])";
    assert!(graph.attempt(wrong).is_err());
}

#[test]
fn a_statement_can_refuse_to_go_on() {
    let mut graph = TestGraph::new();
    let error =
        graph.attempt("CALL apoc.util.validate(1 < 2, 'no: %s of %d%%', ['a', 5])").unwrap_err();
    assert_eq!(error.message, "no: a of 5%%");
    assert_eq!(error.code(), "Neo.ClientError.Procedure.ProcedureCallFailed");
    graph.run("CALL apoc.util.validate(false, 'no', [0])");
    let forbidden = "UNWIND [1, 2] AS x WITH x \
         WHERE apoc.util.validatePredicate(x > 2, '@neo4j/graphql/FORBIDDEN', [0]) RETURN x";
    assert_eq!(graph.column(forbidden), ["1", "2"]);
    let error = graph.attempt(&forbidden.replace("> 2", "> 1")).unwrap_err();
    assert_eq!(error.message, "@neo4j/graphql/FORBIDDEN");
}

#[test]
fn types_and_properties_are_told() {
    let mut graph = TestGraph::of(&["CREATE (:A {s: 'x', l: [1, 2], d: date('2020-01-01')})"]);
    let types = "MATCH (n:A) WITH n, apoc.meta.cypher.types(n) AS t \
         RETURN t.s, t.l, t.d, apoc.meta.cypher.type(null), apoc.meta.cypher.type([1, 'a']), \
         apoc.any.property(n, 's'), apoc.any.property({a: 1}, 'a'), apoc.any.property(n, 'no'), \
         keys(apoc.any.properties(n, ['s', 'd']))";
    assert_eq!(
        rows(&mut graph, types),
        ["STRING LIST OF INTEGER DATE NULL LIST OF ANY x 1 null [d,s]"]
    );
}

#[test]
fn the_graph_of_labels_is_told_as_maps() {
    let mut graph = films();
    // What LangChain's enhanced schema asks.
    let counts = "CALL apoc.meta.graph({sample: 100, maxRels: 100}) YIELD nodes, relationships \
         RETURN [n IN nodes | n.name + ' ' + n.count] AS nodes, \
         [rel IN relationships | apoc.any.property(rel, 'type') + ' ' + \
         apoc.any.property(rel, 'count') + ' ' + rel.start + ' ' + rel.end] AS relationships";
    let row = &graph.run(counts).rows[0];
    assert_eq!(row[0], "[Director 1,Empty 1,Film 2,Person 3]");
    assert_eq!(row[1], "[ACTED_IN 3 Person Film,DIRECTED 1 Director Film,DIRECTED 1 Person Film]");
    let indexes = "CALL db.schema.visualization() YIELD nodes UNWIND nodes AS n \
                   WITH n WHERE size(n.indexes) > 0 RETURN n.name, n.indexes";
    assert_eq!(rows(&mut graph, indexes), ["Film [title]", "Person [name]"]);
    let distinct =
        "CALL apoc.schema.properties.distinct('Person', 'born') YIELD value RETURN value";
    assert_eq!(rows(&mut graph, distinct), ["[1960,1.5,1970]"]);
    let none = "CALL apoc.schema.properties.distinct('None', 'none') YIELD value RETURN value";
    assert_eq!(rows(&mut graph, none), ["[]"]);
}

#[test]
fn forms_of_dates_are_converted() {
    let mut graph = TestGraph::new();
    let converted = "RETURN apoc.date.convertFormat(toString(datetime({year: 2020, timezone: \
         'Europe/Berlin'})), 'iso_zoned_date_time', 'iso_offset_date_time'), \
         apoc.date.convertFormat('2020-01-02T03:04:05Z', 'iso_offset_date_time')";
    assert_eq!(rows(&mut graph, converted), ["2020-01-01T00:00+01:00 2020-01-02"]);
    let unknown = "RETURN apoc.date.convertFormat('1.2.2020', 'd.M.yyyy', 'yyyy')";
    assert!(graph.attempt(unknown).is_err());
}
