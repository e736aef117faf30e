//! Sends for a node's logs: offers, questions for the end, missing rows. One of each per log at a
//! time; several logs share the connections, pipelined, so that none waits for another's round
//! trip.

use crate::fault::describe;
use crate::read;
use crate::rows::{EventRecords, RowsState};
use crate::session::{BusyWriter, Session, Writer};
use crate::shared::{Command, NodeShared};
use crate::state::{Delivery, Job, LogState, NextOffer, Offer, Rows, RowsJoin};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_postgres::Error;
use tokio_postgres::types::ToSql;
use wellspring_log::shared::entry::EntryFault;
use wellspring_log::shared::{OfferOutcome, Place, SharedLogError};

/// Why a session ended.
pub(crate) enum End {
    Lost(String),
    NobodyAsks,
}

/// An operation in progress; returns the log that may have more to do.
type Work<'a> = Pin<Box<dyn Future<Output = Option<Next>> + 'a>>;

/// What to do after an operation is settled.
enum Next {
    Jobs(Arc<LogState>),
    FillRows(Arc<LogState>, Duration),
}

/// Pause before another attempt to write rows that the server refused.
const ROWS_PAUSE: Duration = Duration::from_secs(2);
/// Missing rows are filled in batches of this many bytes of entries.
const ROWS_BYTES: usize = 4 << 20;

/// Serves the node's logs until a connection is lost or no handle is left.
pub(crate) async fn serve(
    node: &Arc<NodeShared>,
    mut session: Session,
    commands: &mut UnboundedReceiver<Command>,
) -> End {
    // Awaits the end of the connections, while other tasks borrow the session.
    let mut ended = session.take_ended();
    let end = {
        let session = &session;
        let mut work: FuturesUnordered<Work<'_>> = FuturesUnordered::new();
        let mut reading = std::pin::pin!(read::read(node, session));
        for log in node.logs() {
            begin_log(node, session, log, &mut work);
        }
        loop {
            tokio::select! {
                biased;
                reason = ended.recv() => {
                    break End::Lost(reason.unwrap_or_else(|| "the connection was closed".into()));
                }
                Some(next) = work.next(), if !work.is_empty() => match next {
                    Some(Next::Jobs(log)) => send_jobs(node, session, log, &mut work),
                    Some(Next::FillRows(log, pause)) => {
                        send_jobs(node, session, Arc::clone(&log), &mut work);
                        work.push(Box::pin(fill_rows(node, session, log, pause)));
                    }
                    None => {}
                },
                command = commands.recv() => match command {
                    None => break End::NobodyAsks,
                    Some(command) => take(node, session, command, &mut work),
                },
                error = &mut reading => break End::Lost(describe(&error)),
            }
        }
    };
    session.close();
    end
}

fn take<'a>(
    node: &'a Arc<NodeShared>,
    session: &'a Session,
    command: Command,
    work: &mut FuturesUnordered<Work<'a>>,
) {
    match command {
        Command::Work(log) => send_jobs(node, session, log, work),
        Command::Follow(log) => {
            begin_log(node, session, log, work);
            node.look.notify_one();
        }
        Command::Fetch { log, after, max_bytes, reply } => work.push(Box::pin(async move {
            let fetched = read::fetch(session, &log.name, after, max_bytes).await;
            let _ = reply.send(fetched);
            None
        })),
        Command::FirstKept { log, reply } => work.push(Box::pin(async move {
            let first = session.reader.query_one(&session.reading.first, &[&log.name]).await;
            let place = first.map(|row| Place(row.get::<_, i64>(0) as u64));
            let unavailable = |error| SharedLogError::Unavailable { reason: describe(&error) };
            let _ = reply.send(place.map_err(unavailable));
            None
        })),
    }
}

/// Starts a log: its rows, if they are to be written, and everything that waits.
fn begin_log<'a>(
    node: &'a Arc<NodeShared>,
    session: &'a Session,
    log: Arc<LogState>,
    work: &mut FuturesUnordered<Work<'a>>,
) {
    let unknown = matches!(log.lock().rows, Rows::Unknown);
    if unknown && log.reads_after().is_some() {
        work.push(Box::pin(fill_rows(node, session, Arc::clone(&log), Duration::ZERO)));
    }
    send_jobs(node, session, log, work);
}

