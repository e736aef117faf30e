//! `POST /v1/trim`: removes the beginning of a log. The same for its rule, [`super::retention`].

use super::EventFace;
use super::consumers::LogConsumers;
use super::params::{DRY_RUN, FORCE, MAX_AGE_S, MAX_BYTES, TRIM_BEFORE};
use super::problems::TRIM_HELD;
use serde::Serialize;
use std::sync::Arc;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Request, Response};
use wellspring_host::node::{LogReader, TrimPlan, TrimTarget};
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{Log, ReadError, Work};
use wellspring_types::Position;

/// Whether something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TrimMode {
    Trim,
    DryRun,
}

/// What becomes of events that some have not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UnreadEvents {
    Stay,
    Go,
}

/// What was removed, or would be.
#[derive(Serialize)]
struct TrimmedDocument {
    first: Position,
    removed_events: u64,
    removed_bytes: u64,
    dry_run: bool,
    /// Who needs what is removed.
    held_by: Vec<LogReader>,
}

/// A log of which a part may go.
pub(super) struct TrimmedLog<'a> {
    pub(super) face: &'a Arc<EventFace>,
    pub(super) name: &'a str,
    pub(super) log: &'a Log,
    /// Under the lock of its changes: no consumer is defined or opened meanwhile.
    pub(super) consumers: &'a Arc<LogConsumers>,
}

/// What a cut would remove, and who needs it.
pub(super) struct HeldPlan {
    pub(super) plan: TrimPlan,
    /// Their folds would be others without it.
    pub(super) views: Vec<LogReader>,
    /// They have not read it.
    pub(super) readers: Vec<LogReader>,
}

impl TrimmedLog<'_> {
    /// Plans a cut.
    ///
    /// # Errors
    /// Those of a read.
    pub(super) async fn plan(&self, target: TrimTarget) -> Result<HeldPlan, Box<Problem>> {
        let (host, log, name) =
            (Arc::clone(&self.face.host), self.log.clone(), self.name.to_owned());
        let consumers = Arc::clone(self.consumers);
        let planned = elsewhere(move || {
            let plan = TrimPlan::of(&log, target, &mut Work::unbounded())?;
            let views = host.node.views_before(&log, plan.first)?;
            let mut readers = consumers.readers(&host)?;
            readers.extend(host.log_readers(&name)?);
            // Who has lost events already is told so, and holds nothing any more.
            let first = log.snapshot().first();
            readers.retain(|reader| (first..plan.first).contains(&reader.position));
            Ok::<_, ReadError>(HeldPlan { plan, views, readers })
        });
        Ok(planned.await??)
    }

    /// Removes what a plan says, or less if the index of the rest cannot be written. Returns what
    /// was removed.
    ///
    /// # Errors
    /// Those of an append, as consumers are written again; of a read; of the file system.
    pub(super) async fn cut(
        &self,
        plan: TrimPlan,
        effects: &Effects,
    ) -> Result<TrimPlan, Box<Problem>> {
        if plan.events > 0 {
            let renewed = self.consumers.renew().await;
            renewed.map_err(|interrupted| interrupted.problem(effects))?;
            // What settled deliveries of any log may be an event that goes.
            let saved = self.face.consumers.save_settled().await;
            saved.map_err(|interrupted| interrupted.problem(effects))?;
        }
        let (log, first) = (self.log.clone(), plan.first);
        let first = effects.settle(elsewhere(move || log.trim(first)).await?)?;
        Ok(plan.up_to(first))
    }
}

fn target(request: &Request, now_us: u64) -> Result<TrimTarget, Box<Problem>> {
    let max_age_s = request.query(&MAX_AGE_S)?;
    let target = TrimTarget {
        before: request.query(&TRIM_BEFORE)?,
        recorded_before_us: max_age_s.map(|age_s| before_us(age_s, now_us)),
        most_bytes: request.query(&MAX_BYTES)?,
    };
    if let TrimTarget { before: None, recorded_before_us: None, most_bytes: None } = target {
        let detail = "say how much may go: before, max_age_s, max_bytes; of several, what all of \
                      them allow goes";
        return Err(problem::INVALID.because(detail).field("before"));
    }
    Ok(target)
}

/// The time before which what is older than this was recorded.
pub(super) fn before_us(max_age_s: u64, now_us: u64) -> u64 {
    now_us.saturating_sub(max_age_s.saturating_mul(1_000_000))
}

/// Refuses logs of a cluster: every node would have to remove the same.
pub(super) fn refuse_in_cluster(face: &EventFace) -> Result<(), Box<Problem>> {
    let detail = "the beginning of a log of a cluster cannot be removed; nothing was done";
    face.host.node.cluster().map_or(Ok(()), |_| Err(TRIM_HELD.because(detail)))
}

/// `POST /v1/trim`.
pub(crate) async fn trim(face: Arc<EventFace>, request: Box<Request>) -> Answer {
    let target = target(&request, face.host.wall_us())?;
    let is_dry = request.query(&DRY_RUN)? == TrimMode::DryRun;
    let unread = request.query(&FORCE)?;
    refuse_in_cluster(&face)?;
    let consumers = face.consumers.of_log(&request)?;
    let _changing = consumers.changing.lock().await;
    let (log, name) = (request.log()?, &request.log_name);
    let trimmed = TrimmedLog { face: &face, name, log, consumers: &consumers };
    let HeldPlan { plan, views, readers } = trimmed.plan(target).await?;
    let is_held = !views.is_empty() || unread == UnreadEvents::Stay && !readers.is_empty();
    let held_by = [views, readers].concat();
    if is_held && !is_dry {
        return Err(held(&held_by, plan.first));
    }
    let plan = if is_dry { plan } else { trimmed.cut(plan, &request.effects).await? };
    let document = TrimmedDocument {
        first: plan.first,
        removed_events: plan.events,
        removed_bytes: plan.bytes,
        dry_run: is_dry,
        held_by,
    };
    Ok(Response::of(200, &document))
}

fn held(readers: &[LogReader], first: Position) -> Box<Problem> {
    let names: Vec<String> = (readers.iter())
        .map(|LogReader { kind, name, position }| format!("the {kind} {name} from {position} on"))
        .collect();
    let detail = format!(
        "the log would begin at position {first}, and these need events before it: {}; nothing was \
         removed",
        names.join(", ")
    );
    let held_by = serde_json::to_string(readers).expect("texts and numbers");
    TRIM_HELD.because(detail).with("held_by", held_by).with("first", first.to_string())
}
