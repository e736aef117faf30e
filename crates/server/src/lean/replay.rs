//! A session driven by a script instead of a socket, over an intake that remembers
//! what it was given. For the tests and the fuzz target.

use super::answer::FoundEnds;
use super::desk::Desk;
use super::head::Limits;
use super::limited;
use super::logged::Origin;
use super::seam::{Counted, Credentials, Redirected, Serves, Taken};
use super::session::{Session, Turn};
use crate::http::body_memory::BodyMemory;
use crate::ingest::{Media, Settled};
use crate::limits::Purse;
use crate::links::Visiting;
use crate::stats::Stats;
use crate::wire::problem::{self, Problem};
use std::net::IpAddr;
use std::sync::Arc;

/// The largest body the fake takes, in bytes.
pub(crate) const LARGEST_BODY: usize = 600;

/// An intake that remembers. What it does with a request is in the request's target.
#[derive(Default)]
pub(crate) struct Fake {
    /// Targets and bodies taken, codes and data of clicks, in order.
    pub(crate) taken: Vec<(String, Vec<u8>)>,
    /// Requests that may still be taken for `/e?full` before the next one finds no room.
    pub(crate) room: usize,
    /// Tickets below this are settled.
    pub(crate) stored: u64,
    tickets: u64,
    /// What is limited, if anything is.
    limited: Option<Arc<crate::limits::Limits>>,
}

impl Serves for Fake {
    type Target = String;
    type Ticket = u64;
    type Pass = ();

    fn target(&mut self, target: &str) -> Option<Result<String, Box<Problem>>> {
        let path = target.split('?').next().unwrap_or_default();
        match path {
            "/e" if target.ends_with("?bad") => {
                Some(Err(problem::INVALID.because("bad").field("bad")))
            }
            "/e" => Some(Ok(target.to_owned())),
            _ => None,
        }
    }

    fn admit(&mut self, _: Option<&Self::Target>, credentials: &Credentials<'_>) -> Option<()> {
        // The fake knows nobody.
        credentials.authorization.is_none().then_some(())
    }

    fn answers_under(&self, host: &[u8]) -> bool {
        host != b"foreign.example"
    }

    fn holds(&self, (): &()) -> bool {
        true
    }

    fn counts_requests(&self) -> bool {
        self.limited.is_some()
    }

    fn count(&self, request: Counted<'_, ()>) -> (Purse, Result<(), Box<Problem>>) {
        let limits = self.limited.as_ref().expect("asked only if it counts requests");
        limited::count(limits, &request, None)
    }

    fn origin(&self, _: &[u8], client: Option<IpAddr>, _: Option<&()>) -> Origin {
        Origin { client, principal: None }
    }

    fn charge(&self, purse: Purse, bytes: usize, now_us: u64) {
        if let Some(limits) = &self.limited {
            limits.charge_bytes(purse, bytes, now_us);
        }
    }

    fn take(&mut self, target: &String, media: Media, body: &[u8]) -> Taken<u64> {
        if media == Media::Ndjson {
            return Taken::Refused(problem::MALFORMED_JSON.because("the fake takes no lines"));
        }
        if body.first() == Some(&b'!') {
            return Taken::Refused(problem::INVALID.because("refused"));
        }
        if target == "/e?full" {
            let Some(room) = self.room.checked_sub(1) else { return Taken::Full };
            self.room = room;
        }
        self.taken.push((target.clone(), body.to_vec()));
        if target == "/e?durable" {
            self.tickets += 1;
            return Taken::Pending(self.tickets - 1);
        }
        Taken::Accepted
    }

    fn settled(&mut self, ticket: &u64) -> Settled {
        match ticket {
            _ if *ticket >= self.stored => Settled::Pending,
            13 => Settled::Failed(problem::STORAGE_FULL.because("the thirteenth")),
            _ => Settled::Stored,
        }
    }

    fn largest_body(&self, _: Media) -> usize {
        LARGEST_BODY
    }

    fn same(a: &String, b: &String) -> bool {
        a == b
    }

