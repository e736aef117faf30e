//! One request's bounded work: what runs here, what elsewhere, who pays, what ends it.

use super::queue::WorkQueue;
use super::watchdog::WatchedWork;
use super::{Cost, Permit, WorkRoom, elsewhere};
use crate::http::Host;
use crate::http::body_memory::{BodyMemory, Charge};
use crate::limits::{Payer, Reads};
use crate::wire::problem::{self, Problem};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use wellspring_log::{Clock, GiveWay, Work};

/// Steps of indexes and records, and time in µs, that a task may take on a serving thread. A step
/// in memory takes 20 to 200 ns; the time, checked every 256 steps, is for steps that read files.
const SHORT_STEPS: u64 = 1_024;
const SHORT_US: u64 = 250;
/// Time of one piece of a long answer, in µs.
const PIECE_US: u64 = 50_000;
/// Charged when a long task is admitted, in µs; settled afterwards. Many tasks started at once are
/// thus refused as if each had taken this long already.
const RESERVED_US: u64 = 20_000;

/// The progress of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There is more to do.
    More,
    /// It is complete.
    Done,
}

/// Resumable work.
pub trait Task: Send + 'static {
    /// Continues until it is complete or `work` ends, which is not an error. Counts its work in
    /// steps.
    ///
    /// # Errors
    /// It cannot continue.
    fn proceed(&mut self, work: Work) -> Result<Progress, Box<Problem>>;
}

/// See the module. Dropping it ends its work elsewhere within about a millisecond: its client has
/// left.
pub struct Job {
    room: Arc<WorkRoom>,
    reads: Reads,
    memory: BodyMemory,
    held: Charge,
    stop: StopOnDrop,
    permit: Option<Arc<Permit>>,
    /// When its client wants it ended, on the monotonic clock.
    deadline_us: Option<u64>,
    /// What is done, for the operator.
    subject: Arc<str>,
}

/// Sets a flag when dropped.
#[derive(Default)]
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

impl Job {
    /// A job charged to this payer.
    ///
    /// # Errors
    /// 429: earlier jobs took too much time.
    pub fn begin(host: &Host, payer: &Payer) -> Result<Job, Box<Problem>> {
        Ok(Job::of(host, payer.reads()?))
    }

    /// A job that is not charged, such as parsing an append: its bytes are charged.
    pub fn uncharged(host: &Host) -> Job {
        Job::of(host, Reads::default())
    }

    /// A job that continues a permitted read.
    pub fn of(host: &Host, reads: Reads) -> Job {
        let (room, memory) = (Arc::clone(&host.work), host.body_memory.clone());
        let held = Charge::of_work();
        let (stop, subject) = (StopOnDrop::default(), Arc::default());
        Job { room, reads, memory, held, stop, permit: None, deadline_us: None, subject }
    }

    /// Names what is done, for the operator's log. It must not contain what clients keep secret.
    pub fn name(&mut self, subject: Arc<str>) {
        self.subject = subject;
    }

    /// Ends its work elsewhere at this time of the monotonic clock at the latest, in µs.
    pub fn end_at(&mut self, deadline_us: u64) {
        self.deadline_us = Some(deadline_us);
    }

    /// Counts `bytes` of memory for this job until it ends.
    ///
    /// # Errors
    /// 503: the memory for all requests is exhausted. A retry helps.
    pub fn hold(&mut self, bytes: usize) -> Result<(), Box<Problem>> {
        self.held.raise_for(self.reads.payer(), &self.memory, bytes)
    }

    /// The payer.
    pub fn payer(&self) -> &Payer {
        self.reads.payer()
    }