fn send_jobs<'a>(
    node: &'a Arc<NodeShared>,
    session: &'a Session,
    log: Arc<LogState>,
    work: &mut FuturesUnordered<Work<'a>>,
) {
    while let Some(job) = log.job() {
        let log = Arc::clone(&log);
        match job {
            Job::Place(next) => {
                let NextOffer { offer, previous, rows } = *next;
                let rows = rows.and_then(|rows| WithRows::of(&log.name, rows, &offer));
                if let Some(rows) = &rows {
                    log.sent_with(rows.behind.clone());
                }
                let mut inner = log.lock();
                // What follows an offer on the way sees its entry over the same connection alone.
                if previous.is_none() {
                    inner.writer = session.least_busy();
                }
                let writer = session.writer_at(inner.writer);
                drop(inner);
                let statement = OfferStatement { offer, previous, rows };
                work.push(Box::pin(place(node, session, log, writer, statement)));
            }
            Job::AskEnd => work.push(Box::pin(ask_end(node, session, log))),
        }
    }
}

/// Ensures that a log has its end row.
async fn begin(writer: &Writer, log: &LogState) -> Result<(), Error> {
    if !log.lock().begun {
        writer.client.execute(&writer.statements.begin, &[&log.name]).await?;
        log.lock().begun = true;
    }
    Ok(())
}

/// An offer as it is sent.
struct OfferStatement {
    offer: Offer,
    previous: Option<Box<[u8]>>,
    rows: Option<WithRows>,
}

/// Offers an entry.
async fn place(
    node: &NodeShared,
    session: &Session,
    log: Arc<LogState>,
    writer: BusyWriter<'_>,
    statement: OfferStatement,
) -> Option<Next> {
    let warned = session.warnings();
    let sent = statement.send(&writer, &log).await;
    let OfferStatement { offer, rows, .. } = statement;
    match sent {
        Ok(_) if session.warnings() != warned => {
            // "Already committed locally, but might not have been replicated."
            node.trouble(session.last_warning().unwrap_or_default());
            log.not_placed(offer.id, OfferOutcome::Unknown);
        }
        Ok(Some(counted)) => {
            let filled = rows.is_none() || counted;
            if log.placed(&offer, counted) == Delivery::Nothing {
                node.look.notify_one();
            }
            if !filled && log.rows_unknown() {
                return Some(Next::FillRows(log, Duration::ZERO));
            }
        }
        Ok(None) => {
            // This node has not read the entry at that place.
            log.not_placed(offer.id, OfferOutcome::Refused);
            node.look.notify_one();
        }
        Err(error) => {
            node.trouble(describe(&error));
            log.not_placed(offer.id, OfferOutcome::Unknown);
            node.look.notify_one();
        }
    }
    Some(Next::Jobs(log))
}

/// The rows of an offer, and the rule's state after it.
struct WithRows {
    behind: RowsState,
    from: i64,
    records: EventRecords,
}

impl WithRows {
    /// `None` if the entry cannot be read: it is placed anyway, and its readers find out.
    fn of(log: &str, mut rows: RowsState, offer: &Offer) -> Option<WithRows> {
        let from = rows.cursor().place.0 as i64;
        let place = Place(offer.after.0 + 1);
        let accepted = rows.judge(place, Arc::clone(&offer.entry)).ok()?;
        let mut records = EventRecords::of_log(log);
        if let Some(accepted) = accepted {
            records.add(&accepted);
        }
        Some(WithRows { behind: rows, from, records })
    }
}

impl OfferStatement {
    /// Whether it was placed (`None`: no), and whether its rows were written.
    async fn send(&self, writer: &Writer, log: &LogState) -> Result<Option<bool>, Error> {
        begin(writer, log).await?;
        let (after, entry) = (self.offer.after.0 as i64, &*self.offer.entry);
        let Writer { client, statements, .. } = writer;
        let offer: [&(dyn ToSql + Sync); 4] =
            [&log.name, &after, &entry, &self.previous.as_deref()];
        let row = match &self.rows {
            None => client.query_opt(&statements.offer, &offer).await?,
            Some(WithRows { behind, from, records }) => {
                let to = behind.cursor();
                let place = to.place.0 as i64;
                let rows: [&(dyn ToSql + Sync); 7] =
                    [from, &place, &to.epoch, &to.head, &to.chain, &to.cluster, records];
                let parameters = [&offer[..], &rows[..]].concat();
                client.query_opt(&statements.offer_with_rows, &parameters).await?
            }
        };
        Ok(row.map(|row| row.get(0)))
    }
}

