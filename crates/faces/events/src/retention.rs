//! The rule by which a log's beginning goes by itself.
//!
//! `RetentionSet {"log","history","max_age_s","max_bytes"}` with the tag `log:NAME` in the log
//! `system`; the newest one counts, if it names the log's history: another log, or a restored one,
//! may have its name. One without limits ends it. A rule never removes what something still needs:
//! it waits, and says for whom.

use super::EventFace;
use super::trim::{HeldPlan, TrimmedLog, before_us, refuse_in_cluster};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use wellspring_host::http::content::expect_json;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::node::{LogReader, TrimTarget};
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::json::{Cursor, ReadResult, document, once, rule, unknown};
use wellspring_host::wire::problem::{Problem, no_such_log, of_fault};
use wellspring_log::{Append, EncodedEvents, Log, Order, ReadError, ReadOptions};
use wellspring_types::{Event, Position, Query};

/// The type of the event that a rule was set, or ended.
const RETENTION_SET: &str = "RetentionSet";
/// Time between two looks at all rules, µs.
const LOOK_AFTER_US: u64 = 10_000_000;
const MAX_BODY_BYTES: usize = 4_096;

/// How much of a log stays; without limits all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetentionRule {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_age_s: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
}

/// A log's rule, and what it has come to.
#[derive(Serialize)]
struct RetentionDocument {
    #[serde(flatten)]
    rule: RetentionRule,
    /// Position of the log's first event.
    first: Position,
    /// Who needs events that the rule would remove.
    held_by: Vec<LogReader>,
}

#[derive(Serialize)]
struct RetentionSet<'a> {
    log: &'a str,
    history: &'a str,
    #[serde(flatten)]
    rule: RetentionRule,
}

/// The same as it is read.
#[derive(Deserialize)]
struct StoredRule {
    history: String,
    #[serde(flatten)]
    rule: RetentionRule,
}

/// When rules were looked at last, and what was said of those that wait.
#[derive(Default)]
pub(crate) struct RetentionClock {
    looked_us: AtomicU64,
    /// For whom the rule of a log waits.
    waiting: Mutex<HashMap<String, Vec<String>>>,
}

impl RetentionClock {
    /// Says for whom the rule of a log waits, if that has changed.
    fn tell_waiting(&self, log: &str, held_by: &[LogReader]) {
        let names = held_by.iter().map(|reader| format!("{} {}", reader.kind, reader.name));
        let names: Vec<String> = names.collect();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let before = if names.is_empty() {
            waiting.remove(log)
        } else {
            waiting.insert(log.to_owned(), names.clone())
        };
        if !names.is_empty() && before.unwrap_or_default() != names {
            let held_by = names.join(", ");
            tracing::warn!(log, held_by, "the rule of a log removes nothing that is still needed");
        }
    }
}

impl RetentionRule {
    /// The rule of a log.
    ///
    /// # Errors
    /// The log `system` cannot be read.
    fn of(host: &Host, name: &str, log: &Log) -> Result<RetentionRule, ReadError> {
        let Some(system) = host.node.get(SYSTEM_LOG) else { return Ok(RetentionRule::default()) };
        let query = Query::item(&[RETENTION_SET], &[&format!("log:{name}")]);
        let order = Order::Descending;
        let options = ReadOptions { order, limit: Some(1), ..ReadOptions::default() };
        let mut events = system.snapshot().read(&query, options);
        let newest = events.next()?;
        let stored = newest.and_then(|e| serde_json::from_slice::<StoredRule>(e.data()).ok());
        let is_of_log = |stored: &StoredRule| stored.history == history_of(log);
        Ok(stored.filter(is_of_log).map_or_else(RetentionRule::default, |stored| stored.rule))
    }

    fn target(self, now_us: u64) -> Option<TrimTarget> {
        let recorded_before_us = self.max_age_s.map(|age_s| before_us(age_s, now_us));
        let target = TrimTarget { before: None, recorded_before_us, most_bytes: self.max_bytes };
        (self != RetentionRule::default()).then_some(target)
    }

    /// Sets the rule of a log.
    ///
    /// # Errors
    /// Those of an append.
    async fn set(self, host: &Host, request: &Request) -> Result<(), Box<Problem>> {
        let system = host.node.get(SYSTEM_LOG).ok_or_else(|| no_such_log(SYSTEM_LOG))?;
        let (log, history) = (&request.log_name, history_of(request.log()?));
        let set = RetentionSet { log, history: &history, rule: self };
        let data = serde_json::to_string(&set).expect("texts and numbers");
        let mut events = EncodedEvents::new();
        let event = Event::json(RETENTION_SET, &[&format!("log:{log}")], &data);
        events.push(&event.as_ref()).expect("a log's name makes a tag");
        let append = Append { events, ..Append::default() };
        request.effects.settle(elsewhere(move || system.append(append)).await?)?;
        Ok(())
    }
}

