//! One request, the same again and again: what `bench URL` sends.

use super::parts;
use super::statuses::Statuses;
use crate::invalid::Invalid;
use crate::workload::{Answer, Endpoint, Judgement, Needs, Next, OwnedRequest, Source, Workload};
use std::sync::Arc;

/// The same request with its method in upper case and header names in lower case.
///
/// # Errors
/// A sentence that names the part that cannot be sent.
fn checked(mut request: OwnedRequest) -> Result<OwnedRequest, Invalid> {
    request.method = parts::method(&request.method)?;
    parts::path(&request.path)?;
    for (name, value) in &mut request.headers {
        *name = parts::header_name(name)?;
        parts::header_value(value).map_err(|why| format!("header {name:?}: {why}"))?;
    }
    Ok(request)
}

/// Sends one fixed request for ever.
#[derive(Clone, Debug)]
pub struct FixedSource {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    request: OwnedRequest,
    expected: Statuses,
}

impl FixedSource {
    /// A source of this request; an answer whose status is in `expected` is a success.
    ///
    /// # Errors
    /// A sentence that names the part of the request that cannot be sent. The
    /// same request is refused again.
    pub fn new(request: OwnedRequest, expected: Statuses) -> Result<Self, Invalid> {
        Ok(FixedSource { shared: Arc::new(Shared { request: checked(request)?, expected }) })
    }
}

impl Source for FixedSource {
    fn endpoints(&self) -> Vec<Endpoint> {
        vec![Endpoint { name: self.shared.request.name(), needs: Needs::default() }]
    }

    fn name(&self) -> String {
        self.shared.request.name()
    }

    fn identity(&self) -> Vec<u8> {
        let OwnedRequest { method, path, headers, body } = &self.shared.request;
        let mut identity = format!("fixed\n{method} {path}\n").into_bytes();
        for (name, value) in headers {
            identity.extend_from_slice(format!("{name}: {value}\n").as_bytes());
        }
        identity.extend_from_slice(format!("expect {}\n\n", self.shared.expected).as_bytes());
        identity.extend_from_slice(body);
        identity
    }

    fn distinct_requests(&self, of_workers: &[u64]) -> u64 {
        of_workers.iter().copied().max().unwrap_or(0)
    }

    fn workload(&self, _worker: u32, _workers: u32, _seed: u64) -> Box<dyn Workload> {
        Box::new(FixedWorkload { shared: Arc::clone(&self.shared) })
    }
}

struct FixedWorkload {
    shared: Arc<Shared>,
}

impl Workload for FixedWorkload {
    #[inline]
    fn next(&mut self, _user: u32) -> Next<'_> {
        Next::Send(self.shared.request.borrowed(0, Some(0)))
    }

    #[inline]
    fn judge(&mut self, _user: u32, answer: &Answer<'_>) -> Judgement {
        if self.shared.expected.contains(answer.status) {
            Judgement::Success
        } else {
            Judgement::WrongStatus
        }
    }

    fn lost(&mut self, _user: u32) {}

    fn distinct_requests(&self) -> Option<u64> {
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Head;

    fn post() -> OwnedRequest {
        OwnedRequest {
            method: "post".into(),
            path: "/e?x=1".into(),
            headers: vec![("X-A".into(), "b".into())],
            body: b"{\"e\":1}".to_vec(),
        }
    }

    fn answer(status: u16) -> Answer<'static> {
        Answer { endpoint: 0, status, head: Head::default(), body: b"", body_bytes: 0 }
    }

    #[test]
    fn the_same_request_is_sent_again_and_judged_by_its_status() {
        let source = FixedSource::new(post(), Statuses::default()).unwrap();
        assert_eq!(source.endpoints()[0].name, "POST /e");
        assert_eq!(source.endpoints()[0].needs, Needs::default());
        let mut workload = source.workload(1, 2, 7);
        for user in 0..3 {
            let Next::Send(request) = workload.next(user) else { panic!("a request") };
            assert_eq!((request.fixed, request.method), (Some(0), "POST"));
            assert_eq!((request.path, request.body), ("/e?x=1", &b"{\"e\":1}"[..]));
            assert_eq!(request.headers, [("x-a".to_owned(), "b".to_owned())]);
        }
        assert_eq!(workload.judge(0, &answer(302)), Judgement::Success);
        assert_eq!(workload.judge(0, &answer(404)), Judgement::WrongStatus);
        assert_eq!(workload.distinct_requests(), Some(1));
        assert_eq!(source.distinct_requests(&[1, 1, 1]), 1, "all workers send the same");
    }

    #[test]
    fn whatever_makes_a_difference_changes_the_identity() {
        let identity = |request, expected| FixedSource::new(request, expected).unwrap().identity();
        let base = identity(post(), Statuses::default());
        assert_eq!(base, identity(post(), Statuses::default()));
        assert_ne!(base, identity(post(), Statuses::range(202, 202)));
        assert_ne!(base, identity(OwnedRequest { body: vec![], ..post() }, Statuses::default()));
        assert_ne!(base, identity(OwnedRequest { headers: vec![], ..post() }, Statuses::default()));
    }

    #[test]
    fn a_request_that_cannot_be_sent_is_refused() {
        let bad = OwnedRequest { headers: vec![("Host".into(), "x".into())], ..post() };
        let error = FixedSource::new(bad, Statuses::default()).unwrap_err();
        assert!(error.to_string().contains("\"host\""), "{error}");
    }
}
