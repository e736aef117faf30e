//! What may stand between `{{` and `}}`, and what it means where.

use super::value::Value;
use crate::invalid::Invalid;
use wellspring_readable::nearest::nearest;

/// Which requests a text belongs to, which decides what it can know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Before measuring: variables, data, functions, what earlier setup requests captured.
    Setup,
    /// Measured: all of it.
    Measured,
    /// After measuring: as setup.
    Teardown,
    /// Expectations: variables only.
    Fixed,
}

/// A placeholder looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// It never changes.
    Text(String),
    /// It is asked for each time.
    Value(Value),
}

/// A value that users capture, or set with `let`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slot {
    pub(crate) name: String,
    /// How many are kept for other users to draw from; `None` if it is the user's own.
    pub(crate) keep: Option<u32>,
}

/// A counter and where it begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CounterName {
    pub(crate) name: String,
    pub(crate) start: Option<u64>,
}

/// Everything that has a name in a scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// Name and text.
    pub(crate) vars: Vec<(String, String)>,
    /// Captured by setup.
    pub(crate) setup: Vec<String>,
    /// Captured or set by measured steps.
    pub(crate) slots: Vec<Slot>,
    /// Data files and their columns.
    pub(crate) data: Vec<(String, Vec<String>)>,
    /// Counters, as they are met.
    pub(crate) counters: Vec<CounterName>,
}

/// Functions, as listed in messages.
const FUNCTIONS: [&str; 10] = [
    "counter",
    "random",
    "random_hex",
    "uuid",
    "pick",
    "now_ms",
    "now_ns",
    "now_iso",
    "user",
    "run",
];
/// The longest `random_hex`.
const MOST_DIGITS: u16 = 4096;

/// Checks a name that a user gives to a variable, a capture or a data file.
pub fn check_name(name: &str) -> Result<(), Invalid> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_');
    if !starts || !name.bytes().all(word) {
        return Err(format!(
            "{name:?} cannot be a name: expected letters, digits, \"_\" and \"-\", not beginning with a digit"
        ).into());
    }
    if name == "raw" || FUNCTIONS.contains(&name) {
        return Err(format!("{name:?} cannot be a name: {{{{{name}}}}} is built in").into());
    }
    Ok(())
}

impl Names {
    /// Looks up what stands between the braces.
    pub(crate) fn resolve(&mut self, text: &str, scope: Scope) -> Result<Resolved, Invalid> {
        if let Some((_, value)) = self.vars.iter().find(|(name, _)| name == text) {
            return Ok(Resolved::Text(value.clone()));
        }
        if scope != Scope::Fixed {
            if let Some(value) = self.captured(text, scope) {
                return Ok(Resolved::Value(value));
            }
            if let Some(value) = self.column(text)? {
                return Ok(Resolved::Value(value));
            }
            if let Some(value) = self.function(text)? {
                return Ok(Resolved::Value(value));
            }
        }
        Err(self.unknown(text, scope).into())
    }

    fn captured(&self, text: &str, scope: Scope) -> Option<Value> {
        if scope == Scope::Measured
            && let Some(at) = self.slots.iter().position(|slot| slot.name == text)
        {
            return Some(Value::Slot(u16::try_from(at).ok()?, text.to_owned()));
        }
        let at = self.setup.iter().position(|name| name == text)?;
        Some(Value::Setup(u16::try_from(at).ok()?, text.to_owned()))
    }

    fn column(&self, text: &str) -> Result<Option<Value>, Invalid> {
        let Some((file, wanted)) = text.split_once('.') else { return Ok(None) };
        let Some(data) = self.data.iter().position(|(name, _)| name == file) else {
            return Ok(None);
        };
        let columns = &self.data[data].1;
        let column = columns.iter().position(|name| name == wanted).ok_or_else(|| {
            let meant = nearest(wanted, columns.iter().map(String::as_str));
            format!(
                "the data file {file:?} has no column {wanted:?}{} Its columns: {}",
                did_you_mean(meant.map(|column| format!("{file}.{column}"))),
                columns.join(", ")
            )
        })?;
        let too_many = |_| format!("the data file {file:?} has too many columns");
        Ok(Some(Value::Column {
            data: u16::try_from(data).map_err(too_many)?,
            column: u16::try_from(column).map_err(too_many)?,
            name: text.to_owned(),
        }))
    }

