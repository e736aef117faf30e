//! Random queries that no graph makes fail.

use crate::expression::Expression as E;
use crate::model::{LABELS, TYPES, mixed};
use crate::query::{
    Chain, Clause, Column, Direction, EdgePattern, NodePattern, Pattern, Projection, Query,
};
use crate::random::Random;
use crate::value::Value;

/// What a variable holds, unless it is null.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Node,
    Edge,
    /// The edges of a pattern of variable length.
    Trail,
    Path,
    Integer,
    /// A value of any simple type.
    Mixed,
    /// A list of integers and nulls.
    List,
}

/// The variables of a scope.
type Scope = Vec<(String, Kind)>;

/// Makes queries.
#[derive(Debug)]
pub(crate) struct Generator {
    pub(crate) random: Random,
    scope: Scope,
    /// The number of names given.
    names: usize,
    /// How deep the expression is that is being made.
    depth: usize,
}

impl Generator {
    pub(crate) fn new(random: Random) -> Self {
        Self { random, scope: Vec::new(), names: 0, depth: 0 }
    }

    /// A query. What it returns has no order that matters.
    pub(crate) fn query(&mut self) -> Query {
        let clauses = self.clauses();
        Query { clauses, result: self.projection(true).0 }
    }

    /// A query of rows, and a predicate in the scope of its result.
    pub(crate) fn partition(&mut self) -> (Query, E) {
        let clauses = self.clauses();
        let predicate = self.predicate();
        let columns = self.scope.clone().into_iter();
        let one = (Column::Plain(E::Literal(Value::Integer(1))), "one".into());
        let columns = columns
            .filter(|(_, kind)| !matches!(kind, Kind::Path | Kind::Trail))
            .map(|(name, _)| (Column::Plain(E::Variable(name.clone())), format!("{name}_")))
            .chain([one])
            .collect();
        let result = Projection { is_distinct: false, columns, first: None };
        (Query { clauses, result }, predicate)
    }

    fn clauses(&mut self) -> Vec<Clause> {
        self.scope.clear();
        let mut clauses = vec![Clause::Match(self.pattern(2))];
        for _ in 0..self.random.below(4) {
            clauses.push(match self.random.below(6) {
                0 => Clause::Match(self.pattern(2)),
                1 | 2 => Clause::OptionalMatch(self.pattern(2)),
                3 => {
                    let list = self.list();
                    let name = self.bind(Kind::Integer);
                    Clause::Unwind(list, name)
                }
                4 => {
                    let has_condition = self.random.chance(35);
                    Clause::Filter(has_condition.then(|| self.predicate()))
                }
                _ => {
                    let (projection, scope) = self.projection(false);
                    self.scope = scope;
                    let condition = self.random.chance(35).then(|| self.predicate());
                    Clause::With(projection, condition)
                }
            });
        }
        clauses
    }

    fn new_name(&mut self) -> String {
        self.names += 1;
        format!("v{}", self.names)
    }

    fn bind(&mut self, kind: Kind) -> String {
        let name = self.new_name();
        self.scope.push((name.clone(), kind));
        name
    }

    /// A variable of one of these kinds, if there is any.
    fn variable(&mut self, kinds: &[Kind]) -> Option<String> {
        let fitting: Vec<String> = self
            .scope
            .iter()
            .filter(|(_, kind)| kinds.contains(kind))
            .map(|(name, _)| name.clone())
            .collect();
        (!fitting.is_empty()).then(|| self.random.of(&fitting))
    }

    /// A pattern of at most so many chains; its variables come into scope.
    fn pattern(&mut self, chains: usize) -> Pattern {
        // Maps name only what was there before, so that no order of looking for chains matters.
        let mut bound = Vec::new();
        let count = 1 + self.random.below(chains);
        let chains = (0..count).map(|_| self.chain(&mut bound)).collect();
        self.scope.extend(bound);
        let condition = self.random.chance(35).then(|| Box::new(self.predicate()));
        Pattern { chains, condition }
    }

    fn chain(&mut self, bound: &mut Scope) -> Chain {
        let start = self.node(bound);
        let count = self.random.of(&[0, 0, 1, 1, 2]);
        let steps = (0..count).map(|_| (self.edge(bound), self.node(bound))).collect();
        let has_name = count > 0 && self.random.chance(20);
        let name = has_name.then(|| {
            let name = self.new_name();
            bound.push((name.clone(), Kind::Path));
            name
        });
        Chain { name, start, steps }
    }

    fn node(&mut self, bound: &mut Scope) -> NodePattern {
        let known: Vec<String> = self
            .scope
            .iter()
            .chain(bound.iter())
            .filter(|(_, kind)| *kind == Kind::Node)
            .map(|(name, _)| name.clone())
            .collect();
        if !known.is_empty() && self.random.chance(35) {
            return NodePattern { name: Some(self.random.of(&known)), ..NodePattern::default() };
        }
        let name = self.random.chance(75).then(|| self.new_name());
        let labels = LABELS.into_iter().filter(|_| self.random.chance(12)).collect();
        let has_properties = name.is_some() && self.random.chance(10);
        let properties = if has_properties { self.properties() } else { Vec::new() };
        bound.extend(name.clone().map(|name| (name, Kind::Node)));
        NodePattern { name, labels, properties }
    }

