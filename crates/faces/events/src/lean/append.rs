//! `POST /v1/append`: a small JSON body, judged in a few steps.
//!
//! ```text
//! a turn of the loop: answer ─► stage   answer ─► stage   …   end_turn ─► commit, once a log
//! a later one:        settled ◄─────────────── wake ◄─────────────────── durable
//! ```

use super::{ABOUT_A_LOG, LogHead, about, elsewhere, log_of, push_about};
use crate::append::{AppendFacts, push_appended};
use crate::event_json::{AppendBody, Style, read_append};
use crate::sealing::EventSealer;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use wellspring_host::fast::{
    Claim, FastAnswer, FastPath, FastRequest, FastRoute, Form, FormContent, Head, ServingThread,
    Shape, TicketState, Varying, Wake,
};
use wellspring_host::http::idempotency::{KeyUse, digest, name_of_key};
use wellspring_host::http::work::{Cost, MAX_SHORT_BODY_BYTES, short_work};
use wellspring_host::http::{Host, JSON};
use wellspring_host::identity::Role;
use wellspring_host::limits::Reads;
use wellspring_host::subjects::{SUBJECT_HEADER, subject_of_header};
use wellspring_host::wire::effects::Effects;
use wellspring_host::wire::problem::Problem;
use wellspring_log::{Ack, AppendError, Appended, Completion, Log, RequestKey, Staged};
use wellspring_subject_keys::SealedWith;
use wellspring_types::AppendCondition;

/// The form of the answer to an append, by index.
const APPENDED: usize = 0;

pub(super) struct AppendPath {
    /// None: nothing is appended here.
    host: Option<Arc<Host>>,
    wake: Wake,
    /// The logs with something to commit since the last turn.
    staged: Vec<Log>,
}

/// What a head asks for.
pub(super) struct AppendHead {
    log: LogHead,
    /// The value of `Idempotency-Key`.
    key: Option<Box<[u8]>>,
    /// The value of `Wellspring-Subject`.
    subject: Option<Box<[u8]>>,
}

/// An append at the log.
pub(super) struct StagedAppend {
    log: Log,
    facts: AppendFacts,
    outcome: Arc<OnceLock<Result<Appended, AppendError>>>,
    /// The keys of its subjects, until then.
    _sealed: SealedWith,
}

impl AppendPath {
    pub(super) fn new(host: Option<Arc<Host>>, thread: &ServingThread) -> AppendPath {
        AppendPath { host, wake: thread.wake(), staged: Vec::new() }
    }

    /// Parses, judges and stages an append. `None`: the general stack has to do it, and nothing was
    /// done.
    fn append(
        &mut self,
        head: &AppendHead,
        asked: &FastRequest<'_>,
    ) -> Option<Result<StagedAppend, Box<Problem>>> {
        let host = self.host.as_ref()?;
        let log = head.log.log(host)?;
        let kept = host.kept.in_log(&head.log.name);
        let subject = subject_of_header(head.subject.as_deref()).ok()?;
        let mut sealer = EventSealer::new(host, subject, asked.content);
        let read = read_append(asked.content, Style::Native, kept, &mut sealer);
        let AppendBody { mut append, fence, settles: None } = read.ok()? else { return None };
        let sealed = sealer.into_used();
        // A new key takes a barrier of its own.
        if append.ack != Ack::Durable || !sealed.are_durable() {
            return None;
        }
        let terms = append.condition.as_ref().map(AppendCondition::term_count);
        if Cost::of_terms(terms.unwrap_or(0)) != Cost::Cheap {
            return None;
        }
        append.fence = fence.map(|proof| log.leases().fence(proof));
        if let Some(key) = &head.key {
            let key = name_of_key(asked.caller?.holder(), key, KeyUse::Request).ok()?;
            append.key = Some(RequestKey { key, digest: sealed.digest(digest(asked.content)) });
        }
        let reads = match terms.map(|_| asked.payer.reads()) {
            Some(Err(refused)) => return Some(Err(about(&log, refused))),
            Some(Ok(reads)) => reads,
            None => Reads::default(),
        };
        let facts = AppendFacts::of(&append, None);
        let outcome = Arc::new(OnceLock::new());
        let done = completion(&outcome, &self.wake);
        let mut work = short_work(&host.clock);
        // What was not judged in time is judged elsewhere.
        let staged = reads.timed(|| log.stage_within(append, &mut work, done)).ok()?;
        if staged != Staged::Answered && !self.staged.iter().any(|known| known.is_same(&log)) {
            self.staged.push(log.clone());
        }
        Some(Ok(StagedAppend { log, facts, outcome, _sealed: sealed }))
    }
}

