//! The document that defines a sink.

use super::kafka::{SaslDocument, TlsDocument, connection, topic};
use super::{FieldFault, MAX_LIST, checked, fault, query_document, query_of, refuse_beside};
use crate::secrets;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use wellspring_connectors::sink::{
    DeliveryMode, KafkaTarget, PayloadFormat, SinkDefinition, StartAt, Target, TopicToCreate,
    WebhookTarget,
};
use wellspring_connectors::webhook::{check_header, check_url};
use wellspring_host::clock::parse_rfc3339;
use wellspring_host::names::{MAIN, NAME_RULE, SYSTEM_LOG, is_name};

/// The default topic for cursors of Kafka sinks.
const CURSOR_TOPIC: &str = "wellspring.cursors";
/// Most partitions of a topic that a sink creates.
const MAX_PARTITIONS: i32 = 10_000;
/// Concurrent requests of a webhook.
const IN_FLIGHT: (usize, usize) = (64, 1_024);
/// Timeout of a webhook's request, in ms: the default, and the maximum.
const TIMEOUT_MS: (u64, u64) = (10_000, 300_000);

/// The definition of a sink, as a client writes it. `brokers` and `topic` make it a Kafka sink,
/// `url` a webhook.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SinkDocument {
    /// The log it reads; by default `main`.
    #[serde(skip_serializing_if = "Option::is_none")]
    log: Option<String>,
    /// The events it delivers; by default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<Value>,
    /// `beginning`, `now`, the position after which it begins, or the time.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<Value>,
    /// The part before the colon of the tag whose value is the key.
    #[serde(skip_serializing_if = "Option::is_none")]
    partition_by: Option<String>,
    /// `data` or `cloudevents`.
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    brokers: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    topic: Option<String>,
    /// How to create the topic if it does not exist.
    #[serde(skip_serializing_if = "Option::is_none")]
    create_topic: Option<TopicDocument>,
    /// `exactly-once` or `at-least-once`.
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tls: Option<TlsDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sasl: Option<SaslDocument>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor_topic: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Name of the secret that signs requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<BTreeMap<String, String>>,
    /// Headers whose values are secrets, by the secrets' names.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_flight: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    timeout_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tries: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dead_letter_log: Option<String>,
}

/// A topic to create; what is missing is the brokers' default.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TopicDocument {
    #[serde(skip_serializing_if = "Option::is_none")]
    partitions: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i16>,
}

impl TopicDocument {
    fn topic(&self) -> Result<TopicToCreate, FieldFault> {
        let TopicDocument { partitions, replicas } = *self;
        if partitions.is_some_and(|count| !(1..=MAX_PARTITIONS).contains(&count)) {
            let rule = format!("must be from 1 to {MAX_PARTITIONS}");
            return fault("create_topic.partitions", rule);
        }
        if replicas.is_some_and(|count| count < 1) {
            return fault("create_topic.replicas", "must be at least 1");
        }
        Ok(TopicToCreate { partitions, replicas })
    }
}

impl SinkDocument {
    /// The parsed definition, or the first field at fault.
    pub(crate) fn definition(&self) -> Result<SinkDefinition, FieldFault> {
        let target = match (&self.brokers, &self.url) {
            (Some(_), Some(_)) => {
                return fault("url", "cannot be combined with brokers: a sink has one target");
            }
            (Some(brokers), None) => Target::Kafka(self.kafka(brokers)?),
            (None, Some(url)) => Target::Webhook(self.webhook(url)?),
            (None, None) => return fault("brokers", "is missing; a webhook needs url instead"),
        };
        let log = log_name("log", self.log.as_deref().unwrap_or(MAIN))?;
        if let Target::Webhook(WebhookTarget { dead_letter_log: Some(dead), .. }) = &target
            && *dead == log
        {
            return fault("dead_letter_log", "must not be the log that is delivered");
        }
        Ok(SinkDefinition {
            log,
            query: query_of(self.query.as_ref())?,
            start: start_of(self.from.as_ref())?,
            partition_by: self
                .partition_by
                .as_ref()
                .map(|name| {
                    if checked("partition_by", name)?.contains(':') {
                        fault("partition_by", "must be the part of a tag before its colon")
                    } else {
                        Ok(name.clone())
                    }
                })
                .transpose()?,
            format: match self.format.as_deref() {
                None | Some("data") => PayloadFormat::Data,
                Some("cloudevents") => PayloadFormat::CloudEvents,
                Some(_) => return fault("format", "must be data or cloudevents"),
            },
            target,
        })
    }

    /// The document with a normalised query, as stored and shown.
    pub(crate) fn stored(mut self) -> Result<Value, FieldFault> {
        if self.query.is_some() {
            self.query = Some(query_document(&query_of(self.query.as_ref())?));
        }
        serde_json::to_value(&self).or_else(|error| fault("", error.to_string()))
    }

