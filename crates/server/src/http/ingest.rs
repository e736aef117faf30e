//! Ingest over the general stack: HTTP/2, and HTTP/1.1 connections that the lean
//! loop has handed over or that it does not serve.

use super::params::{Params, expect_identity, freshen, negotiate};
use super::problem::{self, Problem};
use super::{Answer, JSON, Request, Response, Shell};
use crate::ingest::{ACCEPTED, Intake, Media, Order, Settled, Taken, Target};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

thread_local! {
    /// This serving thread's way in, made when it is first needed.
    static INTAKE: RefCell<Option<(Intake, Arc<Notify>)>> = const { RefCell::new(None) };
}

/// Runs `act` on the thread's intake. Nothing is awaited within.
pub(crate) fn with_intake<T>(
    shell: &Arc<Shell>,
    act: impl FnOnce(&mut Intake) -> T,
) -> (T, Arc<Notify>) {
    INTAKE.with_borrow_mut(|slot| {
        let (intake, notify) = slot.get_or_insert_with(|| {
            let notify = Arc::new(Notify::new());
            let woken = Arc::clone(&notify);
            let wake = Arc::new(move || woken.notify_waiters());
            (Intake::new(shell, Order::Second, wake), notify)
        });
        (act(intake), Arc::clone(notify))
    })
}

fn target(intake: &mut Intake, text: &str) -> Result<Rc<Target>, Box<Problem>> {
    let not_here = || Err(problem::NOT_FOUND.because("this path takes no events in"));
    intake.target(text).unwrap_or_else(not_here)
}

/// `POST /e`.
pub(crate) async fn post(shell: Arc<Shell>, mut request: Request) -> Answer {
    expect_identity(&request)?;
    refuse_key(request.headers.contains_key("idempotency-key"))?;
    let media = Media::of(request.headers.get("content-type").map(|value| value.as_bytes()));
    let text = request.uri.path_and_query().map_or("", |text| text.as_str()).to_owned();
    // Before the body: a wrong parameter need not wait for it.
    let (known, _) =
        with_intake(&shell, |intake| target(intake, &text).map(|_| intake.largest_body(media)));
    let body = request.body.read(known?).await?;
    let ticket = loop {
        let (taken, notify) = with_intake(&shell, |intake| {
            let target = target(intake, &text)?;
            Ok::<_, Box<Problem>>(intake.take(&target, media, &body))
        });
        match taken? {
            Taken::Accepted => return Ok(Response::json(202, ACCEPTED)),
            Taken::Pending(ticket) => break ticket,
            Taken::Refused(problem) => return Err(problem),
            Taken::Full => woken(&notify).await,
        }
    };
    loop {
        let (settled, notify) = with_intake(&shell, |intake| intake.settled(&ticket));
        match settled {
            Settled::Stored => return Ok(Response::json(202, ACCEPTED)),
            Settled::Failed(problem) => return Err(problem),
            Settled::Pending => woken(&notify).await,
        }
    }
}

/// Waits for the flusher. It may have called between the asking and this, so the
/// wait is short; asking again costs little.
async fn woken(notify: &Notify) {
    let _ = tokio::time::timeout(std::time::Duration::from_millis(5), notify.notified()).await;
}

/// Ingest does not recognise a retry; a client that counts on it must be told.
pub(crate) fn refuse_key(has_key: bool) -> Result<(), Box<Problem>> {
    if !has_key {
        return Ok(());
    }
    Err(problem::INVALID
        .because("ingest does not recognise retries; POST /v1/append does")
        .field("Idempotency-Key"))
}

/// `GET /e`.
pub(crate) async fn up(_shell: Arc<Shell>, _request: Request) -> Answer {
    Ok(Response::json(200, &br#"{"status":"UP"}"#[..]))
}

/// `GET /v1/ingest`.
pub(crate) async fn account(shell: Arc<Shell>, request: Request) -> Answer {
    let params = Params::of(&request, &[])?;
    negotiate(&request, &[JSON])?;
    let log = request.log()?;
    freshen(&request, &params, log).await?;
    let account = shell.node.account(&request.log_name).unwrap_or_default();
    Ok(Response::json(200, account.to_json(&shell.config)))
}
