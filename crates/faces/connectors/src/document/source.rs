//! The document that defines a source.

use super::kafka::{SaslDocument, TlsDocument, connection, topic};
use super::sink::{log_name, start_of};
use super::{FieldFault, MAX_LIST, fault, required};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wellspring_connectors::sink::StartAt;
use wellspring_connectors::source::{RecordData, SourceDefinition, Template};
use wellspring_host::names::MAIN;

/// The definition of a source, as a client writes it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SourceDocument {
    /// The log it appends to; by default `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    brokers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sasl: Option<SaslDocument>,
    /// `beginning` or `now`.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Value>,
    /// Template of the type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    event_type: Option<String>,
    /// Templates of the tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    tags: Option<Vec<String>>,
    /// `json` or `binary`.
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reject_log: Option<String>,
}

impl SourceDocument {
    /// The parsed definition, or the first field at fault.
    pub(crate) fn definition(&self) -> Result<SourceDefinition, FieldFault> {
        let Some(brokers) = &self.brokers else { return fault("brokers", "is missing") };
        let template =
            |field: &str, text: &str| Template::parse(text).or_else(|detail| fault(field, detail));
        let tags = self.tags.as_deref().unwrap_or_default();
        if tags.len() > MAX_LIST {
            return fault("tags", format!("holds more than {MAX_LIST} tags"));
        }
        let tags = tags.iter().enumerate();
        let start = start_of(self.from.as_ref())?;
        if let StartAt::After(_) | StartAt::Since(_) = start {
            return fault("from", "must be \"beginning\" or \"now\"");
        }
        let log = log_name("log", self.log.as_deref().unwrap_or(MAIN))?;
        let reject_log = self.reject_log.as_deref();
        if reject_log == Some(log.as_str()) {
            return fault("reject_log", "must not be the same log as log");
        }
        Ok(SourceDefinition {
            connection: connection(brokers, self.tls.as_ref(), self.sasl.as_ref())?,
            topic: topic("topic", &required("topic", self.topic.as_ref())?)?,
            start,
            event_type: template("type", &required("type", self.event_type.as_ref())?)?,
            tags: tags
                .map(|(at, text)| template(&format!("tags[{at}]"), text))
                .collect::<Result<_, _>>()?,
            data: match self.data.as_deref() {
                None | Some("json") => RecordData::Json,
                Some("binary") => RecordData::Binary,
                Some(_) => return fault("data", "must be json or binary"),
            },
            reject_log: reject_log.map(|name| log_name("reject_log", name)).transpose()?,
            log,
        })
    }

    /// The document as stored and shown.
    pub(crate) fn stored(self) -> Result<Value, FieldFault> {
        serde_json::to_value(&self).or_else(|error| fault("", error.to_string()))
    }
}
