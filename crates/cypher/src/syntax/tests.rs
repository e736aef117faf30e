//! Texts and what becomes of them.

use super::{Parsed, parse};
use crate::error::{Detail, Error};
use crate::ir::{Clause, Expression, Query, Slot, StatementBody};
use crate::procedure::BuiltIn;

fn read(text: &str) -> Result<Parsed, Error> {
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

/// What the only item of a `RETURN` is.
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
    assert_eq!(error.to_string(), "Variable `mm` not defined (line 3, column 3)");
    let error = read("EXPLAIN MATCH (n) CALL (n) { RETURN 1 AS a } RETURN bb").err().unwrap();
    assert_eq!(error.to_string(), "Variable `bb` not defined (line 1, column 53)");
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
