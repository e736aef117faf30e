//! Parses the target of a request: `/e?type=Clicked&tag=page:home&ack=durable`.

use super::IngestConfig;
use crate::kept_types::KeptTypes;
use crate::names::{MAIN, log_in_path};
use crate::wire::param::{Param, Text, Texts, Words};
use crate::wire::params::{KnownParams, Params, percent_decode};
use crate::wire::problem::Problem;
use std::rc::Rc;
use wellspring_log::Ack;
use wellspring_log::batcher::EventTemplate;

static TYPE: Param<Text> =
    Param::text("type", "Type of the events; by default that of --ingest-type.");
static TAG: Param<Texts> = Param::texts("tag", "Tag of the events; repeat it for up to 64 tags.");
static SUBJECT: Param<Text> = Param::text(
    "subject",
    "Data subject of the events, which becomes a tag: their data is sealed with its key.",
);
static ACK: Param<Words<Ack>> = Param::words(
    "ack",
    "When to answer: when the events are in memory, or when they are on disk.",
    &[("accepted", Ack::Accepted), ("durable", Ack::Durable)],
    "accepted",
);
/// The parameters of a target.
pub const KNOWN: KnownParams = KnownParams { own: &[&TYPE, &TAG, &SUBJECT, &ACK], shared: &[] };

/// A parsed target.
#[derive(Debug)]
pub struct Target {
    pub(crate) log: Rc<str>,
    /// Type and tags of the events.
    pub(crate) template: EventTemplate,
    /// When to answer.
    pub(crate) ack: Ack,
    /// The data subject of the events.
    pub(super) subject: Option<TargetSubject>,
    /// The producer, by its index in the [`Intake`](super::Intake) that made this.
    pub(super) source: usize,
}

/// The data subject of a target.
#[derive(Debug)]
pub(super) struct TargetSubject {
    pub(super) name: String,
    /// Its number among the tags.
    pub(super) tag: u8,
    /// The type of the events.
    pub(super) event_type: String,
}

/// The log's name, not decoded, and the query, if this is an ingest target.
pub(super) fn split(target: &str) -> Option<(&str, &str)> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let log = if path == "/e" { MAIN } else { log_in_path(path, "/e")? };
    Some((log, query))
}

/// The name of a target's log, if it is for ingest and the name can be decoded.
pub(super) fn log_name(target: &str) -> Option<String> {
    percent_decode(split(target)?.0, false).ok()
}

/// The data subject that a target names, if it can be read.
pub(super) fn subject(target: &str) -> Option<String> {
    let (_, query) = split(target)?;
    let params = Params::of(Some(query), KNOWN).ok()?;
    params.get(&SUBJECT).ok()?.map(str::to_owned)
}

/// Parses a query for the log of this name.
///
/// # Errors
/// 400, 422: a parameter is wrong.
pub(super) fn understand(
    log: String,
    query: &str,
    config: &IngestConfig,
    kept: &KeptTypes,
) -> Result<Target, Box<Problem>> {
    let params = Params::of(Some(query), KNOWN)?;
    let event_type = params.get(&TYPE)?.unwrap_or(&config.ingest_type);
    let mut tags = params.get(&TAG)?;
    let subject = params.get(&SUBJECT)?.map(|name| {
        let tag = tags.iter().position(|tag| *tag == name).unwrap_or_else(|| {
            tags.push(name);
            tags.len() - 1
        });
        TargetSubject { name: name.to_owned(), tag: tag as u8, event_type: event_type.to_owned() }
    });
    let mut template = EventTemplate::new(event_type, &tags)?;
    if subject.is_some() {
        template = template.sealed();
    }
    kept.in_log(&log).check(event_type)?;
    let ack = params.get(&ACK)?;
    Ok(Target { log: log.into(), template, ack, subject, source: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostConfig;

    #[test]
    fn only_ingest_paths_are_targets() {
        assert_eq!(split("/e"), Some(("main", "")));
        assert_eq!(split("/e?"), Some(("main", "")));
        assert_eq!(split("/v1/e?type=T"), Some(("main", "type=T")));
        assert_eq!(split("/v1/logs/x/e"), Some(("x", "")));
        for other in ["/", "/e/", "/ee", "/v1/logs//e", "/v1/logs/a/b/e", "/v1/events", "", "e"] {
            assert_eq!(split(other), None, "{other}");
        }
    }

    #[test]
    fn parameters_override_and_mistakes_are_named() {
        let config = HostConfig::for_tests(&[]);
        let read = |target: &str| {
            let (log, query) = split(target).unwrap();
            let log = percent_decode(log, false).unwrap();
            understand(log, query, &config.ingest, &KeptTypes::default())
        };
        let target = read("/e?type=Clicked&tag=a%3A1&tag=b&ack=durable").unwrap();
        assert_eq!(target.ack, Ack::Durable);
        assert_eq!(target.template, EventTemplate::new("Clicked", &["a:1", "b"]).unwrap());
        let plain = read("/e").unwrap();
        assert_eq!(plain.ack, Ack::Accepted);
        assert_eq!(plain.template, EventTemplate::new::<&str>("Ingested", &[]).unwrap());
        for (target, field) in [
            ("/e?colour=red", "colour"),
            ("/e?ack=maybe", "ack"),
            ("/e?type=", "type"),
            ("/e?type=A&type=B", "type"),
            ("/e?tag=a&tag=a", "tags[1]"),
        ] {
            assert_eq!(read(target).unwrap_err().field.as_deref(), Some(field), "{target}");
        }
        assert_eq!(read("/e?tag=%ff").unwrap_err().kind.status, 400);
    }
}
