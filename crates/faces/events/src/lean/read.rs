//! `GET /v1/events` and `POST /v1/query`: what is read in a few steps and fits into a few KiB.

use super::{ABOUT_A_LOG, LogHead, about, elsewhere, log_of, push_about};
use crate::disclosure::Disclosure;
use crate::params::{AFTER, FENCE, LIMIT, ORDER, QUERY, SINCE, TAG, TYPE, UNTIL};
use crate::read::{Format, RECORDS, ReadTask, page_limit};
use crate::read_request::{read_wanted, wanted_of_query};
use crate::times::PositionsOfTimes;
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use wellspring_host::fast::{
    Claim, FastAnswer, FastPath, FastRequest, FastRoute, Form, FormContent, Head, PipelineOrder,
    Shape, TicketState, Varying,
};
use wellspring_host::http::work::{Cost, MAX_SHORT_BODY_BYTES, Progress, Task, short_work};
use wellspring_host::http::{Host, JSON, NDJSON};
use wellspring_host::identity::Role;
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::json::document;
use wellspring_host::wire::params::{KnownParams, Params};
use wellspring_host::wire::problem::Problem;
use wellspring_log::{CompiledQuery, Order, Work};
use wellspring_types::moment::TimeRange;

/// The parameters of a read; those of freshness are for the general stack.
const KNOWN: KnownParams = KnownParams {
    own: &[&TYPE, &TAG, &QUERY, &AFTER, &SINCE, &UNTIL, &LIMIT, &ORDER, &FENCE],
    shared: &[],
};

/// Largest content of an answer, in bytes. Nothing counts what a client does not fetch of it.
const MAX_LEAN_BYTES: usize = 32 << 10;

/// The formats, each with a form of the same index.
const FORMATS: [(Format, &str); 3] =
    [(Format::Page, JSON), (Format::Lines, NDJSON), (Format::Records, RECORDS)];

/// Where the query is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadRoute {
    /// In the URL.
    Get,
    /// In the body.
    Post,
}

pub(super) struct ReadPath {
    /// None: nothing is read here.
    host: Option<Arc<Host>>,
    route: ReadRoute,
}

/// What a head asks for.
pub(super) struct ReadHead {
    log: LogHead,
    /// The query of the URL.
    query: Option<Box<str>>,
    /// The index of the format.
    format: usize,
}

impl ReadPath {
    pub(super) fn new(host: Option<Arc<Host>>, route: ReadRoute) -> ReadPath {
        ReadPath { host, route }
    }

    /// The method, and the end of the path.
    fn method_and_end(&self) -> (&'static str, &'static str) {
        match self.route {
            ReadRoute::Get => ("GET", "/events"),
            ReadRoute::Post => ("POST", "/query"),
        }
    }

    /// The log and the query of a target.
    fn split<'a>(&self, target: &'a str) -> Option<(&'a str, Option<&'a str>)> {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        if self.route == ReadRoute::Post && query.is_some() {
            return None;
        }
        // The log of accounts is not shown as it is stored.
        let log = log_of(path, self.method_and_end().1).filter(|log| *log != SYSTEM_LOG)?;
        Some((log, query))
    }

    /// Reads. `None`: the general stack has to do it.
    fn read(
        &self,
        head: &ReadHead,
        asked: &FastRequest<'_>,
        varying: &mut Varying,
    ) -> Option<Result<(), Box<Problem>>> {
        let host = self.host.as_ref()?;
        let log = head.log.log(host)?;
        let mut wanted = match self.route {
            ReadRoute::Get => wanted_of_query(&Params::of(head.query.as_deref(), KNOWN).ok()?),
            ReadRoute::Post => Ok(document(asked.content, read_wanted).ok()?),
        }
        .ok()?;
        let is_cheap = Cost::of_terms(wanted.query.term_count()) == Cost::Cheap;
        if !is_cheap || wanted.fence.is_some() || wanted.times != TimeRange::default() {
            return None;
        }
        let (format, _) = FORMATS[head.format];
        if format == Format::Page {
            wanted.limit = Some(page_limit(wanted.limit).ok()?);
        }
        let reads = match asked.payer.reads() {
            Ok(reads) => reads,
            Err(refused) => return Some(Err(about(&log, refused))),
        };
        let snapshot = log.snapshot();
        let position = snapshot.head();
        if wanted.order == Order::Ascending && wanted.after.unwrap_or(0) > position {
            return None;
        }
        let read = reads.timed(|| {
            let query = CompiledQuery::shared(&std::mem::take(&mut wanted.query));
            let may_see =
                asked.caller.is_some_and(|caller| caller.sees_personal(Some(&head.log.name)));
            let disclosure = Disclosure::by(host.subject_keys.clone().filter(|_| may_see));
            let times = PositionsOfTimes::default();
            let at = (&snapshot, position);
            let reading = ReadTask::new(host, at, query, wanted, times, format, disclosure);
            whole(reading, short_work(&host.clock))
        })?;
        asked.payer.bytes(read.len());
        push_about(varying, &log, position);
        varying.content().extend_from_slice(&read);
        Some(Ok(()))
    }
}

