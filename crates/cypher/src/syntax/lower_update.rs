//! Lowers updating clauses.

use decypher::Span;
use decypher::ast::clause as ast;
use decypher::ast::expr::Expression as Tree;
use decypher::ast::names::{SymbolicName, Variable};
use decypher::ast::query::UpdatingClause;

use super::dynamic_labels;
use super::lower::Lowering;
use crate::error::{Detail, Result};
use crate::ir::{Clause, Delete, Expression, Foreach, Merge, RemoveItem, SetItem};

impl Lowering<'_> {
    pub(super) fn updating(&mut self, clause: &UpdatingClause) -> Result<Clause> {
        match clause {
            UpdatingClause::Create(clause) => self.create(clause),
            UpdatingClause::Merge(clause) => self.merge(clause),
            UpdatingClause::Delete(clause) => self.delete(clause),
            UpdatingClause::Set(clause) => {
                self.set_items(&clause.items, clause.span).map(Clause::Set)
            }
            UpdatingClause::Remove(clause) => self.remove(clause),
            UpdatingClause::Foreach(clause) => self.foreach(clause),
        }
    }

    fn create(&mut self, clause: &ast::Create) -> Result<Clause> {
        let patterns = clause.pattern.parts.iter().map(|part| self.created(part));
        patterns.collect::<Result<_>>().map(Clause::Create)
    }

    fn merge(&mut self, clause: &ast::Merge) -> Result<Clause> {
        let (pattern, predicate, introduced) = self.merged(&clause.pattern)?;
        let (mut on_create, mut on_match) = (Vec::new(), Vec::new());
        for action in &clause.actions {
            let items = self.set_items(&action.set_items, action.span)?;
            if action.on_match { on_match.extend(items) } else { on_create.extend(items) }
        }
        Ok(Clause::Merge(Merge { pattern, predicate, on_create, on_match, introduced }))
    }

    fn delete(&mut self, clause: &ast::Delete) -> Result<Clause> {
        let targets = clause.targets.iter().map(|target| self.expression(target));
        Ok(Clause::Delete(Delete {
            detach: clause.detach,
            targets: targets.collect::<Result<_>>()?,
        }))
    }

    fn set_items(&mut self, items: &[ast::SetItem], span: Span) -> Result<Vec<SetItem>> {
        items.iter().map(|item| self.set_item(item, span)).collect()
    }

    fn set_item(&mut self, item: &ast::SetItem, span: Span) -> Result<SetItem> {
        match item {
            ast::SetItem::Property { operator: ast::SetOperator::Add, .. }
            | ast::SetItem::DynamicProperty { operator: ast::SetOperator::Add, .. } => {
                let message =
                    "+= adds the entries of a map to a node or relationship, not to a property";
                Err(self.fail(Detail::UnexpectedSyntax, message, span))
            }
            ast::SetItem::Property { property, value, .. } => {
                let (subject, key) = self.property(property)?;
                Ok(SetItem::Property { subject, key, value: self.expression(value)? })
            }
            ast::SetItem::DynamicProperty { property, key, value, .. } => {
                let (subject, key) = (self.expression(property)?, self.expression(key)?);
                let value = self.expression(value)?;
                let is_list_of =
                    |text: &str| key == Expression::List(vec![Expression::String(text.into())]);
                let is_removal = is_list_of(dynamic_labels::REMOVED);
                Ok(if is_removal || is_list_of(dynamic_labels::ADDED) {
                    SetItem::DynamicLabels { subject, labels: value, is_removal }
                } else {
                    SetItem::Property { subject, key, value }
                })
            }
            ast::SetItem::Variable { variable, value, operator } => {
                let (subject, value) = (self.variable(variable)?, self.expression(value)?);
                Ok(match operator {
                    ast::SetOperator::Assign => SetItem::Replace { subject, value },
                    ast::SetOperator::Add => SetItem::Merge { subject, value },
                })
            }
            ast::SetItem::Labels { variable, labels } => {
                Ok(SetItem::Labels { subject: self.variable(variable)?, labels: names(labels) })
            }
        }
    }

    fn remove(&mut self, clause: &ast::Remove) -> Result<Clause> {
        let items = clause.items.iter().map(|item| match item {
            ast::RemoveItem::Labels { variable, labels } => {
                Ok(RemoveItem::Labels { subject: self.variable(variable)?, labels: names(labels) })
            }
            ast::RemoveItem::Property(property) => {
                let (subject, key) = self.property(property)?;
                Ok(RemoveItem::Property { subject, key })
            }
        });
        items.collect::<Result<_>>().map(Clause::Remove)
    }

    /// The parts before and after the last dot.
    fn property(&mut self, property: &Tree) -> Result<(Expression, Expression)> {
        match property {
            Tree::PropertyLookup { base, property, .. } => {
                let key = Expression::String(property.name.name.as_str().into());
                Ok((self.expression(base)?, key))
            }
            Tree::ListIndex { list, index, .. } => {
                Ok((self.expression(list)?, self.expression(index)?))
            }
            Tree::Parenthesized(inner) => self.property(inner),
            _ => {
                let message =
                    "SET and REMOVE expect a property, such as n.name, a variable or labels";
                Err(self.fail(Detail::UnexpectedSyntax, message, Span::new(0, 0)))
            }
        }
    }

    fn variable(&mut self, variable: &Variable) -> Result<Expression> {
        let SymbolicName { name, span } = &variable.name;
        let slot = self.names.get(name).ok_or_else(|| self.undefined(name, *span))?;
        Ok(Expression::Variable(slot))
    }

    fn foreach(&mut self, clause: &ast::Foreach) -> Result<Clause> {
        let list = self.expression(&clause.list)?;
        let mark = self.names.mark();
        let variable = self.declare(&clause.variable.name.name);
        let updates = clause.updates.iter().map(|update| match update {
            ast::ForeachUpdate::Create(clause) => self.create(clause),
            ast::ForeachUpdate::Merge(clause) => self.merge(clause),
            ast::ForeachUpdate::Delete(clause) => self.delete(clause),
            ast::ForeachUpdate::Set(clause) => {
                self.set_items(&clause.items, clause.span).map(Clause::Set)
            }
            ast::ForeachUpdate::Remove(clause) => self.remove(clause),
            ast::ForeachUpdate::Foreach(clause) => self.foreach(clause),
        });
        let updates = updates.collect::<Result<_>>()?;
        self.names.forget(mark);
        Ok(Clause::Foreach(Foreach { variable, list, updates }))
    }
}

fn names(names: &[SymbolicName]) -> Vec<std::sync::Arc<str>> {
    names.iter().map(|name| name.name.as_str().into()).collect()
}
