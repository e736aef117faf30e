//! Parses the request's body into projections; every field is checked and every error names its
//! path.

use super::bounds::MAX_STATE_BYTES;
use super::error::{ProjectError, ProjectErrorKind, join};
use super::json::{self, Kind};
use super::number::Sum;
use super::reducer::{GroupBy, Reducer};
use std::collections::HashSet;
use wellspring_types::json::{Pointer, PointerFault};
use wellspring_types::limits::{
    MAX_QUERY_ITEMS, MAX_QUERY_TERMS, MAX_QUERY_TYPES, MAX_TAG_BYTES, MAX_TAGS,
};
use wellspring_types::valid::check_text;
use wellspring_types::{Query, QueryItem, Reason};

/// Maximum number of projections of one request.
pub const MAX_PROJECTIONS: usize = 64;
/// Maximum length of a projection's name, in bytes of UTF-8.
pub const MAX_NAME_BYTES: usize = 255;
/// Maximum nesting of `group` reducers.
pub const MAX_GROUP_DEPTH: usize = 4;

/// Maximum length of a pointer, in bytes.
const MAX_POINTER_BYTES: usize = 1024;
/// Maximum number of steps of a pointer; resolving one recurses once per step.
const MAX_POINTER_STEPS: usize = 32;

/// Maximum number of members examined of an object with fixed fields; more than any such object
/// has.
const MAX_FIELDS: usize = 32;

/// One projection as requested.
#[derive(Debug, Clone)]
pub(super) struct Definition {
    pub(super) name: String,
    pub(super) query: Query,
    /// JSON as sent.
    pub(super) init: Option<String>,
    pub(super) reducer: Reducer,
}

/// The request's projections in the order they were sent.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) definitions: Vec<Definition>,
    pub(super) after: Option<u64>,
}

/// Parses the body of `POST /v1/project`.
pub(super) fn parse(body: &[u8]) -> Result<Request, ProjectError> {
    let text = std::str::from_utf8(body).map_err(|fault| {
        let (line, column) = place(body, fault.valid_up_to());
        malformed(String::new(), "is not UTF-8", line, column)
    })?;
    json::whole(text).map_err(|fault| {
        malformed(String::new(), "is not well-formed JSON", fault.line(), fault.column())
    })?;
    let root = Node { body: text, text: text.trim_ascii(), path: String::new() };
    let [projections, after] = root.fields(["projections", "after"])?;
    let projections = projections.ok_or_else(|| {
        ProjectError::missing("projections".into(), "is required: an object of projections by name")
    })?;
    let definitions = projections
        .members(MAX_PROJECTIONS, "projections")?
        .into_iter()
        .map(|(name, node)| definition(name, &node))
        .collect::<Result<Vec<Definition>, ProjectError>>()?;
    if definitions.is_empty() {
        return Err(ProjectError::rule("projections", "must hold at least one projection"));
    }
    let held: usize = definitions.iter().filter_map(|d| d.init.as_ref()).map(String::len).sum();
    if held > MAX_STATE_BYTES {
        let detail = format!("contain more than {MAX_STATE_BYTES} bytes of init values together");
        return Err(ProjectError::limit("projections", MAX_STATE_BYTES, detail));
    }
    let after = match after.filter(|node| node.kind() != Kind::Null) {
        Some(node) => Some(node.position()?),
        None => None,
    };
    Ok(Request { definitions, after })
}

/// The union of the queries: every item once, in order of first appearance.
pub(super) fn union(definitions: &[Definition]) -> Result<Query, ProjectError> {
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
        return Err(ProjectError::limit("projections", MAX_QUERY_ITEMS, detail).in_query());
    }
    let query = Query { items };
    let count = query.term_count();
    if count > MAX_QUERY_TERMS {
        let reason = Reason::TooManyTerms { count, limit: MAX_QUERY_TERMS };
        return Err(ProjectError::reason("projections".to_owned(), reason));
    }
    Ok(query)
}