    fn function(&mut self, text: &str) -> Result<Option<Value>, Invalid> {
        let (name, argument) = match text.split_once(':') {
            Some((name, argument)) => (name.trim(), Some(argument)),
            None => (text, None),
        };
        let without = |value| match argument {
            None => Ok(Some(value)),
            Some(_) => Err(Invalid::new(format!("{{{{{name}}}}} takes nothing after a colon"))),
        };
        match name {
            "counter" => self.counter(argument.unwrap_or_default()).map(Some),
            "random" => random(argument).map(Some),
            "random_hex" => {
                let digits = argument.and_then(|text| text.trim().parse().ok());
                match digits.filter(|digits| (1..=MOST_DIGITS).contains(digits)) {
                    Some(digits) => Ok(Some(Value::RandomHex(digits))),
                    None => Err(format!(
                        "expected the number of digits, e.g. {{{{random_hex:16}}}}, from 1 to {MOST_DIGITS}"
                    ).into()),
                }
            }
            "pick" => match argument {
                Some(items) if !items.is_empty() => {
                    Ok(Some(Value::Pick(items.split('|').map(str::to_owned).collect())))
                }
                _ => Err("expected what to pick from, e.g. {{pick:red|green|blue}}".into()),
            },
            "uuid" => without(Value::Uuid),
            "now_ms" => without(Value::NowMs),
            "now_ns" => without(Value::NowNs),
            "now_iso" => without(Value::NowIso),
            "user" => without(Value::User),
            "run" => without(Value::Run),
            _ => Ok(None),
        }
    }

    /// `{{counter}}`, `{{counter:name}}`, `{{counter:100}}` (where it begins),
    /// `{{counter:name:100}}`.
    fn counter(&mut self, argument: &str) -> Result<Value, Invalid> {
        let (name, start) = match argument.split_once(':') {
            Some((name, start)) => (name.trim(), Some(start)),
            None if argument.trim().starts_with(|c: char| c.is_ascii_digit()) => {
                ("", Some(argument))
            }
            None => (argument.trim(), None),
        };
        let start = match start.map(|text| text.trim().parse::<u64>()) {
            None => None,
            Some(Ok(start)) if start <= 1 << 62 => Some(start),
            Some(_) => {
                return Err(format!(
                    "expected {{{{counter:name}}}} or, with its first number, {{{{counter:name:100}}}}, found {{{{counter:{argument}}}}}"
                ).into());
            }
        };
        if !name.is_empty() {
            check_name(name)?;
        }
        let at = match self.counters.iter().position(|counter| counter.name == name) {
            Some(at) => at,
            None => {
                self.counters.push(CounterName { name: name.to_owned(), start: None });
                self.counters.len() - 1
            }
        };
        let counter = &mut self.counters[at];
        match (counter.start, start) {
            (Some(there), Some(new)) if there != new => {
                return Err(format!(
                    "the counter {name:?} begins at {there} in another place and at {new} here"
                )
                .into());
            }
            (None, Some(_)) => counter.start = start,
            _ => {}
        }
        let at = u16::try_from(at).map_err(|_| "too many counters".to_owned())?;
        Ok(Value::Counter(at, name.to_owned()))
    }

    fn unknown(&self, text: &str, scope: Scope) -> String {
        if scope == Scope::Fixed {
            let vars: Vec<&str> = self.vars.iter().map(|(name, _)| name.as_str()).collect();
            return format!(
                "{{{{{text}}}}} cannot stand here: what is expected must not change, so only [vars] can be used{}",
                if vars.is_empty() { String::new() } else { format!(": {}", vars.join(", ")) }
            );
        }
        let mut known: Vec<String> = self.vars.iter().map(|(name, _)| name.clone()).collect();
        known.extend(self.setup.iter().cloned());
        if scope == Scope::Measured {
            known.extend(self.slots.iter().map(|slot| slot.name.clone()));
        }
        for (file, columns) in &self.data {
            known.extend(columns.iter().map(|column| format!("{file}.{column}")));
        }
        known.sort_unstable();
        known.dedup();
        let word = text.split(':').next().unwrap_or_default();
        let functions = FUNCTIONS.iter().copied();
        let meant = nearest(word, known.iter().map(String::as_str).chain(functions));
        let measured_only = scope != Scope::Measured && self.slots.iter().any(|s| s.name == text);
        if measured_only {
            return format!(
                "{{{{{text}}}}} is captured while measuring, and cannot be known before or after"
            );
        }
        let names = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        format!(
            "unknown placeholder {{{{{text}}}}}{} Names known here: {names}. Built in: {}",
            did_you_mean(meant.map(str::to_owned)),
            FUNCTIONS.join(", ")
        )
    }
}

