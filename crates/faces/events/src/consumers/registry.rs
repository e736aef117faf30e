//! The open consumers of all logs that this node leads.

use super::interrupted::Interrupted;
use super::open::{NotSaved, OpenConsumer};
use super::stored::{self, RestoredConsumer};
use crate::problems::CONSUMER_NOT_FOUND;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wellspring_host::http::work::{Cost, Job, Progress, Task};
use wellspring_host::http::{Host, Request};
use wellspring_host::node::LogReader;
use wellspring_host::wire::problem::{self, Problem};
use wellspring_log::{LeaseError, Log, ReadError, Snapshot, Work};
use wellspring_types::HistoryId;

/// How often, and at which distance, the last checkpoints are looked for at the end.
const CLOSE_LOOKS: usize = 1_000;
const CLOSE_PAUSE: Duration = Duration::from_millis(2);

/// See the module.
#[derive(Default)]
pub(crate) struct Consumers {
    logs: Mutex<HashMap<String, Arc<LogConsumers>>>,
}

/// The open consumers of one log, while this node leads it.
pub(crate) struct LogConsumers {
    log: Log,
    pub(super) epoch: u64,
    history: Option<HistoryId>,
    open: Mutex<HashMap<String, Arc<OpenConsumer>>>,
    /// Held while a consumer is opened, defined, moved or deleted.
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// Whether those that the log had at the beginning were opened.
    began: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Consumers {
    /// The consumers of a request's log.
    ///
    /// # Errors
    /// Another node leads the log.
    pub(crate) fn of_log(&self, request: &Request) -> Result<Arc<LogConsumers>, Box<Problem>> {
        let led = self.led(request.log()?, &request.log_name);
        led.ok_or_else(|| request.effects.refused(LeaseError::NotLeading).into())
    }

    /// The consumers of a log, if this node leads it.
    pub(crate) fn led(&self, log: &Log, name: &str) -> Option<Arc<LogConsumers>> {
        let (epoch, history) = (log.epoch(), log.history());
        if !log.leads_in(epoch) {
            return None;
        }
        let mut logs = lock(&self.logs);
        if let Some(known) = logs.get(name) {
            if (known.epoch, known.history) == (epoch, history) {
                return Some(Arc::clone(known));
            }
            known.close();
        }
        let consumers = Arc::new(LogConsumers {
            log: log.clone(),
            epoch,
            history,
            open: Mutex::default(),
            changing: tokio::sync::Mutex::new(()),
            began: AtomicBool::new(false),
        });
        logs.insert(name.to_owned(), Arc::clone(&consumers));
        Some(consumers)
    }

    fn all(&self) -> Vec<(String, Arc<LogConsumers>)> {
        lock(&self.logs).iter().map(|(log, open)| (log.clone(), Arc::clone(open))).collect()
    }

    /// All open consumers, with the names of their logs.
    pub(super) fn opened(&self) -> Vec<(String, Arc<OpenConsumer>)> {
        let of_log = |(log, consumers): (String, Arc<LogConsumers>)| {
            consumers.all().into_iter().map(move |consumer| (log.clone(), consumer))
        };
        self.all().into_iter().flat_map(of_log).collect()
    }

    /// Saves what is due, opens the consumers of logs that this node has begun to lead, and forgets
    /// those of logs that it leads no more. May wait for the disk.
    pub(crate) fn tick(&self, host: &Host) {
        for (name, log) in host.node.all() {
            if let Some(consumers) = self.led(&log, &name) {
                consumers.begin(host);
            }
        }
        for (name, consumers) in self.all() {
            if consumers.log.leads_in(consumers.epoch) {
                consumers.all().iter().for_each(OpenConsumer::save_if_due);
                continue;
            }
            consumers.close();
            let mut logs = lock(&self.logs);
            if logs.get(&name).is_some_and(|known| Arc::ptr_eq(known, &consumers)) {
                logs.remove(&name);
            }
        }
    }

    /// Waits until the consumers of all logs have saved what is settled by now: what settled it can
    /// go then, as no delivery is repeated after a crash.
    ///
    /// # Errors
    /// [`Interrupted`]: a log has not taken a checkpoint.
    pub(crate) async fn save_settled(&self) -> Result<(), Interrupted> {
        for (_, consumer) in self.opened() {
            match consumer.save_settled().await {
                // A request opens it again, from what its checkpoints say.
                Ok(()) | Err(NotSaved::Closed) => {}
                Err(refused) => return Err(refused.into()),
            }
        }
        Ok(())
    }

    /// Saves everything and closes all consumers. Waits, but not for long.
    pub(crate) fn close(&self) {
        let opened = self.opened();
        for _ in 0..CLOSE_LOOKS {
            opened.iter().for_each(|(_, consumer)| consumer.save());
            if opened.iter().all(|(_, consumer)| consumer.is_saved()) {
                break;
            }
            std::thread::sleep(CLOSE_PAUSE);
        }
        opened.iter().for_each(|(_, consumer)| consumer.close());
    }
}

impl LogConsumers {
    fn all(&self) -> Vec<Arc<OpenConsumer>> {
        lock(&self.open).values().cloned().collect()
    }

    fn close(&self) {
        self.all().iter().for_each(|consumer| consumer.close());
    }

    /// The consumer of this name, if it is open.
    pub(super) fn opened(&self, name: &str) -> Option<Arc<OpenConsumer>> {
        lock(&self.open).get(name).filter(|consumer| !consumer.is_closed()).cloned()
    }

