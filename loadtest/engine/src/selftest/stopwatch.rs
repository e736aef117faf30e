//! A second stopwatch beside the engine's: a source of numbered requests that
//! writes down, by the shared clock, when each was asked for and when its answer
//! was shown to be judged.
//!
//! The engine keeps distributions only. These samples are complete and exact, so
//! that what the engine made of the same moments can be compared with them.

use crate::clock::Clock;
use crate::workload::{Answer, Endpoint, Judgement, Needs, Next, Request, Source, Workload};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// How a request ended, as its workload was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// Nothing was said of it: it was under way when the run ended.
    None,
    /// Its answer was right.
    Success,
    /// Its answer had a failure's status.
    WrongStatus,
    /// Its answer had another request's body, or a wrong one.
    WrongBody,
    /// It was lost.
    Lost,
}

/// One request, as its workload saw it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// The number in its path.
    pub(super) tag: u64,
    /// When the engine asked for it, to send it at once.
    pub(super) asked_ns: u64,
    /// When it ended.
    pub(super) ended_ns: u64,
    /// How it ended.
    pub(super) ending: Ending,
}

/// A source of `GET /0`, `GET /1`, …, even and odd ones as endpoints of their
/// own. An answer is right if its body is the request's number.
#[derive(Debug)]
pub(super) struct Numbered {
    clock: Clock,
    /// How long judging takes, in nanoseconds: a workload that is slow.
    judging_ns: u64,
    samples: Arc<Mutex<Vec<Sample>>>,
}

impl Numbered {
    pub(super) fn new(clock: Clock, judging_ns: u64) -> Self {
        Numbered { clock, judging_ns, samples: Arc::default() }
    }

    /// Everything seen, once the run is over: workers hand their samples over when they end.
    pub(super) fn samples(&self) -> Vec<Sample> {
        std::mem::take(&mut *self.samples.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Source for Numbered {
    fn endpoints(&self) -> Vec<Endpoint> {
        let needs = Needs { head: false, body: true };
        ["even", "odd"].map(|name| Endpoint { name: name.to_owned(), needs }).to_vec()
    }

    fn name(&self) -> String {
        "numbered requests".into()
    }

    fn identity(&self) -> Vec<u8> {
        b"numbered".to_vec()
    }

    fn workload(&self, worker: u32, workers: u32, _seed: u64) -> Box<dyn Workload> {
        Box::new(Asking {
            clock: self.clock,
            judging_ns: self.judging_ns,
            all: Arc::clone(&self.samples),
            samples: Vec::new(),
            under_way: HashMap::new(),
            next_tag: u64::from(worker),
            step: u64::from(workers),
            path: String::new(),
        })
    }
}

struct Asking {
    clock: Clock,
    judging_ns: u64,
    all: Arc<Mutex<Vec<Sample>>>,
    samples: Vec<Sample>,
    under_way: HashMap<u32, usize>,
    next_tag: u64,
    step: u64,
    path: String,
}

impl Asking {
    fn end(&mut self, user: u32, ended_ns: u64, ending: Ending) {
        if let Some(sample) = self.under_way.remove(&user).and_then(|at| self.samples.get_mut(at)) {
            sample.ended_ns = ended_ns;
            sample.ending = ending;
        }
    }
}

impl Workload for Asking {
    fn next(&mut self, user: u32) -> Next<'_> {
        let asked_ns = self.clock.now_ns();
        let tag = self.next_tag;
        self.next_tag += self.step;
        self.under_way.insert(user, self.samples.len());
        self.samples.push(Sample { tag, asked_ns, ended_ns: 0, ending: Ending::None });
        self.path = format!("/{tag}");
        Next::Send(Request {
            endpoint: u16::from(tag % 2 == 1),
            fixed: None,
            method: "GET",
            path: &self.path,
            headers: &[],
            body: b"",
        })
    }

    fn judge(&mut self, user: u32, answer: &Answer<'_>) -> Judgement {
        let ended_ns = self.clock.now_ns();
        let tag = self.under_way.get(&user).and_then(|at| self.samples.get(*at)).map(|one| one.tag);
        let right = tag.is_some_and(|tag| answer.body == tag.to_string().as_bytes());
        let (ending, judgement) = match answer.status {
            400.. => (Ending::WrongStatus, Judgement::WrongStatus),
            // 204 has no body to compare.
            204 => (Ending::Success, Judgement::Success),
            _ if right => (Ending::Success, Judgement::Success),
            _ => (Ending::WrongBody, Judgement::FailedCheck(0)),
        };
        self.end(user, ended_ns, ending);
        while self.clock.now_ns() < ended_ns + self.judging_ns {
            std::hint::spin_loop();
        }
        judgement
    }

    fn lost(&mut self, user: u32) {
        self.end(user, self.clock.now_ns(), Ending::Lost);
    }

    fn check_text(&self, _check: u16) -> String {
        "the body is the request's number".into()
    }
}

impl Drop for Asking {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.append(&mut self.samples);
    }
}