    fn serves_link(&mut self, code: &[u8]) -> bool {
        code != b"health" && code != b"e"
    }

    fn redirect(&mut self, visiting: Visiting<'_>, location: &mut Vec<u8>) -> Redirected {
        let code = String::from_utf8_lossy(visiting.code).into_owned();
        location.extend_from_slice(b"https://example.com/");
        location.extend_from_slice(visiting.code);
        match code.as_str() {
            "unknown" => {
                Redirected::Refused(problem::NOT_FOUND.because("the fake knows no such link"))
            }
            "wait" => Redirected::Foreign,
            _ => {
                let mut data = Vec::new();
                visiting.visit.push_data(b"0123456789abcdef", &mut data);
                data.extend_from_slice(visiting.visit.forwarded());
                self.taken.push((code, data));
                Redirected::Found
            }
        }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// By itself.
    Closed,
    /// Handed over with these bytes.
    Left(Vec<u8>),
}

/// What became of some bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    /// Targets and bodies taken, codes and data of clicks, in order.
    pub(crate) taken: Vec<(String, Vec<u8>)>,
    /// Every byte of the answers.
    pub(crate) answers: Vec<u8>,
    /// How it ended.
    pub(crate) end: End,
}

/// A desk with the fake at it.
pub(crate) fn desk(limits: Limits) -> Desk<Fake> {
    desk_of(limits, Fake::default())
}

/// The same, where requests are limited.
#[cfg(test)]
pub(crate) fn limited_desk(limits: Limits, limited: Arc<crate::limits::Limits>) -> Desk<Fake> {
    desk_of(limits, Fake { limited: Some(limited), ..Fake::default() })
}

fn desk_of(limits: Limits, fake: Fake) -> Desk<Fake> {
    let stats = Arc::new(Stats::new(1, Vec::new(), 0));
    let ends = FoundEnds::new("strict-origin-when-cross-origin");
    Desk::new(fake, limits, BodyMemory::new(&stats, 1 << 20), ends)
}

/// Gives a session the pieces one after another and then the end of input. Makes
/// room and settles answers only when the session has come to a stop for want of it.
pub(crate) fn replay<'a>(limits: Limits, pieces: impl Iterator<Item = &'a [u8]>) -> Trace {
    let mut desk = desk(limits);
    let mut session = Session::new(None);
    let mut answers = Vec::new();
    let mut pieces = pieces.filter(|piece| !piece.is_empty());
    let mut turn = Turn::More;
    let end = loop {
        turn = match turn {
            Turn::More => match pieces.next() {
                Some(piece) => session.receive(&mut desk, piece),
                None => session.end_of_input(&mut desk),
            },
            Turn::Flush => session.resume(&mut desk),
            Turn::Stalled => {
                desk.serving.room += 1;
                desk.full.clear();
                session.retry(&mut desk)
            }
            Turn::Wait => {
                desk.serving.stored += 1;
                session.settle(&mut desk)
            }
            Turn::Leave => break End::Left(Vec::new()),
            Turn::End => break End::Closed,
        };
        answers.append(&mut desk.out);
    };
    let end = match end {
        End::Closed => End::Closed,
        End::Left(_) => {
            let mut rest = session.into_rest();
            pieces.for_each(|piece| rest.extend_from_slice(piece));
            End::Left(rest)
        }
    };
    Trace { taken: desk.serving.taken, answers, end }
}

/// The statuses of answers, interim ones apart; `None` if the bytes are not answers.
pub(crate) fn statuses(mut answers: &[u8]) -> Option<Vec<u16>> {
    let mut found = Vec::new();
    while !answers.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 8];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(head) = response.parse(answers).ok()? else { return None };
        let length = response.headers.iter().find(|h| h.name == "Content-Length");
        let length = match length {
            Some(length) => std::str::from_utf8(length.value).ok()?.parse().ok()?,
            None => 0,
        };
        found.extend(response.code.filter(|&code| code != 100));
        answers = answers.get(head + length..)?;
    }
    Some(found)
}
