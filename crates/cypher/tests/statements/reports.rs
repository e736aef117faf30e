//! Cases from public reports about comparable databases.

use super::graph::TestGraph;

fn one(text: &str) -> String {
    let rows = TestGraph::new().run(text).rows;
    rows.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn refusal(text: &str) -> String {
    TestGraph::new().attempt(text).expect_err(text).to_string()
}

#[test]
fn strings_have_line_breaks_and_numbers_underscores() {
    assert_eq!(one("RETURN 'a\nb' = 'a\\nb', \"c\r\nd\" = 'c\\r\\nd'"), "true, true");
    assert_eq!(one("RETURN 'a\\\\\nb' = 'a\\\\\\nb'"), "true");
    assert_eq!(
        one("RETURN 1_000, 0x_FF, 1.5_0, 1_0e1_0, 0o1_7"),
        "1000, 255, 1.5, 100000000000.0, 15"
    );
    assert!(refusal("RETURN 1__0").contains("1__0") || refusal("RETURN 1__0").contains("__0"));
    refusal("RETURN 1_");
}

#[test]
fn properties_with_computed_keys_are_removed() {
    let mut graph = TestGraph::of(&["CREATE (:A {k: 1, l: 2, m: 3})"]);
    graph.parameter("key", "k");
    assert_eq!(graph.column("MATCH (n:A) REMOVE n[$key] RETURN size(keys(n))"), ["2"]);
    let removed = "MATCH (n:A) REMOVE n['l'], n:A, n['m'] RETURN size(keys(n)) + size(labels(n))";
    assert_eq!(graph.column(removed), ["0"]);
    assert_eq!(graph.column("OPTIONAL MATCH (n:None) REMOVE n['l'] RETURN n IS NULL"), ["true"]);
    graph.run("CREATE (:B {x: 1})");
    graph.run("MATCH (n:B) FOREACH (k IN ['x'] | REMOVE n[k])");
    assert_eq!(graph.column("MATCH (n:B) RETURN size(keys(n))"), ["0"]);
}

#[test]
fn a_subquery_that_returns_everything_exports_it() {
    let mut graph = TestGraph::of(&["CREATE (:P {id: 1})-[:R]->(:P {id: 2})"]);
    assert_eq!(graph.column("CALL { MATCH (p:P) RETURN * } RETURN sum(p.id)"), ["3"]);
    assert_eq!(
        graph.column("CALL { MATCH (p)-[r]->(q) RETURN *, q.id AS i } WITH * RETURN p.id + i"),
        ["3"]
    );
    assert_eq!(graph.run("CALL { MATCH (p:P) RETURN * } RETURN *").columns, ["p"]);
    assert_eq!(
        graph.column(
            "MATCH (a:P {id: 1}) CALL { WITH a MATCH (a)-->(b) RETURN b.id AS c } RETURN c"
        ),
        ["2"]
    );
    let twice = graph.attempt("MATCH (p:P) CALL { MATCH (p:P) RETURN * } RETURN p");
    assert!(twice.unwrap_err().message.contains("already declared"));
    let unknown = graph.attempt("CALL { MATCH (p:P) RETURN * } RETURN z");
    assert!(unknown.unwrap_err().message.contains("not defined"));
}

#[test]
fn a_sort_key_that_repeats_a_column_means_it_even_if_its_name_hides_a_variable() {
    let mut graph = TestGraph::of(&["CREATE (:N {i: 2, j: 1}), (:N {i: 1, j: 2})"]);
    assert_eq!(graph.column("MATCH (n:N) RETURN n.i AS n ORDER BY n.i"), ["1", "2"]);
    assert_eq!(graph.column("MATCH (n:N) WITH n.i AS n ORDER BY n.i DESC RETURN n"), ["2", "1"]);
    assert_eq!(graph.column("MATCH (n:N) RETURN n.i AS n ORDER BY n.i + 1 DESC"), ["2", "1"]);
    assert_eq!(graph.column("MATCH (n:N) RETURN -n.i AS n ORDER BY n"), ["-2", "-1"]);
    assert_eq!(graph.column("MATCH (n:N) RETURN sum(n.i) AS n ORDER BY sum(n.i), n"), ["3"]);
    assert_eq!(
        graph.run("MATCH (n:N) RETURN n.i AS n, count(*) AS c ORDER BY count(*), n.i").rows,
        [["1", "1"], ["2", "1"]]
    );
}

#[test]
fn a_shortest_path_has_no_lower_bound_but_one() {
    for path in ["shortestPath((a)-[:R*3..]->(b))", "allShortestPaths((a)-[*2..4]-(b))"] {
        let refused = refusal(&format!("MATCH (a), (b), p = {path} RETURN p"));
        assert!(refused.contains("minimal length"), "{refused}");
    }
}

#[test]
fn an_offset_must_be_that_of_the_zone() {
    let refused = refusal("RETURN datetime('2024-06-01T12:00Z[Europe/London]')");
    assert!(refused.contains("+01:00"), "{refused}");
    refusal("RETURN datetime('2024-01-01T12:00+01:00[Europe/London]')");
    for (text, seconds) in [
        ("2024-06-01T12:00+01:00[Europe/London]", "1717239600"),
        ("2024-01-01T12:00Z[Europe/London]", "1704110400"),
        // Of the hour that clocks repeat, each.
        ("2024-10-27T01:30+01:00[Europe/London]", "1729989000"),
        ("2024-10-27T01:30+00:00[Europe/London]", "1729992600"),
        ("2024-06-01T12:00[Europe/London]", "1717239600"),
    ] {
        assert_eq!(one(&format!("RETURN datetime('{text}').epochSeconds")), seconds, "{text}");
    }
}

#[test]
fn what_exceeds_64_bits_is_said_to() {
    for field in ["nanoseconds", "microseconds", "milliseconds"] {
        let text = format!("RETURN duration({{seconds: 9000000000000000000}}).{field}");
        assert!(refusal(&text).contains("64 bits"), "{field}");
    }
    assert!(refusal("RETURN duration({seconds: 1}).colour").contains("no field"));
}

#[test]
fn halves_are_rounded_up_and_nothing_else() {
    for (number, rounded) in [
        ("4503599627370497.0", "4503599627370497.0"),
        ("-4503599627370497.0", "-4503599627370497.0"),
        ("0.49999999999999994", "0.0"),
        ("2.5", "3.0"),
        ("-2.5", "-2.0"),
        ("-0.5", "0.0"),
        ("1e300", "1e300"),
    ] {
        assert_eq!(one(&format!("RETURN round({number}) = {rounded}")), "true", "{number}");
    }
}

#[test]
fn a_latitude_ends_at_the_poles() {
    for point in
        ["latitude: 91, longitude: 0", "x: 0, y: -90.1, crs: 'wgs-84'", "x: 1, y: 95, srid: 4326"]
    {
        assert!(refusal(&format!("RETURN point({{{point}}})")).contains("latitude"), "{point}");
    }
    assert_eq!(one("RETURN point({latitude: -90, longitude: 200}).latitude"), "-90.0");
}