/// What is read, if that is all of it and small enough.
fn whole(mut reading: ReadTask, work: Work) -> Option<Vec<u8>> {
    match reading.proceed(work) {
        Ok(Progress::Done) => Some(reading.out).filter(|out| out.len() <= MAX_LEAN_BYTES),
        Ok(Progress::More) | Err(_) => None,
    }
}

impl FastPath for ReadPath {
    type Params = ReadHead;
    type Ticket = Infallible;

    fn route(&self) -> FastRoute {
        match self.route {
            ReadRoute::Get => FastRoute { method: "GET", path: "/v1/events" },
            ReadRoute::Post => FastRoute { method: "POST", path: "/v1/query" },
        }
    }

    fn forms(&self) -> Vec<Form> {
        let form = |(_, content_type)| {
            // As the general stack has it.
            let nosniff = (content_type != JSON).then_some(("x-content-type-options", "nosniff"));
            Form {
                status: 200,
                content_type,
                headers: nosniff
                    .map(|(name, value)| (name, value.to_owned()))
                    .into_iter()
                    .collect(),
                varying_headers: ABOUT_A_LOG,
                content: FormContent::Varying,
            }
        };
        FORMATS.map(form).into()
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        if method != self.method_and_end().0 || self.host.is_none() {
            return None;
        }
        let (log, _) = self.split(target)?;
        let most = match self.route {
            ReadRoute::Get => 0,
            ReadRoute::Post => MAX_SHORT_BODY_BYTES,
        };
        let shape = Shape::Whole { most };
        Some(Claim { role: Some(Role::Reader), log: Some(Rc::from(log)), shape })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<ReadHead>, Box<Problem>> {
        let is = |value: &[u8], media: &str| value.eq_ignore_ascii_case(media.as_bytes());
        let is_json = head.headers.get("content-type").is_none_or(|media| is(media, JSON));
        let format = match head.headers.get("accept") {
            None | Some(b"*/*") => Some(0),
            Some(accept) => FORMATS.iter().position(|(_, media)| is(accept, media)),
        };
        let known = self.split(head.target).zip(format).filter(|_| is_json);
        Ok(known.and_then(|((log, query), format)| {
            let log = LogHead::of(Some(log), head)?;
            Some(ReadHead { log, query: query.map(Box::from), format })
        }))
    }

    fn order(&self) -> PipelineOrder {
        PipelineOrder::Behind
    }

    fn compares_history(&self) -> bool {
        true
    }

    fn answer(
        &mut self,
        head: &ReadHead,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<Infallible> {
        match self.read(head, &asked, varying) {
            None => FastAnswer::Elsewhere(elsewhere()),
            Some(Err(refused)) => FastAnswer::Refused(refused),
            Some(Ok(())) => FastAnswer::Reply(head.format),
        }
    }

    fn settled(&mut self, ticket: &Infallible, _: &mut Varying) -> TicketState {
        match *ticket {}
    }
}