fn definition(name: String, node: &Node<'_>) -> Result<Definition, ProjectError> {
    check_text(&name, MAX_NAME_BYTES)
        .map_err(|reason| ProjectError::reason(node.path.clone(), reason))?;
    let [query, types, tags, init, reduce] =
        node.fields(["query", "types", "tags", "init", "reduce"])?;
    let query = match (query, types, tags) {
        (Some(query), None, None) => full_query(&query)?,
        (Some(query), _, _) => {
            let detail =
                "cannot be combined with types or tags; give either the query or its short form";
            return Err(ProjectError::rule(&query.path, detail));
        }
        (None, None, None) => {
            let detail = "is required: {\"items\":[…]}, where an empty list means every event";
            return Err(ProjectError::missing(join(&node.path, "query"), detail));
        }
        (None, types, tags) => {
            Query { items: vec![query_item(types.as_ref(), tags.as_ref(), &node.path)?] }
        }
    };
    let reduce = reduce.ok_or_else(|| {
        ProjectError::missing(join(&node.path, "reduce"), "is required, e.g. \"count\"")
    })?;
    let reducer = reducer(&reduce, 0)?;
    check_init(&reducer, init.as_ref())?;
    Ok(Definition { name, query, init: init.map(|node| node.text.to_owned()), reducer })
}

/// A starting value that makes a sum unrepresentable is refused before the log is read.
fn check_init(reducer: &Reducer, init: Option<&Node<'_>>) -> Result<(), ProjectError> {
    let starts = matches!(reducer, Reducer::Count | Reducer::Sum(_));
    let Some(init) = init.filter(|node| starts && node.kind() == Kind::Number) else {
        return Ok(());
    };
    let mut sum = Sum::ZERO;
    if sum.add(init.text) && sum.is_finite() {
        return Ok(());
    }
    Err(ProjectError::rule(&init.path, "is beyond the range of floating point (±1.8e308)"))
}

fn full_query(node: &Node<'_>) -> Result<Query, ProjectError> {
    let [items] = node.fields(["items"])?;
    let items = items.ok_or_else(|| {
        let detail = "is required; an empty list means every event";
        ProjectError::missing(join(&node.path, "items"), detail)
    })?;
    let mut query = Query::all();
    for item in items.elements(MAX_QUERY_ITEMS).map_err(ProjectError::in_query)? {
        let [types, tags] = item.fields(["types", "tags"])?;
        query.items.push(query_item(types.as_ref(), tags.as_ref(), &item.path)?);
    }
    Ok(query)
}

fn query_item(
    types: Option<&Node<'_>>,
    tags: Option<&Node<'_>>,
    path: &str,
) -> Result<QueryItem, ProjectError> {
    let texts = |node: Option<&Node<'_>>, limit: usize| match node {
        Some(node) => {
            let texts = node.elements(limit).map_err(ProjectError::in_query)?;
            texts.iter().map(Node::string).collect()
        }
        None => Ok(Vec::new()),
    };
    let item = QueryItem { types: texts(types, MAX_QUERY_TYPES)?, tags: texts(tags, MAX_TAGS)? };
    item.check().map_err(|invalid| ProjectError::invalid(path, invalid))?;
    Ok(item)
}

/// The names of all reducers, in the order of [`reducer`].
const REDUCERS: [&str; 9] =
    ["count", "sum", "avg", "min", "max", "first", "last", "distinct", "group"];