fn history_of(log: &Log) -> String {
    log.history().map(|history| history.to_string()).unwrap_or_default()
}

/// `GET /v1/retention`.
pub(crate) async fn get(face: Arc<EventFace>, request: Box<Request>) -> Answer {
    let rule = RetentionRule::of(&face.host, &request.log_name, request.log()?)?;
    let held_by = match rule.target(face.host.wall_us()) {
        None => Vec::new(),
        Some(target) => {
            let consumers = face.consumers.of_log(&request)?;
            let _changing = consumers.changing.lock().await;
            let (log, name) = (request.log()?, &request.log_name);
            let trimmed = TrimmedLog { face: &face, name, log, consumers: &consumers };
            let HeldPlan { views, readers, .. } = trimmed.plan(target).await?;
            [views, readers].concat()
        }
    };
    let first = request.log()?.snapshot().first();
    Ok(Response::of(200, &RetentionDocument { rule, first, held_by }))
}

/// `PUT /v1/retention`.
pub(crate) async fn put(face: Arc<EventFace>, mut request: Box<Request>) -> Answer {
    refuse_in_cluster(&face)?;
    expect_json(&request)?;
    let body = request.body.read(MAX_BODY_BYTES).await?;
    let rule = document(&body, read).map_err(|fault| of_fault(&fault, &body))?;
    rule.set(&face.host, &request).await?;
    let (log, name) = (request.log()?.clone(), request.log_name.clone());
    let held_by = apply(&face, &name, &log, &request.effects).await?;
    let first = log.snapshot().first();
    Ok(Response::of(200, &RetentionDocument { rule, first, held_by }))
}

fn read(cursor: &mut Cursor<'_>) -> ReadResult<RetentionRule> {
    let mut rule_read = RetentionRule::default();
    cursor.object(|key, value| {
        let at = value.at();
        let slot = match key {
            "max_age_s" => &mut rule_read.max_age_s,
            "max_bytes" => &mut rule_read.max_bytes,
            _ => return unknown(at, "max_age_s, max_bytes"),
        };
        match value.u64()? {
            0 => rule(at, "must be at least 1"),
            limit => once(slot, at, limit),
        }
    })?;
    Ok(rule_read)
}

/// Trims a log as far as its retention rule asks and its readers allow. Returns the readers that
/// hold back the rest.
async fn apply(
    face: &Arc<EventFace>,
    name: &str,
    log: &Log,
    effects: &Effects,
) -> Result<Vec<LogReader>, Box<Problem>> {
    let rule = RetentionRule::of(&face.host, name, log)?;
    let (Some(target), Some(consumers)) =
        (rule.target(face.host.wall_us()), face.consumers.led(log, name))
    else {
        return Ok(Vec::new());
    };
    let _changing = consumers.changing.lock().await;
    let trimmed = TrimmedLog { face, name, log, consumers: &consumers };
    let HeldPlan { mut plan, views, readers } = trimmed.plan(target).await?;
    let held_by = [views, readers].concat();
    if let Some(before) = held_by.iter().map(|reader| reader.position).min() {
        plan = trimmed.plan(TrimTarget { before: Some(before), ..target }).await?.plan;
    }
    if plan.events > 0 {
        let first = trimmed.cut(plan, effects).await?.first;
        tracing::info!(log = name, first, "the beginning of a log was removed, as its rule says");
    }
    Ok(held_by)
}

/// Applies the rules of all logs, if it is time. On a thread that may block.
pub(crate) fn tick(face: &Arc<EventFace>, wall_us: u64) {
    let looked_us = &face.retention.looked_us;
    if wall_us.saturating_sub(looked_us.load(Relaxed)) < LOOK_AFTER_US
        || face.host.node.cluster().is_some()
    {
        return;
    }
    looked_us.store(wall_us, Relaxed);
    let runtime = tokio::runtime::Handle::current();
    for (name, log) in face.host.node.all() {
        match runtime.block_on(apply(face, &name, &log, &Effects::default())) {
            Ok(held_by) => face.retention.tell_waiting(&name, &held_by),
            Err(problem) => {
                let detail = &problem.detail;
                tracing::warn!(log = name, detail, "the beginning of a log could not be removed");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_has_limits_of_at_least_one_and_none_is_no_rule() {
        let read = |text: &str| document(text.as_bytes(), read).map_err(|_| "a fault");
        let both = RetentionRule { max_age_s: Some(60), max_bytes: Some(1) };
        assert_eq!(read(r#"{"max_age_s":60,"max_bytes":1}"#), Ok(both));
        assert_eq!(read("{}"), Ok(RetentionRule::default()));
        assert!(RetentionRule::default().target(9).is_none());
        for wrong in [r#"{"max_age_s":0}"#, r#"{"max_age":1}"#, r#"{"max_bytes":-1}"#, "[]"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let target = both.target(70_000_000).expect("a rule");
        assert_eq!((target.recorded_before_us, target.most_bytes), (Some(10_000_000), Some(1)));
    }
}
