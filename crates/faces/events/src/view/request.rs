//! Parses the request's body into projections; every field is checked and every error names its
//! path.

use super::bounds::{MAX_GROUPS, MAX_STATE_BYTES, Strictness};
use super::group_listing::{GroupListing, GroupOrder};
use super::number::Sum;
use super::reducer::{GroupBy, Reducer};
use super::time_bucket::{TimeBuckets, TimeUnit};
use super::value_path::ValuePath;
use jiff::tz::TimeZone;
use std::collections::HashSet;
use wellspring_json::{
    Cursor, Fault, FaultKind, Pointer, PointerFault, ReadResult, document, missing, once,
    read_items, read_text, read_texts, rule, unknown,
};
use wellspring_types::limits::{
    MAX_QUERY_ITEMS, MAX_QUERY_TERMS, MAX_QUERY_TYPES, MAX_TAG_BYTES, MAX_TAGS,
};
use wellspring_types::moment::{MOMENT_RULE, TimeRange, parse_rfc3339};
use wellspring_types::valid::{Reason, check_text};
use wellspring_types::{Invalid, Query, QueryItem};

/// Maximum number of projections of one request.
pub const MAX_PROJECTIONS: usize = 64;
/// Maximum length of a projection's name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 255;
/// Maximum nesting of `group` reducers.
pub const MAX_GROUP_DEPTH: usize = 4;

/// Maximum length of a pointer, in bytes.
const MAX_POINTER_BYTES: usize = 1024;
/// Maximum number of pointers in a list of which the first with a value counts.
const MAX_PATH_POINTERS: usize = 8;
/// Maximum number of steps of a pointer; resolving one recurses once per step.
const MAX_POINTER_STEPS: usize = 32;

/// One projection as requested.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) query: Query,
    /// JSON as sent.
    pub(super) init: Option<String>,
    pub(super) reducer: Reducer,
    pub(super) strictness: Strictness,
}

/// The request's projections in the order they were sent.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) definitions: Vec<Definition>,
    pub(super) after: Option<u64>,
    pub(super) times: TimeRange,
    pub(super) key: Option<String>,
}

/// Reads the body of `POST /v1/project`.
pub(super) fn parse(body: &[u8]) -> ReadResult<Request> {
    // What is not JSON is said to be that, whatever else is wrong before it.
    // Of nesting, the fields below know what is too deep.
    match document(body, |cursor| cursor.raw().map(drop)) {
        Err(fault) if fault.kind != FaultKind::TooDeep => return Err(fault),
        _ => {}
    }
    document(body, |cursor| {
        let start = cursor.at();
        let (mut definitions, mut after, mut append_key) = (None, None, None);
        let (mut since_us, mut until_us) = (None, None);
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                "projections" => once(&mut definitions, at, read_definitions(value)?),
                "after" if value.null()? => once(&mut after, at, None),
                "after" => once(&mut after, at, Some(value.u64()?)),
                "since" if !value.null()? => once(&mut since_us, at, read_moment(value)?),
                "until" if !value.null()? => once(&mut until_us, at, read_moment(value)?),
                "key" if !value.null()? => once(&mut append_key, at, value.string()?.into_owned()),
                "since" | "until" | "key" => Ok(()),
                _ => unknown(at, "projections, after, since, until, key"),
            }
        })?;
        let Some(definitions) = definitions else { return missing("projections", start) };
        let times = TimeRange { since_us, until_us };
        Ok(Request { definitions, after: after.flatten(), times, key: append_key })
    })
}

/// A date or a time, in µs since 1970 UTC.
pub(crate) fn read_moment(value: &mut Cursor<'_>) -> ReadResult<u64> {
    let at = value.at();
    match parse_rfc3339(&value.string()?) {
        Some(time_us) => Ok(time_us),
        None => rule(at, MOMENT_RULE),
    }
}

fn read_definitions(value: &mut Cursor<'_>) -> ReadResult<Vec<Definition>> {
    let start = value.at();
    let mut definitions = Vec::new();
    let mut names = HashSet::new();
    let mut count = 0;
    value.object(|name, value| {
        let at = value.at();
        count += 1;
        if count > MAX_PROJECTIONS {
            return value.raw().map(drop);
        }
        if !names.insert(name.to_owned()) {
            return Err(Fault::new(at, FaultKind::Duplicate));
        }
        definitions.push(read_definition(name, value)?);
        Ok(())
    })?;
    if count > MAX_PROJECTIONS {
        let detail = format!("contains {count} projections; the limit is {MAX_PROJECTIONS}");
        return too_large(start, detail, MAX_PROJECTIONS);
    }
    if definitions.is_empty() {
        return rule(start, "must hold at least one projection");
    }
    let held: usize = definitions.iter().filter_map(|d| d.init.as_ref()).map(String::len).sum();
    if held > MAX_STATE_BYTES {
        let detail = format!("contain more than {MAX_STATE_BYTES} bytes of init values together");
        return too_large(start, detail, MAX_STATE_BYTES);
    }
    Ok(definitions)
}

