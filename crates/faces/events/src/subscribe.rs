//! Subscriptions as server-sent events: existing events first, then new ones, on one path.

use super::disclosure::Disclosure;
use super::event_json::push_event;
use super::leases;
use super::read_request::ReadRequest;
use super::times::PositionsOfTimes;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, watch};
use wellspring_host::access::{AccessRecheck, Needs};
use wellspring_host::http::history::ResumePoint;
use wellspring_host::http::stream::{self, ClientGone, Producer};
use wellspring_host::http::work::{Cost, Job, Progress, Task};
use wellspring_host::http::{Answer, Host, Request, Response, SSE};
use wellspring_host::identity::Role;
use wellspring_host::limits::{HeldByClient, Payer};
use wellspring_host::stats::{self, RefusalReason};
use wellspring_host::wire::json::push_u64;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{LeaseProof, Log, Order, ReadError, RecordView, Subscription, Work};
use wellspring_types::Position;

/// A subscriber further behind than this catches up elsewhere.
const FAR_BEHIND: u64 = 1_000;
/// Events and bytes of one piece.
const PIECE_EVENTS: usize = 256;
const PIECE_BYTES: usize = 64 << 10;

/// Most memory of a subscription's query, in bytes: it is held while the subscription lasts, and
/// looked up again whenever an event may match it.
pub(crate) const MAX_QUERY_BYTES: usize = 64 << 10;

/// Held by a live subscription.
struct LiveSubscription {
    host: Arc<Host>,
    log_name: String,
    _permit: OwnedSemaphorePermit,
    _counted: stats::Subscriber,
    _of_client: HeldByClient,
    recheck: Option<Arc<AccessRecheck>>,
    /// The same for personal data, if the client gets it.
    personal: Option<AccessRecheck>,
}

/// Where a subscription resumes, if the client names that in `Last-Event-ID`, which wins over
/// `after`, because it is newer.
///
/// # Errors
/// 422: it is not the id of an event.
pub(super) fn last_event(request: &Request) -> Result<Option<ResumePoint>, Box<Problem>> {
    let id = request.header("last-event-id").filter(|id| !id.is_empty() && request.wants == SSE);
    let Some(id) = id else { return Ok(None) };
    let point = id.parse::<ResumePoint>().map_err(|rule| {
        problem::INVALID.because(format!("Last-Event-ID {rule}")).field("Last-Event-ID")
    })?;
    Ok(Some(point))
}