    /// Runs short work here.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> T {
        self.reads.timed(work)
    }

    /// Admits long work: in all, and for this payer.
    ///
    /// # Errors
    /// 429 and 503, counted.
    pub fn admit(&mut self) -> Result<Arc<Permit>, Box<Problem>> {
        if let Some(permit) = &self.permit {
            return Ok(Arc::clone(permit));
        }
        let permit = self.room.permits.take(self.reads.payer())?;
        Ok(Arc::clone(self.permit.insert(permit)))
    }

    /// Runs work bounded by its size to some ms: here if it is short.
    ///
    /// # Errors
    /// 500, logged: the work panicked.
    pub async fn brief<T: Send + 'static>(
        &self,
        cost: Cost,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<Problem>> {
        match cost {
            Cost::Cheap => Ok(self.reads.timed(work)),
            Cost::Expensive => Box::pin(self.in_queue(&self.room.brief, None, |_| work())).await,
        }
    }

    /// The same elsewhere, within a budget that ends when the client leaves.
    ///
    /// # Errors
    /// 500, logged: the work panicked.
    pub async fn brief_within<T: Send + 'static>(
        &self,
        work: impl FnOnce(Work) -> T + Send + 'static,
    ) -> Result<T, Box<Problem>> {
        self.budgeted(&self.room.brief, None, self.room.limit_us, work).await
    }

    /// Runs a task to its end: here if it is short, otherwise the rest of it elsewhere.
    ///
    /// # Errors
    /// Those of the task; 429 and 503 if it is long and the limit of these is reached; 503
    /// `too-costly` if it exceeds its time.
    pub async fn run<T: Task>(&mut self, cost: Cost, task: T) -> Result<T, Box<Problem>> {
        let task = match self.begin_here(cost, task)? {
            (task, Progress::Done) => return Ok(task),
            (task, Progress::More) => task,
        };
        let limit_us = self.room.limit_us;
        // On the heap: otherwise short tasks would carry its size along.
        match Box::pin(self.go_on(task, limit_us)).await? {
            (task, Progress::Done) => Ok(task),
            (_, Progress::More) => Err(too_costly(limit_us / 1_000)),
        }
    }

    /// The part of a task that may run on a serving thread.
    ///
    /// # Errors
    /// Those of the task.
    pub fn begin_here<T: Task>(
        &self,
        cost: Cost,
        mut task: T,
    ) -> Result<(T, Progress), Box<Problem>> {
        if cost == Cost::Expensive {
            return Ok((task, Progress::More));
        }
        let progress = self.reads.timed(|| task.proceed(short_work(&self.room.clock)))?;
        Ok((task, progress))
    }

    /// A piece of a task, elsewhere.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub async fn piece<T: Task>(&mut self, task: T) -> Result<(T, Progress), Box<Problem>> {
        self.go_on(task, PIECE_US).await
    }

    /// The same without a refusal: waits for a permit, and counts as long work only while it runs.
    /// For what lasts for days, such as a subscription.
    ///
    /// # Errors
    /// Those of the task.
    pub async fn patient_piece<T: Task>(&mut self, task: T) -> Result<(T, Progress), Box<Problem>> {
        self.permit = Some(self.room.permits.wait().await);
        let piece = self.piece(task).await;
        self.permit = None;
        piece
    }

    async fn go_on<T: Task>(
        &mut self,
        mut task: T,
        limit_us: u64,
    ) -> Result<(T, Progress), Box<Problem>> {
        let work = move |work: Work| task.proceed(work).map(|progress| (task, progress));
        self.work_for(limit_us, work).await?
    }

    /// Runs long work that cannot pause, such as judging a condition, elsewhere.
    ///
    /// # Errors
    /// 429 and 503 if the limit is reached.
    pub async fn long<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(Work) -> T + Send + 'static,
    ) -> Result<T, Box<Problem>> {
        self.work_for(self.room.limit_us, work).await
    }

    async fn work_for<T: Send + 'static>(
        &mut self,
        limit_us: u64,
        work: impl FnOnce(Work) -> T + Send + 'static,
    ) -> Result<T, Box<Problem>> {
        let permit = self.admit()?;
        self.budgeted(&self.room.long, Some(permit), limit_us, work).await
    }

    async fn budgeted<T: Send + 'static>(
        &self,
        queue: &WorkQueue,
        permit: Option<Arc<Permit>>,
        limit_us: u64,
        work: impl FnOnce(Work) -> T + Send + 'static,
    ) -> Result<T, Box<Problem>> {
        let (clock, deadline_us) = (Arc::clone(&self.room.clock), self.deadline_us);
        let work = move |meter: &Arc<Meter>| {
            let budget = Work::unbounded().with_time_limit(Arc::clone(&clock), limit_us);
            let budget = match deadline_us {
                Some(deadline_us) => budget.with_deadline(clock, deadline_us),
                None => budget,
            };
            work(budget.with_stop(Arc::clone(&meter.stop)).giving_way_by(Arc::clone(meter) as _))
        };
        self.in_queue(queue, permit, work).await
    }

    /// Searches a view's fold elsewhere, in turn, because it cannot pause.
    ///
    /// # Errors
    /// 429 and 503 if the limit is reached.
    pub async fn search<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Box<Problem>> {
        let permit = self.admit()?;
        self.in_queue(&self.room.views, Some(permit), |_| work()).await
    }

    async fn in_queue<T: Send + 'static>(
        &self,
        queue: &WorkQueue,
        permit: Option<Arc<Permit>>,
        work: impl FnOnce(&Arc<Meter>) -> T + Send + 'static,
    ) -> Result<T, Box<Problem>> {
        let reserved = permit.as_ref().map(|_| self.reads.reserve(RESERVED_US));
        let turn = queue.enter().await;
        let stop = Arc::clone(&self.stop.0);
        let watched = self.room.watchdog.watch(WatchedWork::begin(
            turn,
            Arc::clone(&stop),
            Arc::clone(&self.subject),
            &self.room.clock,
            self.room.limit_us,
        ));
        let (clock, reads) = (Arc::clone(&self.room.clock), self.reads.clone());
        elsewhere(move || {
            // Held until the work has ended, even if the client has gone.
            let _held = (permit, reserved);
            let charged_us = AtomicU64::new(clock.thread_us());
            let work_itself = Arc::clone(&watched.work);
            let meter = Arc::new(Meter { work: work_itself, clock, reads, stop, charged_us });
            let _ends = EndOfTurn(&meter);
            work(&meter)
        })
        .await
    }
}