/// The union of the queries: every item once, in order of first appearance.
pub(super) fn union(definitions: &[Definition]) -> ReadResult<Query> {
    if definitions.iter().any(|definition| definition.query.is_all()) {
        return Ok(Query::all());
    }
    let mut seen: HashSet<QueryItem> = HashSet::new();
    let mut items = Vec::new();
    for item in definitions.iter().flat_map(|definition| &definition.query.items) {
        let mut same = item.clone();
        same.types.sort_unstable();
        same.types.dedup();
        same.tags.sort_unstable();
        if seen.insert(same) {
            items.push(item.clone());
        }
    }
    // The answer's append condition is this query, so it must be valid itself.
    if items.len() > MAX_QUERY_ITEMS {
        let detail = format!(
            "contain {} different query items together; the limit is {MAX_QUERY_ITEMS}",
            items.len()
        );
        let kind = FaultKind::TooCostly { detail, limit: MAX_QUERY_ITEMS as u64 };
        return Err(Fault::of("projections", 0, kind));
    }
    let query = Query { items };
    let count = query.term_count();
    if count > MAX_QUERY_TERMS {
        let reason = Reason::TooManyTerms { count, limit: MAX_QUERY_TERMS };
        return Err(Fault::of_invalid(Invalid { field: "projections".to_owned(), reason }, 0));
    }
    Ok(query)
}

fn read_definition(name: &str, value: &mut Cursor<'_>) -> ReadResult<Definition> {
    let start = value.at();
    check_text(name, MAX_NAME_BYTES)
        .map_err(|reason| Fault::of_invalid(Invalid { field: String::new(), reason }, start))?;
    let (mut query, mut types, mut tags, mut init, mut reducer) = (None, None, None, None, None);
    let mut is_strict = None;
    value.object(|key, value| {
        let at = value.at();
        match key {
            "query" => once(&mut query, at, (at, read_full_query(value)?)),
            "types" => once(&mut types, at, read_texts(value, MAX_QUERY_TYPES)?),
            "tags" => once(&mut tags, at, read_texts(value, MAX_TAGS)?),
            "init" => once(&mut init, at, (at, text_of(value)?)),
            "reduce" => once(&mut reducer, at, read_reducer(value, 0)?),
            "strict" => once(&mut is_strict, at, value.boolean()?),
            _ => unknown(at, "query, types, tags, init, reduce, strict"),
        }
    })?;
    let query = match (query, types, tags) {
        (Some((_, query)), None, None) => query,
        (Some((at, _)), types, _) => {
            let other = if types.is_some() { "types" } else { "tags" };
            return Err(Fault::of("query", at, FaultKind::Beside(other)));
        }
        (None, None, None) => return missing("query", start),
        (None, types, tags) => {
            let item =
                QueryItem { types: types.unwrap_or_default(), tags: tags.unwrap_or_default() };
            item.check().map_err(|invalid| Fault::of_invalid(invalid, start))?;
            Query { items: vec![item] }
        }
    };
    let Some(reducer) = reducer else { return missing("reduce", start) };
    let init = match init {
        Some((at, text)) => {
            check_init(&reducer, at, text)?;
            Some(text.to_owned())
        }
        None => None,
    };
    let strictness =
        if is_strict == Some(true) { Strictness::Refuse } else { Strictness::PassOver };
    Ok(Definition { name: name.to_owned(), query, init, reducer, strictness })
}

/// A value as sent.
fn text_of<'a>(value: &mut Cursor<'a>) -> ReadResult<&'a str> {
    // What lies between two places of a text at which a value begins and ends is text.
    value.raw().map(|bytes| std::str::from_utf8(bytes).unwrap_or_default())
}

