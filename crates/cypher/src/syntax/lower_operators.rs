//! Lowers operators. Long chains of `AND` and `OR` become shallow trees.

use decypher::ast::expr as ast;
use decypher::ast::expr::Expression as Tree;

use super::lower::Lowering;
use crate::error::Result;
use crate::ir::{BinaryOperator, Comparison, Expression, UnaryOperator};

impl Lowering<'_> {
    pub(super) fn binary(
        &mut self,
        operator: ast::BinaryOperator,
        lhs: &Tree,
        rhs: &Tree,
    ) -> Result<Expression> {
        let ours = match operator {
            ast::BinaryOperator::Add => BinaryOperator::Add,
            ast::BinaryOperator::Subtract => BinaryOperator::Subtract,
            ast::BinaryOperator::Multiply => BinaryOperator::Multiply,
            ast::BinaryOperator::Divide => BinaryOperator::Divide,
            ast::BinaryOperator::Modulo => BinaryOperator::Modulo,
            ast::BinaryOperator::Power => BinaryOperator::Power,
            ast::BinaryOperator::And => {
                return self.logical(operator, BinaryOperator::And, lhs, rhs);
            }
            ast::BinaryOperator::Or => return self.logical(operator, BinaryOperator::Or, lhs, rhs),
            ast::BinaryOperator::Xor => {
                return self.logical(operator, BinaryOperator::Xor, lhs, rhs);
            }
        };
        let (lhs, rhs) = (self.expression(lhs)?, self.expression(rhs)?);
        Ok(Expression::Binary(ours, Box::new(lhs), Box::new(rhs)))
    }

    /// `AND`, `OR` and `XOR` are associative, so a long chain becomes a shallow tree.
    fn logical(
        &mut self,
        operator: ast::BinaryOperator,
        ours: BinaryOperator,
        lhs: &Tree,
        rhs: &Tree,
    ) -> Result<Expression> {
        let mut operands = Vec::new();
        let mut pending = vec![rhs, lhs];
        while let Some(next) = pending.pop() {
            match next {
                Tree::BinaryOp { op, lhs, rhs, .. } if *op == operator => {
                    pending.extend([&**rhs, &**lhs])
                }
                operand => operands.push(self.expression(operand)?),
            }
        }
        Ok(balanced(ours, operands).unwrap_or(Expression::Null))
    }

    /// A comparison, or a string predicate, which the parser treats alike.
    pub(super) fn comparison(
        &mut self,
        lhs: &Tree,
        operators: &[(ast::ComparisonOperator, Box<Tree>)],
    ) -> Result<Expression> {
        let mut whole = self.expression(lhs)?;
        let mut chained = false;
        for (operator, rhs) in operators {
            let rhs = self.expression(rhs)?;
            whole = match relation(*operator) {
                Ok(relation) => match whole {
                    Expression::Comparison(first, mut rest) if chained => {
                        rest.push((relation, rhs));
                        Expression::Comparison(first, rest)
                    }
                    whole => Expression::Comparison(Box::new(whole), vec![(relation, rhs)]),
                },
                Err(operator) => Expression::Binary(operator, Box::new(whole), Box::new(rhs)),
            };
            chained = true;
        }
        Ok(whole)
    }

    pub(super) fn unary(
        &mut self,
        operator: ast::UnaryOperator,
        operand: &Tree,
    ) -> Result<Expression> {
        let ours = match operator {
            ast::UnaryOperator::Negate => UnaryOperator::Minus,
            ast::UnaryOperator::Plus => UnaryOperator::Plus,
            ast::UnaryOperator::Not => UnaryOperator::Not,
        };
        let operand = self.expression(operand)?;
        Ok(match (ours, operand) {
            (UnaryOperator::Minus, Expression::Integer(number)) if number != i64::MIN => {
                Expression::Integer(-number)
            }
            (UnaryOperator::Minus, Expression::Float(number)) => Expression::Float(-number),
            (ours, operand) => Expression::Unary(ours, Box::new(operand)),
        })
    }
}

fn relation(operator: ast::ComparisonOperator) -> std::result::Result<Comparison, BinaryOperator> {
    match operator {
        ast::ComparisonOperator::Eq => Ok(Comparison::Equal),
        ast::ComparisonOperator::Ne => Ok(Comparison::NotEqual),
        ast::ComparisonOperator::Lt => Ok(Comparison::Less),
        ast::ComparisonOperator::Le => Ok(Comparison::LessOrEqual),
        ast::ComparisonOperator::Gt => Ok(Comparison::Greater),
        ast::ComparisonOperator::Ge => Ok(Comparison::GreaterOrEqual),
        ast::ComparisonOperator::RegexMatch => Err(BinaryOperator::Matches),
        ast::ComparisonOperator::StartsWith => Err(BinaryOperator::StartsWith),
        ast::ComparisonOperator::EndsWith => Err(BinaryOperator::EndsWith),
        ast::ComparisonOperator::Contains => Err(BinaryOperator::Contains),
    }
}

/// The conjunction of the conditions, if there are any.
pub(super) fn all_of(conditions: Vec<Expression>) -> Option<Expression> {
    balanced(BinaryOperator::And, conditions)
}

/// A shallow tree over the operands in order.
fn balanced(operator: BinaryOperator, mut operands: Vec<Expression>) -> Option<Expression> {
    match operands.len() {
        0 | 1 => operands.pop(),
        many => {
            let right = balanced(operator, operands.split_off(many / 2))?;
            let left = balanced(operator, operands)?;
            Some(Expression::Binary(operator, Box::new(left), Box::new(right)))
        }
    }
}
