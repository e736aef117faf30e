//! Restores operator precedence: the parser nests `^` and chained comparisons to the right or as if
//! bracketed, and lets `IN` bind tighter than `+`.
//!
//! An in-order walk of the parser's tree yields the operators and operands as written, because
//! brackets remain in the tree. The tree is then rebuilt with the precedence of openCypher's
//! grammar.

use std::iter::Peekable;
use std::vec::IntoIter;

use decypher::Span;
use decypher::ast::clause::Finish;
use decypher::ast::expr::{
    BinaryOperator, ComparisonOperator, Expression as Tree, Literal, NormalForm, UnaryOperator,
};
use decypher::ast::query::{Query, SinglePartBody, SinglePartQuery, SingleQuery, SingleQueryKind};
use decypher::ast::visit::{VisitMut, walk_expression_mut, walk_single_query_mut};

/// Corrects all expressions of a query.
pub(super) fn mend(query: &mut Query) {
    Mender.visit_query(query);
}

struct Mender;

impl VisitMut for Mender {
    fn visit_single_query(&mut self, node: &mut SingleQuery) {
        // The parser's walk would change a copy of the part after the last `WITH` and drop it.
        let SingleQueryKind::MultiPart(parts) = &mut node.kind else {
            return walk_single_query_mut(self, node);
        };
        let body = SinglePartBody::Finish(Finish { span: Span::new(0, 0) });
        let nothing = SinglePartQuery { reading_clauses: Vec::new(), body };
        let last = std::mem::replace(&mut parts.final_part, nothing);
        walk_single_query_mut(self, node);
        let kind = SingleQueryKind::SinglePart(last);
        let mut last = SingleQuery { use_clause: None, kind };
        walk_single_query_mut(self, &mut last);
        if let (SingleQueryKind::MultiPart(parts), SingleQueryKind::SinglePart(last)) =
            (&mut node.kind, last.kind)
        {
            parts.final_part = last;
        }
    }

    fn visit_expression(&mut self, node: &mut Tree) {
        if !is_operation(node) {
            return walk_expression_mut(self, node);
        }
        let whole = std::mem::replace(node, Tree::Literal(Literal::Null));
        let mut pieces = Vec::new();
        flatten(whole, &mut pieces);
        for piece in &mut pieces {
            if let Piece::Operand(operand) = piece {
                walk_expression_mut(self, operand);
            }
        }
        let mut pieces = pieces.into_iter().peekable();
        if let Some(tree) = build(&mut pieces, LOWEST) {
            *node = tree;
        }
    }
}

/// An operator or an operand.
enum Piece {
    Operand(Tree),
    Prefix(UnaryOperator, Span),
    Infix(Infix, Span),
    Postfix(Postfix, Span),
}

#[derive(Clone, Copy)]
enum Infix {
    Binary(BinaryOperator),
    Comparison(ComparisonOperator),
    In,
}

/// `IS …`
enum Postfix {
    Null { negated: bool },
    Normalized { negated: bool, form: Option<NormalForm> },
    Typed { negated: bool, type_name: String },
}

const LOWEST: u8 = 1;
const NOT: u8 = 4;
const COMPARISON: u8 = 5;
const PREDICATE: u8 = 6;
const SIGN: u8 = 10;

impl Infix {
    /// Its precedence.
    fn level(self) -> u8 {
        match self {
            Infix::Binary(BinaryOperator::Or) => LOWEST,
            Infix::Binary(BinaryOperator::Xor) => 2,
            Infix::Binary(BinaryOperator::And) => 3,
            Infix::Comparison(
                ComparisonOperator::RegexMatch
                | ComparisonOperator::StartsWith
                | ComparisonOperator::EndsWith
                | ComparisonOperator::Contains,
            )
            | Infix::In => PREDICATE,
            Infix::Comparison(_) => COMPARISON,
            Infix::Binary(BinaryOperator::Add | BinaryOperator::Subtract) => 7,
            Infix::Binary(
                BinaryOperator::Multiply | BinaryOperator::Divide | BinaryOperator::Modulo,
            ) => 8,
            Infix::Binary(BinaryOperator::Power) => 9,
        }
    }
}

