//! Lowers patterns.

use std::sync::Arc;

use decypher::Span;
use decypher::ast::names::Variable;
use decypher::ast::pattern as ast;

use super::dynamic_labels;
use super::judge;
use super::lower::Lowering;
use super::lower_operators::all_of;
use crate::error::{Detail, Result};
use crate::ir::{
    BinaryOperator, Direction, DynamicLabels, Expression, Length, NodePattern, PathPattern,
    Properties, RelationshipPattern, Shortest, Slot, UnaryOperator,
};

/// Labels or types: a plain list, those from expressions that are to be created, and further
/// conditions.
struct Labels {
    plain: Vec<Arc<str>>,
    created: Vec<Expression>,
    condition: Option<Expression>,
}

/// What becomes of a pattern.
enum Use<'u> {
    /// It is matched, also under these conditions.
    Matched(&'u mut Vec<Expression>),
    /// It is created.
    Created,
    /// It is matched under these conditions or created.
    Merged(&'u mut Vec<Expression>),
}

impl Use<'_> {
    fn again(&mut self) -> Use<'_> {
        match self {
            Use::Matched(conditions) => Use::Matched(conditions),
            Use::Created => Use::Created,
            Use::Merged(conditions) => Use::Merged(conditions),
        }
    }

    /// Adds what is to be created to the conditions of a search for it.
    fn search(&mut self, slot: Slot, created: &[Expression]) {
        if let Use::Merged(conditions) = self {
            conditions.extend(created.iter().map(|labels| {
                let subject = Box::new(Expression::Variable(slot));
                let labels = Box::new(labels.clone());
                Expression::HasDynamicLabels(subject, labels, DynamicLabels::All)
            }));
        }
    }
}

