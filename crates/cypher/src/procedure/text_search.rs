//! Searches for words: `db.index.fulltext.query…` reads all texts of an index, so its answers
//! include what the transaction has written.

use super::built_in::BuiltInProcedure;
use super::changes::parts;
use super::search_index::{each_entity, search_index};
use super::signature::{Parameter, column};
use super::{ArgumentType, Mode, Rows};
use crate::context::Context;
use crate::error::{Detail, Error, ErrorKind, Result};
use crate::fulltext::{Document, Ranking, TextQuery, words};
use crate::value::Value;
use wellspring_graph::{SchemaKind, Value as Property};

const PARAMETERS: &[Parameter] = &[
    Parameter::required("indexName", ArgumentType::String),
    Parameter::required("queryString", ArgumentType::String),
    Parameter::optional("options", ArgumentType::Map),
];

pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "db.index.fulltext.queryNodes",
        description: "The nodes of an index whose texts answer a question, the best first.",
        mode: Mode::Read,
        parameters: PARAMETERS,
        columns: &[column("node", "NODE"), column("score", "FLOAT")],
        call: |arguments, context| answers(arguments, true, context),
    },
    BuiltInProcedure {
        name: "db.index.fulltext.queryRelationships",
        description: "The relationships of an index whose texts answer a question, the best first.",
        mode: Mode::Read,
        parameters: PARAMETERS,
        columns: &[column("relationship", "RELATIONSHIP"), column("score", "FLOAT")],
        call: |arguments, context| answers(arguments, false, context),
    },
    BuiltInProcedure {
        name: "db.index.fulltext.awaitEventuallyConsistentIndexRefresh",
        description: "Waits until searches see all writes, which they always do.",
        mode: Mode::Read,
        parameters: &[],
        columns: &[],
        call: |_, _| Ok(Rows::new()),
    },
    BuiltInProcedure {
        name: "db.index.fulltext.listAvailableAnalyzers",
        description: "How texts are divided into words.",
        mode: Mode::Server,
        parameters: &[],
        columns: &[
            column("analyzer", "STRING"),
            column("description", "STRING"),
            column("stopwords", "LIST<STRING>"),
        ],
        call: |_, _| {
            let description = "Letters, digits and underscores, in lower case.";
            let [name, description] = ["standard-no-stop-words", description].map(Value::string);
            Ok(vec![vec![name, description, Value::list(Vec::new())]])
        },
    },
];

/// Bytes that a letter of a text takes for a moment, if all words are short.
const BYTES_OF_LETTER: u64 = 24;
/// The longest question, in bytes.
const MOST_BYTES: usize = 32 << 10;

fn answers(arguments: &[Value], of_nodes: bool, context: &mut Context<'_>) -> Result<Rows> {
    let [name, question, options] = parts(arguments)?;
    let index = search_index(name, of_nodes, "fulltext", context)?;
    if index.definition.kind != SchemaKind::Fulltext {
        return Err(index.unfit("fulltext"));
    }
    let (skip, limit) = window(options)?;
    let mut ranking = Ranking::new(read(question, context)?);
    let keys = index.definition.keys.iter();
    let keys: Vec<_> = keys.map(|key| (*key, context.transaction.text(*key).to_string())).collect();
    each_entity(&index, context, &mut |entity, property, context| {
        let (mut document, mut bytes) = (Document::default(), 0);
        for (key, text) in &keys {
            let value = property(*key, context)?;
            for found in value.as_ref().map(texts).unwrap_or_default() {
                context.budget.charge_steps(1 + found.len() as u64 / 16)?;
                let word_bytes = found.len() as u64 * BYTES_OF_LETTER;
                context.budget.charge_bytes(word_bytes)?;
                bytes += word_bytes;
                document.texts.push((text.clone(), words(found).collect()));
            }
        }
        context.budget.charge_steps(ranking.steps_of(&document))?;
        context.budget.return_bytes(bytes);
        if ranking.take(entity, &document) {
            context.budget.charge_bytes(ranking.answer_bytes())?;
        }
        Ok(())
    })?;
    let ranked = ranking.finish();
    context.budget.charge_steps(ranked.len() as u64)?;
    let shown = ranked.into_iter().skip(skip).take(limit);
    Ok(shown.map(|(entity, score)| vec![entity, Value::Float(score)]).collect())
}

fn read(question: &Value, context: &mut Context<'_>) -> Result<TextQuery> {
    let Value::String(text) = question else {
        let message = format!("'queryString' must be a String, not {}.", question.type_name());
        return Err(Error::type_error(Detail::InvalidArgumentType, message));
    };
    if text.len() > MOST_BYTES {
        let message = format!("'queryString' has at most {MOST_BYTES} bytes.");
        return Err(Error::argument(Detail::NumberOutOfRange, message));
    }
    context.budget.charge_steps(1 + text.len() as u64)?;
    TextQuery::read(text).map_err(|fault| {
        let shown: String = text.chars().take(80).collect();
        let message = format!("Cannot parse '{shown}': {fault}");
        Error::runtime(ErrorKind::ProcedureError, Detail::Refused, message)
    })
}

/// How many answers are passed over, and how many are returned.
fn window(options: &Value) -> Result<(usize, usize)> {
    let entries = match options {
        Value::Map(entries) => entries,
        Value::Null => return Ok((0, usize::MAX)),
        other => {
            let message = format!("'options' must be a Map, not {}.", other.type_name());
            return Err(Error::type_error(Detail::InvalidArgumentType, message));
        }
    };
    let number = |name: &str, otherwise: usize| match entries.get(name) {
        None | Some(Value::Null) => Ok(otherwise),
        Some(Value::Integer(number)) if *number >= 0 => {
            Ok(usize::try_from(*number).unwrap_or(usize::MAX))
        }
        Some(_) => {
            let message = format!("'{name}' must be an Integer that is not negative.");
            Err(Error::argument(Detail::NumberOutOfRange, message))
        }
    };
    Ok((number("skip", 0)?, number("limit", usize::MAX)?))
}

/// The texts of a property: a text, or those in a list.
fn texts(property: &Property) -> Vec<&str> {
    match property {
        Property::String(text) => vec![&**text],
        Property::List(items) => {
            let texts = items.iter().filter_map(|item| match item {
                Property::String(text) => Some(&**text),
                _ => None,
            });
            texts.collect()
        }
        _ => Vec::new(),
    }
}
