//! Statements that exceed their limits end with an error.

use super::graph::TestGraph;
use wellspring_cypher::context::{Budget, Stop};
use wellspring_cypher::value::Value;

fn code_of(text: &str, budget: Budget) -> &'static str {
    let mut graph = TestGraph::of(&["UNWIND range(1, 300) AS i CREATE (:N {i: i})"]);
    match graph.attempt_within(text, budget) {
        Ok(outcome) => panic!("{text}: {} rows", outcome.rows.len()),
        Err(error) => error.code(),
    }
}

#[test]
fn steps_bytes_and_time_are_bounded() {
    let out_of_memory = "Neo.TransientError.General.MemoryPoolOutOfMemoryError";
    for text in [
        "MATCH (a), (b), (c), (d) RETURN count(*)",
        "UNWIND range(1, 900000) AS x RETURN count(x)",
        "MATCH (a), (b), (c) RETURN a.i ORDER BY a.i",
        "MATCH (a), (b), (c) WITH collect(a.i) AS l RETURN size(l)",
        "MATCH (a), (b), (c) CREATE (:M)",
        "MATCH (a), (b), (c) RETURN DISTINCT a.i + b.i * 1000 + c.i * 1000000",
    ] {
        assert_eq!(
            code_of(text, Budget::new(1_000_000, 1 << 20, || None)),
            out_of_memory,
            "{text}"
        );
    }
    assert_eq!(
        code_of("UNWIND range(1, 1000000000000) AS x RETURN count(x)", Budget::unlimited()),
        "Neo.ClientError.Statement.ArgumentError"
    );
    let timed_out = || Budget::new(u64::MAX, u64::MAX, || Some(Stop::Deadline));
    assert_eq!(
        code_of("MATCH (a), (b), (c), (d) RETURN count(*)", timed_out()),
        "Neo.ClientError.Transaction.TransactionTimedOut"
    );
}

#[test]
fn deep_expressions_are_computed_and_released() {
    let mut graph = TestGraph::new();
    let sum = format!("RETURN 1{}", " + 1".repeat(4_900));
    assert_eq!(graph.column(&sum), ["4901"]);
    let chain = format!("RETURN 1{}", " - 1 - 1 * 2".repeat(1_000));
    assert_eq!(graph.column(&chain), ["-2999"]);
    let list = format!("RETURN size({}1{})", "[".repeat(150), "]".repeat(150));
    assert_eq!(graph.column(&list), ["1"]);
    let clauses = "WITH 1 AS x ".repeat(3_000) + "RETURN x";
    assert_eq!(graph.column(&clauses), ["1"]);
}

#[test]
fn what_hangs_on_kept_rows_is_counted() {
    let most = || Budget::new(20_000_000, 16 << 20, || None);
    for text in [
        "UNWIND range(1, 100000) AS x WITH x, range(1, 1000) AS l ORDER BY x RETURN count(l)",
        "UNWIND range(1, 100000) AS x RETURN size(collect([range(1, 1000)]))",
        "UNWIND range(1, 100000) AS x WITH DISTINCT [x, [range(1, 1000)]] AS l RETURN count(l)",
        "UNWIND range(1, 100000) AS x RETURN count(DISTINCT {x: x, l: [range(1, 1000)]})",
        "UNWIND range(1, 100000) AS x WITH [x, [range(1, 1000)]] AS l, count(*) AS c RETURN sum(c)",
        "UNWIND range(1, 100000) AS x WITH reduce(s = '', i IN range(1, 12) | s + x + s) AS s ORDER BY s RETURN count(s)",
    ] {
        let code = code_of(text, most());
        assert_eq!(code, "Neo.TransientError.General.MemoryPoolOutOfMemoryError", "{text}");
    }
}

#[test]
fn what_rows_share_is_counted_about_once() {
    let mut graph = TestGraph::new();
    let text =
        "WITH range(1, 10000) AS l UNWIND l AS x WITH x, l ORDER BY -x RETURN sum(size(l)) AS s";
    let outcome = graph.attempt_within(text, Budget::new(10_000_000, 16 << 20, || None));
    assert!(outcome.is_ok(), "10,000 rows with one list of 240 kB");
}

