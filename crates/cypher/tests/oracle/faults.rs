//! Faults that are planted in Wellspring's evaluator, by giving it another query than was asked.

use crate::expression::Expression as E;
use crate::query::{Clause, Pattern, Query};
use crate::rewrite::map_query;
use crate::value::Value;

/// A fault of an evaluator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// What is unknown counts as false, and its negation as true.
    UnknownIsFalse,
    /// Chains of one pattern may use a relationship twice.
    RelationshipUsedTwice,
    /// A condition of `OPTIONAL MATCH` filters rows afterwards.
    ConditionAfterOptional,
    /// A variable length has an end that is one too far.
    LengthOneTooFar,
    /// A list with a null contains it not, instead of perhaps.
    ListWithoutNull,
    /// A float is compared as text.
    FloatAsText,
}

pub(crate) const FAULTS: [Fault; 6] = [
    Fault::UnknownIsFalse,
    Fault::RelationshipUsedTwice,
    Fault::ConditionAfterOptional,
    Fault::LengthOneTooFar,
    Fault::ListWithoutNull,
    Fault::FloatAsText,
];

impl Fault {
    /// What an evaluator with this fault executes.
    pub(crate) fn misread(self, query: &Query) -> Query {
        let mut query = map_query(query, &mut |expression| self.misread_expression(expression));
        let clauses = std::mem::take(&mut query.clauses);
        query.clauses =
            clauses.into_iter().flat_map(|clause| self.misread_clause(clause)).collect();
        query
    }

    fn misread_expression(self, expression: E) -> E {
        let known = |expression| E::Coalesce(Box::new([expression, E::boolean(false)]));
        match (self, expression) {
            (Self::UnknownIsFalse, E::Not(operand)) => E::not(known(*operand)),
            (Self::ListWithoutNull, E::In(operands)) => known(E::In(operands)),
            (Self::FloatAsText, E::Literal(Value::Float(number))) => {
                E::Literal(Value::Text(number.to_string()))
            }
            (_, other) => other,
        }
    }

    fn misread_clause(self, clause: Clause) -> Vec<Clause> {
        match (self, clause) {
            (Self::RelationshipUsedTwice, Clause::Match(pattern)) => {
                let condition = pattern.condition;
                let chains = pattern.chains.into_iter();
                let alone = chains
                    .map(|chain| Clause::Match(Pattern { chains: vec![chain], condition: None }));
                alone.chain([Clause::Filter(condition.map(|condition| *condition))]).collect()
            }
            (Self::ConditionAfterOptional, Clause::OptionalMatch(mut pattern)) => {
                let condition = pattern.condition.take().map(|condition| *condition);
                vec![Clause::OptionalMatch(pattern), Clause::Filter(condition)]
            }
            (Self::LengthOneTooFar, Clause::Match(mut pattern)) => {
                let steps = pattern.chains.iter_mut().flat_map(|chain| &mut chain.steps);
                for (_, most) in steps.filter_map(|(edge, _)| edge.lengths.as_mut()) {
                    *most += 1;
                }
                vec![Clause::Match(pattern)]
            }
            (_, other) => vec![other],
        }
    }
}
