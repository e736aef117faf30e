//! Queries written in another way that has the same rows.

use crate::expression::Expression as E;
use crate::model::TYPES;
use crate::query::{Chain, Clause, Column, Direction, Pattern, Projection, Query};
use crate::random::Random;
use crate::value::Value;

/// The query with each expression replaced, the inner ones first.
pub(crate) fn map_query(query: &Query, replace: &mut dyn FnMut(E) -> E) -> Query {
    let clauses = query.clauses.iter().map(|clause| match clause {
        Clause::Match(pattern) => Clause::Match(map_pattern(pattern, replace)),
        Clause::OptionalMatch(pattern) => Clause::OptionalMatch(map_pattern(pattern, replace)),
        Clause::Unwind(list, name) => Clause::Unwind(map(list, replace), name.clone()),
        Clause::With(projection, condition) => Clause::With(
            map_projection(projection, replace),
            condition.as_ref().map(|condition| map(condition, replace)),
        ),
        Clause::Filter(condition) => {
            Clause::Filter(condition.as_ref().map(|condition| map(condition, replace)))
        }
    });
    let clauses = clauses.collect();
    Query { clauses, result: map_projection(&query.result, replace) }
}

fn map_projection(projection: &Projection, replace: &mut dyn FnMut(E) -> E) -> Projection {
    let columns = projection.columns.iter().map(|(column, name)| {
        let column = match column {
            Column::Plain(expression) => Column::Plain(map(expression, replace)),
            Column::CountRows => Column::CountRows,
            Column::Aggregate(function, is_distinct, argument) => {
                Column::Aggregate(function, *is_distinct, map(argument, replace))
            }
        };
        (column, name.clone())
    });
    Projection { columns: columns.collect(), ..projection.clone() }
}

fn map_pattern(pattern: &Pattern, replace: &mut dyn FnMut(E) -> E) -> Pattern {
    let mut pattern = pattern.clone();
    for chain in &mut pattern.chains {
        let nodes = chain
            .steps
            .iter_mut()
            .flat_map(|(edge, node)| [&mut edge.properties, &mut node.properties]);
        for (_, value) in nodes.chain([&mut chain.start.properties]).flatten() {
            *value = map(value, replace);
        }
    }
    pattern.condition = pattern.condition.map(|condition| Box::new(map(&condition, replace)));
    pattern
}

fn map(expression: &E, replace: &mut dyn FnMut(E) -> E) -> E {
    let mut expression = expression.clone();
    let operands: &mut [E] = match &mut expression {
        E::Literal(_) | E::Variable(_) | E::Property(..) | E::HasLabel(..) => &mut [],
        E::TypeOf(_) | E::Length(_) => &mut [],
        E::Arithmetic(_, operands)
        | E::Comparison(_, operands)
        | E::TextSearch(_, operands)
        | E::And(operands)
        | E::Or(operands)
        | E::Xor(operands)
        | E::In(operands)
        | E::Quantifier(_, _, operands)
        | E::Coalesce(operands) => &mut operands[..],
        E::Between(operands) | E::Comprehension(_, operands) | E::Case(operands) => {
            &mut operands[..]
        }
        E::Not(operand) | E::IsNull(operand) | E::IsNotNull(operand) | E::Size(operand) => {
            std::slice::from_mut(&mut **operand)
        }
        E::Exists(pattern) | E::Count(pattern) => {
            *pattern = map_pattern(pattern, replace);
            &mut []
        }
    };
    for operand in operands {
        *operand = map(operand, replace);
    }
    replace(expression)
}

/// An equivalent query.
pub(crate) fn rewritten(query: &Query, random: &mut Random) -> Query {
    let query = map_query(query, &mut |expression| {
        if random.chance(40) { equivalent(expression, random) } else { expression }
    });
    let mut names = 0;
    let mut clauses = Vec::new();
    for clause in query.clauses {
        match clause {
            Clause::Match(pattern) => {
                let mut pattern = respelled(pattern, random, &mut names);
                let condition = if random.chance(30) { pattern.condition.take() } else { None };
                clauses.extend(separated(pattern, random).into_iter().map(Clause::Match));
                clauses.extend(condition.map(|condition| Clause::Filter(Some(*condition))));
            }
            Clause::OptionalMatch(pattern) => {
                clauses.push(Clause::OptionalMatch(respelled(pattern, random, &mut names)));
            }
            other => clauses.push(other),
        }
        if random.chance(20) {
            clauses.push(Clause::Filter(None));
        }
    }
    Query { clauses, result: query.result }
}

