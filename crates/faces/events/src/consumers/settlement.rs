//! `settles` of an append: it settles a delivery together with what it appends, also in another
//! log.
//!
//! The request key of such an append names the first event that it settles, and its digest the last
//! one. So a second attempt by any worker, after any crash, finds the first one; and a restart
//! finds what was settled without a further event.

use super::fence::DeliveryFence;
use super::open::OpenConsumer;
use super::pull::worker_name;
use super::registry::{Consumers, LogConsumers};
use super::settled_since::{has_content, request_key, settled_up_to, settling_digest};
use super::turn::{read_delivery, read_worker};
use crate::problems::DELIVERY_SETTLED;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use wellspring_consumers::DeliveryId;
use wellspring_host::http::work::Job;
use wellspring_host::http::{Host, Request};
use wellspring_host::identity::Role;
use wellspring_host::wire::json::{Cursor, ReadResult, missing, once, unknown};
use wellspring_host::wire::problem::{self, DELIVERY_LOST, Problem};
use wellspring_log::{Append, Appended, Completion, FenceRefusal, Log, RequestKey};
use wellspring_types::Position;

/// The member `settles` of an append.
#[derive(Debug)]
pub(crate) struct Settlement {
    consumer: String,
    worker: String,
    delivery: DeliveryId,
    /// The consumer's log, if it is named.
    log: Option<String>,
}

/// Reads the member `settles` of an append.
pub(crate) fn read_settlement(value: &mut Cursor<'_>) -> ReadResult<Settlement> {
    let start = value.at();
    let (mut consumer, mut worker, mut delivery, mut log) = (None, None, None, None);
    value.object(|name, value| {
        let at = value.at();
        match name {
            "consumer" => once(&mut consumer, at, value.string()?.into_owned()),
            "worker" => once(&mut worker, at, read_worker(value)?),
            "delivery" => once(&mut delivery, at, read_delivery(value)?),
            "log" => once(&mut log, at, value.string()?.into_owned()),
            _ => unknown(at, "consumer, worker, delivery, log"),
        }
    })?;
    let Some(consumer) = consumer else { return missing("consumer", start) };
    let Some(worker) = worker else { return missing("worker", start) };
    let Some(delivery) = delivery else { return missing("delivery", start) };
    Ok(Settlement { consumer, worker, delivery, log })
}

/// An append that settles a delivery, for its answer.
pub(crate) struct SettlingAppend {
    fence: Arc<DeliveryFence>,
    /// A hash of what is appended.
    content: [u8; 16],
}

impl Consumers {
    /// Makes an append settle a delivery. `content` is a hash of its events.
    ///
    /// # Errors
    /// 403 on the consumer's log; 404; 409: there is no such delivery; 422; 503: another node leads
    /// the consumer's log.
    pub(crate) async fn prepare_settling(
        &self,
        host: &Host,
        request: &Request,
        settlement: Settlement,
        content: [u8; 16],
        (append, done): (&mut Append, Completion),
    ) -> Result<(SettlingAppend, Completion), Box<Problem>> {
        let other = settlement.log.as_deref().filter(|name| *name != request.log_name);
        let consumers = match other {
            None => self.of_log(request)?,
            Some(name) => self.of_other_log(host, request, name)?,
        };
        let name = &settlement.consumer;
        let consumer = match consumers.opened(name) {
            Some(open) => open,
            None => Box::pin(consumers.open(host, &mut Job::uncharged(host), name)).await?,
        };
        if other.is_some() && consumer.definition.terms.run > 1 {
            let detail = "an append to another log than the consumer's settles deliveries of one \
                          event, and the consumer's may have more (run)";
            return Err(problem::INVALID.because(detail).field("settles.log"));
        }
        let worker = worker_name(request.principal.holder(), &settlement.worker);
        let id = settlement.delivery;
        let held = consumer.with(|state, _| state.peek_held(&worker, id)).unwrap_or_default();
        // One that is not held may be settled by this very append, whose answer was lost.
        let events = held.unwrap_or_else(|| vec![id.first]);
        let key = key_of(&consumer, id.generation, events[0])?;
        let is_same_log = other.is_none();
        let is_staged = AtomicBool::new(false);
        let delivery = id;
        let fence = DeliveryFence { consumer, worker, delivery, events, is_same_log, is_staged };
        let fence = Arc::new(fence);
        let digest = settling_digest(fence.up_to(), &content);
        append.key = Some(RequestKey { key, digest });
        append.fence = Some(Arc::clone(&fence) as _);
        let told = Arc::clone(&fence);
        let done: Completion = Box::new(move |outcome| {
            told.tell(&outcome);
            done(outcome);
        });
        Ok((SettlingAppend { fence, content }, done))
    }

    /// The consumers of a log that is not the request's.
    fn of_other_log(
        &self,
        host: &Host,
        request: &Request,
        name: &str,
    ) -> Result<Arc<LogConsumers>, Box<Problem>> {
        request.check_role(Role::Writer, name)?;
        let log = host.node.get(name);
        let log = log.ok_or_else(|| problem::no_such_log(name).field("settles.log"))?;
        self.led(&log, name).ok_or_else(|| {
            // Only this node leads the request's log, so no other one could answer it.
            problem::NOT_LEADING
                .because(format!(
                    "this node leads the log {}, and not the log {name}, whose consumer the append \
                     is to settle for; only a node that leads both can",
                    request.log_name
                ))
                .field("settles.log")
        })
    }
}

/// The request key of an append that settles events of a consumer from this one on.
fn key_of(
    consumer: &OpenConsumer,
    generation: u64,
    first: Position,
) -> Result<String, Box<Problem>> {
    let key = consumer
        .log
        .snapshot()
        .at(first, |record| request_key(&consumer.effect_key(generation, record)))?;
    key.ok_or_else(|| {
        DELIVERY_LOST.because(FenceRefusal::DeliveryLost.to_string()).field("settles.delivery")
    })
}

impl SettlingAppend {
    /// What an append is told whose key was found at a position with another digest: an earlier one
    /// with the same content has settled other events besides, or it has other content. The
    /// delivery, if it is held, is settled as far as the earlier append says.
    ///
    /// # Errors
    /// 409 `delivery-settled`: the earlier append has other content.
    pub(crate) fn earlier(&self, log: &Log, first: Position) -> Result<Appended, Box<Problem>> {
        let snapshot = log.snapshot();
        let digest_and_count = |key: (&str, [u8; 16], u32)| (key.1, u64::from(key.2));
        let stored = snapshot.at(first, |record| record.request_key().map(digest_and_count))?;
        let Some((digest, events)) = stored.flatten() else {
            return Err(problem::INTERNAL.because(format!("no request is at position {first}")));
        };
        self.fence.consumer.settle_found(&self.fence, settled_up_to(&digest));
        let last = first + events - 1;
        if has_content(&digest, &self.content) {
            return Ok(Appended { first, last, head: snapshot.head(), replayed: true });
        }
        Err(DELIVERY_SETTLED
            .because(format!(
                "an earlier append with other events has settled the delivery; its events are at \
                 positions {first} to {last}"
            ))
            .field("settles.delivery")
            .with("first", first.to_string())
            .with("last", last.to_string()))
    }
}