/// A starting value that no sum could be written from is refused before the log is read.
fn check_init(reducer: &Reducer, at: usize, init: &str) -> ReadResult<()> {
    let starts = matches!(reducer, Reducer::Count | Reducer::Sum(_));
    if !starts || !init.starts_with(|first: char| first == '-' || first.is_ascii_digit()) {
        return Ok(());
    }
    let mut sum = Sum::ZERO;
    if sum.add(init) && sum.is_finite() {
        return Ok(());
    }
    let what = "is beyond the range of floating point (±1.8e308)";
    Err(Fault::of("init", at, FaultKind::Rule(what.to_owned())))
}

/// A query whose items are given: of projections, nothing stands for nothing.
fn read_full_query(value: &mut Cursor<'_>) -> ReadResult<Query> {
    let start = value.at();
    let mut items = None;
    value.object(|key, value| {
        let at = value.at();
        match key {
            "items" => once(&mut items, at, read_items(value)?),
            _ => unknown(at, "items"),
        }
    })?;
    let Some(items) = items else { return missing("items", start) };
    let query = Query { items };
    query.check().map_err(|invalid| Fault::of_invalid(invalid, start))?;
    Ok(query)
}

/// The names of all reducers.
const REDUCERS: &str = "count, sum, avg, min, max, first, last, distinct, group";

fn read_reducer(value: &mut Cursor<'_>, groups: usize) -> ReadResult<Reducer> {
    let start = value.at();
    if value.next_is(b'"') {
        return match &*value.string()? {
            "count" => Ok(Reducer::Count),
            _ => rule(start, format!("must be \"count\" or an object with one of {REDUCERS}")),
        };
    }
    let (mut reducer, mut count) = (None, 0);
    value.object(|key, value| {
        let at = value.at();
        let read = match key {
            "count" if value.raw()? == b"true" => Reducer::Count,
            "count" => return rule(at, "must be true"),
            "sum" => Reducer::Sum(read_path(value)?),
            "avg" => Reducer::Average(read_path(value)?),
            "min" => Reducer::Least(read_path(value)?),
            "max" => Reducer::Greatest(read_path(value)?),
            "first" => Reducer::First(read_path(value)?),
            "last" => Reducer::Last(read_path(value)?),
            "distinct" => Reducer::Distinct(read_path(value)?),
            "group" => read_group(value, groups + 1)?,
            _ => return unknown(at, REDUCERS),
        };
        count += 1;
        reducer = Some(read);
        Ok(())
    })?;
    match reducer {
        Some(reducer) if count == 1 => Ok(reducer),
        Some(_) => rule(start, "names two reducers; give one"),
        None => rule(start, format!("must name a reducer: one of {REDUCERS}")),
    }
}

fn read_group(value: &mut Cursor<'_>, depth: usize) -> ReadResult<Reducer> {
    let start = value.at();
    if depth > MAX_GROUP_DEPTH {
        let detail = format!("is nested more than {MAX_GROUP_DEPTH} groups deep");
        return too_large(start, detail, MAX_GROUP_DEPTH);
    }
    let (mut by, mut inner) = (None, None);
    let (mut order, mut is_descending, mut limit) = (None, None, None);
    value.object(|key, value| {
        let at = value.at();
        match key {
            "by" => once(&mut by, at, read_group_by(value)?),
            "reduce" => once(&mut inner, at, read_reducer(value, depth)?),
            "order" => once(&mut order, at, (at, read_named(value, &GroupOrder::NAMED)?)),
            "descending" => once(&mut is_descending, at, value.boolean()?),
            "limit" => once(&mut limit, at, read_limit(value)?),
            _ => unknown(at, "by, reduce, order, descending, limit"),
        }
    })?;
    let Some(by) = by else { return missing("by", start) };
    let Some(inner) = inner else { return missing("reduce", start) };
    if let Some((at, GroupOrder::Value)) = order
        && matches!(inner, Reducer::Group { .. } | Reducer::Distinct(_))
    {
        return rule(at, "\"value\" needs groups with one value; distinct and group have many");
    }
    let is_listed = order.is_some() || is_descending.is_some() || limit.is_some();
    let listing = is_listed.then(|| GroupListing {
        order: order.map_or(GroupOrder::Key, |(_, order)| order),
        is_descending: is_descending.unwrap_or(false),
        limit: limit.unwrap_or(MAX_GROUPS),
    });
    Ok(Reducer::Group { by, inner: Box::new(inner), listing })
}

/// How many groups are listed.
fn read_limit(value: &mut Cursor<'_>) -> ReadResult<usize> {
    let at = value.at();
    match usize::try_from(value.u64()?) {
        Ok(limit) if (1..=MAX_GROUPS).contains(&limit) => Ok(limit),
        _ => rule(at, format!("must be from 1 to {MAX_GROUPS}")),
    }
}

