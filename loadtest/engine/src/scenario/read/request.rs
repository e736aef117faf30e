//! One request of a scenario file.

use super::super::document::{Fields, Kind, Node};
use super::super::error::ScenarioError;
use super::super::file::Options;
use super::super::names::Scope;
use super::super::parts;
use super::super::plan::{Body, GivenBy, HeaderPlan, RequestPlan};
use super::super::template::{Place, Segment, Template};
use super::{Reader, body, expect};
use crate::invalid::Invalid;

/// The largest body read from a file: 64 MiB.
const MOST_BODY_BYTES: u64 = 64 << 20;

/// The header fields that are given from outside the file.
pub(super) fn outer_headers(options: &Options) -> Result<Vec<HeaderPlan>, ScenarioError> {
    let authorization = options.authorization.iter().map(|value| ("authorization", value));
    let fields = options.headers.iter().map(|(name, value)| (name.as_str(), value));
    let given = fields
        .map(|field| (field, GivenBy::Request))
        .chain(authorization.map(|field| (field, GivenBy::Credentials)));
    let mut headers: Vec<HeaderPlan> = Vec::new();
    for ((name, text), given_by) in given {
        let wrong = |why: Invalid| ScenarioError::new(format!("header {name:?}"), why);
        let name = parts::header_name(name).map_err(wrong)?;
        parts::header_value(text).map_err(wrong)?;
        let mut value = Template::default();
        value.push_text(text);
        // An `Authorization` given as a field comes before credentials, as with a single request.
        if given_by == GivenBy::Request || headers.iter().all(|there| there.name != name) {
            headers.push(HeaderPlan { name, value, given_by });
        }
    }
    Ok(headers)
}