/// The budget of a serving thread.
pub fn short_work(clock: &Arc<dyn Clock>) -> Work {
    let deadline_us = clock.monotonic_us().saturating_add(SHORT_US);
    Work::unbounded()
        .with_step_limit(SHORT_STEPS)
        .with_deadline(Arc::clone(clock), deadline_us)
        .leaving_repairs()
}

/// The problem of work that exceeded its time.
fn too_costly(limit_ms: u64) -> Box<Problem> {
    problem::TOO_COSTLY
        .because(format!(
            "the read took longer than {limit_ms} ms; narrow the query or begin after a later position"
        ))
        .limit(limit_ms)
}

/// Work's turn in its queue; charges its processor time as it goes, on the thread that does it.
struct Meter {
    work: Arc<WatchedWork>,
    clock: Arc<dyn Clock>,
    reads: Reads,
    stop: Arc<AtomicBool>,
    /// The thread's time up to which it is charged.
    charged_us: AtomicU64,
}

impl Meter {
    fn charge(&self) {
        let now_us = self.clock.thread_us();
        self.reads.charge(now_us.saturating_sub(self.charged_us.swap(now_us, Relaxed)));
    }
}

/// Ends a turn with the work: a task that continues later keeps its budget, and with it the meter.
struct EndOfTurn<'a>(&'a Meter);

impl Drop for EndOfTurn<'_> {
    fn drop(&mut self) {
        self.0.charge();
        self.0.work.turn.end();
    }
}

impl GiveWay for Meter {
    fn give_way(&self) -> u64 {
        self.charge();
        let waited_us = self.work.turn.give_way();
        self.work.ask(self.clock.monotonic_us());
        waited_us
    }
}
