//! Texts and their lowered form or error.

use super::{ParsedStatement, parse};
use crate::error::{Detail, Error};
use crate::ir::{Clause, Expression, Query, Slot, StatementBody};
use crate::procedure::BuiltIn;

fn read(text: &str) -> Result<ParsedStatement, Error> {
    parse(text, &BuiltIn)
}

fn query(text: &str) -> Query {
    match read(text).map(|parsed| parsed.statement.body) {
        Ok(StatementBody::Query(query)) => query,
        other => panic!("{text}: {:?}", other.err()),
    }
}

fn detail(text: &str) -> Option<Detail> {
    read(text).err().map(|error| error.detail)
}

/// The only item of a `RETURN`.
fn returned(text: &str) -> Expression {
    match query(text).branches.remove(0).clauses.pop() {
        Some(Clause::Project(mut projection)) => projection.items.remove(0).expression,
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn columns_are_named_as_written() {
    let names = |text: &str| {
        let names = query(text).columns;
        names.iter().map(|name| name.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names("RETURN 1+ 2,  ( 3 ) , 4 AS x, 'a' // b"), ["1+ 2", "( 3 )", "x", "'a'"]);
    assert_eq!(names("MATCH (b)-->(a) RETURN *, count( * )"), ["a", "b", "count( * )"]);
    assert_eq!(names("RETURN NULL, null IS NOT NULL"), ["NULL", "null IS NOT NULL"]);
    let joined = "WITH {a: 'b'} AS p RETURN p.a || ' ' || p.a";
    assert_eq!(names(joined), ["p.a || ' ' || p.a"]);
    let nested = "EXPLAIN WITH 1 AS x RETURN 'a'||'b',  COLLECT { CALL (x) { RETURN 1 AS a } RETURN a } LIMIT 1";
    assert_eq!(names(nested), ["'a'||'b'", "COLLECT { CALL (x) { RETURN 1 AS a } RETURN a }"]);
}

#[test]
fn powers_and_chained_comparisons_are_put_right() {
    use crate::ir::{BinaryOperator, Comparison};
    let text = returned("RETURN 2 ^ 3 ^ 4");
    let Expression::Binary(BinaryOperator::Power, left, _) = text else { panic!("{text:?}") };
    assert!(matches!(*left, Expression::Binary(BinaryOperator::Power, ..)));
    let text = returned("RETURN 1 < 2 <= 3");
    let Expression::Comparison(_, rest) = &text else { panic!("{text:?}") };
    let relations: Vec<_> = rest.iter().map(|pair| pair.0).collect();
    assert_eq!(relations, [Comparison::Less, Comparison::LessOrEqual]);
    let text = returned("RETURN (1 < 2) = true");
    assert!(matches!(&text, Expression::Comparison(first, rest)
        if rest.len() == 1 && matches!(**first, Expression::Comparison(..))));
}

#[test]
fn aggregations_leave_their_expressions() {
    let query =
        query("MATCH (n) RETURN n.a AS a, n.a + count(*) + 1, count(*) ORDER BY n.a, count(*)");
    let Some(Clause::Project(projection)) = query.branches[0].clauses.last() else { panic!() };
    assert_eq!(projection.items.len(), 1);
    assert_eq!(projection.after.len(), 2);
    assert_eq!(projection.aggregates.len(), 1);
    let key = projection.items[0].slot;
    let count = projection.aggregates[0].slot;
    assert_eq!(projection.order[0].expression, Expression::Variable(key));
    let last: Vec<Slot> = projection.columns.clone();
    assert!(matches!(&projection.order[1].expression,
        Expression::Variable(slot) if *slot == count || last.contains(slot)));
}

#[test]
fn objections_have_the_words_of_the_tck_and_a_place() {
    assert_eq!(detail("RETURN x"), Some(Detail::UndefinedVariable));
    assert_eq!(
        detail("MATCH (n) RETURN n.a + count(*)"),
        Some(Detail::AmbiguousAggregationExpression)
    );
    assert_eq!(detail("CREATE (a)-->(b)"), Some(Detail::NoSingleRelationshipType));
    assert_eq!(detail("CREATE (a)-[:T]-(b)"), Some(Detail::RequiresDirectedRelationship));
    assert_eq!(detail("RETURN 1 AS a UNION RETURN 2 AS b"), Some(Detail::DifferentColumnsInUnion));
    assert_eq!(detail("CREATE (a) MATCH (b) RETURN b"), Some(Detail::InvalidClauseComposition));
    assert_eq!(detail("WITH 1 AS a"), Some(Detail::InvalidClauseComposition));
    assert_eq!(detail("MATCH (n) WHERE count(n) > 1 RETURN n"), Some(Detail::InvalidAggregation));
    assert_eq!(detail(" // nothing"), Some(Detail::UnexpectedSyntax));
    assert_eq!(detail("RETURN 1; RETURN 2"), Some(Detail::UnexpectedSyntax));
    let error = read("MATCH (n)\nRETURN n,\n  mm").err().unwrap();
    assert_eq!(
        error.to_string(),
        "Variable `mm` not defined (line 3, column 3 (offset: 22))\n\"  mm\"\n   ^"
    );
    let error = read("EXPLAIN MATCH (n) CALL (n) { RETURN 1 AS a } RETURN bb").err().unwrap();
    let [first, line, caret] =
        &error.to_string().lines().map(str::to_owned).collect::<Vec<_>>()[..]
    else {
        panic!("{error}")
    };
    assert_eq!(first, "Variable `bb` not defined (line 1, column 53 (offset: 52))");
    assert_eq!(line.find("bb"), caret.find('^'), "{error}");
}

#[test]
fn what_is_too_deep_is_refused_and_what_is_deep_is_read() {
    for text in [
        format!("RETURN {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        format!("RETURN {}1", "-".repeat(100_000)),
        format!("RETURN 1{}", " + 1".repeat(100_000)),
    ] {
        assert_eq!(detail(&text), Some(Detail::LimitExceeded));
    }
    assert!(read(&format!("RETURN {}1{}", "(".repeat(190), ")".repeat(190))).is_ok());
    assert!(read(&format!("RETURN {}1{}", "[".repeat(190), "]".repeat(190))).is_ok());
    let parsed = read(&format!("RETURN 1{}", " + 1".repeat(4_900))).unwrap();
    assert!(parsed.deep);
    super::with_stack(true, || drop(parsed));
    let chain = format!("MATCH (n) WHERE n.a = 1{} RETURN n", " OR n.a = 2".repeat(1_500));
    assert!(read(&chain).is_ok());
}

fn message(text: &str) -> String {
    let told =
        read(text).err().map_or_else(|| format!("{text} is taken"), |error| error.to_string());
    told.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn nothing_of_a_text_is_left_out_in_silence() {
    let alone = "a schema command must be a statement of its own";
    let elsewhere = "databases are not managed by Cypher here";
    for (text, expected) in [
        (
            "CREATE (n:Tmp {q:1}) CREATE INDEX foo2 FOR (n:Tmp) ON (n.x)",
            format!("Invalid input 'CREATE INDEX': {alone} (line 1, column 22 (offset: 21))"),
        ),
        (
            "RETURN 1 DROP CONSTRAINT part_sku",
            format!("Invalid input 'DROP CONSTRAINT': {alone} (line 1, column 10 (offset: 9))"),
        ),
        (
            "MATCH (n:Tmp) REMOVE n.k CREATE INDEX zz CREATE (m:Tmp {lost:true})",
            format!("Invalid input 'CREATE INDEX': {alone} (line 1, column 26 (offset: 25))"),
        ),
        (
            "CREATE (n:Tmp {q:2}) CREATE DATABASE foo",
            format!("Invalid input 'CREATE DATABASE': {elsewhere} (line 1, column 22 (offset: 21))"),
        ),
        (
            "MATCH (n:Part) DROP DATABASE foo RETURN count(n)",
            format!("Invalid input 'DROP DATABASE': {elsewhere} (line 1, column 16 (offset: 15))"),
        ),
        ("RETURN 1 SHOW INDEXES", "SHOW is supported for indexes, constraints, databases, procedures, functions and the current user, alone in its statement (line 1, column 10 (offset: 9))".to_owned()),
        (
            "WITH 1 AS x USE social MATCH (n) RETURN count(n)",
            "USE is not supported: the database is chosen by the address of the request (line 1, column 13 (offset: 12))"
                .to_owned(),
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
    for text in [
        "RETURN 1; CREATE INDEX i FOR (n:T) ON (n.x)",
        "CREATE DATABASE foo",
        "RETURN 1; nonsense",
        "CYPHER foo=bar RETURN 1",
        "CYPHER runtime= RETURN 1",
        "CYPHER 7 RETURN 1",
        "CYPHER 5 CREATE INDEX i FOR (n:T) ON (n.x)",
        "MATCH (n) YIELD x RETURN n",
        "CALL { CREATE (n) CREATE INDEX i FOR (n:T) ON (n.x) RETURN 1 AS a } RETURN a",
        "RETURN 1 UNION RETURN 2 AS x DROP INDEX i",
        "CREATE (n) WITH n CREATE (m) CALL db.labels() YIELD label FINISH",
    ] {
        assert!(message(text).contains(", column "), "{text}: {}", message(text));
    }
}

#[test]
fn broken_patterns_and_clauses_are_refused_where_they_break() {
    for (text, column) in [
        ("CREATE (a:Tmp {i:1}) (b:Tmp {i:2})", 22),
        ("MATCH (a) (b)-[:R]->(c) (d) RETURN count(*)", 11),
        ("MATCH p=(a) (b) RETURN p", 13),
        ("MATCH (a)->(b) RETURN 1", 10),
        ("MATCH (a)<-(b) RETURN 1", 10),
        ("MATCH (a)-(b) RETURN 1", 10),
        ("MATCH (a)-[r]>(b) RETURN 1", 10),
        ("MATCH (a)-[r](b) RETURN 1", 10),
        ("MATCH (a)<-[r](b) RETURN 1", 10),
        ("MATCH (a)-->b) RETURN 1", 13),
        ("MATCH (a)-[*99999999999999999999]->(b) RETURN 1", 13),
        ("MATCH (a)-[*1..4294967296]->(b) RETURN 1", 16),
        ("MATCH (a)-[:R]->{99999999999999999999}(b) RETURN 1", 18),
        ("MATCH (a)-[:R*2]->{2}(b) RETURN 1", 19),
        ("MATCH (a)-[:R]->{3,2}(b) RETURN 1", 17),
        ("RETURN 1 CREATE (n:Tmp)", 10),
        ("MATCH (n) RETURN n LIMIT 0 DETACH DELETE n", 28),
        ("RETURN 1 AS x UNWIND [1,2] AS y", 15),
        ("MATCH (n) RETURN n.sku AS", 24),
        ("MERGE (n:Tmp) ON CREATE", 15),
        ("MERGE (n:Tmp) ON SET n.a = 1", 15),
        ("FOREACH (x IN [1] | )", 1),
        ("FOREACH (x IN [1] | MATCH (n) CREATE (m))", 21),
    ] {
        let message = message(text);
        assert!(
            message.contains(&format!("(line 1, column {column} (offset: {}))", column - 1)),
            "{text}: {message}"
        );
    }
    for text in [
        "RETURN 1 AS a UNION RETURN 2 AS a",
        "CYPHER 5 RETURN 1",
        "EXPLAIN CYPHER 25 runtime=slotted planner = cost RETURN 1",
        "MATCH (a)<-->(b)--(c)-[*1..2]-(d)<-[:R]-(e)-[:S]->(f) RETURN 1",
        "MATCH (a) - [r] - (b) /* c */ , (c) RETURN 1;",
        "WITH 1 AS a, 2 AS b RETURN (a)-(b), (a)<(b), (a)>(b)",
        "MATCH (n) WHERE EXISTS { MATCH (n)-->() RETURN 1 AS a UNION MATCH (n) RETURN 2 AS a } RETURN n",
        "MERGE (n) ON CREATE SET n.a = 1 ON MATCH SET n.b = 2",
    ] {
        assert!(read(text).is_ok(), "{text}: {}", message(text));
    }
}

#[test]
fn updates_before_finish_are_kept() {
    for text in ["CREATE (n) FINISH", "MATCH (n) WITH n SET n.a = 1 FINISH;"] {
        let query = query(text);
        let last = query.branches[0].clauses.last();
        assert!(matches!(last, Some(Clause::Create(_) | Clause::Set(_))), "{text}");
    }
}

#[test]
fn what_is_not_supported_or_not_understood_is_named() {
    for (text, expected) in [
        (
            "SHOW USERS",
            "SHOW is supported for indexes, constraints, databases, procedures, functions and the current user, alone in its statement (line 1, column 1 (offset: 0))",
        ),
        ("SHOW INDEXES YIELD nam", "Variable `nam` not defined (line 1, column 20 (offset: 19))"),
        ("RETURN foo(1)", "Unknown function 'foo' (line 1, column 8 (offset: 7))"),
        (
            "MTCH (n) RETURN n",
            "Invalid input 'MTCH': expected a clause such as MATCH, CREATE or RETURN (line 1, column 1 (offset: 0))",
        ),
        (
            "RETURN {a}",
            "Invalid input 'a': something is missing or incomplete here (line 1, column 9 (offset: 8))",
        ),
        (
            "RETURN 'a",
            "Invalid input: the string that begins here is never closed (line 1, column 8 (offset: 7))",
        ),
        (
            "RETURN 1\nAS `a",
            "Invalid input: the name in backticks that begins here is never closed (line 2, column 4 (offset: 12))",
        ),
        (
            "RETURN 1 /* a",
            "Invalid input: the comment that begins here is never closed (line 1, column 10 (offset: 9))",
        ),
    ] {
        assert_eq!(message(text), expected, "{text}");
    }
}

#[test]
fn what_was_found_is_told_in_the_words_of_neo4j() {
    let told = message("MATCH (n RETURN n");
    assert!(told.starts_with("Invalid input 'RETURN': expected "), "{told}");
    assert!(told.ends_with("(line 1, column 10 (offset: 9))"), "{told}");
    let told = message("UNWIND [1, 2");
    assert!(told.contains("(offset: ") && !told.contains("token"), "{told}");
    let deep = message(&format!("RETURN {}1", "(".repeat(300)));
    assert!(deep.ends_with("(line 1, column 208 (offset: 207))"), "{deep}");
    // Of a long line only an excerpt is shown.
    let long = format!("RETURN [{}x, {}1]", "1, ".repeat(200), "1, ".repeat(200));
    let told = read(&long).err().map(|error| error.to_string()).unwrap_or_default();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines.len(), 3, "{told}");
    assert!(lines[1].chars().count() <= 122 && lines[1].find('x') == lines[2].find('^'), "{told}");
}

#[test]
fn a_statement_whose_clauses_copy_too_many_names_is_refused_early() {
    let many = |count: usize, part: &dyn Fn(usize) -> String, separator: &str| {
        (0..count).map(part).collect::<Vec<_>>().join(separator)
    };
    let columns = many(2_000, &|at| format!("1 AS a{at}"), ", ");
    let stars = "WITH * ".repeat(5_000);
    let matches = many(20_000, &|at| format!("MATCH (n{at})"), " ");
    let merges = many(10_000, &|at| format!("MERGE (n{at})"), " ");
    let counts = many(5_000, &|at| format!("count({at})"), ", ");
    let repeated = many(5_000, &|at| format!("a{at} + 1"), ", ");
    for text in [
        format!("WITH {columns} {stars} RETURN 1"),
        format!("{matches} RETURN 1"),
        format!("MATCH {} RETURN 1", many(20_000, &|at| format!("(n{at})"), ", ")),
        merges,
        format!("RETURN [{counts}]"),
        format!(
            "WITH {columns} {} RETURN 1",
            many(5_000, &|at| format!("CALL {{ RETURN 1 AS b{at} }}"), " ")
        ),
        format!(
            "WITH {} RETURN {repeated} ORDER BY [{repeated}]",
            many(5_000, &|at| format!("1 AS a{at}"), ", ")
        ),
    ] {
        let refused = read(&text).map(|_| ()).unwrap_err();
        let start = text.get(..60).unwrap_or_default();
        assert_eq!(refused.detail, Detail::LimitExceeded, "{start}: {refused:?}");
        assert!(refused.message.contains("too large"), "{start}: {refused:?}");
    }
}

#[test]
fn a_statement_with_many_names_in_one_clause_or_many_creations_is_accepted() {
    let many = |part: &dyn Fn(usize) -> String, separator: &str| {
        (0..20_000).map(part).collect::<Vec<_>>().join(separator)
    };
    for text in [
        many(&|at| format!("CREATE (n{at})"), " "),
        format!("CREATE {}", many(&|at| format!("(n{at})"), ", ")),
        format!("RETURN {}", many(&|at| format!("{at} AS a{at}"), ", ")),
        format!("RETURN [{}]", many(&|at| format!("$p{at}"), ", ")),
    ] {
        assert!(read(&text).is_ok(), "{:?}", text.get(..60));
    }
    let creations = "CREATE (a) CREATE (b) CREATE (c) SET a.x = 1 RETURN c";
    let clauses = query(creations).branches.remove(0).visible;
    assert_eq!(clauses.get(2), Some(&vec![Slot(0), Slot(1), Slot(2)]));
}
