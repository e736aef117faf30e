//! Fast paths over the general stack: HTTP/2, TLS, and connections that the lean loop has handed
//! over or does not serve.

use super::{Answer, Host, ReflectedPosition, Request, Response};
use crate::fast::{
    AnyFastPath, AnyParams, AnyTicket, Factory, FastAnswer, FastRequest, Form, FormContent, Head,
    Headers, ServingThread, Shape, Stack, TicketState, Varying,
};
use crate::wire::problem::{self, Problem};
use bytes::Bytes;
use hyper::Method;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::Notify;

/// The fast paths of a serving thread.
struct ThreadPaths {
    /// The factories that made them.
    made_by: Arc<[Factory]>,
    paths: Vec<Box<dyn AnyFastPath>>,
    /// The forms of each.
    forms: Vec<Vec<Form>>,
    /// The varying parts of the current answer.
    varying: Varying,
    /// Signals that it may be worth asking again.
    notify: Arc<Notify>,
}

impl ThreadPaths {
    fn new(factories: &Arc<[Factory]>) -> ThreadPaths {
        let notify = Arc::new(Notify::new());
        let woken = Arc::clone(&notify);
        let thread = ServingThread::new(Stack::General, Arc::new(move || woken.notify_waiters()));
        let paths: Vec<_> = factories.iter().map(|make| make(&thread)).collect();
        let forms = paths.iter().map(|path| path.forms()).collect();
        ThreadPaths {
            made_by: Arc::clone(factories),
            paths,
            forms,
            varying: Varying::new(),
            notify,
        }
    }
}

thread_local! {
    /// This serving thread's fast paths, made on first use.
    static THREAD_PATHS: RefCell<Option<ThreadPaths>> = const { RefCell::new(None) };
}

/// Runs `act` on the thread's fast paths, without awaiting.
fn with_paths<T>(made_by: &Arc<[Factory]>, act: impl FnOnce(&mut ThreadPaths) -> T) -> T {
    THREAD_PATHS.with_borrow_mut(|slot| {
        let known = slot.take().filter(|thread| Arc::ptr_eq(&thread.made_by, made_by));
        act(slot.insert(known.unwrap_or_else(|| ThreadPaths::new(made_by))))
    })
}

/// A request and the path that claimed it.
struct ClaimedRequest {
    /// The path, by index.
    at: usize,
    shape: Shape,
    params: AnyParams,
}

impl ThreadPaths {
    /// Has the responsible path parse the request. `HEAD` is treated as `GET`.
    fn claim(&mut self, request: &Request, target: &str) -> Result<ClaimedRequest, Box<Problem>> {
        let method = request.method.as_str();
        let asked = if request.method == Method::HEAD { "GET" } else { method };
        let claims = |(at, path): (usize, &mut Box<dyn AnyFastPath>)| {
            path.claim(asked, target).map(|claim| (at, claim.shape))
        };
        let Some((at, shape)) = self.paths.iter_mut().enumerate().find_map(claims) else {
            let detail = format!("{target} is not a route; GET /openapi.json lists all routes");
            return Err(problem::NOT_FOUND.because(detail));
        };
        let path = &mut self.paths[at];
        let head = Head { method, target, headers: Headers::Mapped(&request.headers) };
        let params = path.understand(&head).map_err(|problem| path.render(problem))?;
        let params = params.ok_or_else(no_form)?;
        Ok(ClaimedRequest { at, shape, params })
    }

    /// Has it answered.
    fn answer(
        &mut self,
        claimed: &ClaimedRequest,
        target: &str,
        content: &[u8],
        request: &Request,
        now_us: u64,
    ) -> Step {
        let word = match claimed.shape {
            Shape::Bare(Some(word)) => &target.as_bytes()[word.at..],
            Shape::Bare(None) | Shape::Content | Shape::Whole { .. } => b"",
        };
        let (client, payer) = (request.client, &request.payer);
        let connection = request.connection.as_ref().and_then(|ties| ties.rate.as_ref());
        let caller = Some(&*request.principal);
        let asked = FastRequest { word, content, client, connection, payer, caller, now_us };
        let ThreadPaths { paths, forms, varying, .. } = self;
        varying.clear();
        let path = &mut paths[claimed.at];
        match path.answer(&claimed.params, asked, varying) {
            FastAnswer::Reply(form) => {
                // Its events may be in a partition. A flag that is set for nothing costs a change
                // one look.
                if let Some(ties) = &request.connection {
                    ties.state.handed_in.store(true, Ordering::Release);
                }
                Step::Done(response(&forms[claimed.at][form], varying))
            }
            FastAnswer::Pending(ticket) => Step::Settle(claimed.at, ticket),
            FastAnswer::Full => Step::Again,
            FastAnswer::Answered(_) | FastAnswer::Later => Step::Done(Err(no_form())),
            FastAnswer::Refused(problem) | FastAnswer::Elsewhere(problem) => {
                Step::Done(Err(path.render(problem)))
            }
        }
    }