fn is_operation(tree: &Tree) -> bool {
    matches!(
        tree,
        Tree::BinaryOp { .. }
            | Tree::UnaryOp { .. }
            | Tree::Comparison { .. }
            | Tree::In { .. }
            | Tree::IsNull { .. }
            | Tree::IsNormalized { .. }
            | Tree::IsTyped { .. }
    )
}

/// The operators and operands as written.
fn flatten(tree: Tree, pieces: &mut Vec<Piece>) {
    let mut postfix = |operand: Box<Tree>, postfix: Postfix, span| {
        flatten(*operand, pieces);
        pieces.push(Piece::Postfix(postfix, span));
    };
    match tree {
        Tree::IsNull { operand, negated, span } => {
            postfix(operand, Postfix::Null { negated }, span)
        }
        Tree::IsNormalized { operand, negated, form, span } => {
            postfix(operand, Postfix::Normalized { negated, form }, span);
        }
        Tree::IsTyped { operand, negated, type_name, span } => {
            postfix(operand, Postfix::Typed { negated, type_name }, span);
        }
        Tree::BinaryOp { op, lhs, rhs, span } => {
            flatten(*lhs, pieces);
            pieces.push(Piece::Infix(Infix::Binary(op), span));
            flatten(*rhs, pieces);
        }
        Tree::In { lhs, rhs, span } => {
            flatten(*lhs, pieces);
            pieces.push(Piece::Infix(Infix::In, span));
            flatten(*rhs, pieces);
        }
        Tree::Comparison { lhs, operators, span } => {
            flatten(*lhs, pieces);
            for (operator, rhs) in operators {
                pieces.push(Piece::Infix(Infix::Comparison(operator), span));
                flatten(*rhs, pieces);
            }
        }
        Tree::UnaryOp { op, operand, span } => {
            pieces.push(Piece::Prefix(op, span));
            flatten(*operand, pieces);
        }
        operand => pieces.push(Piece::Operand(operand)),
    }
}

/// Builds the tree of the operators with at least this precedence.
fn build(pieces: &mut Peekable<IntoIter<Piece>>, least: u8) -> Option<Tree> {
    let mut tree = match pieces.next()? {
        Piece::Operand(operand) => operand,
        Piece::Prefix(op, span) => {
            let level = if op == UnaryOperator::Not { NOT } else { SIGN };
            let operand = Box::new(build(pieces, level)?);
            Tree::UnaryOp { op, operand, span }
        }
        Piece::Infix(..) | Piece::Postfix(..) => return None,
    };
    let mut chain = false;
    loop {
        let level = match pieces.peek() {
            Some(Piece::Infix(infix, _)) => infix.level(),
            Some(Piece::Postfix(..)) => PREDICATE,
            _ => return Some(tree),
        };
        if level < least {
            return Some(tree);
        }
        tree = match pieces.next()? {
            Piece::Postfix(postfix, span) => with_postfix(tree, postfix, span),
            Piece::Infix(infix, span) => {
                let rhs = Box::new(build(pieces, level + 1)?);
                combine(tree, infix, rhs, span, chain && level == COMPARISON)
            }
            Piece::Operand(_) | Piece::Prefix(..) => return None,
        };
        chain = level == COMPARISON;
    }
}

fn with_postfix(tree: Tree, postfix: Postfix, span: Span) -> Tree {
    let operand = Box::new(tree);
    match postfix {
        Postfix::Null { negated } => Tree::IsNull { operand, negated, span },
        Postfix::Normalized { negated, form } => {
            Tree::IsNormalized { operand, negated, form, span }
        }
        Postfix::Typed { negated, type_name } => {
            Tree::IsTyped { operand, negated, type_name, span }
        }
    }
}

/// Combines both sides of an operator; a comparison extends the chain on its left.
fn combine(tree: Tree, infix: Infix, rhs: Box<Tree>, span: Span, chained: bool) -> Tree {
    match (infix, tree) {
        (Infix::Comparison(operator), Tree::Comparison { lhs, mut operators, span }) if chained => {
            operators.push((operator, rhs));
            Tree::Comparison { lhs, operators, span }
        }
        (Infix::Comparison(operator), tree) => {
            Tree::Comparison { lhs: Box::new(tree), operators: vec![(operator, rhs)], span }
        }
        (Infix::Binary(op), tree) => Tree::BinaryOp { op, lhs: Box::new(tree), rhs, span },
        (Infix::In, tree) => Tree::In { lhs: Box::new(tree), rhs, span },
    }
}