    /// Closes a consumer and forgets it.
    pub(super) fn forget(&self, name: &str) {
        if let Some(consumer) = lock(&self.open).remove(name) {
            consumer.close();
        }
    }

    /// The consumer of this name, opened if it was not.
    ///
    /// # Errors
    /// 404; those of a read.
    pub(super) async fn open(
        &self,
        host: &Host,
        job: &mut Job,
        name: &str,
    ) -> Result<Arc<OpenConsumer>, Box<Problem>> {
        if let Some(open) = self.opened(name) {
            return Ok(open);
        }
        let _changing = self.changing.lock().await;
        self.open_changing(host, job, name).await?.ok_or_else(|| not_found(name))
    }

    /// The same for a caller that holds [`changing`](Self::changing); none if the log has no such
    /// consumer.
    ///
    /// # Errors
    /// Those of a read.
    pub(super) async fn open_changing(
        &self,
        host: &Host,
        job: &mut Job,
        name: &str,
    ) -> Result<Option<Arc<OpenConsumer>>, Box<Problem>> {
        if let Some(open) = self.opened(name) {
            return Ok(Some(open));
        }
        match self.restored(job, name).await? {
            Some(restored) => self.insert(host, name, restored).map(Some),
            None => Ok(None),
        }
    }

    /// Opens what is not open, so that the figures of a consumer do not wait for its first request:
    /// with no worker left, they are what tells.
    fn begin(&self, host: &Host) {
        let Ok(_changing) = self.changing.try_lock() else { return };
        if self.began.swap(true, Relaxed) {
            return;
        }
        if let Err(error) = self.open_all(host) {
            tracing::warn!(%error, "consumers cannot be read; each is opened with its first request");
        }
    }

    fn open_all(&self, host: &Host) -> Result<(), ReadError> {
        let snapshot = self.log.snapshot();
        for name in stored::names(&snapshot, Work::unbounded())? {
            if self.opened(&name).is_none()
                && let Some(restored) = stored::restore(&snapshot, &name, Work::unbounded())?
            {
                // Its own fault is logged.
                let _ = self.insert(host, &name, restored);
            }
        }
        Ok(())
    }

    fn insert(
        &self,
        host: &Host,
        name: &str,
        restored: RestoredConsumer,
    ) -> Result<Arc<OpenConsumer>, Box<Problem>> {
        let (log, clock) = (self.log.clone(), Arc::clone(&host.clock));
        let opened = OpenConsumer::new(name, restored, log, self.epoch, clock);
        let opened = opened.map_err(|fault| {
            let detail = format!("the checkpoints of the consumer {name:?} cannot be read");
            tracing::error!(consumer = name, ?fault, "{detail}");
            problem::INTERNAL.because(detail)
        })?;
        lock(&self.open).insert(name.to_owned(), Arc::clone(&opened));
        Ok(opened)
    }

    async fn restored(
        &self,
        job: &mut Job,
        name: &str,
    ) -> Result<Option<RestoredConsumer>, Box<Problem>> {
        let snapshot = self.log.snapshot();
        let task = ReadTask { snapshot, name: name.to_owned(), read: stored::restore, found: None };
        Ok(job.run(Cost::Cheap, task).await?.found.flatten())
    }

    /// What each consumer of the log needs.
    ///
    /// # Errors
    /// Those of a read.
    pub(crate) fn readers(&self, host: &Host) -> Result<Vec<LogReader>, ReadError> {
        self.open_all(host)?;
        let all = self.all().into_iter();
        let reader = |consumer: Arc<OpenConsumer>| {
            let position = consumer.with(|state, _| state.needed_after()).unwrap_or(0) + 1;
            LogReader { kind: "consumer", name: consumer.name.clone(), position }
        };
        Ok(all.map(reader).collect())
    }

    /// Writes the definition and the state of each consumer again: those before are about to be
    /// removed. For a caller that holds [`changing`](Self::changing).
    ///
    /// # Errors
    /// [`Interrupted`]: the log has not taken them, or this node leads it no more.
    pub(crate) async fn renew(&self) -> Result<(), Interrupted> {
        for consumer in self.all() {
            consumer.renew().await?;
        }
        Ok(())
    }

    /// The names of all consumers.
    ///
    /// # Errors
    /// Those of a read.
    pub(super) async fn names(&self, job: &mut Job) -> Result<Vec<String>, Box<Problem>> {
        let read = |snapshot: &Snapshot, _: &str, work| stored::names(snapshot, work);
        let snapshot = self.log.snapshot();
        let task = ReadTask { snapshot, name: String::new(), read, found: None };
        Ok(job.run(Cost::Cheap, task).await?.found.unwrap_or_default())
    }
}

pub(super) fn not_found(name: &str) -> Box<Problem> {
    CONSUMER_NOT_FOUND
        .because(format!("there is no consumer {name:?}; define it with PUT /v1/consumers/{name}"))
}

/// A read of stored consumers. It begins anew each time that its work ends.
struct ReadTask<T> {
    snapshot: Snapshot,
    name: String,
    read: fn(&Snapshot, &str, Work) -> Result<T, ReadError>,
    found: Option<T>,
}

impl<T: Send + 'static> Task for ReadTask<T> {
    fn proceed(&mut self, work: Work) -> Result<Progress, Box<Problem>> {
        match (self.read)(&self.snapshot, &self.name, work) {
            Ok(found) => {
                self.found = Some(found);
                Ok(Progress::Done)
            }
            Err(ReadError::Stopped(_)) => Ok(Progress::More),
            Err(error) => Err(error.into()),
        }
    }
}
