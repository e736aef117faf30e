//! What a read asks for, as a URL, a body or the DCB dialect says it.

use super::event_json::{Style, read_after, read_fence};
use super::params::{AFTER, FENCE, LIMIT, ORDER, QUERY, SINCE, TAG, TYPE, UNTIL};
use crate::view::read_moment;
use wellspring_host::wire::json::{Cursor, Fault, FaultKind};
use wellspring_host::wire::json::{document, missing, once, rule, unknown};
use wellspring_host::wire::params::Params;
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_json::read_query;
use wellspring_log::{LeaseProof, Order};
use wellspring_types::moment::TimeRange;
use wellspring_types::{Invalid, Position, Query, QueryItem};

/// A requested read.
#[derive(Default)]
pub(crate) struct ReadRequest {
    pub(crate) query: Query,
    pub(crate) after: Option<Position>,
    pub(crate) times: TimeRange,
    pub(crate) limit: Option<u64>,
    pub(crate) order: Order,
    /// What ends a subscription.
    pub(crate) fence: Option<LeaseProof>,
}

pub(super) fn wanted_of_query(params: &Params) -> Result<ReadRequest, Box<Problem>> {
    let owned = |texts: Vec<&str>| texts.into_iter().map(str::to_owned).collect::<Vec<_>>();
    let (types, tags) = (owned(params.get(&TYPE)?), owned(params.get(&TAG)?));
    let query = match params.get(&QUERY)? {
        Some(_) if !types.is_empty() || !tags.is_empty() => {
            let detail = "query cannot be combined with type or tag; put them into its items";
            return Err(problem::INVALID.because(detail).field("query"));
        }
        Some(text) => query_of(text)?,
        None if types.is_empty() && tags.is_empty() => Query::all(),
        None => {
            let item = QueryItem { types, tags };
            item.check().map_err(|mut invalid: Invalid| {
                // `tags[1]` of the item is a `tag` of the URL.
                invalid.field.truncate(invalid.field.find('s').unwrap_or(0));
                invalid
            })?;
            Query { items: vec![item] }
        }
    };
    let (after, limit) = (params.get(&AFTER)?, params.get(&LIMIT)?);
    let fence = params.get(&FENCE)?.map(|text| json_of(text, "fence", read_fence)).transpose()?;
    let times = TimeRange { since_us: params.get(&SINCE)?, until_us: params.get(&UNTIL)? };
    Ok(ReadRequest { query, after, times, limit, order: params.get(&ORDER)?, fence })
}

/// A query given as the JSON text of a parameter, whose length is limited by that of the URL.
pub(crate) fn query_of(text: &str) -> Result<Query, Box<Problem>> {
    json_of(text, "query", read_query)
}

fn json_of<T>(
    text: &str,
    name: &str,
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T, Box<Fault>>,
) -> Result<T, Box<Problem>> {
    document(text.as_bytes(), read).map_err(|fault| of_parameter(fault, name, text))
}

/// A fault in a parameter that holds JSON.
fn of_parameter(fault: Box<Fault>, name: &str, text: &str) -> Box<Problem> {
    let fault = fault.within(name);
    let mut problem = of_fault(&fault, text.as_bytes());
    if matches!(fault.kind, FaultKind::Syntax(_)) {
        problem.detail = format!("{name} is not JSON: {}", problem.detail);
        return problem.field(name);
    }
    problem
}

pub(super) fn read_wanted(cursor: &mut Cursor<'_>) -> Result<ReadRequest, Box<Fault>> {
    let start = cursor.at();
    let (mut query, mut after, mut limit, mut order) = (None, None, None, None);
    let (mut since_us, mut until_us, mut fence) = (None, None, None);
    cursor.object(|key, value| {
        let at = value.at();
        match key {
            "query" => once(&mut query, at, read_query(value)?),
            "after" if !value.null()? => once(&mut after, at, value.u64()?),
            "limit" if !value.null()? => once(&mut limit, at, value.u64()?),
            "order" if !value.null()? => {
                let chosen = match &*value.string()? {
                    "asc" => Order::Ascending,
                    "desc" => Order::Descending,
                    _ => return rule(at, "must be \"asc\" or \"desc\""),
                };
                once(&mut order, at, chosen)
            }
            "fence" if !value.null()? => once(&mut fence, at, read_fence(value)?),
            "since" if !value.null()? => once(&mut since_us, at, read_moment(value)?),
            "until" if !value.null()? => once(&mut until_us, at, read_moment(value)?),
            "after" | "since" | "until" | "limit" | "order" | "fence" => Ok(()),
            _ => unknown(at, "query, after, since, until, limit, order, fence"),
        }
    })?;
    let Some(query) = query else { return missing("query", start) };
    let times = TimeRange { since_us, until_us };
    Ok(ReadRequest { query, after, times, limit, order: order.unwrap_or_default(), fence })
}

/// The `options` of the DCB dialect: `{"from","limit","backwards"}`, `from` inclusive.
pub(crate) fn dialect_options(text: &str, query: Query) -> Result<ReadRequest, Box<Problem>> {
    let read = |cursor: &mut Cursor<'_>| {
        let (mut from, mut limit, mut backwards) = (None, None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "from" if !value.null()? => once(&mut from, at, read_after(value, Style::Dialect)?),
                "limit" if !value.null()? => once(&mut limit, at, value.u64()?),
                "backwards" if !value.null()? => once(&mut backwards, at, value.boolean()?),
                "from" | "limit" | "backwards" => Ok(()),
                _ => unknown(at, "from, limit, backwards"),
            }
        })?;
        Ok((from, limit, backwards.unwrap_or(false)))
    };
    let (from, limit, backwards) = json_of(text, "options", read)?;
    let (order, after) = if backwards {
        (Order::Descending, from.map(|from| from.saturating_add(1)))
    } else {
        (Order::Ascending, from.map(|from| from.saturating_sub(1)))
    };
    Ok(ReadRequest { query, after, limit, order, ..ReadRequest::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn from_is_inclusive_both_ways() {
        let options = |text| dialect_options(text, Query::all()).unwrap();
        assert_eq!(options(r#"{"from":0}"#).after, Some(0));
        assert_eq!(options(r#"{"from":5}"#).after, Some(4));
        let back = options(r#"{"from":5,"backwards":true,"limit":2}"#);
        assert_eq!((back.after, back.order, back.limit), (Some(6), Order::Descending, Some(2)));
        assert!(dialect_options(r#"{"backwards":1}"#, Query::all()).is_err());
    }

    #[test]
    fn a_body_may_say_all_that_a_url_can() {
        let text = br#"{"query":{"items":[]},"after":7,"limit":3,"order":"desc",
            "since":"1970-01-01T00:00:01Z","until":"1970-01-01T00:00:02.5Z"}"#;
        let wanted = document(text, read_wanted).unwrap();
        let times = TimeRange { since_us: Some(1_000_000), until_us: Some(2_500_000) };
        assert_eq!(wanted.times, times);
        assert_eq!(
            (wanted.after, wanted.limit, wanted.order),
            (Some(7), Some(3), Order::Descending)
        );
        let fault = document(br#"{"query":{"items":[{"tag":[]}]}}"#, read_wanted).err().unwrap();
        assert_eq!(fault.field, "query.items[0].tag");
    }
}