fn reducer(node: &Node<'_>, groups: usize) -> Result<Reducer, ProjectError> {
    if node.kind() == Kind::Text {
        if node.string()? == "count" {
            return Ok(Reducer::Count);
        }
        let detail = format!("must be \"count\" or an object with one of {}", REDUCERS.join(", "));
        return Err(ProjectError::rule(&node.path, detail));
    }
    let fields = node.fields(REDUCERS)?;
    if fields.iter().flatten().count() > 1 {
        return Err(ProjectError::rule(&node.path, "names two reducers; give one"));
    }
    match fields {
        [Some(count), ..] if count.text == "true" => Ok(Reducer::Count),
        [Some(count), ..] => Err(ProjectError::rule(&count.path, "must be true")),
        [_, Some(at), ..] => Ok(Reducer::Sum(pointer(&at)?)),
        [_, _, Some(at), ..] => Ok(Reducer::Average(pointer(&at)?)),
        [_, _, _, Some(at), ..] => Ok(Reducer::Least(pointer(&at)?)),
        [_, _, _, _, Some(at), ..] => Ok(Reducer::Greatest(pointer(&at)?)),
        [.., Some(at), _, _, _] => Ok(Reducer::First(pointer(&at)?)),
        [.., Some(at), _, _] => Ok(Reducer::Last(pointer(&at)?)),
        [.., Some(at), _] => Ok(Reducer::Distinct(pointer(&at)?)),
        [.., Some(group)] => self::group(&group, groups + 1),
        _ => {
            let detail = format!("must name a reducer: one of {}", REDUCERS.join(", "));
            Err(ProjectError::missing(node.path.clone(), &detail))
        }
    }
}

fn group(node: &Node<'_>, depth: usize) -> Result<Reducer, ProjectError> {
    if depth > MAX_GROUP_DEPTH {
        let detail = format!("is nested more than {MAX_GROUP_DEPTH} groups deep");
        return Err(ProjectError::limit(&node.path, MAX_GROUP_DEPTH, detail));
    }
    let [by, reduce] = node.fields(["by", "reduce"])?;
    let by = by.ok_or_else(|| {
        let detail = "is required: a JSON Pointer, or {\"tag\":key}";
        ProjectError::missing(join(&node.path, "by"), detail)
    })?;
    let reduce = reduce.ok_or_else(|| {
        ProjectError::missing(join(&node.path, "reduce"), "is required, e.g. \"count\"")
    })?;
    Ok(Reducer::Group { by: group_by(&by)?, inner: Box::new(reducer(&reduce, depth)?) })
}

/// A JSON Pointer into the data of events.
fn pointer(node: &Node<'_>) -> Result<Pointer, ProjectError> {
    let text = node.string()?;
    if text.len() > MAX_POINTER_BYTES {
        let detail = format!("is longer than {MAX_POINTER_BYTES} bytes");
        return Err(ProjectError::limit(&node.path, MAX_POINTER_BYTES, detail));
    }
    Pointer::parse(&text, MAX_POINTER_STEPS).map_err(|fault| match fault {
        PointerFault::Start => {
            let detail =
                format!("must be a JSON Pointer: empty, or beginning with /, as in /{text}");
            ProjectError::rule(&node.path, detail)
        }
        PointerFault::Escape { .. } => {
            ProjectError::rule(&node.path, "must write ~ as ~0 and / as ~1 inside a step")
        }
        PointerFault::Steps => {
            let detail = format!("has more than {MAX_POINTER_STEPS} steps");
            ProjectError::limit(&node.path, MAX_POINTER_STEPS, detail)
        }
    })
}

fn group_by(node: &Node<'_>) -> Result<GroupBy, ProjectError> {
    if node.kind() == Kind::Text {
        return Ok(GroupBy::Data(pointer(node)?));
    }
    let [tag] = node.fields(["tag"])?;
    let tag = tag.ok_or_else(|| {
        ProjectError::missing(join(&node.path, "tag"), "is required: a tag's part before its colon")
    })?;
    let key = tag.string()?;
    check_text(&key, MAX_TAG_BYTES)
        .map_err(|reason| ProjectError::reason(tag.path.clone(), reason))?;
    if key.contains(':') {
        return Err(ProjectError::rule(&tag.path, "must be a tag's part before its first colon"));
    }
    Ok(GroupBy::Tag(key))
}

