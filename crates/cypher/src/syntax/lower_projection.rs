//! Lowers `WITH` and `RETURN`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use decypher::Span;
use decypher::ast::clause as ast;
use decypher::ast::expr::Expression as Tree;

use super::lower::{Chain, Lowering};
use crate::error::{Detail, Result};
use crate::ir::{
    Clause, Expression, Projection, ProjectionItem, Slot, SortKey, for_each_slot, replace_all,
};

/// The common part of `WITH` and `RETURN`.
struct Body<'a> {
    distinct: bool,
    star: bool,
    items: &'a [ast::ProjectionItem],
    order: Option<&'a ast::Order>,
    skip: Option<&'a Tree>,
    limit: Option<&'a Tree>,
    predicate: Option<&'a Tree>,
    span: Span,
}

type Columns = Vec<(Arc<str>, Slot)>;

/// Cells of a column that `*` copies: its name, its slot and its expression.
const COLUMN_CELLS: usize = 8;

impl Lowering<'_> {
    /// `WITH`: afterwards only its columns are in scope.
    pub(super) fn with(&mut self, with: &ast::With, chain: &mut Chain) -> Result<()> {
        let body = Body {
            distinct: with.distinct,
            star: with.star,
            items: &with.items,
            order: with.order.as_ref(),
            skip: with.skip.as_ref(),
            limit: with.limit.as_ref(),
            predicate: with.where_clause.as_ref(),
            span: with.span,
        };
        let (projection, columns) = self.projection(&body)?;
        self.names.replace(columns);
        self.push(chain, Clause::Project(projection))
    }

    /// `RETURN` and the columns of the result.
    pub(super) fn result(&mut self, result: &ast::Return, chain: &mut Chain) -> Result<Columns> {
        let text = self.source.text.get(result.span.start..).unwrap_or_default();
        if text.get(..4).is_some_and(|word| word.eq_ignore_ascii_case("WITH")) {
            // The parser treats a final WITH as a RETURN.
            let message =
                "Query cannot conclude with WITH (must be a RETURN clause or an update clause)";
            return Err(self.fail(Detail::InvalidClauseComposition, message, result.span));
        }
        let body = Body {
            distinct: result.distinct,
            star: result.star,
            items: &result.items,
            order: result.order.as_ref(),
            skip: result.skip.as_ref(),
            limit: result.limit.as_ref(),
            predicate: None,
            span: result.span,
        };
        let (projection, columns) = self.projection(&body)?;
        self.names.replace(columns.clone());
        self.push(chain, Clause::Project(projection))?;
        Ok(columns)
    }

    fn projection(&mut self, body: &Body<'_>) -> Result<(Projection, Columns)> {
        let outside = self.aggregates.replace(Vec::new());
        let (mut items, mut after) = (Vec::new(), Vec::new());
        let mut columns = if body.star { self.all_names()? } else { Vec::new() };
        let mut known: HashSet<Arc<str>> = columns.iter().map(|(name, _)| name.clone()).collect();
        for (_, slot) in &columns {
            items.push(ProjectionItem { slot: *slot, expression: Expression::Variable(*slot) });
        }
        for (index, item) in body.items.iter().enumerate() {
            let name = self.column_name(item, body.span, index);
            if !known.insert(name.clone()) {
                let message = format!(
                    "Multiple result columns with the same name `{name}` are not supported"
                );
                return Err(self.fail(Detail::ColumnNameConflict, message, body.span));
            }
            let (expression, aggregating) = self.item(&item.expression)?;
            let slot = match &expression {
                Expression::Variable(slot) if !aggregating => *slot,
                _ => self.fresh(),
            };
            let items = if aggregating { &mut after } else { &mut items };
            items.push(ProjectionItem { slot, expression });
            columns.push((name, slot));
        }
        for item in &mut after {
            self.in_terms_of(&items, &mut item.expression)?;
        }
        let shadowing: Vec<Slot> = (columns.iter())
            .filter_map(|(name, slot)| self.names.get(name).filter(|old| old != slot))
            .collect();
        let repeated = self.repeated_keys(body.order, &items, &after, &shadowing)?;
        let mark = self.names.mark();
        for (name, slot) in &columns {
            self.names.push(name, *slot);
        }
        let order = self.order(body.order, repeated, &items, &after)?;
        let aggregates = std::mem::replace(&mut self.aggregates, outside).unwrap_or_default();
        let mut predicate =
            body.predicate.map(|predicate| self.expression(predicate)).transpose()?;
        if let Some(predicate) = &mut predicate {
            self.in_terms_of(&items, predicate)?;
        }
        let skip = body.skip.map(|skip| self.expression(skip)).transpose()?;
        let limit = body.limit.map(|limit| self.expression(limit)).transpose()?;
        self.names.forget(mark);
        let slots: Vec<Slot> = columns.iter().map(|column| column.1).collect();
        let also_read = predicate.as_ref().map(|it| self.also_read(it, &slots)).transpose()?;
        let projection = Projection {
            items,
            aggregates,
            after,
            distinct: body.distinct,
            order,
            skip,
            limit,
            predicate,
            columns: slots,
            also_read: also_read.unwrap_or_default(),
        };
        Ok((projection, columns))
    }

    /// Lowers the expression of an item; returns whether it aggregates.
    fn item(&mut self, expression: &Tree) -> Result<(Expression, bool)> {
        let collected = self.aggregates.take().unwrap_or_default();
        self.aggregates = Some(Vec::new());
        let lowered = self.expression(expression);
        let own = self.aggregates.replace(collected).unwrap_or_default();
        let (mut expression, aggregating) = (lowered?, !own.is_empty());
        let mut slots = HashMap::new();
        for aggregate in own {
            slots.insert(aggregate.slot, self.same_or_new(aggregate)?);
        }
        if aggregating {
            replace_all(&mut expression, &mut |part| match part {
                Expression::Variable(slot) => slots.get(slot).copied().map(Expression::Variable),
                _ => None,
            });
        }
        Ok((expression, aggregating))
    }

    /// The slot of an equal existing aggregation, or of this one.
    fn same_or_new(&mut self, aggregate: crate::ir::Aggregate) -> Result<Slot> {
        self.take_cells(self.aggregates.as_ref().map_or(0, Vec::len))?;
        let known = self.aggregates.get_or_insert_default();
        let same = known.iter().find(|it| {
            it.function == aggregate.function
                && it.distinct == aggregate.distinct
                && it.arguments == aggregate.arguments
        });
        if let Some(same) = same {
            return Ok(same.slot);
        }
        let slot = aggregate.slot;
        known.push(aggregate);
        Ok(slot)
    }

    /// The sort keys that repeat projected expressions whose names the columns shadow, as in
    /// `RETURN n.i AS n ORDER BY n.i`: they mean the columns. `None` for each other key.
    fn repeated_keys(
        &mut self,
        order: Option<&ast::Order>,
        items: &[ProjectionItem],
        after: &[ProjectionItem],
        shadowing: &[Slot],
    ) -> Result<Vec<Option<Expression>>> {
        let order = order.map(|order| order.items.as_slice()).unwrap_or_default();
        if shadowing.is_empty() {
            return Ok(vec![None; order.len()]);
        }
        let mut keys = Vec::with_capacity(order.len());
        for item in order {
            let known = self.aggregates.clone();
            // A key that only makes sense with the names of the columns is lowered later.
            let lowered = self.item(&item.expression);
            let Ok((mut expression, _)) = lowered else {
                self.aggregates = known;
                keys.push(None);
                continue;
            };
            self.in_terms_of(items, &mut expression)?;
            self.in_terms_of(after, &mut expression)?;
            let (mut is_shadowed, mut has_subquery) = (false, false);
            for_each_slot(
                &expression,
                &mut |slot| is_shadowed |= shadowing.contains(&slot),
                &mut |_| has_subquery = true,
            );
            is_shadowed |= has_subquery;
            if is_shadowed {
                self.aggregates = known;
            }
            keys.push((!is_shadowed).then_some(expression));
        }
        Ok(keys)
    }

    fn order(
        &mut self,
        order: Option<&ast::Order>,
        repeated: Vec<Option<Expression>>,
        items: &[ProjectionItem],
        after: &[ProjectionItem],
    ) -> Result<Vec<SortKey>> {
        let mut keys = Vec::new();
        let order = order.map(|order| order.items.as_slice()).unwrap_or_default();
        for (item, repeated) in order.iter().zip(repeated) {
            let mut expression = match repeated {
                Some(expression) => expression,
                None => self.item(&item.expression)?.0,
            };
            self.in_terms_of(items, &mut expression)?;
            self.in_terms_of(after, &mut expression)?;
            let descending = matches!(item.direction, Some(ast::SortDirection::Descending));
            keys.push(SortKey { expression, descending });
        }
        Ok(keys)
    }

    /// `*`: all names of the query, sorted.
    fn all_names(&mut self) -> Result<Columns> {
        self.take_cells(self.names.own().len().saturating_mul(COLUMN_CELLS))?;
        let mut columns: Columns = self.names.own().to_vec();
        columns.sort_by(|a, b| a.0.cmp(&b.0));
        columns.dedup_by(|a, b| a.0 == b.0);
        Ok(columns)
    }

    fn column_name(&self, item: &ast::ProjectionItem, clause: Span, index: usize) -> Arc<str> {
        match (&item.alias, &item.expression) {
            (Some(alias), _) => alias.name.name.as_str().into(),
            (None, Tree::Variable(variable)) => variable.name.name.as_str().into(),
            (None, _) => self.columns.text(clause.start, index).unwrap_or("?").into(),
        }
    }

    /// Slots that a predicate reads in addition to the columns. A subquery can read all.
    fn also_read(&mut self, predicate: &Expression, columns: &[Slot]) -> Result<Vec<Slot>> {
        let (mut read, mut all) = (Vec::new(), false);
        for_each_slot(predicate, &mut |slot| read.push(slot), &mut |_| all = true);
        if all {
            self.take_cells(self.names.own().len())?;
            read.extend(self.names.own_slots());
        }
        let columns: HashSet<&Slot> = columns.iter().collect();
        read.retain(|slot| !columns.contains(slot));
        read.sort_unstable();
        read.dedup();
        Ok(read)
    }

    /// Lets an expression read items where it repeats them.
    fn in_terms_of(&mut self, items: &[ProjectionItem], expression: &mut Expression) -> Result<()> {
        let mut cells = self.cells;
        replace_all(expression, &mut |part| {
            let is_leaf = matches!(
                part,
                Expression::Variable(_)
                    | Expression::Null
                    | Expression::Boolean(_)
                    | Expression::Integer(_)
                    | Expression::Float(_)
                    | Expression::String(_)
                    | Expression::Parameter(_)
            );
            cells = cells.saturating_sub(items.len());
            if is_leaf || cells == 0 {
                return None;
            }
            let item = items.iter().find(|item| item.expression == *part)?;
            Some(Expression::Variable(item.slot))
        });
        self.cells = cells;
        self.take_cells(0)
    }
}
