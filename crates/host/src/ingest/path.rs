//! `POST /e` as a fast path of both stacks.

use super::target::{self, log_name};
use super::{
    ACCEPTED, HandoverSide, IngestContext, Intake, IntakeOutcome, Media, Settlement, Target, Ticket,
};
use super::{expect_identity, refuse_key};
use crate::fast::{
    self, Claim, Factory, FastAnswer, FastPath, FastRequest, FastRoute, Form, FormContent, Head,
    ServingThread, Shape, Stack, Varying, erase,
};
use crate::identity::Role;
use crate::subjects::{SUBJECT_HEADER, subject_of_header};
use crate::wire::problem::{self, Problem};
use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The form of the answer to accepted events, by index.
const TAKEN: usize = 0;

/// Makes the path for a serving thread.
pub fn fast_path(context: IngestContext) -> Factory {
    Arc::new(move |thread| erase(IngestPath { intake: intake_at(thread, &context) }))
}

/// A serving thread's intake, shared by its users, so that a thread's events stay in order and use
/// one partition's memory.
pub fn intake_at(thread: &ServingThread, context: &IngestContext) -> Rc<RefCell<Intake>> {
    thread.shared(|thread| {
        let order = match thread.stack() {
            Stack::Lean => HandoverSide::First,
            Stack::General => HandoverSide::Second,
        };
        RefCell::new(Intake::new(context.clone(), order, thread.wake()))
    })
}

struct IngestPath {
    intake: Rc<RefCell<Intake>>,
}

/// What a head asks for: events in a body of this kind, for this target.
struct Post {
    target: Rc<Target>,
    media: Media,
}

impl FastPath for IngestPath {
    type Params = Post;
    type Ticket = Ticket;

    fn route(&self) -> FastRoute {
        FastRoute { method: "POST", path: "/e" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 202,
            content_type: "application/json",
            headers: Vec::new(),
            varying_headers: &[],
            content: FormContent::Fixed(ACCEPTED),
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        if method != "POST" {
            return None;
        }
        // Whether a target is valid is not disclosed to callers that may not write to its log.
        let log = match self.intake.borrow_mut().target(target)? {
            Ok(target) => Some(Rc::clone(&target.log)),
            Err(_) => log_name(target).map(Rc::from),
        };
        Some(Claim { role: Some(Role::Writer), log, shape: Shape::Content })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<Post>, Box<Problem>> {
        let target = with_subject(head.target, head.headers.get(SUBJECT_HEADER))?;
        let target = self.intake.borrow_mut().target(&target);
        let target = target.unwrap_or_else(|| Err(not_here()))?;
        expect_identity(head.headers.other_than("content-encoding", "identity"))?;
        refuse_key(head.headers.get("idempotency-key").is_some())?;
        if !self.intake.borrow().is_ready(&target)? {
            return Ok(None);
        }
        Ok(Some(Post { target, media: Media::of(head.headers.get("content-type")) }))
    }

    fn largest_content(&self, post: &Post) -> usize {
        self.intake.borrow().largest_body(post.media)
    }

    fn hands_in(&self) -> bool {
        true
    }

    fn line(&self, post: &Post) -> usize {
        post.target.source
    }

    fn answer(
        &mut self,
        post: &Post,
        asked: FastRequest<'_>,
        _varying: &mut Varying,
    ) -> FastAnswer<Ticket> {
        match self.intake.borrow_mut().take(&post.target, post.media, asked.content) {
            IntakeOutcome::Accepted => FastAnswer::Reply(TAKEN),
            IntakeOutcome::Pending(ticket) => FastAnswer::Pending(ticket),
            IntakeOutcome::Full => FastAnswer::Full,
            IntakeOutcome::Refused(problem) => FastAnswer::Refused(problem),
        }
    }

    fn settled(&mut self, ticket: &Ticket, _: &mut Varying) -> fast::TicketState {
        match self.intake.borrow_mut().settled(ticket) {
            Settlement::Pending => fast::TicketState::Pending,
            Settlement::Stored => fast::TicketState::Reply(TAKEN),
            Settlement::Failed(problem) => fast::TicketState::Failed(problem),
        }
    }
}

/// The target of a request whose header names a data subject.
fn with_subject<'a>(target: &'a str, header: Option<&[u8]>) -> Result<Cow<'a, str>, Box<Problem>> {
    let Some(subject) = subject_of_header(header)? else { return Ok(Cow::Borrowed(target)) };
    let separator = if target.contains('?') { '&' } else { '?' };
    let subject: String = subject.bytes().map(|byte| format!("%{byte:02X}")).collect();
    Ok(Cow::Owned(format!("{target}{separator}subject={subject}")))
}

/// The data subject of a target, or of the header beside it.
///
/// # Errors
/// 422 `invalid`: the header is no UTF-8.
pub fn subject_of_target(
    target: &str,
    header: Option<&[u8]>,
) -> Result<Option<String>, Box<Problem>> {
    Ok(target::subject(&with_subject(target, header)?))
}

fn not_here() -> Box<Problem> {
    problem::NOT_FOUND.because("this path does not ingest events")
}