    /// The state of a request whose answer is pending.
    fn settled(&mut self, at: usize, ticket: &AnyTicket) -> Option<Answer> {
        self.varying.clear();
        match self.paths[at].settled(ticket, &mut self.varying) {
            TicketState::Pending => None,
            TicketState::Reply(form) => Some(response(&self.forms[at][form], &self.varying)),
            TicketState::Answered(_) => Some(Err(no_form())),
            TicketState::Failed(problem) => Some(Err(self.paths[at].render(problem))),
        }
    }
}

/// The next step for a request.
#[allow(clippy::large_enum_variant)] // on the stack for a moment, and most are answers
enum Step {
    /// None.
    Done(Answer),
    /// Submit it again when woken.
    Again,
    /// Check its state when woken.
    Settle(usize, AnyTicket),
}

/// What a path of this stack never does.
fn no_form() -> Box<Problem> {
    problem::INTERNAL.because("a path has passed a request on that the general stack serves")
}

/// A form as an answer.
fn response(form: &Form, varying: &Varying) -> Answer {
    let framed = form.framed_content();
    varying.fit(form.varying_headers.len(), framed)?;
    let mut headers = Vec::with_capacity(form.varying_headers.len() + form.headers.len());
    for (&name, value) in form.varying_headers.iter().zip(varying.headers()) {
        let value = str::from_utf8(value);
        let bad = |_| problem::INTERNAL.because(format!("{name} is not visible ASCII"));
        headers.push((name, value.map_err(bad)?.to_owned()));
    }
    headers.extend(form.headers.iter().cloned());
    let content = match framed {
        Some(FormContent::Varying) => Bytes::copy_from_slice(varying.written_content()),
        Some(FormContent::Fixed(content)) => Bytes::from_static(content),
        None => Bytes::new(),
    };
    Ok(Response {
        content_type: form.content_type,
        headers,
        ..Response::json(form.status, content)
    })
}

/// Answers a request as the lean loop would. `target`: path and query as the path that serves it
/// knows them.
pub async fn serve(host: &Host, request: &mut Request, target: &str) -> Response {
    serve_by(host.faces.fast_paths(), host, request, target).await
}

/// The same with the paths of these factories.
pub(crate) async fn serve_by(
    made_by: &Arc<[Factory]>,
    host: &Host,
    request: &mut Request,
    target: &str,
) -> Response {
    let answer = answer(made_by, host, request, target).await;
    // An accepted event is not in the log yet, and the lean loop, which answers the same, reads no
    // log.
    Response { reflects: ReflectedPosition::Nothing, ..answer.unwrap_or_else(Response::from) }
}

async fn answer(
    made_by: &Arc<[Factory]>,
    host: &Host,
    request: &mut Request,
    target: &str,
) -> Answer {
    // Before the content: a wrong parameter need not wait for it.
    let claimed = with_paths(made_by, |thread| {
        let ClaimedRequest { at, shape, params } = thread.claim(request, target)?;
        Ok::<_, Box<Problem>>((at, shape, thread.paths[at].largest_content(&params)))
    });
    let (at, shape, most) = claimed?;
    let content = match shape {
        Shape::Bare(_) => Bytes::new(),
        Shape::Content | Shape::Whole { .. } => match request.body.read(most).await {
            Ok(content) => content,
            Err(problem) => {
                return Err(with_paths(made_by, |thread| thread.paths[at].render(problem)));
            }
        },
    };
    let (at, ticket) = loop {
        let now_us = host.clock.monotonic_us();
        let (step, notify) = with_paths(made_by, |thread| {
            let step = match thread.claim(request, target) {
                Ok(claimed) => thread.answer(&claimed, target, &content, request, now_us),
                Err(problem) => Step::Done(Err(problem)),
            };
            (step, Arc::clone(&thread.notify))
        });
        match step {
            Step::Done(answer) => return answer,
            Step::Settle(at, ticket) => break (at, ticket),
            Step::Again => woken(&notify).await,
        }
    };
    loop {
        let (settled, notify) =
            with_paths(made_by, |thread| (thread.settled(at, &ticket), Arc::clone(&thread.notify)));
        match settled {
            Some(answer) => return answer,
            None => woken(&notify).await,
        }
    }
}

/// Waits to be woken. The wake-up may come before this wait, so the wait is short; asking again is
/// cheap.
async fn woken(notify: &Notify) {
    let _ = tokio::time::timeout(Duration::from_millis(5), notify.notified()).await;
}