/// A value of the body and its location.
struct Node<'a> {
    /// The whole body, for a fault's line and column.
    body: &'a str,
    /// The value as sent, a part of `body`.
    text: &'a str,
    path: String,
}

impl<'a> Node<'a> {
    fn kind(&self) -> Kind {
        Kind::of(self.text)
    }

    fn want(&self, wanted: Kind) -> Result<(), ProjectError> {
        if self.kind() == wanted {
            return Ok(());
        }
        Err(ProjectError::wrong_type(&self.path, wanted.name(), self.kind().name()))
    }

    fn child(&self, text: &'a str, path: String) -> Node<'a> {
        Node { body: self.body, text, path }
    }

    /// The members, with unique names, at most `limit`.
    fn members(&self, limit: usize, what: &str) -> Result<Vec<(String, Node<'a>)>, ProjectError> {
        self.want(Kind::Object)?;
        let level = json::members(self.text, limit).map_err(|fault| self.unreadable(&fault))?;
        if level.count > limit {
            let detail = format!("contains {} {what}; the limit is {limit}", level.count);
            return Err(ProjectError::limit(&self.path, limit, detail));
        }
        let mut seen = HashSet::new();
        let mut members = Vec::with_capacity(level.kept.len());
        for (name, text) in level.kept {
            let path = join(&self.path, &name);
            if !seen.insert(name.clone()) {
                return Err(ProjectError::rule(&path, "is given twice; give it once"));
            }
            members.push((name, self.child(text, path)));
        }
        Ok(members)
    }

    /// The members by name; any unknown member is an error.
    fn fields<const N: usize>(
        &self,
        names: [&str; N],
    ) -> Result<[Option<Node<'a>>; N], ProjectError> {
        let mut fields = [const { None }; N];
        for (name, node) in self.members(MAX_FIELDS, "fields")? {
            match names.iter().position(|known| *known == name) {
                Some(i) => fields[i] = Some(node),
                None => return Err(ProjectError::unknown_field(node.path, &names)),
            }
        }
        Ok(fields)
    }

    /// The elements, at most `limit`.
    fn elements(&self, limit: usize) -> Result<Vec<Node<'a>>, ProjectError> {
        self.want(Kind::Array)?;
        let level = json::elements(self.text, limit).map_err(|fault| self.unreadable(&fault))?;
        if level.count > limit {
            let detail = format!("contains {} elements; the limit is {limit}", level.count);
            return Err(ProjectError::limit(&self.path, limit, detail));
        }
        let indexed = level.kept.into_iter().enumerate();
        Ok(indexed.map(|(i, text)| self.child(text, format!("{}[{i}]", self.path))).collect())
    }

    fn string(&self) -> Result<String, ProjectError> {
        self.want(Kind::Text)?;
        serde_json::from_str(self.text).map_err(|fault| self.unreadable(&fault))
    }

    fn position(&self) -> Result<u64, ProjectError> {
        self.want(Kind::Number)?;
        self.text.parse().map_err(|_| {
            ProjectError::rule(&self.path, "must be a whole number from 0 to 2^64 - 1")
        })
    }

    /// An error in text with valid grammar: an escape that is not a character.
    fn unreadable(&self, fault: &serde_json::Error) -> ProjectError {
        let start = (self.text.as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
        let (line, column) = place(self.body.as_bytes(), start);
        let (line, column) = match fault.line() {
            0 | 1 => (line, column + fault.column()),
            more => (line + more - 1, fault.column()),
        };
        malformed(self.path.clone(), "contains a string that is not Unicode text", line, column)
    }
}

/// Line (from 1) and the number of bytes before `offset` in it.
fn place(body: &[u8], offset: usize) -> (usize, usize) {
    let before = body.get(..offset).unwrap_or(body);
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    (line, column)
}

fn malformed(field: String, what: &str, line: usize, column: usize) -> ProjectError {
    let detail = format!("{what} (line {line}, column {column})");
    ProjectError { field, detail, kind: ProjectErrorKind::MalformedJson { line, column } }
}