impl Lowering<'_> {
    /// The paths of a `MATCH`, the slots they bind, and further conditions.
    pub(super) fn patterns(
        &mut self,
        pattern: &ast::Pattern,
        conditions: &mut Vec<Expression>,
    ) -> Result<(Vec<PathPattern>, Vec<Slot>)> {
        let mut introduced = Vec::new();
        // Properties can read names bound by any part of the pattern, so all names are declared
        // first.
        for part in &pattern.parts {
            if let Some(variable) = &part.variable {
                introduced.push(self.declare(&variable.name.name));
            }
            self.declare_element(&part.anonymous.element, &mut introduced)?;
        }
        let known = introduced.clone();
        let mut paths = Vec::new();
        for part in &pattern.parts {
            let variable = part.variable.as_ref().and_then(|name| self.names.get(&name.name.name));
            let (start, steps) =
                path(&part.anonymous.element).map_err(|span| self.quantified(span))?;
            let mut path =
                self.path(start, steps, &known, &mut introduced, Use::Matched(conditions))?;
            path.variable = variable;
            path.shortest = self.shortest(part.span);
            self.check_shortest(&path, part.span)?;
            paths.push(path);
        }
        Ok((paths, introduced))
    }

    /// A pattern inside an expression: known names are bound, others are local.
    pub(super) fn relationships(
        &mut self,
        variable: Option<&Variable>,
        pattern: &ast::RelationshipsPattern,
        conditions: &mut Vec<Expression>,
    ) -> Result<(PathPattern, Vec<Slot>)> {
        let mut introduced = Vec::new();
        let whole = variable.map(|variable| self.declare(&variable.name.name));
        introduced.extend(whole);
        self.declare_path(&pattern.start, &pattern.chains, &mut introduced);
        let known = introduced.clone();
        let mut path = self.path(
            &pattern.start,
            &pattern.chains,
            &known,
            &mut introduced,
            Use::Matched(conditions),
        )?;
        path.variable = whole;
        Ok((path, introduced))
    }

    /// A path of `CREATE`: names become known from left to right.
    pub(super) fn created(&mut self, part: &ast::PatternPart) -> Result<PathPattern> {
        let mut introduced = Vec::new();
        let (start, steps) = path(&part.anonymous.element).map_err(|span| self.quantified(span))?;
        // Values are evaluated in the previous row, so they are lowered before the new names are
        // known.
        let mut path = self.path(start, steps, &[], &mut introduced, Use::Created)?;
        path.variable = part.variable.as_ref().map(|variable| self.declare(&variable.name.name));
        Ok(path)
    }

    /// The path of a `MERGE`, further conditions of its search, and the slots it binds.
    pub(super) fn merged(
        &mut self,
        part: &ast::PatternPart,
    ) -> Result<(PathPattern, Option<Expression>, Vec<Slot>)> {
        let (mut introduced, mut conditions) = (Vec::new(), Vec::new());
        let (start, steps) = path(&part.anonymous.element).map_err(|span| self.quantified(span))?;
        let usage = Use::Merged(&mut conditions);
        let mut path = self.path(start, steps, &[], &mut introduced, usage)?;
        path.variable = part.variable.as_ref().map(|variable| self.declare(&variable.name.name));
        introduced.extend(path.variable);
        Ok((path, all_of(conditions), introduced))
    }

    fn declare_element(
        &mut self,
        element: &ast::PatternElement,
        introduced: &mut Vec<Slot>,
    ) -> Result<()> {
        let (start, chains) = path(element).map_err(|span| self.quantified(span))?;
        self.declare_path(start, chains, introduced);
        Ok(())
    }

    fn declare_path(
        &mut self,
        start: &ast::NodePattern,
        chains: &[ast::PatternElementChain],
        introduced: &mut Vec<Slot>,
    ) {
        let details = chains.iter().filter_map(|chain| chain.relationship.detail.as_ref());
        let relationships = details.filter_map(|detail| detail.variable.as_ref());
        let nodes = std::iter::once(start).chain(chains.iter().map(|chain| &chain.node));
        let names = nodes.filter_map(|node| node.variable.as_ref()).chain(relationships);
        for variable in names.collect::<Vec<_>>() {
            if self.names.get(&variable.name.name).is_none() {
                introduced.push(self.declare(&variable.name.name));
            }
        }
    }

    /// Lowers a path. Names in `known` were declared for this clause.
    fn path(
        &mut self,
        start: &ast::NodePattern,
        chains: &[ast::PatternElementChain],
        known: &[Slot],
        introduced: &mut Vec<Slot>,
        mut usage: Use<'_>,
    ) -> Result<PathPattern> {
        let start = self.node(start, known, introduced, usage.again())?;
        let mut steps = Vec::new();
        for chain in chains {
            let relationship =
                self.relationship(&chain.relationship, known, introduced, usage.again())?;
            let node = self.node(&chain.node, known, introduced, usage.again())?;
            steps.push((relationship, node));
        }
        Ok(PathPattern { variable: None, shortest: None, start, steps })
    }

    fn node(
        &mut self,
        node: &ast::NodePattern,
        known: &[Slot],
        introduced: &mut Vec<Slot>,
        mut usage: Use<'_>,
    ) -> Result<NodePattern> {
        let properties = self.properties(node.properties.as_ref())?;
        // What is created is computed before its name is known.
        let created = self.created_labels(&node.labels, false, &usage)?;
        let (slot, bound) = self.bind(node.variable.as_ref(), known, introduced)?;
        let labels = match created {
            Some(created) => created,
            None => self.labels(&node.labels, false, slot)?,
        };
        usage.search(slot, &labels.created);
        let condition = self.inline_condition(node.span, labels.condition)?;
        self.ask(condition, usage, node.span)?;
        let (labels, dynamic_labels) = (labels.plain, labels.created);
        Ok(NodePattern { slot, bound, labels, dynamic_labels, properties })
    }

    fn relationship(
        &mut self,
        relationship: &ast::RelationshipPattern,
        known: &[Slot],
        introduced: &mut Vec<Slot>,
        mut usage: Use<'_>,
    ) -> Result<RelationshipPattern> {
        let detail = relationship.detail.as_ref();
        let properties = self.properties(detail.and_then(|detail| detail.properties.as_ref()))?;
        let variable = detail.and_then(|detail| detail.variable.as_ref());
        let types = detail.and_then(|detail| detail.types.as_ref());
        let types = types.map(std::slice::from_ref).unwrap_or_default();
        let created = self.created_labels(types, true, &usage)?;
        let (slot, bound) = self.bind(variable, known, introduced)?;
        let has_name = variable.is_some();
        let types = match created {
            Some(created) => created,
            None => self.labels(types, true, slot)?,
        };
        usage.search(slot, &types.created);
        if !matches!(usage, Use::Matched(_)) && types.plain.len() + types.created.len() != 1 {
            let message = "CREATE and MERGE need exactly one type for every relationship";
            return Err(self.fail(Detail::NoSingleRelationshipType, message, relationship.span));
        }
        let length = self.length(relationship)?;
        let condition = match detail {
            Some(detail) => self.inline_condition(detail.span, types.condition)?,
            None => types.condition,
        };
        if length.is_some() && condition.is_some() {
            let message = "Conditions inside of a path of variable length are not supported yet";
            return Err(self.fail(Detail::Unsupported, message, relationship.span));
        }
        self.ask(condition, usage, relationship.span)?;
        let direction = match relationship.direction {
            ast::RelationshipDirection::Right => Direction::Outgoing,
            ast::RelationshipDirection::Left => Direction::Incoming,
            ast::RelationshipDirection::Both | ast::RelationshipDirection::Undirected => {
                Direction::Either
            }
        };
        let (types, dynamic_type) = (types.plain, types.created.into_iter().next());
        Ok(RelationshipPattern {
            slot,
            has_name,
            bound,
            types,
            dynamic_type,
            direction,
            properties,
            length,
        })
    }

    /// The slot of an element, and whether it is bound already.
    fn bind(
        &mut self,
        variable: Option<&Variable>,
        known: &[Slot],
        introduced: &mut Vec<Slot>,
    ) -> Result<(Slot, bool)> {
        self.take_cells(known.len())?;
        Ok(match variable.map(|variable| (variable, self.names.get(&variable.name.name))) {
            Some((_, Some(slot))) => (slot, !known.contains(&slot)),
            Some((variable, None)) => {
                let slot = self.declare(&variable.name.name);
                introduced.push(slot);
                (slot, false)
            }
            None => {
                let slot = self.fresh();
                introduced.push(slot);
                (slot, false)
            }
        })
    }

    /// The condition inside a pattern (`(n WHERE n.age > 3)`), and another one.
    fn inline_condition(
        &mut self,
        span: Span,
        other: Option<Expression>,
    ) -> Result<Option<Expression>> {
        let Some(condition) = self.columns.condition(span.start, self.source.text) else {
            return Ok(other);
        };
        let condition = condition.map_err(|error| judge::error(&error, self.source))?;
        let condition = self.expression(&condition)?;
        Ok(all_of(std::iter::once(condition).chain(other).collect()))
    }

    /// Adds a condition of a matched pattern; a created pattern cannot have one.
    fn ask(&self, condition: Option<Expression>, usage: Use<'_>, span: Span) -> Result<()> {
        match (condition, usage) {
            (Some(condition), Use::Matched(conditions)) => conditions.push(condition),
            (Some(_), Use::Created | Use::Merged(_)) => {
                let message =
                    "CREATE and MERGE accept labels and types one by one, without operators";
                return Err(self.fail(Detail::UnexpectedSyntax, message, span));
            }
            (None, _) => {}
        }
        Ok(())
    }

    fn properties(&mut self, properties: Option<&ast::Properties>) -> Result<Properties> {
        Ok(match properties {
            None => Properties::Entries(Vec::new()),
            Some(ast::Properties::Parameter(parameter)) => {
                Properties::Map(self.parameter(&parameter.name.name))
            }
            Some(ast::Properties::Map(map)) => {
                let entries = map.entries.iter().map(|(key, value)| {
                    Ok((key.name.name.as_str().into(), self.expression(value)?))
                });
                Properties::Entries(entries.collect::<Result<_>>()?)
            }
        })
    }

    /// The labels or types from expressions that are to be created, if all of them are plain or
    /// from expressions.
    fn created_labels(
        &mut self,
        labels: &[ast::LabelExpression],
        types: bool,
        usage: &Use<'_>,
    ) -> Result<Option<Labels>> {
        if matches!(usage, Use::Matched(_)) {
            return Ok(None);
        }
        let (mut plain, mut dynamic) = (Vec::new(), Vec::new());
        let mut all = true;
        for expression in labels {
            all &= collect_created(expression, types, &mut plain, &mut dynamic);
        }
        if !all || dynamic.is_empty() || (types && plain.len() + dynamic.len() > 1) {
            return Ok(None);
        }
        let created = dynamic.into_iter().map(|expression| self.expression(expression));
        Ok(Some(Labels { plain, created: created.collect::<Result<_>>()?, condition: None }))
    }

    /// The plain list of labels (all required) or types (any of them), and further conditions.
    fn labels(
        &mut self,
        labels: &[ast::LabelExpression],
        types: bool,
        slot: Slot,
    ) -> Result<Labels> {
        let mut plain = Vec::new();
        let mut conditions = Vec::new();
        for expression in labels {
            let before = plain.len();
            if !collect_plain(expression, types, &mut plain) {
                plain.truncate(before);
                conditions.push(self.label_condition(expression, &Expression::Variable(slot))?);
            }
        }
        Ok(Labels { plain, created: Vec::new(), condition: all_of(conditions) })
    }

    /// The condition that a label expression imposes on a value.
    pub(super) fn label_condition(
        &mut self,
        expression: &ast::LabelExpression,
        subject: &Expression,
    ) -> Result<Expression> {
        let mut both = |operator, lhs: &_, rhs: &_| -> Result<Expression> {
            let lhs = self.label_condition(lhs, subject)?;
            let rhs = self.label_condition(rhs, subject)?;
            Ok(Expression::Binary(operator, Box::new(lhs), Box::new(rhs)))
        };
        match expression {
            ast::LabelExpression::Static(name) => {
                let name = name.name.as_str().into();
                Ok(Expression::HasLabels(Box::new(subject.clone()), vec![name]))
            }
            ast::LabelExpression::And { lhs, rhs, .. } => both(BinaryOperator::And, lhs, rhs),
            ast::LabelExpression::Or { lhs, rhs, .. } => both(BinaryOperator::Or, lhs, rhs),
            ast::LabelExpression::Group { inner, .. } => self.label_condition(inner, subject),
            ast::LabelExpression::Not { inner, .. } => {
                let inner = self.label_condition(inner, subject)?;
                Ok(Expression::Unary(UnaryOperator::Not, Box::new(inner)))
            }
            ast::LabelExpression::Wildcard { .. } => {
                let labels = Expression::Function("labels".into(), vec![subject.clone()]);
                let size = Expression::Function("size".into(), vec![labels]);
                let some = vec![(crate::ir::Comparison::Greater, Expression::Integer(0))];
                Ok(Expression::Comparison(Box::new(size), some))
            }
            ast::LabelExpression::Dynamic { expression, .. } => {
                let subject = Box::new(subject.clone());
                let (labels, how_many) = match self.expression(expression)? {
                    Expression::Map(mut entries) if is_any(&entries) => {
                        (entries.remove(0).1, DynamicLabels::Any)
                    }
                    labels => (labels, DynamicLabels::All),
                };
                Ok(Expression::HasDynamicLabels(subject, Box::new(labels), how_many))
            }
        }
    }

    fn length(&self, relationship: &ast::RelationshipPattern) -> Result<Option<Length>> {
        let bound = |bound: Option<i64>| -> Result<Option<u32>> {
            let number = bound.map(u32::try_from).transpose();
            number.map_err(|_| {
                let message = "A length must be a number from 0 to 4294967295";
                self.fail(Detail::InvalidRelationshipPattern, message, relationship.span)
            })
        };
        let range = relationship.detail.as_ref().and_then(|detail| detail.range.as_ref());
        match (range, &relationship.quantifier) {
            (Some(range), _) => {
                let (from, to) = (bound(range.start)?, bound(range.end)?);
                Ok(Some(Length { from: from.unwrap_or(1), to }))
            }
            (None, Some(quantifier)) => {
                let (from, to) = (bound(quantifier.start)?, bound(quantifier.end)?);
                Ok(Some(Length { from: from.unwrap_or(0), to }))
            }
            (None, None) => Ok(None),
        }
    }

    /// The parser's AST omits `shortestPath`, so this looks for it in the path's text.
    fn shortest(&self, span: Span) -> Option<Shortest> {
        let text = self.source.text.get(span.start..span.end)?;
        let before = text.split('(').next().unwrap_or_default();
        let word = before.rsplit('=').next().unwrap_or_default().trim();
        if word.eq_ignore_ascii_case("shortestPath") {
            Some(Shortest::One)
        } else if word.eq_ignore_ascii_case("allShortestPaths") {
            Some(Shortest::All)
        } else {
            None
        }
    }

    /// A shortest chain has no lower bound but 0 and 1: the shortest of those that are longer is
    /// another question.
    fn check_shortest(&self, path: &PathPattern, span: Span) -> Result<()> {
        let Some(which) = path.shortest else { return Ok(()) };
        let name = match which {
            Shortest::One => "shortestPath",
            Shortest::All => "allShortestPaths",
        };
        let lengths = path.steps.iter().filter_map(|(step, _)| step.length);
        match lengths.map(|length| length.from).find(|from| *from > 1) {
            Some(_) => {
                let message =
                    format!("{name}(...) does not support a minimal length different from 0 or 1");
                Err(self.fail(Detail::InvalidRelationshipPattern, message, span))
            }
            None => Ok(()),
        }
    }

    fn quantified(&self, span: Span) -> crate::error::Error {
        self.fail(Detail::Unsupported, "Quantified path patterns are not supported yet", span)
    }
}