/// Starts a subscription.
pub(crate) async fn subscribe(host: Arc<Host>, request: &Request, wanted: ReadRequest) -> Answer {
    let rule = |field: &str, detail: &str| Err(problem::INVALID.because(detail).field(field));
    if wanted.order == Order::Descending {
        return rule("order", "a subscription only reads forward");
    }
    if wanted.limit.is_some() {
        return rule("limit", "a subscription has no limit; end it by closing the connection");
    }
    if wanted.times.until_us.is_some() {
        return rule("until", "a subscription has no end; read until then without one");
    }
    let query_bytes = wanted.query.memory_bytes();
    if query_bytes > MAX_QUERY_BYTES {
        return Err(problem::TOO_LARGE
            .because(format!(
                "the query takes {query_bytes} bytes; the limit for a subscription is \
                 {MAX_QUERY_BYTES}: use several subscriptions"
            ))
            .field("query")
            .limit(MAX_QUERY_BYTES as u64));
    }
    let mut job = Job::begin(&host, &request.payer)?;
    // As parsed, compiled, and waiting.
    job.hold(3 * query_bytes)?;
    let cost = Cost::of_terms(wanted.query.term_count());
    let of_client = request.payer.subscribe()?;
    let permit = Arc::clone(&host.subscriptions).try_acquire_owned().map_err(|_| {
        let limit = host.config.max_subscribers;
        host.stats.refusals.count(RefusalReason::Subscription);
        problem::OVERLOADED
            .because(format!("there are {limit} subscriptions, the maximum"))
            .limit(limit as u64)
    })?;
    let log = request.log()?.clone();
    if let Some(fence) = &wanted.fence
        && let Err(lost) = log.leases().remaining_us(fence)
    {
        return Err(Box::<Problem>::from(request.effects.refused(lost)).field("fence"));
    }
    let snapshot = log.snapshot();
    let head = snapshot.head();
    let times = PositionsOfTimes::find(&mut job, &snapshot, wanted.times).await?;
    let after = times.after(wanted.after).unwrap_or(0);
    // Before the stream begins: in it, the client could not tell.
    snapshot.require_after(after)?;
    let (producer, chunks) = stream::channel();
    let counted = host.stats.subscribe(&request.log_name);
    let recheck = request.body.recheck().cloned();
    let personal = recheck.as_ref().filter(|_| host.keys_for(request).is_some());
    let personal = personal.map(|recheck| recheck.for_need(Needs::Role(Role::Writer)));
    let live = LiveSubscription {
        host,
        log_name: request.log_name.clone(),
        _permit: permit,
        _counted: counted,
        _of_client: of_client,
        recheck,
        personal,
    };
    let subscription = log.subscribe(wanted.query, after);
    // The first bytes tell the client that the subscription has started.
    let mut out = b": wellspring\n\n".to_vec();
    let disclosure = Disclosure::of(&live.host, request);
    let of_history = log.history().map_or_else(String::new, |history| format!("@{history}"));
    if times.since.is_some() {
        // So that a resumed subscription begins there, whatever was recorded since.
        push_heartbeat(&mut out, &mut 0, after, &of_history);
    }
    let (told, since_us) = (after, wanted.times.since_us.unwrap_or(0));
    let subscriber = Subscriber { subscription, since_us, log, of_history, told, disclosure, out };
    let mut feeding = Feed { job, cost, live };
    let mut subscriber = subscriber;
    if !subscriber.log.damage().is_empty() {
        // A client that can be sent nothing learns why, instead of connecting again for ever.
        (subscriber, _) = feeding.piece(subscriber).await?;
    }
    tokio::spawn(serve(feeding, subscriber, producer, wanted.fence));
    Ok(Response::stream(SSE, chunks).with("x-accel-buffering", "no".to_owned()).at(head))
}

struct Subscriber {
    subscription: Subscription,
    /// What is recorded before is not sent: the time may not have come yet.
    since_us: u64,
    log: Log,
    /// What follows the position in every id: `@` and the history, if that is known.
    of_history: String,
    /// The last id sent to the client.
    told: Position,
    disclosure: Disclosure,
    /// Written but not sent.
    out: Vec<u8>,
}

impl Subscriber {
    fn is_behind(&self, by: u64) -> bool {
        self.log.head().saturating_sub(self.subscription.position()) > by
    }
}

impl Task for Subscriber {
    /// Writes matching events, until everything up to the head has been examined, the work ends or
    /// a piece is full.
    fn proceed(&mut self, work: Work) -> Result<Progress, Box<Problem>> {
        self.subscription.bound(work);
        let before = self.out.len();
        for _ in 0..PIECE_EVENTS {
            let event = match self.subscription.next(Duration::ZERO) {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(Progress::Done),
                Err(ReadError::Stopped(_)) => break,
                // What could be read is sent first.
                Err(_) if self.out.len() > before => break,
                Err(error) => return Err(error.into()),
            };
            if event.recorded_at_us() < self.since_us {
                continue;
            }
            self.told = event.position();
            push_message(&mut self.out, &event, &self.of_history, &self.disclosure);
            if self.out.len() >= PIECE_BYTES {
                break;
            }
        }
        Ok(Progress::More)
    }
}

/// The task that serves one subscriber.
struct Feed {
    job: Job,
    cost: Cost,
    live: LiveSubscription,
}