/// Keeps the outcome of an append, and wakes the thread that waits for it.
fn completion(outcome: &Arc<OnceLock<Result<Appended, AppendError>>>, wake: &Wake) -> Completion {
    let (outcome, wake) = (Arc::clone(outcome), Arc::clone(wake));
    Box::new(move |told| {
        let _ = outcome.set(told);
        wake();
    })
}

impl StagedAppend {
    fn state(&self, varying: &mut Varying) -> TicketState {
        match self.outcome.get() {
            None => TicketState::Pending,
            Some(Ok(appended)) => {
                push_about(varying, &self.log, appended.head);
                push_appended(varying.content(), appended);
                TicketState::Reply(APPENDED)
            }
            Some(Err(error)) => {
                let refused = Effects::default().refused(error.clone());
                TicketState::Failed(about(&self.log, self.facts.refusal(refused)))
            }
        }
    }
}

impl FastPath for AppendPath {
    type Params = AppendHead;
    type Ticket = StagedAppend;

    fn route(&self) -> FastRoute {
        FastRoute { method: "POST", path: "/v1/append" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 200,
            content_type: JSON,
            headers: Vec::new(),
            varying_headers: ABOUT_A_LOG,
            content: FormContent::Varying,
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        if method != "POST" || self.host.is_none() {
            return None;
        }
        let log = Some(Rc::from(log_of(target, "/append")?));
        let shape = Shape::Whole { most: MAX_SHORT_BODY_BYTES };
        Some(Claim { role: Some(Role::Writer), log, shape })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<AppendHead>, Box<Problem>> {
        let is_json = |name| {
            let value = head.headers.get(name).unwrap_or(b"*/*");
            value == b"*/*" || value.eq_ignore_ascii_case(JSON.as_bytes())
        };
        let log = LogHead::of(log_of(head.target, "/append"), head);
        let key = head.headers.get("idempotency-key").map(Box::from);
        let log = log.filter(|_| is_json("content-type") && is_json("accept"));
        let subject = head.headers.get(SUBJECT_HEADER).map(Box::from);
        Ok(log.map(|log| AppendHead { log, key, subject }))
    }

    fn compares_history(&self) -> bool {
        true
    }

    fn answer(
        &mut self,
        head: &AppendHead,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<StagedAppend> {
        let staged = match self.append(head, &asked) {
            None => return FastAnswer::Elsewhere(elsewhere()),
            Some(Err(refused)) => return FastAnswer::Refused(refused),
            Some(Ok(staged)) => staged,
        };
        match staged.state(varying) {
            TicketState::Pending => FastAnswer::Pending(staged),
            TicketState::Reply(form) => FastAnswer::Reply(form),
            TicketState::Answered(response) => FastAnswer::Answered(response),
            TicketState::Failed(problem) => FastAnswer::Refused(problem),
        }
    }

    fn settled(&mut self, staged: &StagedAppend, varying: &mut Varying) -> TicketState {
        staged.state(varying)
    }

    fn end_turn(&mut self) {
        let Some(host) = &self.host else { return };
        let on = host.commit_on_http_1();
        for log in self.staged.drain(..) {
            log.commit(on);
        }
    }
}