#[test]
fn what_a_row_holds_is_counted() {
    let most = || Budget::new(u64::MAX, 16 << 20, || None);
    let twice = "reduce(l = [1], i IN range(1, 60) | [l, l])";
    for text in [
        // 5 MB each.
        "WITH range(1, 200000) AS a, range(1, 200000) AS b, range(1, 200000) AS c, range(1, 200000) AS d
            RETURN size(a) + size(b) + size(c) + size(d)",
        "WITH range(1, 200000) AS a WITH a, range(1, 200000) AS b WITH a, b, range(1, 200000) AS c
            WITH a, b, c, range(1, 200000) AS d RETURN size(a) + size(b) + size(c) + size(d)",
        "UNWIND tail(range(1, 300000)) AS a UNWIND tail(range(1, 300000)) AS b UNWIND tail(range(1, 300000)) AS c RETURN count(*)",
        "UNWIND range(1, 100000) AS x WITH x, max(range(1, 1000)) AS m RETURN count(m)",
        "WITH range(1, 10000) AS l RETURN size([x IN range(1, 1000) | toIntegerList(l)])",
        "MATCH (a:N), (b:N) CREATE (a)-[:R]->(b) WITH count(*) AS c MATCH p = (:N {i: 1})-[:R*]->() RETURN count(p)",
        // Small in memory, but too long to traverse.
        &format!("WITH {twice} AS l RETURN DISTINCT l"),
        &format!("RETURN {twice} = {twice}"),
        &format!("RETURN valueType({twice})"),
        &format!("UNWIND [1, 2] AS x WITH x, {twice} AS l RETURN count(DISTINCT l)"),
        &format!("UNWIND [1, 2] AS x RETURN x ORDER BY {twice}"),
        "RETURN size([x IN range(1, 100000) | reduce(s = 'x', i IN range(1, 20) | s + s)])",
        "WITH reduce(s = 'x', i IN range(1, 20) | s + s) AS s RETURN [x IN range(1, 100000) | s]",
    ] {
        let code = code_of(text, most());
        assert_eq!(code, "Neo.TransientError.General.MemoryPoolOutOfMemoryError", "{text}");
    }
}

#[test]
fn what_is_not_held_any_more_is_not_counted() {
    let mut graph = TestGraph::of(&[
        "UNWIND range(1, 300) AS i CREATE (:N {i: i})",
        "MATCH (a:N), (b:N) WHERE b.i = a.i + 1 CREATE (a)-[:S]->(b)",
    ]);
    for text in [
        "UNWIND range(1, 8000) AS i CALL { WITH i RETURN count(*) AS c } RETURN sum(c)",
        "UNWIND range(1, 8000) AS i CALL { WITH i RETURN collect(i) AS c } RETURN count(c)",
        "UNWIND range(1, 8000) AS i CALL { WITH i RETURN i AS x UNION WITH i RETURN i + 1 AS x } RETURN sum(x)",
        "UNWIND range(1, 8000) AS i CALL { WITH i UNWIND [i, i] AS x RETURN DISTINCT x } RETURN sum(x)",
        "UNWIND range(1, 2000) AS i MATCH (n:N) WHERE n.i IN [1, 2, 3, 4, 5, 6, 7, 8] RETURN count(n)",
        "UNWIND range(1, 2000) AS i MATCH (a:N {i: 1}), (b:N {i: 20})
            MATCH p = shortestPath((a)-[:S*]->(b)) RETURN count(p)",
        "UNWIND range(1, 2000) AS i MATCH (:N {i: 1})-[:S*10]->(b) RETURN count(b)",
        "UNWIND range(1, 200) AS i WITH i, range(1, 1000) AS l UNWIND l AS x RETURN count(x)",
        "UNWIND range(1, 8000) AS i RETURN max([i, i, i])",
    ] {
        let outcome = graph.attempt_within(text, Budget::new(u64::MAX, 1 << 20, || None));
        assert!(outcome.is_ok(), "{text}: {:?}", outcome.err());
    }
}

#[test]
fn a_pattern_to_be_matched_has_so_many_parts() {
    let circle = |nodes: usize| {
        let parts: Vec<String> =
            (0..nodes).map(|i| format!("(a{i}:N {{i: a{}.i}})", (i + 1) % nodes)).collect();
        format!("MATCH {} RETURN 1 LIMIT 1", parts.join(", "))
    };
    let chain = |steps: usize| format!("MATCH (:N){} RETURN 1", "-->(:N)".repeat(steps));
    let syntax = "Neo.ClientError.Statement.SyntaxError";
    for text in [circle(251), chain(125), chain(125).replace("MATCH", "OPTIONAL MATCH")] {
        assert_eq!(code_of(&text, Budget::unlimited()), syntax);
    }
    let mut graph = TestGraph::of(&["CREATE (:N {i: 1})"]);
    assert_eq!(
        graph.attempt_within(&circle(250), Budget::unlimited()).map(|it| it.rows.len()).ok(),
        Some(1)
    );
    assert_eq!(
        graph.attempt_within(&chain(124), Budget::unlimited()).map(|it| it.rows.len()).ok(),
        Some(0)
    );
}

