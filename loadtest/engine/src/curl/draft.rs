//! A scenario being drafted, and its text.

use crate::scenario::parts;
use std::fmt::Write as _;

/// A scenario file to be.
#[derive(Debug, Default)]
pub(super) struct Draft {
    /// Comments at the top.
    pub(super) notes: Vec<String>,
    pub(super) name: String,
    pub(super) base: Option<String>,
    pub(super) vars: Vec<Var>,
    pub(super) headers: Vec<(String, Text)>,
    pub(super) steps: Vec<DraftStep>,
}

/// A variable.
#[derive(Debug)]
pub(super) struct Var {
    pub(super) name: String,
    pub(super) value: String,
    /// Comments above it.
    pub(super) note: String,
}

/// A request to be.
#[derive(Debug, Default)]
pub(super) struct DraftStep {
    pub(super) notes: Vec<String>,
    pub(super) name: String,
    pub(super) method: String,
    /// With placeholders.
    pub(super) path: String,
    pub(super) headers: Vec<(String, Text)>,
    /// JSON, or whatever else, as it is.
    pub(super) body: Option<String>,
}

/// A text for a scenario, in which placeholders are placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text(pub(super) String);

/// A text whose braces are braces, not placeholders.
pub(super) fn literal(text: &str) -> Text {
    Text(text.replace("{{", "{{'{{'}}"))
}

/// A text as TOML.
fn quoted(text: &str) -> String {
    let plain = !text.contains(['\'', '\n', '\r']) && !text.chars().any(char::is_control);
    if plain && text.contains(['"', '\\']) {
        return format!("'{text}'");
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A key as TOML.
fn key(text: &str) -> String {
    let bare = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if bare { text.to_owned() } else { quoted(text) }
}

/// One comment, however many lines its text has.
fn comment(out: &mut String, text: &str) {
    for line in text.split(['\n', '\r']).filter(|line| !line.trim().is_empty()) {
        let line: String = line.chars().filter(|c| !c.is_control()).collect();
        let _ = writeln!(out, "# {}", line.trim_end());
    }
}

impl Draft {
    /// Gives every step a name of its own.
    fn name_steps(&mut self) {
        let mut used = std::collections::BTreeSet::new();
        for step in &mut self.steps {
            if step.name.trim().is_empty() {
                step.name =
                    format!("{} {}", step.method, step.path.split('?').next().unwrap_or(""));
            }
            let base = step.name.clone();
            let mut count = 1;
            while !used.insert(step.name.clone()) {
                count += 1;
                step.name = format!("{base} ({count})");
            }
        }
    }

    /// Moves headers that every step has with the same value to the top.
    fn share_headers(&mut self) {
        if self.steps.len() < 2 {
            return;
        }
        for header in self.steps[0].headers.clone() {
            let everywhere = self.steps.iter().all(|step| step.headers.contains(&header));
            if everywhere && header.0 != "content-type" {
                self.steps.iter_mut().for_each(|step| step.headers.retain(|one| *one != header));
                self.headers.push(header);
            }
        }
    }

    /// A variable with this value, and the placeholder that stands for it. The name
    /// is made free by a number if it is taken by another value.
    pub(super) fn var(&mut self, name: &str, value: &str, note: &str) -> Text {
        let mut free = name.to_owned();
        let mut count = 1;
        while let Some(there) = self.vars.iter().find(|var| var.name == free) {
            if there.value == value {
                return Text(format!("{{{{{free}}}}}"));
            }
            count += 1;
            free = format!("{name}_{count}");
        }
        self.vars.push(Var { name: free.clone(), value: value.to_owned(), note: note.to_owned() });
        Text(format!("{{{{{free}}}}}"))
    }

    /// The text of the scenario file.
    pub(super) fn into_toml(mut self) -> String {
        self.name_steps();
        self.share_headers();
        let mut out = String::new();
        self.notes.iter().for_each(|note| comment(&mut out, note));
        if !self.notes.is_empty() {
            out.push('\n');
        }
        let _ = writeln!(out, "name = {}", quoted(&self.name));
        if let Some(base) = &self.base {
            let _ = writeln!(out, "base = {}", quoted(base));
        }
        if !self.vars.is_empty() {
            out.push_str("\n[vars]\n");
            for var in &self.vars {
                comment(&mut out, &var.note);
                let _ = writeln!(out, "{} = {}", key(&var.name), quoted(&var.value));
            }
        }
        if !self.headers.is_empty() {
            out.push_str("\n[headers]\n");
            for (name, value) in &self.headers {
                let _ = writeln!(out, "{} = {}", key(name), quoted(&value.0));
            }
        }
        for step in &self.steps {
            step.write(&mut out);
        }
        out
    }
}

impl DraftStep {
    fn write(&self, out: &mut String) {
        out.push('\n');
        self.notes.iter().for_each(|note| comment(out, note));
        let _ = writeln!(out, "[[step]]\nname = {}", quoted(&self.name));
        if self.method != "GET" || self.body.is_some() {
            let _ = writeln!(out, "method = {}", quoted(&self.method));
        }
        let _ = writeln!(out, "path = {}", quoted(&self.path));
        let content_type = self.headers.iter().find(|(name, _)| name == "content-type");
        let is_json = content_type.is_some_and(|(_, value)| value.0 == "application/json");
        let body = match &self.body {
            None => None,
            // As `json` only what `json` would not change.
            Some(text) if is_json && text.trim() == text && is_valid_json(text) => {
                Some(("json", literal(text).0))
            }
            Some(text) => Some(("body", literal(text).0)),
        };
        let implied = matches!(body, Some(("json", _))) && is_json;
        let headers = self.headers.iter().filter(|(name, _)| !(implied && name == "content-type"));
        let headers: Vec<String> =
            headers.map(|(name, value)| format!("{} = {}", key(name), quoted(&value.0))).collect();
        if !headers.is_empty() {
            let _ = writeln!(out, "headers = {{ {} }}", headers.join(", "));
        }
        if let Some((key, text)) = body {
            let _ = writeln!(out, "{key} = {}", quoted(&text));
        }
    }

    /// Adds a header, unless it is one that the engine makes; says so if `tell`.
    pub(super) fn header(&mut self, name: &str, value: Text, tell: bool) {
        let checked =
            parts::header_name(name).and_then(|name| parts::header_value(&value.0).map(|()| name));
        match checked {
            Ok(name) => {
                self.headers.retain(|(there, _)| *there != name);
                self.headers.push((name, value));
            }
            Err(why) if tell => self.notes.push(format!("Left out: {why}.")),
            Err(_) => {}
        }
    }
}

fn is_valid_json(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_text_comes_back_from_toml(text in ".{0,30}", name in ".{1,10}") {
            let line = format!("{} = {}", key(&name), quoted(&text));
            let table: toml::Table = toml::from_str(&line).map_err(|e| TestCaseError::fail(format!("{line}: {e}")))?;
            prop_assert_eq!(table[&name].as_str(), Some(text.as_str()));
        }
    }

    #[test]
    fn a_comment_stays_one() {
        let mut out = String::new();
        comment(&mut out, "a\nname = 1\r\u{7}b");
        assert_eq!(out, "# a\n# name = 1\n# b\n");
    }
}