impl Feed {
    /// Writes a piece, elsewhere if the subscriber is far behind or the serving thread has reached
    /// no event.
    async fn piece(
        &mut self,
        subscriber: Subscriber,
    ) -> Result<(Subscriber, Progress), Box<Problem>> {
        let far = subscriber.is_behind(FAR_BEHIND);
        let cost = if far { Cost::Expensive } else { self.cost };
        let (subscriber, progress) = self.job.begin_here(cost, subscriber)?;
        if progress == Progress::Done || !subscriber.out.is_empty() && !far {
            return Ok((subscriber, progress));
        }
        self.job.patient_piece(subscriber).await
    }
}

/// How a stream of events ends.
enum StreamEnd {
    /// As the client can see.
    Regular,
    /// It breaks off.
    Cut,
    /// With the lease that the client must hold.
    LeaseLost,
}

/// Serves one subscriber, until the lease ends that it must hold.
async fn serve(
    feeding: Feed,
    subscriber: Subscriber,
    producer: Producer,
    fence: Option<LeaseProof>,
) {
    let log = subscriber.log.clone();
    let events = feed(feeding, subscriber, &producer);
    let end = match fence {
        None => events.await,
        Some(fence) => tokio::select! {
            biased;
            ended = leases::ended(log.leases(), &fence) => match ended {
                Ok(()) => StreamEnd::LeaseLost,
                // The client learns that too many wait when it reconnects.
                Err(_) => StreamEnd::Regular,
            },
            end = events => end,
        },
    };
    match end {
        StreamEnd::Cut => return,
        StreamEnd::Regular => {}
        StreamEnd::LeaseLost => {
            let problem = problem::LEASE_LOST
                .because("the lease of the subscription has expired or has another holder")
                .field("fence");
            let message = [b"event: problem\ndata: ", &*problem.to_json(), b"\n\n"].concat();
            // One that has left needs no message.
            let _ = producer.send(message).await;
        }
    }
    producer.end().await;
}

/// Sends events for as long as the client reads them.
async fn feed(mut feed: Feed, mut subscriber: Subscriber, producer: &Producer) -> StreamEnd {
    let heartbeat = Duration::from_millis(feed.live.host.config.heartbeat_ms);
    let mut stopping = feed.live.host.stopping.clone();
    let payer = feed.job.payer().clone();
    loop {
        let piece = tokio::select! {
            biased;
            piece = feed.piece(subscriber) => piece,
            () = producer.gone() => return StreamEnd::Cut,
        };
        let progress;
        (subscriber, progress) = match piece {
            Ok(piece) => piece,
            Err(problem) => {
                feed.live.host.tell_cut(&problem, &feed.live.log_name);
                return StreamEnd::Cut;
            }
        };
        // The client learns the reason when it reconnects.
        let live = &feed.live;
        if live.recheck.as_ref().is_some_and(|recheck| !recheck.holds())
            || live.personal.as_ref().is_some_and(|personal| !personal.holds())
        {
            return StreamEnd::Regular;
        }
        let sent = producer.send(std::mem::take(&mut subscriber.out)).await;
        if sent.is_err() || producer.ready().await.is_err() {
            return StreamEnd::Cut;
        }
        match paid(producer, &payer, heartbeat, &mut stopping).await {
            Ok(Debt::Paid) => {}
            Ok(Debt::Stopped) => return StreamEnd::Regular,
            Err(ClientGone) => return StreamEnd::Cut,
        }
        if progress == Progress::More {
            tokio::task::yield_now().await;
            if feed.live.host.is_stopping() {
                return StreamEnd::Regular;
            }
            continue;
        }
        if subscriber.log.feed().is_closed() {
            return StreamEnd::Regular;
        }
        let ready = poll_fn(|context| subscriber.subscription.poll_ready(context));
        tokio::select! {
            ready = ready => {
                // The client learns that too many wait when it reconnects.
                if ready.is_err() {
                    return StreamEnd::Regular;
                }
            }
            () = tokio::time::sleep(heartbeat) => {
                let position = subscriber.subscription.position();
                let Subscriber { out, told, of_history, .. } = &mut subscriber;
                push_heartbeat(out, told, position, of_history);
            }
            () = stopped(&mut stopping) => return StreamEnd::Regular,
            () = producer.gone() => return StreamEnd::Cut,
        }
    }
}