impl Reader<'_> {
    /// Reads the keys that describe one request, and leaves the others.
    pub(super) fn request(
        &mut self,
        fields: &mut Fields<'_>,
        scope: Scope,
        name: Option<&str>,
    ) -> Result<RequestPlan, ScenarioError> {
        let (body, content_type) = self.body(fields, scope)?;
        let default_method = match &body {
            Body::Bytes(bytes) if bytes.is_empty() => "GET",
            _ => "POST",
        };
        let method = parts::method(fields.text("method")?.unwrap_or(default_method))
            .map_err(|why| fields.error(format!("method: {why}")))?;
        let (origin, path) = self.path(fields, scope)?;
        let expected = expect::expected(fields, &mut self.names)?;
        let captures = self.captures(fields, scope)?;
        let name = match name {
            Some(name) => name.to_owned(),
            None => format!("{method} {}", path.probe().split('?').next().unwrap_or_default()),
        };
        // What is given from outside is for the server that is measured, and for no other.
        let outer = if origin.is_none() { self.outer_headers.clone() } else { Vec::new() };
        let headers = self.headers(fields, scope, content_type, outer)?;
        Ok(RequestPlan {
            name,
            method,
            origin,
            path,
            headers,
            body,
            expected: expected.statuses,
            checks: expected.checks,
            captures,
            repeat: 1,
        })
    }

    fn path(
        &mut self,
        fields: &mut Fields<'_>,
        scope: Scope,
    ) -> Result<(Option<String>, Template), ScenarioError> {
        let written = fields
            .text("path")?
            .ok_or_else(|| fields.error("the path is missing; expected e.g. path = \"/health\""))?;
        let wrong = |why: Invalid| ScenarioError::at(fields.line, fields.inside("path"), why);
        let (origin, written) = match origin_of(written) {
            Some(_) if scope == Scope::Measured => {
                return Err(wrong(
                    "expected a path that begins with \"/\": all measured requests go to one server, the base URL".into(),
                ));
            }
            Some((origin, path)) => (Some(origin.to_owned()), path),
            None => (None, written),
        };
        let names = &mut self.names;
        let mut path = Template::compile(written, Place::Path, names, scope).map_err(wrong)?;
        let query = fields.entries("query")?;
        if !query.is_empty() {
            let place = fields.inside("query");
            let wrong = |why| ScenarioError::at(query[0].1.line, place.clone(), why);
            let pieces = body::pairs(query, false).map_err(wrong)?;
            path.push_text(if written.contains('?') { "&" } else { "?" });
            path.push(Template::of_pieces(pieces, names, scope).map_err(wrong)?);
        }
        let wrong = |why: Invalid| ScenarioError::at(fields.line, fields.inside("path"), why);
        let mut probe = path.probe();
        if matches!(path.segments.first(), Some(Segment::Value(..))) {
            probe.insert(0, '/'); // whether it begins with one is seen when it is filled in
        }
        parts::path(&probe).map_err(wrong)?;
        Ok((origin, path))
    }

    fn headers(
        &mut self,
        fields: &mut Fields<'_>,
        scope: Scope,
        content_type: Option<&str>,
        outer: Vec<HeaderPlan>,
    ) -> Result<Vec<HeaderPlan>, ScenarioError> {
        let mut headers: Vec<HeaderPlan> = Vec::new();
        let place = fields.inside("headers");
        for (name, node) in fields.entries("headers")? {
            headers.push(self.header(name, node, scope, &place)?);
        }
        if let Some(value) = content_type
            && !headers.iter().any(|header| header.name == "content-type")
        {
            let mut template = Template::default();
            template.push_text(value);
            headers.insert(
                0,
                HeaderPlan {
                    name: "content-type".into(),
                    value: template,
                    given_by: GivenBy::Request,
                },
            );
        }
        let mut defaults = outer;
        defaults.retain(|outer| headers.iter().all(|there| there.name != outer.name));
        for (name, node) in self.default_headers {
            let mut header = self.header(name, node, scope, "headers")?;
            if !headers.iter().chain(&defaults).any(|there| there.name == header.name) {
                header.given_by = GivenBy::Scenario;
                defaults.push(header);
            }
        }
        if let Some(login) = &self.login_header
            && !headers.iter().chain(&defaults).any(|there| there.name == login.name)
        {
            defaults.push(login.clone());
        }
        defaults.append(&mut headers);
        // An empty value takes a default header away.
        defaults.retain(|header| header.value.constant() != Some(""));
        Ok(defaults)
    }

    fn header(
        &mut self,
        name: &str,
        node: &Node,
        scope: Scope,
        place: &str,
    ) -> Result<HeaderPlan, ScenarioError> {
        let wrong = |why: Invalid| ScenarioError::at(node.line, format!("{place} {name:?}"), why);
        let name = parts::header_name(name).map_err(wrong)?;
        let text = match &node.kind {
            Kind::Text(text) => text.clone(),
            Kind::Integer(number) => number.to_string(),
            other => return Err(wrong(format!("expected a text, found {}", other.what()).into())),
        };
        let value =
            Template::compile(&text, Place::Header, &mut self.names, scope).map_err(wrong)?;
        parts::header_value(&value.probe()).map_err(wrong)?;
        Ok(HeaderPlan { name, value, given_by: GivenBy::Request })
    }

    /// The body and the content type that goes with its kind.
    fn body(
        &mut self,
        fields: &mut Fields<'_>,
        scope: Scope,
    ) -> Result<(Body, Option<&'static str>), ScenarioError> {
        const NOTHING: (Body, Option<&str>) = (Body::Bytes(Vec::new()), None);
        let json = fields.take("json");
        let form = fields.entries("form")?;
        let text = fields.text("body")?;
        let file = fields.text("body_file")?;
        let given = [json.is_some(), !form.is_empty(), text.is_some(), file.is_some()];
        if given.iter().filter(|given| **given).count() > 1 {
            return Err(fields.error("expected at most one of json, form, body and body_file"));
        }
        if let Some(node) = json {
            let wrong = |why: Invalid| fields.wrong("json", node, why);
            let template = self.json(node, scope).map_err(wrong)?;
            return Ok((Body::Text(template), Some("application/json")));
        }
        if !form.is_empty() {
            let wrong = |why: Invalid| fields.wrong("form", &form[0].1, why);
            let pieces = body::pairs(form, true).map_err(wrong)?;
            let template = Template::of_pieces(pieces, &mut self.names, scope).map_err(wrong)?;
            return Ok((Body::Text(template), Some("application/x-www-form-urlencoded")));
        }
        if let Some(text) = text {
            let place = if self.sends_json(fields)? { Place::Json } else { Place::Plain };
            let template = Template::compile(text, place, &mut self.names, scope)
                .map_err(|why| ScenarioError::at(fields.line, fields.inside("body"), why))?;
            return Ok((Body::Text(template), None));
        }
        if let Some(file) = file {
            let bytes = self.files.bytes(file, MOST_BODY_BYTES);
            let bytes = bytes
                .map_err(|why| ScenarioError::at(fields.line, fields.inside("body_file"), why))?;
            return Ok((Body::Bytes(bytes), None));
        }
        Ok(NOTHING)
    }

    /// Whether a plain body's content type says that it is JSON.
    fn sends_json(&self, fields: &mut Fields<'_>) -> Result<bool, ScenarioError> {
        let own = fields.entries("headers")?;
        let named = own.iter().chain(self.default_headers);
        let mut types = named.filter(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        Ok(types.next().is_some_and(|(_, node)| match &node.kind {
            Kind::Text(text) => text.to_ascii_lowercase().contains("json"),
            _ => false,
        }))
    }

    /// `json = …`: a table or list as such, or a JSON text.
    fn json(&mut self, node: &Node, scope: Scope) -> Result<Template, Invalid> {
        let Kind::Text(text) = &node.kind else {
            return Template::of_pieces(body::json_pieces(node)?, &mut self.names, scope);
        };
        let template = Template::compile(text.trim(), Place::Json, &mut self.names, scope)?;
        let parsed: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&template.probe());
        match parsed {
            Ok(_) => Ok(template),
            Err(error) => Err(format!(
                "not valid JSON: {error} (with 0 or x in place of placeholders; write a text as \"{{{{name}}}}\", a number as {{{{name}}}})"
            ).into()),
        }
    }
}

/// Splits `https://host:1/path` into origin and path.
pub(crate) fn origin_of(url: &str) -> Option<(&str, &str)> {
    let scheme = ["http://", "https://"].into_iter().find(|scheme| url.starts_with(scheme))?;
    let rest = &url[scheme.len()..];
    match rest.find(['/', '?', '#']) {
        Some(at) => {
            let (origin, path) = url.split_at(scheme.len() + at);
            Some((origin, path))
        }
        None => Some((url, "/")),
    }
}