    fn edge(&mut self, bound: &mut Scope) -> EdgePattern {
        let lengths = self.random.chance(25).then(|| {
            let least = self.random.below(3);
            (least, (least + self.random.below(3)).max(1))
        });
        let name = self.random.chance(50).then(|| self.new_name());
        let kind = if lengths.is_some() { Kind::Trail } else { Kind::Edge };
        let properties = if self.random.chance(8) { self.properties() } else { Vec::new() };
        bound.extend(name.clone().map(|name| (name, kind)));
        EdgePattern {
            name,
            kinds: TYPES.into_iter().filter(|_| self.random.chance(35)).collect(),
            properties,
            direction: self.random.of(&[Direction::Right, Direction::Left, Direction::Either]),
            lengths,
        }
    }

    fn properties(&mut self) -> Vec<(&'static str, E)> {
        vec![if self.random.chance(70) { ("i", self.integer()) } else { ("m", self.simple()) }]
    }

    /// `WITH` or `RETURN`, and the scope after it.
    fn projection(&mut self, is_last: bool) -> (Projection, Scope) {
        let (mut columns, mut scope) = (Vec::new(), Vec::new());
        let is_aggregation = self.random.chance(35);
        for _ in 0..1 + self.random.below(3) {
            let (expression, kind) = self.any_value();
            let name = self.new_name();
            columns.push((Column::Plain(expression), name.clone()));
            scope.push((name, kind));
        }
        if is_aggregation {
            if self.random.chance(40) {
                (columns, scope) = (Vec::new(), Vec::new());
            }
            for _ in 0..1 + self.random.below(2) {
                let name = self.new_name();
                let (column, kind) = self.aggregate(is_last);
                columns.push((column, name.clone()));
                scope.push((name, kind));
            }
        }
        let collects =
            |(column, _): &(Column, String)| matches!(column, Column::Aggregate("collect", ..));
        let has_order = !columns.iter().any(collects);
        let first = (has_order && self.random.chance(15)).then(|| {
            let is_ascending = self.random.chance(50);
            (is_ascending, 1 + self.random.below(6))
        });
        (Projection { is_distinct: self.random.chance(20), columns, first }, scope)
    }

    fn aggregate(&mut self, is_last: bool) -> (Column, Kind) {
        let is_distinct = self.random.chance(30);
        match self.random.below(7) {
            0 => (Column::CountRows, Kind::Integer),
            1 => (Column::Aggregate("count", is_distinct, self.any_value().0), Kind::Integer),
            2 => (Column::Aggregate("sum", is_distinct, self.integer()), Kind::Integer),
            3 => (Column::Aggregate("min", is_distinct, self.simple()), Kind::Mixed),
            4 => (Column::Aggregate("max", is_distinct, self.simple()), Kind::Mixed),
            5 => (Column::Aggregate("avg", is_distinct, self.integer()), Kind::Mixed),
            // The order of its items is unspecified, so only the result has it.
            _ if is_last => (Column::Aggregate("collect", is_distinct, self.simple()), Kind::List),
            _ => (Column::CountRows, Kind::Integer),
        }
    }

    fn any_value(&mut self) -> (E, Kind) {
        match self.random.below(5) {
            0 => (self.integer(), Kind::Integer),
            1 => (self.simple(), Kind::Mixed),
            2 => (self.predicate(), Kind::Mixed),
            _ => {
                let kinds = [Kind::Node, Kind::Edge];
                let which = self.random.below(2);
                match self.variable(&kinds[which..=which]) {
                    Some(name) => (E::Variable(name), kinds[which]),
                    None => (self.integer(), Kind::Integer),
                }
            }
        }
    }

    /// An integer or null.
    fn integer(&mut self) -> E {
        let owner = self.variable(&[Kind::Node, Kind::Edge]);
        match (self.random.below(8), owner) {
            (0..=2, Some(owner)) => E::Property(owner, "i"),
            (3, _) => match self.variable(&[Kind::Integer]) {
                Some(name) => E::Variable(name),
                None => self.constant(),
            },
            (4, _) if self.depth < 3 => match self.random.of(&["+", "-", "*"]) {
                // Of a small number, so that nothing overflows.
                "*" => E::Arithmetic("*", self.deeper(|it| [it.integer(), it.constant()])),
                operator => E::Arithmetic(operator, self.deeper(|it| [it.integer(), it.integer()])),
            },
            (5, _) if self.depth < 3 => match self.variable(&[Kind::Path]) {
                Some(name) if self.random.chance(50) => E::Length(name),
                _ => E::Size(self.deeper(Self::list)),
            },
            (6, _) if self.depth < 2 => match self.random.below(3) {
                0 => E::Case(self.deeper(|it| [it.predicate(), it.integer(), it.integer()])),
                1 => E::Coalesce(self.deeper(|it| [it.integer(), it.integer()])),
                _ => E::Count(self.inner_pattern()),
            },
            _ => self.constant(),
        }
    }

