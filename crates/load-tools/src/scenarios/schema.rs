//! Example values made from the schemas of an OpenAPI document.

use serde_json::Value;
use wellspring_load::scenario::template;

/// How deep a made-up value may be: a schema may contain itself.
const DEEPEST: usize = 8;
/// How many references may lead to one another.
const MOST_REFERENCES: usize = 16;
/// The longest list or text made up because a schema asks for so many.
const MOST_ITEMS: u64 = 64;

/// A document and what its references mean.
#[derive(Clone, Copy)]
pub(super) struct Document<'d>(pub(super) &'d Value);

impl<'d> Document<'d> {
    /// The value itself, or what its `$ref` leads to; `None` if it leads nowhere.
    pub(super) fn resolve(self, value: &'d Value) -> Option<&'d Value> {
        let mut value = value;
        for _ in 0..MOST_REFERENCES {
            let Some(reference) = value.get("$ref").and_then(Value::as_str) else {
                return Some(value);
            };
            let pointer = super::url::decode(reference.strip_prefix('#')?);
            value = self.0.pointer(&pointer)?;
        }
        None
    }

    /// An example from `example` or `examples` beside a schema, or in it.
    fn given(self, holder: &'d Value) -> Option<&'d Value> {
        if let Some(example) = holder.get("example") {
            return Some(example);
        }
        match holder.get("examples") {
            // In a schema a list of values, beside it named examples.
            Some(Value::Array(values)) => values.first(),
            Some(Value::Object(named)) => {
                named.values().find_map(|one| self.resolve(one)?.get("value"))
            }
            _ => None,
        }
    }

    /// The example of a parameter or a body, if one is given; not made up.
    pub(super) fn example(self, holder: &'d Value) -> Option<&'d Value> {
        self.given(holder).or_else(|| {
            let schema = self.resolve(holder.get("schema")?)?;
            self.given(schema).or_else(|| schema.get("default")).or_else(|| schema.get("const"))
        })
    }

    /// JSON with placeholders, made from a schema: what must be there, and what has an example.
    pub(super) fn json(self, schema: &'d Value) -> String {
        let mut out = String::new();
        self.write(schema, 0, &mut out);
        out
    }

    /// A plain value made from a schema, for a path, a query or a header.
    pub(super) fn plain(self, schema: &'d Value) -> String {
        let json = self.json(schema);
        match serde_json::from_str::<Value>(&json) {
            // Its placeholders are meant, its braces have been quoted.
            Ok(value) => joined(&value),
            Err(_) => String::new(),
        }
    }

    fn write(self, schema: &'d Value, depth: usize, out: &mut String) {
        let Some(schema) = self.resolve(schema).filter(|_| depth < DEEPEST) else {
            return out.push_str("null");
        };
        let fixed = self
            .given(schema)
            .or_else(|| schema.get("const"))
            .or_else(|| schema.get("default"))
            .or_else(|| schema.get("enum").and_then(|values| values.get(0)));
        if let Some(value) = fixed {
            return out.push_str(&super::draft::literal(&value.to_string()).0);
        }
        for choice in ["oneOf", "anyOf"] {
            if let Some(first) = schema.get(choice).and_then(|list| list.get(0)) {
                return self.write(first, depth + 1, out);
            }
        }
        match self.kind(schema) {
            "object" => self.object(schema, depth, out),
            "array" => {
                let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1);
                out.push('[');
                for at in 0..least.clamp(1, MOST_ITEMS) {
                    if at > 0 {
                        out.push(',');
                    }
                    match schema.get("items") {
                        Some(items) => self.write(items, depth + 1, out),
                        None => out.push_str("\"text\""),
                    }
                }
                out.push(']');
            }
            "integer" | "number" => out.push_str(&number(schema)),
            "boolean" => out.push_str("true"),
            "null" => out.push_str("null"),
            _ => {
                out.push('"');
                out.push_str(&text(schema));
                out.push('"');
            }
        }
    }

    fn kind(self, schema: &'d Value) -> &'d str {
        match schema.get("type") {
            Some(Value::String(kind)) => kind,
            Some(Value::Array(kinds)) => kinds
                .iter()
                .filter_map(Value::as_str)
                .find(|kind| *kind != "null")
                .unwrap_or("null"),
            _ if schema.get("properties").is_some() || schema.get("allOf").is_some() => "object",
            _ if schema.get("items").is_some() => "array",
            _ => "string",
        }
    }

    fn object(self, schema: &'d Value, depth: usize, out: &mut String) {
        let mut properties: Vec<(&str, &Value)> = Vec::new();
        let mut required: Vec<&str> = Vec::new();
        self.collect(schema, depth, &mut properties, &mut required);
        let wanted = |(name, property): &&(&'d str, &'d Value)| {
            let property = self.resolve(property).unwrap_or(property);
            let read_only = property.get("readOnly") == Some(&Value::Bool(true));
            let asked = required.contains(name) || self.given(property).is_some();
            asked && !read_only
        };
        out.push('{');
        for (at, (name, property)) in properties.iter().filter(wanted).enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push('"');
            let mut key = String::new();
            template::json(name, &mut key);
            out.push_str(&super::draft::literal(&key).0);
            out.push_str("\":");
            self.write(property, depth + 1, out);
        }
        out.push('}');
    }

    /// Properties and required names of a schema and all it is made of.
    fn collect(
        self,
        schema: &'d Value,
        depth: usize,
        properties: &mut Vec<(&'d str, &'d Value)>,
        required: &mut Vec<&'d str>,
    ) {
        let Some(schema) = self.resolve(schema).filter(|_| depth < DEEPEST) else { return };
        for part in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.collect(part, depth + 1, properties, required);
        }
        for (name, property) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            properties.retain(|(there, _)| there != name);
            properties.push((name, property));
        }
        let names = schema.get("required").and_then(Value::as_array);
        required.extend(names.into_iter().flatten().filter_map(Value::as_str));
    }
}

/// A value of a document as it stands in a path or a query; a list with commas.
pub(super) fn plain_text(value: &Value) -> String {
    super::draft::literal(&joined(value)).0
}

fn joined(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(joined).collect::<Vec<_>>().join(","),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

fn number(schema: &Value) -> String {
    if let Some(least) = schema.get("minimum").filter(|least| least.is_number()) {
        return least.to_string();
    }
    match schema.get("maximum").and_then(Value::as_f64) {
        Some(most) if most < 1.0 => "0".into(),
        _ => "1".into(),
    }
}

fn text(schema: &Value) -> String {
    let made = match schema.get("format").and_then(Value::as_str).unwrap_or_default() {
        "uuid" => "{{uuid}}",
        "date-time" => "{{now_iso}}",
        "date" => "2026-01-01",
        "time" => "12:00:00Z",
        "email" => "user@example.com",
        "uri" | "url" => "http://example.com/",
        "hostname" => "example.com",
        "ipv4" => "127.0.0.1",
        "ipv6" => "::1",
        "byte" => "dGV4dA==",
        _ => {
            let least = schema.get("minLength").and_then(Value::as_u64).unwrap_or(0);
            let most = schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX);
            let mut text =
                "text".repeat(usize::try_from(least.min(MOST_ITEMS) / 4 + 1).unwrap_or(1));
            text.truncate(usize::try_from(least.max(4).min(most)).unwrap_or(4));
            return text;
        }
    };
    made.to_owned()
}