/// The result of waiting for a debt to be paid.
enum Debt {
    Paid,
    /// No waiting at shutdown.
    Stopped,
}

/// Waits until the debt is paid; with heartbeats, as that may take long.
async fn paid(
    producer: &Producer,
    payer: &Payer,
    heartbeat: Duration,
    stopping: &mut watch::Receiver<bool>,
) -> Result<Debt, ClientGone> {
    loop {
        tokio::select! {
            biased;
            paid = producer.paid(payer) => return paid.map(|()| Debt::Paid),
            () = stopped(stopping) => return Ok(Debt::Stopped),
            () = tokio::time::sleep(heartbeat) => {
                producer.send(b": heartbeat\n\n".to_vec()).await?;
            }
        }
    }
}

/// Waits for shutdown.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|&stopping| stopping).await;
}

/// One event as a message. A payload sent over several lines becomes several `data:` lines.
fn push_message(
    out: &mut Vec<u8>,
    event: &RecordView<'_>,
    of_history: &str,
    disclosure: &Disclosure,
) {
    let mut json = Vec::with_capacity(256 + event.data().len());
    push_event(&mut json, event, disclosure);
    out.extend_from_slice(b"id: ");
    push_u64(out, event.position());
    out.extend_from_slice(of_history.as_bytes());
    for line in json.split(|&b| b == b'\n' || b == b'\r') {
        out.extend_from_slice(b"\ndata: ");
        out.extend_from_slice(line);
    }
    out.extend_from_slice(b"\n\n");
}

/// A heartbeat. If events were skipped, it carries the position reached, so that a resumed
/// subscription need not examine them again.
fn push_heartbeat(out: &mut Vec<u8>, told: &mut Position, position: Position, of_history: &str) {
    if position <= *told {
        out.extend_from_slice(b": heartbeat\n\n");
        return;
    }
    *told = position;
    out.extend_from_slice(b"event: position\nid: ");
    push_u64(out, position);
    out.extend_from_slice(of_history.as_bytes());
    out.extend_from_slice(b"\ndata: {\"position\":");
    push_u64(out, position);
    out.extend_from_slice(b"}\n\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_log::EncodedEvents;
    use wellspring_types::Event;

    #[test]
    fn line_breaks_in_a_payload_become_data_lines() {
        let mut events = EncodedEvents::new();
        events.push(&Event::json("T", &[], "{\n\"a\": \"x\\n\"\r\n}").as_ref()).unwrap();
        let mut out = Vec::new();
        push_message(&mut out, &events.iter().next().unwrap(), "@0f", &Disclosure::default());
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("id: 0@0f\ndata: {\"position\":0,"), "{text}");
        assert!(text.ends_with("\n\n") && !text.trim_end().contains("\n\n"), "{text}");
        let json: String =
            text.lines().filter_map(|l| l.strip_prefix("data: ")).collect::<Vec<_>>().join("\n");
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!(json["data"]["a"], "x\n");
    }

    #[test]
    fn progress_is_told_once() {
        let (mut out, mut told) = (Vec::new(), 3);
        push_heartbeat(&mut out, &mut told, 9, "@0f");
        assert_eq!(out, b"event: position\nid: 9@0f\ndata: {\"position\":9}\n\n");
        out.clear();
        push_heartbeat(&mut out, &mut told, 9, "@0f");
        assert_eq!(out, b": heartbeat\n\n");
    }
}