/// One of a few words.
fn read_named<T: Copy>(value: &mut Cursor<'_>, known: &[(&str, T)]) -> ReadResult<T> {
    let at = value.at();
    let name = value.string()?;
    match known.iter().find(|(known, _)| *known == name) {
        Some((_, meant)) => Ok(*meant),
        None => {
            let names: Vec<&str> = known.iter().map(|(known, _)| *known).collect();
            rule(at, format!("must be one of {}", names.join(", ")))
        }
    }
}

/// A JSON Pointer, or a list of them of which the first with a value counts.
fn read_path(value: &mut Cursor<'_>) -> ReadResult<ValuePath> {
    let start = value.at();
    if !value.next_is(b'[') {
        return Ok(ValuePath::of(vec![read_pointer(value)?]));
    }
    let mut pointers = Vec::new();
    value.array(|_, value| {
        let at = value.at();
        if pointers.len() == MAX_PATH_POINTERS {
            return rule(at, format!("must be at most {MAX_PATH_POINTERS} pointers"));
        }
        pointers.push(read_pointer(value)?);
        Ok(())
    })?;
    if pointers.is_empty() {
        return rule(start, "must have at least one pointer");
    }
    Ok(ValuePath::of(pointers))
}

/// A JSON Pointer into the data of events.
fn read_pointer(value: &mut Cursor<'_>) -> ReadResult<Pointer> {
    let at = value.at();
    let text = value.string()?;
    if text.len() > MAX_POINTER_BYTES {
        let detail = format!("is longer than {MAX_POINTER_BYTES} bytes");
        return too_large(at, detail, MAX_POINTER_BYTES);
    }
    Pointer::parse(&text, MAX_POINTER_STEPS).or_else(|fault| match fault {
        PointerFault::Start => {
            rule(at, format!("must be a JSON Pointer: empty, or beginning with /, as in /{text}"))
        }
        PointerFault::Escape { .. } => rule(at, "must write ~ as ~0 and / as ~1 inside a step"),
        PointerFault::Steps => {
            let detail = format!("has more than {MAX_POINTER_STEPS} steps");
            too_large(at, detail, MAX_POINTER_STEPS)
        }
    })
}

/// A path, `{"tag":key}` or `{"time":unit,"zone":name}`.
fn read_group_by(value: &mut Cursor<'_>) -> ReadResult<GroupBy> {
    if !value.next_is(b'{') {
        return Ok(GroupBy::Data(read_path(value)?));
    }
    let start = value.at();
    let (mut tag, mut unit, mut zone) = (None, None, None);
    value.object(|key, value| {
        let at = value.at();
        match key {
            "tag" => once(&mut tag, at, read_tag_key(value)?),
            "time" => once(&mut unit, at, read_named(value, &TimeUnit::NAMED)?),
            "zone" => once(&mut zone, at, (at, read_zone(value)?)),
            _ => unknown(at, "tag, time, zone"),
        }
    })?;
    match (tag, unit, zone) {
        (Some(key), None, None) => Ok(GroupBy::Tag(key)),
        (None, Some(unit), zone) => {
            Ok(GroupBy::Time(TimeBuckets { unit, zone: zone.map(|(_, zone)| zone) }))
        }
        (Some(_), Some(_), _) => rule(start, "must have tag or time, not both"),
        (_, None, Some((at, _))) => rule(at, "belongs to time"),
        (None, None, None) => missing("tag", start),
    }
}

/// A name of the IANA database of time zones.
fn read_zone(value: &mut Cursor<'_>) -> ReadResult<TimeZone> {
    let at = value.at();
    let name = value.string()?;
    TimeZone::get(&name)
        .or_else(|_| rule(at, "must be the name of a time zone, such as Europe/Berlin or UTC"))
}

/// A tag's part before its first colon.
fn read_tag_key(value: &mut Cursor<'_>) -> ReadResult<String> {
    let at = value.at();
    let key = read_text(value, MAX_TAG_BYTES)?;
    if key.contains(':') {
        return rule(at, "must be a tag's part before its first colon");
    }
    Ok(key)
}

fn too_large<T>(at: usize, detail: String, limit: usize) -> ReadResult<T> {
    Err(Fault::new(at, FaultKind::TooLarge { detail, limit: limit as u64 }))
}
