//! Expressions.

use std::sync::Arc;

use decypher::Span;
use decypher::ast::expr as ast;
use decypher::ast::expr::Expression as Tree;
use decypher::ast::names::SymbolicName;

use super::lower::{Chain, Lowering};
use super::lower_operators::all_of;
use crate::error::{Detail, Error, Result};
use crate::functions;
use crate::ir::{
    Aggregate, BinaryOperator, Case, Clause, Expression, ListComprehension, MapProjectionItem,
    Match, Projection, ProjectionItem, Quantifier, Quantity, Query, Reduce, SingleQuery, Subquery,
    SubqueryKind, UnaryOperator, ValueType,
};

impl Lowering<'_> {
    /// Lowers an expression with the names in scope.
    pub(super) fn expression(&mut self, tree: &Tree) -> Result<Expression> {
        Ok(match tree {
            Tree::Literal(literal) => self.literal(literal)?,
            Tree::Variable(variable) => {
                let SymbolicName { name, span } = &variable.name;
                let slot = self.names.get(name).ok_or_else(|| self.undefined(name, *span))?;
                Expression::Variable(slot)
            }
            Tree::Parameter(parameter) => self.parameter(&parameter.name.name),
            Tree::Parenthesized(inner) => self.expression(inner)?,
            Tree::PropertyLookup { base, property, .. } => {
                let base = self.expression(base)?;
                Expression::Property(Box::new(base), property.name.name.as_str().into())
            }
            Tree::NodeLabels { base, labels, .. } => self.has_labels(base, labels)?,
            Tree::BinaryOp { op, lhs, rhs, .. } => self.binary(*op, lhs, rhs)?,
            Tree::UnaryOp { op, operand, .. } => self.unary(*op, operand)?,
            Tree::Comparison { lhs, operators, .. } => self.comparison(lhs, operators)?,
            Tree::In { lhs, rhs, .. } => {
                let (lhs, rhs) = (self.expression(lhs)?, self.expression(rhs)?);
                Expression::Binary(BinaryOperator::In, Box::new(lhs), Box::new(rhs))
            }
            Tree::IsNull { operand, negated, .. } => {
                let operator =
                    if *negated { UnaryOperator::IsNotNull } else { UnaryOperator::IsNull };
                Expression::Unary(operator, Box::new(self.expression(operand)?))
            }
            Tree::ListIndex { list, index, .. } => {
                let (list, index) = (self.expression(list)?, self.expression(index)?);
                Expression::Index(Box::new(list), Box::new(index))
            }
            Tree::ListSlice { list, start, end, .. } => {
                let list = self.expression(list)?;
                let from = self.optional(start.as_deref())?.map(Box::new);
                let to = self.optional(end.as_deref())?.map(Box::new);
                Expression::Slice(Box::new(list), from, to)
            }
            Tree::Case(case) => self.case(case)?,
            Tree::FunctionCall(call) => self.call_function(call)?,
            Tree::CountStar { span } => self.aggregate("count", false, &[], *span)?,
            _ => return self.scoped(tree),
        })
    }

    /// Lowers expressions that declare names.
    fn scoped(&mut self, tree: &Tree) -> Result<Expression> {
        let mark = self.names.mark();
        let outside = match tree {
            // Aggregations are not allowed in there, except in what is folded or filtered.
            Tree::Pattern(_) | Tree::PatternComprehension(_) => self.aggregates.take(),
            _ => None,
        };
        let lowered = match tree {
            Tree::ListComprehension(comprehension) => self.list_comprehension(comprehension),
            Tree::All(filter) => self.quantifier(Quantity::All, filter),
            Tree::Any(filter) => self.quantifier(Quantity::Any, filter),
            Tree::None(filter) => self.quantifier(Quantity::None, filter),
            Tree::Single(filter) => self.quantifier(Quantity::Single, filter),
            Tree::Reduce(reduce) => self.reduce(reduce),
            Tree::MapProjection(projection) => self.map_projection(projection),
            Tree::Pattern(pattern) => self.pattern_predicate(pattern),
            Tree::PatternComprehension(comprehension) => self.pattern_comprehension(comprehension),
            Tree::Exists(exists) => self.subquery(SubqueryKind::Exists, &exists.inner),
            Tree::CountSubquery(count) => self.subquery(SubqueryKind::Count, &count.inner),
            Tree::CollectSubquery(collect) => {
                self.take_cells_of_subquery()?;
                let query = self.regular(&collect.query)?;
                Ok(self.number(SubqueryKind::Collect, query))
            }
            Tree::IsNormalized { span, .. } => {
                Err(self.fail(Detail::Unsupported, "IS NORMALIZED is not supported yet", *span))
            }
            Tree::IsTyped { operand, negated, type_name, span } => {
                let Some(of) = ValueType::parse(type_name) else {
                    let message = format!("Unknown type {type_name}");
                    return Err(self.fail(Detail::UnexpectedSyntax, &message, *span));
                };
                let subject = Box::new(self.expression(operand)?);
                let holds = Expression::HasType(subject, Box::new(of));
                Ok(match negated {
                    true => Expression::Unary(UnaryOperator::Not, Box::new(holds)),
                    false => holds,
                })
            }
            _ => {
                Err(self.fail(Detail::Unsupported, "Expression not supported yet", Span::new(0, 0)))
            }
        };
        self.names.forget(mark);
        if outside.is_some() {
            self.aggregates = outside;
        }
        lowered
    }

    fn optional(&mut self, tree: Option<&Tree>) -> Result<Option<Expression>> {
        tree.map(|tree| self.expression(tree)).transpose()
    }

    fn literal(&mut self, literal: &ast::Literal) -> Result<Expression> {
        Ok(match literal {
            ast::Literal::Null => Expression::Null,
            ast::Literal::Boolean(value) => Expression::Boolean(*value),
            ast::Literal::Number(ast::NumberLiteral::Integer(value)) => Expression::Integer(*value),
            ast::Literal::Number(ast::NumberLiteral::Float(value)) => Expression::Float(*value),
            ast::Literal::String(text) => Expression::String(text.value.as_str().into()),
            ast::Literal::List(list) => {
                let items = list.elements.iter().map(|item| self.expression(item));
                Expression::List(items.collect::<Result<_>>()?)
            }
            ast::Literal::Map(map) => {
                let entries = map.entries.iter().map(|(key, value)| {
                    Ok((Arc::from(key.name.name.as_str()), self.expression(value)?))
                });
                Expression::Map(entries.collect::<Result<_>>()?)
            }
        })
    }

    fn has_labels(
        &mut self,
        base: &Tree,
        labels: &[decypher::ast::pattern::LabelExpression],
    ) -> Result<Expression> {
        let subject = self.expression(base)?;
        let conditions = labels.iter().map(|label| self.label_condition(label, &subject));
        Ok(all_of(conditions.collect::<Result<_>>()?).unwrap_or(Expression::Boolean(true)))
    }

    fn case(&mut self, case: &ast::CaseExpression) -> Result<Expression> {
        let subject = self.optional(case.scrutinee.as_deref())?;
        let alternatives = case.alternatives.iter().map(|alternative| {
            Ok((self.expression(&alternative.when)?, self.expression(&alternative.then)?))
        });
        let alternatives = alternatives.collect::<Result<_>>()?;
        let otherwise = self.optional(case.default.as_deref())?;
        Ok(Expression::Case(Box::new(Case { subject, alternatives, otherwise })))
    }

    fn call_function(&mut self, call: &ast::FunctionInvocation) -> Result<Expression> {
        let written = dotted(&call.name);
        if let ([argument], true) =
            (call.arguments.as_slice(), written.eq_ignore_ascii_case("exists"))
        {
            let argument = self.expression(argument)?;
            return Ok(match argument {
                Expression::Subquery(_) => argument,
                _ => Expression::Unary(UnaryOperator::IsNotNull, Box::new(argument)),
            });
        }
        let count = call.arguments.len();
        if let Some(aggregate) = functions::aggregate(&written) {
            if count != aggregate.arity() {
                return Err(self.wrong_count(&written, count, call.span));
            }
            let name = written.to_ascii_lowercase();
            return self.aggregate(&name, call.distinct, &call.arguments, call.span);
        }
        let Some(function) = functions::lookup(&written) else {
            let message = format!("Unknown function '{written}'");
            return Err(self.fail(Detail::UnknownFunction, message, call.span));
        };
        if !(function.least..=function.most).contains(&count) {
            return Err(self.wrong_count(function.name, count, call.span));
        }
        let arguments = call.arguments.iter().map(|argument| self.expression(argument));
        Ok(Expression::Function(function.name.into(), arguments.collect::<Result<_>>()?))
    }

    fn wrong_count(&self, name: &str, count: usize, span: Span) -> Error {
        let message = format!("Wrong number of arguments for function '{name}': {count}");
        self.fail(Detail::InvalidNumberOfArguments, message, span)
    }

    /// An aggregation is replaced by a variable: its result.
    fn aggregate(
        &mut self,
        name: &str,
        distinct: bool,
        arguments: &[Tree],
        span: Span,
    ) -> Result<Expression> {
        let Some(aggregates) = self.aggregates.take() else {
            let message =
                format!("Invalid use of aggregating function {name}(...) in this context");
            return Err(self.fail(Detail::InvalidAggregation, message, span));
        };
        // Its arguments must not contain another aggregation.
        let lowered: Result<Vec<Expression>> =
            arguments.iter().map(|argument| self.expression(argument)).collect();
        self.aggregates = Some(aggregates);
        let slot = self.fresh();
        let arguments = lowered?;
        self.aggregates.get_or_insert_default().push(Aggregate {
            slot,
            function: name.into(),
            distinct,
            arguments,
        });
        Ok(Expression::Variable(slot))
    }

    fn list_comprehension(&mut self, tree: &ast::ListComprehension) -> Result<Expression> {
        let list = self.expression(&tree.collection)?;
        let variable = self.declare(&tree.variable.name.name);
        let predicate = self.optional(tree.filter.as_deref())?;
        let result = self.optional(tree.map.as_ref())?;
        let comprehension = ListComprehension { variable, list, predicate, result };
        Ok(Expression::ListComprehension(Box::new(comprehension)))
    }

    fn quantifier(
        &mut self,
        quantity: Quantity,
        tree: &ast::FilterExpression,
    ) -> Result<Expression> {
        let list = self.expression(&tree.collection)?;
        let variable = self.declare(&tree.variable.name.name);
        let predicate = self.optional(tree.predicate.as_deref())?;
        let predicate = predicate.unwrap_or(Expression::Variable(variable));
        Ok(Expression::Quantifier(Box::new(Quantifier { quantity, variable, list, predicate })))
    }

    fn reduce(&mut self, tree: &ast::ReduceExpression) -> Result<Expression> {
        let initial = self.expression(&tree.init)?;
        let list = self.expression(&tree.list)?;
        let accumulator = self.declare(&tree.accumulator.name.name);
        let variable = self.declare(&tree.variable.name.name);
        let step = self.expression(&tree.expression)?;
        Ok(Expression::Reduce(Box::new(Reduce { accumulator, initial, variable, list, step })))
    }

    fn map_projection(&mut self, tree: &ast::MapProjection) -> Result<Expression> {
        let subject = self.expression(&Tree::Variable(tree.base.clone()))?;
        let items = tree.items.iter().map(|item| {
            Ok(match item {
                ast::MapProjectionItem::AllProperties { .. } => MapProjectionItem::AllProperties,
                ast::MapProjectionItem::PropertyLookup { property } => {
                    let SymbolicName { name, span } = &property.name;
                    let before = self.source.text.get(..span.start).unwrap_or_default();
                    if before.trim_end().ends_with('.') {
                        MapProjectionItem::Property(name.as_str().into())
                    } else {
                        // The parser mistakes `{name: name}` for `{.name}`.
                        let slot =
                            self.names.get(name).ok_or_else(|| self.undefined(name, *span))?;
                        MapProjectionItem::Entry(name.as_str().into(), Expression::Variable(slot))
                    }
                }
                ast::MapProjectionItem::Literal { key, value } => {
                    MapProjectionItem::Entry(key.name.name.as_str().into(), self.expression(value)?)
                }
                ast::MapProjectionItem::Variable { variable } => {
                    let value = self.expression(&Tree::Variable(variable.clone()))?;
                    MapProjectionItem::Entry(variable.name.name.as_str().into(), value)
                }
            })
        });
        let items = items.collect::<Result<_>>()?;
        Ok(Expression::MapProjection(Box::new(subject), items))
    }

    /// `(a)-->(b)` as a condition.
    fn pattern_predicate(
        &mut self,
        pattern: &decypher::ast::pattern::RelationshipsPattern,
    ) -> Result<Expression> {
        let mut conditions = Vec::new();
        let (path, introduced) = self.relationships(None, pattern, &mut conditions)?;
        let predicate = all_of(conditions);
        let clause = Match { optional: false, patterns: vec![path], predicate, introduced };
        Ok(self.number(SubqueryKind::Exists, matching(clause)))
    }

    /// `[(a)-->(b) WHERE p | e]`
    fn pattern_comprehension(&mut self, tree: &ast::PatternComprehension) -> Result<Expression> {
        let mut conditions = Vec::new();
        let (path, introduced) =
            self.relationships(tree.variable.as_ref(), &tree.pattern, &mut conditions)?;
        if let Some(predicate) = &tree.where_clause {
            conditions.push(self.expression(predicate)?);
        }
        let expression = self.expression(&tree.map)?;
        let slot = self.fresh();
        let predicate = all_of(conditions);
        let visible = introduced.clone();
        let clause = Match { optional: false, patterns: vec![path], predicate, introduced };
        let projection = Projection {
            items: vec![ProjectionItem { slot, expression }],
            aggregates: Vec::new(),
            after: Vec::new(),
            distinct: false,
            order: Vec::new(),
            skip: None,
            limit: None,
            predicate: None,
            columns: vec![slot],
            also_read: Vec::new(),
        };
        let branch = SingleQuery {
            clauses: vec![Clause::Match(clause), Clause::Project(projection)],
            result: Some(vec![slot]),
            visible: vec![visible, vec![slot]],
        };
        let query = Query { branches: vec![branch], all: true, columns: vec!["value".into()] };
        Ok(self.number(SubqueryKind::Collect, query))
    }

    /// `EXISTS { … }`, `COUNT { … }`
    fn subquery(&mut self, kind: SubqueryKind, inner: &ast::ExistsInner) -> Result<Expression> {
        self.take_cells_of_subquery()?;
        let outside = self.aggregates.take();
        let query = match inner {
            ast::ExistsInner::RegularQuery(query) => self.regular(query),
            ast::ExistsInner::Pattern(pattern, predicate) => {
                let before = self.names.enter();
                let mut conditions = Vec::new();
                let matched = self.patterns(pattern, &mut conditions);
                let predicate = self.optional(predicate.as_deref());
                self.names.leave(before);
                let (patterns, introduced) = matched?;
                conditions.extend(predicate?);
                let predicate = all_of(conditions);
                Ok(matching(Match { optional: false, patterns, predicate, introduced }))
            }
        };
        self.aggregates = outside;
        Ok(self.number(kind, query?))
    }

    /// Registers a subquery under a number.
    fn number(&mut self, kind: SubqueryKind, query: Query) -> Expression {
        self.subqueries.push(Subquery { kind, query });
        Expression::Subquery(self.subqueries.len() - 1)
    }
}

/// A query with a single `MATCH`.
fn matching(clause: Match) -> Query {
    let mut chain = Chain::default();
    chain.visible.push(clause.introduced.clone());
    chain.clauses.push(Clause::Match(clause));
    let branch = SingleQuery { clauses: chain.clauses, result: None, visible: chain.visible };
    Query { branches: vec![branch], all: true, columns: Vec::new() }
}

/// A name with its namespaces.
pub(super) fn dotted(name: &[SymbolicName]) -> String {
    let parts: Vec<&str> = name.iter().map(|part| part.name.as_str()).collect();
    parts.join(".")
}
