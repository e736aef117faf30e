//! Searches by likeness: `db.index.vector.query…` compares all vectors of an index, so its answers
//! are exact.

use super::built_in::BuiltInProcedure;
use super::changes::parts;
use super::search_index::{SearchIndex, each_entity, search_index};
use super::signature::{Parameter, column};
use super::{ArgumentType, Mode, Rows};
use crate::context::Context;
use crate::error::{Detail, Error, Result};
use crate::functions::{cosine, euclidean, vector};
use crate::value::Value;
use wellspring_graph::{SchemaKind, Similarity, Value as Property, VectorSettings};

const PARAMETERS: &[Parameter] = &[
    Parameter::required("indexName", ArgumentType::String),
    Parameter::required("numberOfNearestNeighbours", ArgumentType::Integer),
    Parameter::required("query", ArgumentType::Any),
];

pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "db.index.vector.queryNodes",
        description: "The nodes of an index whose vectors are most like this one.",
        mode: Mode::Read,
        parameters: PARAMETERS,
        columns: &[column("node", "NODE"), column("score", "FLOAT")],
        call: |arguments, context| nearest(arguments, true, context),
    },
    BuiltInProcedure {
        name: "db.index.vector.queryRelationships",
        description: "The relationships of an index whose vectors are most like this one.",
        mode: Mode::Read,
        parameters: PARAMETERS,
        columns: &[column("relationship", "RELATIONSHIP"), column("score", "FLOAT")],
        call: |arguments, context| nearest(arguments, false, context),
    },
];

/// The most entities that a search returns.
const MOST_NEIGHBOURS: usize = 10_000;

fn nearest(arguments: &[Value], of_nodes: bool, context: &mut Context<'_>) -> Result<Rows> {
    let [name, count, query] = parts(arguments)?;
    let index = search_index(name, of_nodes, "vector", context)?;
    let SchemaKind::Vector(settings) = index.definition.kind else {
        return Err(index.unfit("vector"));
    };
    let count = match count {
        Value::Integer(count) => usize::try_from(*count).ok(),
        _ => None,
    };
    let count = count.filter(|count| (1..=MOST_NEIGHBOURS).contains(count)).ok_or_else(|| {
        let message = format!("'numberOfNearestNeighbours' must be 1 to {MOST_NEIGHBOURS}.");
        Error::argument(Detail::NumberOutOfRange, message)
    })?;
    let query = vector("db.index.vector.query", query, context)?;
    check_length(&index, settings, query.len())?;
    let mut best = Best { most: count, found: Vec::new() };
    let key = index.definition.keys.first().copied();
    let key = key.ok_or_else(|| Error::defect("an index without a key"))?;
    each_entity(&index, context, &mut |entity, property, context| {
        let Some(Property::List(items)) = property(key, context)? else { return Ok(()) };
        context.budget.charge_steps(1 + items.len() as u64 / 8)?;
        let numbers = items.iter().map(number);
        let numbers: Option<Vec<f64>> = numbers.collect();
        let Some(numbers) = numbers.filter(|numbers| numbers.len() == query.len()) else {
            return Ok(());
        };
        let score = match settings.similarity {
            Similarity::Cosine => cosine(&query, &numbers),
            Similarity::Euclidean => Some(euclidean(&query, &numbers)),
        };
        if let Some(score) = score {
            best.take(entity, score, context)?;
        }
        Ok(())
    })?;
    Ok(best.sorted())
}

/// Whether a vector of this length can be compared with those of the index.
fn check_length(index: &SearchIndex, settings: VectorSettings, length: usize) -> Result<()> {
    if settings.dimensions == 0 || usize::from(settings.dimensions) == length {
        return Ok(());
    }
    let message = format!(
        "Index '{}' has vectors of {} numbers, not of {length}.",
        index.definition.name, settings.dimensions
    );
    Err(Error::argument(Detail::InvalidArgumentValue, message))
}

fn number(value: &Property) -> Option<f64> {
    match value {
        Property::Float(float) => Some(*float).filter(|float| float.is_finite()),
        Property::Integer(integer) => Some(*integer as f64),
        _ => None,
    }
}

/// The best entities so far: those after the first `most` are dropped from time to time.
pub(super) struct Best {
    pub(super) most: usize,
    pub(super) found: Vec<(f64, Value)>,
}

impl Best {
    pub(super) fn take(
        &mut self,
        entity: Value,
        score: f64,
        context: &mut Context<'_>,
    ) -> Result<()> {
        let room = 2 * self.most + 64;
        if self.found.len() < room {
            context.budget.charge_bytes(size_of::<(f64, Value)>() as u64)?;
        } else {
            context.budget.charge_steps(room as u64)?;
            self.cut();
            context
                .budget
                .return_bytes(((room - self.found.len()) * size_of::<(f64, Value)>()) as u64);
            context.budget.charge_bytes(size_of::<(f64, Value)>() as u64)?;
        }
        self.found.push((score, entity));
        Ok(())
    }

    /// Keeps the best; among equals those that were found first.
    fn cut(&mut self) {
        self.found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        self.found.truncate(self.most);
    }

    /// The best, the first first, as rows of an entity and its score.
    pub(super) fn sorted(mut self) -> Rows {
        self.cut();
        self.found.into_iter().map(|(score, entity)| vec![entity, Value::Float(score)]).collect()
    }
}