    fn constant(&mut self) -> E {
        E::Literal(if self.random.chance(8) {
            Value::Null
        } else {
            Value::Integer(self.random.below(4) as i64)
        })
    }

    /// A value of any simple type, or null.
    fn simple(&mut self) -> E {
        let owner = self.variable(&[Kind::Node, Kind::Edge]);
        match (self.random.below(6), owner) {
            (0 | 1, Some(owner)) => E::Property(owner, "m"),
            (2, _) => match self.variable(&[Kind::Mixed]) {
                Some(name) => E::Variable(name),
                None => self.integer(),
            },
            (3, _) => match self.variable(&[Kind::Edge]) {
                Some(name) => E::TypeOf(name),
                None => self.integer(),
            },
            (4, _) => self.integer(),
            _ => E::Literal(mixed(&mut self.random)),
        }
    }

    /// A list of integers and nulls, or null.
    fn list(&mut self) -> E {
        let owner = self.variable(&[Kind::Node, Kind::Edge]);
        match (self.random.below(5), owner) {
            (0 | 1, Some(owner)) => E::Property(owner, "l"),
            (2, _) if self.depth < 2 => {
                let list = self.deeper(Self::list);
                let (name, inner) = self.per_item(|it| [it.predicate(), it.integer()]);
                let [condition, item] = inner;
                E::Comprehension(name, Box::new([*list, condition, item]))
            }
            _ => {
                let count = self.random.of(&[0, 2, 2, 3, 3]);
                let items = (0..count).map(|_| {
                    if self.random.chance(30) {
                        Value::Null
                    } else {
                        Value::Integer(self.random.below(4) as i64)
                    }
                });
                E::Literal(Value::List(items.collect()))
            }
        }
    }

    /// True, false or null.
    pub(crate) fn predicate(&mut self) -> E {
        let inner = self.depth < 3;
        match self.random.below(15) {
            0 if inner => E::And(self.deeper(|it| [it.predicate(), it.predicate()])),
            1 if inner => E::Or(self.deeper(|it| [it.predicate(), it.predicate()])),
            2 if inner => E::Xor(self.deeper(|it| [it.predicate(), it.predicate()])),
            3 if inner => E::Not(self.deeper(Self::predicate)),
            4 if inner => E::IsNull(self.deeper(Self::simple)),
            5 if inner => E::IsNotNull(self.deeper(Self::predicate)),
            6 | 13 => E::In(self.deeper(|it| [it.integer(), it.list()])),
            7 if inner => {
                let operator = self.random.of(&["STARTS WITH", "ENDS WITH", "CONTAINS"]);
                E::TextSearch(operator, self.deeper(|it| [it.simple(), it.simple()]))
            }
            8 if inner => {
                let kind = self.random.of(&["any", "all", "none", "single"]);
                let list = self.deeper(Self::list);
                let (name, condition) = self.per_item(Self::predicate);
                E::Quantifier(kind, name, Box::new([*list, condition]))
            }
            9 => match self.variable(&[Kind::Node]) {
                Some(name) => E::HasLabel(name, self.random.of(&LABELS)),
                None => E::boolean(self.random.chance(50)),
            },
            10 if self.depth < 2 => E::Exists(self.inner_pattern()),
            11 => {
                let kind = self.random.of(&[Kind::Node, Kind::Edge]);
                match (self.variable(&[kind]), self.variable(&[kind])) {
                    (Some(left), Some(right)) => E::equal(E::Variable(left), E::Variable(right)),
                    _ => E::boolean(self.random.chance(50)),
                }
            }
            12 => E::Between(self.deeper(|it| [it.integer(), it.integer(), it.integer()])),
            _ => {
                let operator = self.random.of(&["=", "=", "<>", "<", "<=", ">", ">="]);
                let is_mixed = self.random.chance(35);
                E::Comparison(
                    operator,
                    self.deeper(|it| {
                        if is_mixed {
                            [it.simple(), it.simple()]
                        } else {
                            [it.integer(), it.integer()]
                        }
                    }),
                )
            }
        }
    }

    fn deeper<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Box<T> {
        self.depth += 1;
        let made = make(self);
        self.depth -= 1;
        Box::new(made)
    }

    /// What is made with the item of a list in scope, and the item's name.
    fn per_item<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> (String, T) {
        let name = self.bind(Kind::Integer);
        let made = *self.deeper(make);
        self.scope.pop();
        (name, made)
    }

    /// A pattern whose variables are its own.
    fn inner_pattern(&mut self) -> Pattern {
        let scope = self.scope.clone();
        let pattern = *self.deeper(|it| it.pattern(1));
        self.scope = scope;
        pattern
    }
}