async fn ask_end(node: &NodeShared, session: &Session, log: Arc<LogState>) -> Option<Next> {
    let warned = session.warnings();
    let asked = async {
        let writer = session.writer();
        begin(&writer, &log).await?;
        writer.client.query_opt(&writer.statements.end, &[&log.name]).await
    };
    let end = match asked.await {
        Ok(row) if session.warnings() == warned => {
            row.map(|row| Place(row.get::<_, i64>(0) as u64))
        }
        Ok(_) => None,
        Err(error) => {
            node.trouble(describe(&error));
            None
        }
    };
    if log.answered(end) == Delivery::Delivered {
        node.look.notify_one();
    }
    Some(Next::Jobs(log))
}

/// Determines how far a log's rows are complete, writes the missing ones, and writes rows with
/// offers from then on.
async fn fill_rows(
    node: &NodeShared,
    session: &Session,
    log: Arc<LogState>,
    pause: Duration,
) -> Option<Next> {
    tokio::time::sleep(pause).await;
    match fill(session, &log).await {
        Ok(()) => Some(Next::Jobs(log)),
        Err(NotFilled::Closed) => None,
        Err(NotFilled::Unreadable(fault)) => {
            node.trouble(format!("no rows are written for the log {:?}: {fault}", log.name));
            log.rows_off();
            Some(Next::Jobs(log))
        }
        Err(NotFilled::Later(reason)) => {
            node.trouble(format!("rows are missing for the log {:?}: {reason}", log.name));
            log.rows_unknown();
            Some(Next::FillRows(log, ROWS_PAUSE))
        }
    }
}

/// Why rows are still missing.
enum NotFilled {
    Later(String),
    Unreadable(EntryFault),
    Closed,
}

impl From<Error> for NotFilled {
    fn from(error: Error) -> NotFilled {
        NotFilled::Later(describe(&error))
    }
}

async fn fill(session: &Session, log: &LogState) -> Result<(), NotFilled> {
    begin(&session.writer(), log).await?;
    'again: loop {
        let mut state = read::rows_cursor(session, &log.name).await?;
        loop {
            if log.lock().closed {
                return Err(NotFilled::Closed);
            }
            let fetched = read::fetch(session, &log.name, state.judged(), ROWS_BYTES).await;
            let fetched = fetched.map_err(|error| NotFilled::Later(error.to_string()))?;
            if fetched.is_empty() {
                match log.join(&state) {
                    RowsJoin::Yes => return Ok(()),
                    RowsJoin::Behind => {}
                    RowsJoin::Busy => tokio::time::sleep(Duration::from_millis(1)).await,
                }
                continue;
            }
            let from = state.cursor().place;
            let mut records = EventRecords::of_log(&log.name);
            for (place, entry) in fetched {
                let accepted = state.judge(place, entry).map_err(NotFilled::Unreadable)?;
                if let Some(accepted) = accepted {
                    records.add(&accepted);
                }
            }
            let moved = state.cursor().place > from;
            if moved && !add_rows(session, log, from, &state, &records).await? {
                // Another node has moved the cursor.
                continue 'again;
            }
        }
    }
}

/// Whether the cursor was still there.
async fn add_rows(
    session: &Session,
    log: &LogState,
    from: Place,
    state: &RowsState,
    records: &EventRecords,
) -> Result<bool, Error> {
    let to = state.cursor();
    let (from, place) = (from.0 as i64, to.place.0 as i64);
    let parameters: [&(dyn ToSql + Sync); 8] =
        [&log.name, &from, &place, &to.epoch, &to.head, &to.chain, &to.cluster, records];
    let writer = session.writer();
    let row = writer.client.query_one(&writer.statements.add_rows, &parameters).await?;
    Ok(row.get::<_, i64>(0) == 1)
}
