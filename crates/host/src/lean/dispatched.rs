//! Requests of the lean loop that any handler answers: the general stack's stages and handlers,
//! without its connections.
//!
//! ```text
//! claim: a route with short answers ─► Request ─► dispatch, polled here ─► answer
//! ```

use super::answer::whole;
use crate::fast::{
    Claim, FastAnswer, FastPath, FastRequest, FastRoute, Form, Head, PipelineOrder, ServingThread,
    Shape, TicketState, Varying, Wake, WholeAnswer,
};
use crate::http::dispatch::dispatch;
use crate::http::routes::Lookup;
use crate::http::server::Server;
use crate::http::work::MAX_SHORT_BODY_BYTES;
use crate::http::{ConnectionTies, JSON, Request, Response};
use crate::wire::problem::{self, Problem};
use bytes::Bytes;
use hyper::{HeaderMap, Method, Uri};
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::AcqRel;
use std::task::{Context, Poll, Waker};
use tokio::runtime::Handle;

/// Has handlers answer on the thread of the loop.
pub(super) struct DispatchedPath {
    server: Arc<Server>,
    /// Where handlers find timers and threads.
    runtime: Handle,
    wake: Wake,
    /// The current turn of the loop, by its time, and how long handlers ran in it, in µs.
    turn_us: u64,
    spent_us: u64,
}

/// Handlers begin in one turn of the loop until they have taken this long, in µs: what has a path
/// of its own waits for no more, however many of them there are.
const TURN_SHARE_US: u64 = 250;

/// A head as handlers see it.
pub(super) struct HandlerHead {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

/// A request at its handler.
pub(super) struct DispatchedRequest {
    answer: RefCell<Pin<Box<dyn Future<Output = Response> + Send>>>,
    signal: Arc<RequestSignal>,
}

/// Tells the loop that a handler can go on.
struct RequestSignal {
    is_due: AtomicBool,
    wake: Wake,
}

impl std::task::Wake for RequestSignal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_due.swap(true, AcqRel) {
            (self.wake)();
        }
    }
}

impl DispatchedPath {
    /// `None`: connections go to the general stack, which forwards requests that another node has
    /// to answer, and records traces.
    pub(super) fn new(
        server: &Arc<Server>,
        runtime: &Handle,
        thread: &ServingThread,
    ) -> Option<DispatchedPath> {
        let host = &server.host;
        let is_served = host.node.cluster().is_none() && !host.otlp.is_on();
        let path = || DispatchedPath {
            server: Arc::clone(server),
            runtime: runtime.clone(),
            wake: thread.wake(),
            turn_us: 0,
            spent_us: 0,
        };
        is_served.then(path)
    }
}

impl DispatchedRequest {
    /// Has the handler go on. One that panics costs its own request: other connections share the
    /// loop.
    fn poll(&self, runtime: &Handle) -> Poll<WholeAnswer> {
        let _entered = runtime.enter();
        let mut answer = self.answer.borrow_mut();
        let waker = Waker::from(Arc::clone(&self.signal));
        let mut context = Context::from_waker(&waker);
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(&mut context)));
        let failed = |why| problem::INTERNAL.because(why).into();
        let response = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(response)) => response,
            Err(_) => failed("the handler of the request panicked"),
        };
        let answer = whole(response).or_else(|| {
            debug_assert!(false, "a route with short answers streams");
            whole(failed("the answer is a stream"))
        });
        Poll::Ready(answer.expect("a problem is in one piece"))
    }
}

impl HandlerHead {
    fn of(head: &Head<'_>) -> Option<HandlerHead> {
        // Others may be a bulk, which is streamed.
        let media = head.headers.get("content-type").unwrap_or(JSON.as_bytes());
        if !media.get(..JSON.len())?.eq_ignore_ascii_case(JSON.as_bytes()) {
            return None;
        }
        let method = Method::from_bytes(head.method.as_bytes()).ok()?;
        let uri = Uri::try_from(head.target).ok()?;
        Some(HandlerHead { method, uri, headers: head.headers.to_map()? })
    }
}

impl FastPath for DispatchedPath {
    type Params = HandlerHead;
    type Ticket = DispatchedRequest;

    fn route(&self) -> FastRoute {
        FastRoute { method: "", path: "" }
    }