/// An expression with the same value in each row.
fn equivalent(expression: E, random: &mut Random) -> E {
    let not = E::not;
    match expression {
        E::And(operands) => {
            let [left, right] = *operands;
            if random.chance(50) { E::and(right, left) } else { not(E::or(not(left), not(right))) }
        }
        E::Or(operands) => {
            let [left, right] = *operands;
            if random.chance(50) { E::or(right, left) } else { not(E::and(not(left), not(right))) }
        }
        E::Xor(operands) => {
            let [left, right] = *operands;
            let (either, both) = (E::or(left.clone(), right.clone()), E::and(left, right));
            E::and(either, not(both))
        }
        E::Comparison("<>", operands) => {
            let [left, right] = *operands;
            not(E::equal(left, right))
        }
        E::Comparison(operator, operands) => {
            let [left, right] = *operands;
            let turned = match operator {
                "<" => ">",
                "<=" => ">=",
                ">" => "<",
                ">=" => "<=",
                other => other,
            };
            E::Comparison(turned, Box::new([right, left]))
        }
        E::Between(operands) => {
            let [low, middle, high] = *operands;
            let lower = E::Comparison("<", Box::new([low, middle.clone()]));
            E::and(lower, E::Comparison("<=", Box::new([middle, high])))
        }
        E::IsNotNull(operand) => not(E::IsNull(operand)),
        E::In(operands) => match *operands {
            [sought, E::Literal(Value::List(items))] => items
                .into_iter()
                .map(|item| E::equal(sought.clone(), E::Literal(item)))
                .fold(E::boolean(false), E::or),
            other => E::In(Box::new(other)),
        },
        E::Exists(pattern) => {
            let zero = E::Literal(Value::Integer(0));
            E::Comparison(">", Box::new([E::Count(pattern), zero]))
        }
        E::Quantifier("none", name, operands) => not(E::Quantifier("any", name, operands)),
        E::Quantifier("all", name, operands) => {
            let [list, condition] = *operands;
            E::Quantifier("none", name, Box::new([list, not(condition)]))
        }
        E::Coalesce(operands) => {
            let [first, second] = *operands;
            E::Case(Box::new([E::is_null(first.clone()), second, first]))
        }
        E::Literal(Value::Integer(number)) => {
            let parts = [number - 1, 1].map(|part| E::Literal(Value::Integer(part)));
            E::Arithmetic("+", Box::new(parts))
        }
        E::HasLabel(..) => not(not(expression)),
        other => other,
    }
}

/// A pattern with the same matches: turned, in another order, with conditions instead of labels,
/// types and properties, or with a chain cut in two.
fn respelled(pattern: Pattern, random: &mut Random, names: &mut usize) -> Pattern {
    let mut conditions: Vec<E> =
        pattern.condition.map(|condition| *condition).into_iter().collect();
    let mut chains = Vec::new();
    for mut chain in pattern.chains {
        let nodes = chain.steps.iter_mut().map(|(_, node)| node).chain([&mut chain.start]);
        for node in nodes.filter(|_| random.chance(50)) {
            let name = named(&mut node.name, names);
            let labels = node.labels.drain(..).map(|label| E::HasLabel(name.clone(), label));
            conditions.extend(labels);
            conditions.extend(equalities(&name, &mut node.properties));
        }
        for (edge, _) in &mut chain.steps {
            if edge.lengths.is_some() || random.chance(50) {
                continue;
            }
            let name = named(&mut edge.name, names);
            conditions.extend(equalities(&name, &mut edge.properties));
            if edge.kinds.len() == 1 {
                let kind = E::Literal(Value::Text(edge.kinds.remove(0).into()));
                conditions.push(E::equal(E::TypeOf(name), kind));
            } else if edge.kinds.is_empty() {
                edge.kinds = TYPES.to_vec();
            }
        }
        if random.chance(50) {
            chain = turned(&chain);
        }
        if chain.steps.len() == 2 && chain.name.is_none() && random.chance(50) {
            let end = chain.steps.remove(1);
            let middle = &mut chain.steps[0].1;
            let name = Some(named(&mut middle.name, names));
            let start = crate::query::NodePattern { name, ..Default::default() };
            chains.push(Chain { name: None, start, steps: vec![end] });
        }
        let place = random.below(chains.len() + 1);
        chains.insert(place, chain);
    }
    let condition = conditions.into_iter().reduce(|left, right| {
        if random.chance(50) { E::and(left, right) } else { E::and(right, left) }
    });
    Pattern { chains, condition: condition.map(Box::new) }
}

/// Several patterns instead of one, if that frees no relationship to be used twice.
fn separated(pattern: Pattern, random: &mut Random) -> Vec<Pattern> {
    let with_steps = pattern.chains.iter().filter(|chain| !chain.steps.is_empty()).count();
    if with_steps > 1 || random.chance(50) {
        return vec![pattern];
    }
    let chains = pattern.chains.into_iter();
    let mut patterns: Vec<Pattern> =
        chains.map(|chain| Pattern { chains: vec![chain], condition: None }).collect();
    patterns.last_mut().expect("a pattern has a chain").condition = pattern.condition;
    patterns
}

/// The chain from its other end.
fn turned(chain: &Chain) -> Chain {
    let mut nodes = vec![chain.start.clone()];
    nodes.extend(chain.steps.iter().map(|(_, node)| node.clone()));
    let mut edges: Vec<_> = chain.steps.iter().map(|(edge, _)| edge.clone()).collect();
    for edge in &mut edges {
        edge.direction = match edge.direction {
            Direction::Right => Direction::Left,
            Direction::Left => Direction::Right,
            Direction::Either => Direction::Either,
        };
    }
    nodes.reverse();
    edges.reverse();
    let start = nodes.remove(0);
    Chain { name: chain.name.clone(), start, steps: edges.into_iter().zip(nodes).collect() }
}

fn named(name: &mut Option<String>, names: &mut usize) -> String {
    *names += 1;
    name.get_or_insert_with(|| format!("w{names}")).clone()
}

fn equalities<'a>(
    owner: &'a str,
    properties: &'a mut Vec<(&'static str, E)>,
) -> impl Iterator<Item = E> + 'a {
    let properties = properties.drain(..);
    properties.map(|(key, value)| E::equal(E::Property(owner.into(), key), value))
}