fn did_you_mean(near: Option<String>) -> String {
    near.map_or_else(|| ".".to_owned(), |near| format!("; did you mean {{{{{near}}}}}?"))
}

fn random(argument: Option<&str>) -> Result<Value, Invalid> {
    let bounds = argument.and_then(|text| text.split_once("..")).and_then(|(first, last)| {
        Some((first.trim().parse::<i64>().ok()?, last.trim().parse::<i64>().ok()?))
    });
    match bounds {
        Some((first, last)) if first <= last => Ok(Value::Random(first, last)),
        Some((first, last)) => {
            Err(format!("{{{{random:{first}..{last}}}}}: the first number is above the last")
                .into())
        }
        None => Err("expected two whole numbers, both included, e.g. {{random:1..100}}".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names {
            vars: vec![("host".into(), "h".into())],
            setup: vec!["token".into()],
            slots: vec![Slot { name: "code".into(), keep: None }],
            data: vec![("users".into(), vec!["name".into(), "email".into()])],
            counters: Vec::new(),
        }
    }

    #[test]
    fn unknown_names_are_answered_with_a_guess_and_a_list() {
        let error = names().resolve("cod", Scope::Measured).unwrap_err();
        assert!(error.to_string().contains("did you mean {{code}}?"), "{error}");
        assert!(error.to_string().contains("host, token, users.email, users.name"), "{error}");
        let error = names().resolve("users.emial", Scope::Measured).unwrap_err();
        assert!(error.to_string().contains("{{users.email}}"), "{error}");
        let error = names().resolve("code", Scope::Setup).unwrap_err();
        assert!(error.to_string().contains("captured while measuring"), "{error}");
        let error = names().resolve("counter", Scope::Fixed).unwrap_err();
        assert!(error.to_string().contains("only [vars] can be used: host"), "{error}");
        let error = names().resolve("conter:x", Scope::Setup).unwrap_err();
        assert!(error.to_string().contains("{{counter}}"), "{error}");
    }

    #[test]
    fn arguments_of_functions_are_checked() {
        let mut names = names();
        for good in ["random:1..1", "random:-5..5", "random_hex:1", "uuid", "pick:a", "pick:a||b"] {
            assert!(names.resolve(good, Scope::Measured).is_ok(), "{good}");
        }
        for bad in [
            "random",
            "random:5..1",
            "random:a..b",
            "random_hex:0",
            "random_hex",
            "uuid:4",
            "pick",
            "pick:",
            "counter:1x",
            "counter:a:b",
            "counter:a b",
            "",
        ] {
            assert!(names.resolve(bad, Scope::Measured).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_counter_has_one_beginning() {
        let mut names = names();
        assert!(names.resolve("counter:order", Scope::Measured).is_ok());
        assert!(names.resolve("counter:order:7", Scope::Measured).is_ok());
        assert!(names.resolve("counter:9", Scope::Measured).is_ok());
        let error = names.resolve("counter:order:8", Scope::Measured).unwrap_err();
        assert!(error.to_string().contains("begins at 7"), "{error}");
        let starts: Vec<_> = names.counters.iter().map(|c| (c.name.as_str(), c.start)).collect();
        assert_eq!(starts, [("order", Some(7)), ("", Some(9))]);
    }

    #[test]
    fn built_in_names_cannot_be_taken() {
        assert!(check_name("order_id-2").is_ok());
        for bad in ["", "1a", "a b", "a.b", "counter", "raw", "ü"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