/// The first node and the rest of a plain path; otherwise the position where it is not plain.
fn path(
    element: &ast::PatternElement,
) -> std::result::Result<(&ast::NodePattern, &[ast::PatternElementChain]), Span> {
    match element {
        ast::PatternElement::Path { start, chains } => Ok((start, chains)),
        ast::PatternElement::Parenthesized(inner) => path(inner),
        ast::PatternElement::Quantified { span, .. } => Err(*span),
    }
}

/// Whether a map stands for `$any(…)`.
fn is_any(entries: &[(Arc<str>, Expression)]) -> bool {
    matches!(entries, [(key, _)] if **key == *dynamic_labels::ANY)
}

/// Collects the names and expressions of a list of labels or types to create: `:A:$(x)`.
fn collect_created<'e>(
    expression: &'e ast::LabelExpression,
    types: bool,
    plain: &mut Vec<Arc<str>>,
    dynamic: &mut Vec<&'e decypher::ast::expr::Expression>,
) -> bool {
    match expression {
        ast::LabelExpression::Dynamic { expression, .. } => {
            dynamic.push(expression);
            true
        }
        ast::LabelExpression::Group { inner, .. } => collect_created(inner, types, plain, dynamic),
        ast::LabelExpression::And { lhs, rhs, .. } if !types => {
            collect_created(lhs, types, plain, dynamic)
                && collect_created(rhs, types, plain, dynamic)
        }
        other => collect_plain(other, types, plain),
    }
}

/// Collects the names of a plain list: `:A:B`, `:A&B` for labels, `:A|B` for types.
fn collect_plain(
    expression: &ast::LabelExpression,
    types: bool,
    plain: &mut Vec<Arc<str>>,
) -> bool {
    match expression {
        ast::LabelExpression::Static(name) => {
            let name: Arc<str> = name.name.as_str().into();
            if !plain.contains(&name) {
                plain.push(name);
            }
            true
        }
        ast::LabelExpression::Group { inner, .. } => collect_plain(inner, types, plain),
        ast::LabelExpression::And { lhs, rhs, .. } if !types => {
            collect_plain(lhs, types, plain) && collect_plain(rhs, types, plain)
        }
        ast::LabelExpression::Or { lhs, rhs, .. } if types => {
            collect_plain(lhs, types, plain) && collect_plain(rhs, types, plain)
        }
        _ => false,
    }
}