    fn forms(&self) -> Vec<Form> {
        Vec::new()
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let routes = &self.server.host.routes;
        // Parsed as for the dispatcher: both have to see the same path.
        let uri = Uri::try_from(target).ok()?;
        let is_short = match routes.find(method, uri.path()) {
            // Answered without content, and without a path at all.
            _ if matches!(method, "HEAD" | "CONNECT") => false,
            Lookup::Found(found) => routes.at(found.route).route.contract.is_short,
            // A problem.
            Lookup::WrongMethod { .. } | Lookup::Nothing => true,
        };
        let shape = Shape::Whole { most: MAX_SHORT_BODY_BYTES };
        is_short.then_some(Claim { role: None, log: None, shape })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<HandlerHead>, Box<Problem>> {
        Ok(HandlerHead::of(head))
    }

    fn order(&self) -> PipelineOrder {
        PipelineOrder::Alone
    }

    fn compares_history(&self) -> bool {
        true
    }

    fn answer(
        &mut self,
        HandlerHead { method, uri, headers }: &HandlerHead,
        asked: FastRequest<'_>,
        _: &mut Varying,
    ) -> FastAnswer<DispatchedRequest> {
        let host = &self.server.host;
        if self.turn_us != asked.now_us {
            (self.turn_us, self.spent_us) = (asked.now_us, 0);
        }
        if self.spent_us >= TURN_SHARE_US {
            return FastAnswer::Later;
        }
        let begun_us = host.clock.monotonic_us();
        let (method, uri, headers) = (method.clone(), uri.clone(), headers.clone());
        let content = Bytes::copy_from_slice(asked.content);
        let mut request = Request::in_process(host, method, uri, headers, content);
        request.client = asked.client;
        request.pay_by(asked.payer.clone());
        request.connection = asked.connection.map(|rate| ConnectionTies {
            rate: Some(Arc::clone(rate)),
            is_counted: asked.payer.quota_keys().is_some(),
            framing: None,
            state: Arc::default(),
        });
        let signal = RequestSignal { is_due: AtomicBool::new(false), wake: self.wake.clone() };
        let waiting = DispatchedRequest {
            answer: RefCell::new(Box::pin(dispatch(Arc::clone(&self.server), request))),
            signal: Arc::new(signal),
        };
        let polled = waiting.poll(&self.runtime);
        self.spent_us += host.clock.monotonic_us().saturating_sub(begun_us);
        match polled {
            Poll::Pending => FastAnswer::Pending(waiting),
            Poll::Ready(answer) => FastAnswer::Answered(answer),
        }
    }

    fn settled(&mut self, request: &DispatchedRequest, _: &mut Varying) -> TicketState {
        if !request.signal.is_due.swap(false, AcqRel) {
            return TicketState::Pending;
        }
        match request.poll(&self.runtime) {
            Poll::Pending => TicketState::Pending,
            Poll::Ready(answer) => TicketState::Answered(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Acquire;

    fn request(answer: impl Future<Output = Response> + Send + 'static) -> DispatchedRequest {
        let signal = RequestSignal { is_due: AtomicBool::new(false), wake: Arc::new(|| {}) };
        DispatchedRequest { answer: RefCell::new(Box::pin(answer)), signal: Arc::new(signal) }
    }

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
    }

    #[test]
    fn a_handler_that_panics_costs_its_own_request() {
        let (runtime, panicking) = (runtime(), request(async { panic!("a planted bug") }));
        let Poll::Ready(answer) = panicking.poll(runtime.handle()) else { panic!("it is over") };
        assert!(answer.head.starts_with(b"HTTP/1.1 500 "), "{answer:?}");
    }

    #[test]
    fn a_handler_is_polled_again_when_it_can_go_on() {
        let runtime = runtime();
        let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
        let waiting = request(async {
            let _ = receiver.await;
            tokio::time::sleep(std::time::Duration::ZERO).await;
            Response::empty(204)
        });
        assert!(waiting.poll(runtime.handle()).is_pending());
        assert!(!waiting.signal.is_due.load(Acquire));
        sender.send(()).expect("it waits");
        assert!(waiting.signal.is_due.swap(false, AcqRel));
        while waiting.poll(runtime.handle()).is_pending() {
            runtime.block_on(tokio::task::yield_now());
        }
    }
}
