//! Queries over types and tags as JSON: the only reader and the only writer.

use crate::document::{once, unknown};
use crate::read::{Cursor, Fault, ReadResult};
use crate::write::{push_list, push_string};
use wellspring_types::{Query, QueryItem, limits};

/// `{"items":[{"types":[…],"tags":[…]}]}`. Its limits are checked.
///
/// # Errors
/// The field at fault.
pub fn read_query(value: &mut Cursor<'_>) -> ReadResult<Query> {
    let start = value.at();
    let mut items = None;
    value.object(|key, value| {
        let at = value.at();
        match key {
            "items" if value.null()? => Ok(()),
            "items" => once(&mut items, at, read_items(value)?),
            _ => unknown(at, "items"),
        }
    })?;
    let query = Query { items: items.unwrap_or_default() };
    query.check().map_err(|invalid| Fault::of_invalid(invalid, start))?;
    Ok(query)
}

/// The items of a query, one more than it may have at most.
///
/// # Errors
/// The field at fault.
pub fn read_items(value: &mut Cursor<'_>) -> ReadResult<Vec<QueryItem>> {
    let mut items = Vec::new();
    value.array(|_, value| {
        let (mut types, mut tags) = (None, None);
        value.object(|key, value| {
            let at = value.at();
            match key {
                "types" => once(&mut types, at, read_texts(value, limits::MAX_QUERY_TYPES)?),
                "tags" => once(&mut tags, at, read_texts(value, limits::MAX_TAGS)?),
                _ => unknown(at, "types, tags"),
            }
        })?;
        // One more than allowed is kept, so that the check of the query finds it.
        if items.len() <= limits::MAX_QUERY_ITEMS {
            let (types, tags) = (types.unwrap_or_default(), tags.unwrap_or_default());
            items.push(QueryItem { types, tags });
        }
        Ok(())
    })?;
    Ok(items)
}

/// Types or tags, one more than `most` at most; `null` stands for none.
///
/// # Errors
/// The field at fault.
pub fn read_texts(value: &mut Cursor<'_>, most: usize) -> ReadResult<Vec<String>> {
    let mut texts = Vec::new();
    if value.null()? {
        return Ok(texts);
    }
    value.array(|_, value| {
        let text = value.string()?;
        if texts.len() <= most {
            texts.push(text.into_owned());
        }
        Ok(())
    })?;
    Ok(texts)
}

/// Appends a query as `{"items":[…]}`.
pub fn push_query(out: &mut Vec<u8>, query: &Query) {
    let push_texts = |out: &mut Vec<u8>, name: &str, texts: &[String]| {
        push_string(out, name);
        out.push(b':');
        push_list(out, texts, |out, text| push_string(out, text));
    };
    out.extend_from_slice(b"{\"items\":[");
    for (i, item) in query.items.iter().enumerate() {
        out.extend_from_slice(if i > 0 { b",{" } else { b"{" });
        push_texts(out, "types", &item.types);
        out.push(b',');
        push_texts(out, "tags", &item.tags);
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::document;

    #[test]
    fn a_query_writes_back_as_read() {
        let text = r#"{"items":[{"types":["A","B"],"tags":["x:1"]},{"types":[],"tags":[]}]}"#;
        let query = document(text.as_bytes(), |cursor| read_query(cursor)).unwrap();
        let mut out = Vec::new();
        push_query(&mut out, &query);
        assert_eq!(String::from_utf8(out).unwrap(), text);
    }
}