    fn kafka(&self, brokers: &[String]) -> Result<KafkaTarget, FieldFault> {
        let is_there = [
            ("secret", self.secret.is_some()),
            ("headers", self.headers.is_some()),
            ("secret_headers", self.secret_headers.is_some()),
            ("ca_file", self.ca_file.is_some()),
            ("in_flight", self.in_flight.is_some()),
            ("timeout_ms", self.timeout_ms.is_some()),
            ("max_tries", self.max_tries.is_some()),
            ("dead_letter_log", self.dead_letter_log.is_some()),
        ];
        refuse_beside(&is_there, "is for webhooks, but this sink has brokers")?;
        let Some(name) = &self.topic else { return fault("topic", "is missing") };
        let cursor_topic = self.cursor_topic.as_deref().unwrap_or(CURSOR_TOPIC);
        let target = KafkaTarget {
            connection: connection(brokers, self.tls.as_ref(), self.sasl.as_ref())?,
            topic: topic("topic", name)?,
            create_topic: self.create_topic.as_ref().map(TopicDocument::topic).transpose()?,
            mode: match self.mode.as_deref() {
                None | Some("exactly-once") => DeliveryMode::ExactlyOnce,
                Some("at-least-once") => DeliveryMode::AtLeastOnce,
                Some(_) => return fault("mode", "must be exactly-once or at-least-once"),
            },
            cursor_topic: topic("cursor_topic", cursor_topic)?,
        };
        if target.topic == target.cursor_topic {
            return fault("cursor_topic", "must not be the same topic as topic");
        }
        Ok(target)
    }

    fn webhook(&self, url: &str) -> Result<WebhookTarget, FieldFault> {
        let is_there = [
            ("topic", self.topic.is_some()),
            ("create_topic", self.create_topic.is_some()),
            ("mode", self.mode.is_some()),
            ("tls", self.tls.is_some()),
            ("sasl", self.sasl.is_some()),
            ("cursor_topic", self.cursor_topic.is_some()),
        ];
        refuse_beside(&is_there, "is for Kafka, but this sink has a url")?;
        check_url(&checked("url", url)?).or_else(|detail| fault("url", detail))?;
        let in_flight = self.in_flight.unwrap_or(IN_FLIGHT.0);
        if !(1..=IN_FLIGHT.1).contains(&in_flight) {
            return fault("in_flight", format!("must be from 1 to {}", IN_FLIGHT.1));
        }
        let timeout_ms = self.timeout_ms.unwrap_or(TIMEOUT_MS.0);
        if !(10..=TIMEOUT_MS.1).contains(&timeout_ms) {
            return fault("timeout_ms", format!("must be from 10 to {}", TIMEOUT_MS.1));
        }
        if self.max_tries == Some(0) {
            return fault("max_tries", "must be at least 1; leave it out to retry without limit");
        }
        let dead = self.dead_letter_log.as_deref();
        if dead.is_some() && self.max_tries.is_none() {
            return fault(
                "max_tries",
                "is missing: it limits the attempts before an event goes to dead_letter_log",
            );
        }
        let secret = |field: &'static str, name: &Option<String>| {
            name.as_ref().map(|name| secrets::check_name(field, name)).transpose()
        };
        Ok(WebhookTarget {
            url: url.to_owned(),
            secret: secret("secret", &self.secret)?,
            headers: headers("headers", self.headers.as_ref())?,
            secret_headers: self.secret_headers()?,
            ca_file: self.ca_file.clone(),
            in_flight,
            timeout_ms,
            max_tries: self.max_tries,
            dead_letter_log: dead.map(|name| log_name("dead_letter_log", name)).transpose()?,
        })
    }

    fn secret_headers(&self) -> Result<Vec<(String, String)>, FieldFault> {
        let named = headers("secret_headers", self.secret_headers.as_ref())?;
        for (name, secret) in &named {
            secrets::check_name(&format!("secret_headers.{name}"), secret)?;
        }
        Ok(named)
    }
}

/// Where it begins.
pub(crate) fn start_of(from: Option<&Value>) -> Result<StartAt, FieldFault> {
    const RULE: &str = "must be \"beginning\", \"now\", a position or a time";
    match from {
        None => Ok(StartAt::Beginning),
        Some(Value::String(word)) if word == "beginning" => Ok(StartAt::Beginning),
        Some(Value::String(word)) if word == "now" => Ok(StartAt::Now),
        Some(Value::Number(number)) if number.is_u64() => {
            Ok(StartAt::After(number.as_u64().unwrap_or_default()))
        }
        Some(Value::String(time)) => match parse_rfc3339(time) {
            Some(time_us) => Ok(StartAt::Since(time_us)),
            None => fault("from", RULE),
        },
        Some(_) => fault("from", RULE),
    }
}

/// The name of a log that a connector may read or write.
pub(super) fn log_name(field: &str, name: &str) -> Result<String, FieldFault> {
    if name == SYSTEM_LOG {
        return fault(field, "must not be system, which holds accounts and the audit");
    }
    if !is_name(name) {
        return fault(field, format!("must be the name of a log: {NAME_RULE}"));
    }
    Ok(name.to_owned())
}

fn headers(
    field: &str,
    given: Option<&BTreeMap<String, String>>,
) -> Result<Vec<(String, String)>, FieldFault> {
    let Some(given) = given else { return Ok(Vec::new()) };
    if given.len() > MAX_LIST {
        return fault(field, format!("contains more than {MAX_LIST} headers"));
    }
    for (name, value) in given {
        let path = format!("{field}.{name}");
        check_header(name, value).or_else(|detail| fault(&path, detail))?;
        checked(&path, value)?;
    }
    Ok(given.clone().into_iter().collect())
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