#[test]
fn properties_are_charged_one_by_one() {
    let out_of_memory = "Neo.TransientError.General.MemoryPoolOutOfMemoryError";
    let map = |prefix: &str| {
        let entries = (0..1_000).map(|key| (format!("{prefix}{key}").into(), Value::Integer(1)));
        Value::map(entries.collect::<Vec<_>>())
    };
    let mut graph = TestGraph::of(&["CREATE (:N)", "CREATE (:Full)"]);
    graph.parameter("a", map("a")).parameter("b", map("b"));
    graph.run("MATCH (n:Full) SET n = $a");
    for text in [
        "MATCH (n:N) SET n = $a",
        "MATCH (n:N) SET n += $a",
        "CREATE (n:M $a)",
        "MATCH (n:N), (m:Full) SET n = m",
        // Existing properties are read and rewritten together with new ones.
        "MATCH (n:Full) UNWIND range(1, 100) AS i SET n.a1 = i",
        "MATCH (n:Full) UNWIND range(1, 100) AS i SET n += {a1: i}",
        "MATCH (n:Full) UNWIND range(1, 100) AS i REMOVE n.a1",
    ] {
        let code = graph.attempt_within(text, Budget::new(800, u64::MAX, || None)).err();
        assert_eq!(code.map(|error| error.code()), Some(out_of_memory), "{text}");
    }
    let memory = Budget::new(u64::MAX, 30_000, || None);
    let code = graph.attempt_within("MATCH (n:N) SET n = $a", memory).err();
    assert_eq!(code.map(|error| error.code()), Some(out_of_memory));
    for text in ["MATCH (n:N) SET n = $a", "MATCH (n:N) SET n = $b", "MATCH (n:N) SET n += $b"] {
        let outcome = graph.attempt_within(text, Budget::new(20_000, 1 << 20, || None));
        assert!(outcome.is_ok(), "{text}: {:?}", outcome.err());
    }
}

#[test]
fn a_property_behind_long_ones_costs_more() {
    let mut graph = TestGraph::new();
    graph.run("CREATE (:N {a: range(1, 100000), b: 1})");
    let text = "MATCH (n:N) UNWIND range(1, 100) AS i RETURN sum(n.b)";
    let code = graph.attempt_within(text, Budget::new(2_000, u64::MAX, || None)).err();
    assert!(code.is_some());
    assert_eq!(graph.column(text), ["100"]);
}

#[test]
fn a_node_with_too_many_properties_is_refused() {
    let mut graph = TestGraph::of(&["CREATE (:N)"]);
    let entries = (0..10_001).map(|key| (format!("k{key}").into(), Value::Integer(1)));
    graph.parameter("map", Value::map(entries.collect::<Vec<_>>()));
    let error = graph.attempt("MATCH (n:N) SET n = $map").expect_err("too many");
    assert_eq!(error.code(), "Neo.ClientError.Statement.ArgumentError");
    assert!(error.to_string().contains("10000 properties"), "{error}");
}

#[test]
fn a_name_that_is_only_read_is_not_kept() {
    let mut graph = TestGraph::new();
    for text in [
        "CREATE (n) WITH n UNWIND range(1, 20) AS i WITH n['r' + i] AS x RETURN 1 / count(x)",
        "CREATE (n)-[r:T]->() WITH n, r UNWIND range(1, 20) AS i WITH r['r' + i] AS x RETURN 1 / count(x)",
        "CREATE (n) WITH n WHERE n.r1 IS NULL AND NOT n:r2 AND n {.r3} IS NOT NULL RETURN 1 / size(keys(n))",
    ] {
        assert!(graph.attempt(text).is_err(), "{text}");
        assert!(!(1..=20).any(|i| graph.has_seen(&format!("r{i}"))), "{text}");
    }
    // A name unknown at the first read is found once it is written.
    let text = "CREATE (n) WITH n UNWIND [1, 2] AS i
        CALL { WITH n, i WITH n, i, n.late AS before SET n.late = i, n:Late RETURN before }
        RETURN before";
    assert_eq!(graph.column(text), ["null", "1"]);
    assert_eq!(graph.column("CREATE (n) SET n.r1 = 1, n.r2 = n.r1 RETURN n.r1 + n.r2"), ["2"]);
}
