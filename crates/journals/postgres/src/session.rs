//! The connections of a node, one that reads and some that write: how they are opened, and their
//! notifications.

use crate::fault::{ConnectError, Retry, describe};
use crate::options::{ConnectOptions, Host};
use crate::report::DurabilityReport;
use crate::schema;
use crate::statements::{ReadStatements, SESSION, WriteStatements};
use crate::tls::MakeRustls;
use futures_util::future::try_join_all;
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};

/// Number of connections that write. A connection commits one statement after another, so logs that
/// shared one would wait for each other's commits.
const WRITERS: usize = 4;

/// The state of the connections of a node.
pub(crate) struct Session {
    writers: Vec<Writer>,
    pub(crate) reader: Client,
    pub(crate) reading: ReadStatements,
    pub(crate) durability: DurabilityReport,
    pub(crate) round_trip: Duration,
    /// Warnings on the writing connections: a commit with a warning may not be on the standby.
    warnings: Arc<Warnings>,
    ended: UnboundedReceiver<String>,
    tasks: Vec<Task>,
}

/// A connection that writes.
pub(crate) struct Writer {
    pub(crate) client: Client,
    pub(crate) statements: WriteStatements,
    /// Number of operations on it.
    operations: Cell<usize>,
}

/// A writer for one operation.
pub(crate) struct BusyWriter<'a>(&'a Writer);

impl Deref for BusyWriter<'_> {
    type Target = Writer;

    fn deref(&self) -> &Writer {
        self.0
    }
}

impl Drop for BusyWriter<'_> {
    fn drop(&mut self) {
        self.0.operations.set(self.0.operations.get() - 1);
    }
}

/// A task that ends with its owner, which closes the connection's socket; nothing is cancelled on
/// the server.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[derive(Default)]
struct Warnings {
    count: AtomicU64,
    last: std::sync::Mutex<Option<String>>,
}

impl Session {
    /// The number of the writer with the fewest operations.
    pub(crate) fn least_busy(&self) -> usize {
        let operations = |at: &usize| self.writers[*at].operations.get();
        (0..self.writers.len()).min_by_key(operations).unwrap_or(0)
    }

    /// A writer by number.
    pub(crate) fn writer_at(&self, at: usize) -> BusyWriter<'_> {
        let writer = &self.writers[at];
        writer.operations.set(writer.operations.get() + 1);
        BusyWriter(writer)
    }

    /// The writer with the fewest operations.
    pub(crate) fn writer(&self) -> BusyWriter<'_> {
        self.writer_at(self.least_busy())
    }

    /// Number of warnings so far.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.count.load(Ordering::Relaxed)
    }

    pub(crate) fn last_warning(&self) -> Option<String> {
        self.warnings.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Receives the reason when a connection is lost. Can be taken once.
    pub(crate) fn take_ended(&mut self) -> UnboundedReceiver<String> {
        std::mem::replace(&mut self.ended, unbounded_channel().1)
    }
}

fn config(options: &ConnectOptions, hosts: &[Host], purpose: &str) -> Config {
    let mut config = Config::new();
    for host in hosts {
        config.host(&host.name).port(host.port);
    }
    config
        .user(&options.user)
        .dbname(&options.database)
        .application_name(format!("{} {purpose}", options.application_name))
        .connect_timeout(options.connect_timeout)
        .target_session_attrs(TargetSessionAttrs::ReadWrite)
        .keepalives(true)
        .keepalives_idle(Duration::from_secs(5))
        .keepalives_interval(Duration::from_secs(2))
        .keepalives_retries(3)
        .tcp_user_timeout(Duration::from_secs(10));
    if let Some(password) = &options.password {
        config.password(password.bytes());
    }
    config
}

/// Drives a connection to its end, and reports it.
fn drive<S, T>(
    mut connection: Connection<S, T>,
    warnings: Arc<Warnings>,
    ended: UnboundedSender<String>,
) -> Task
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    Task(tokio::spawn(async move {
        let reason = loop {
            match std::future::poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notice(notice))) => {
                    // Processed before the statement's answer: both arrive this way, in this order.
                    // The server translates the severity word, but not this one.
                    let plain = [Severity::Notice, Severity::Info, Severity::Debug, Severity::Log];
                    if !notice.parsed_severity().is_some_and(|severity| plain.contains(&severity)) {
                        let detail = notice.detail().unwrap_or_default();
                        let said =
                            format!("{} [{}] {detail}", notice.message(), notice.code().code());
                        *warnings.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner) =
                            Some(said);
                        warnings.count.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => break describe(&error),
                None => break "the server closed the connection".into(),
            }
        };
        let _ = ended.send(reason);
    }))
}

async fn open(
    options: &ConnectOptions,
    tls: Option<&MakeRustls>,
    purpose: &str,
    warnings: &Arc<Warnings>,
    ended: &UnboundedSender<String>,
) -> Result<(Client, Task), ConnectError> {
    let config = config(options, &options.hosts, purpose);
    let (warnings, ended) = (Arc::clone(warnings), ended.clone());
    let failed = |error| ConnectError::of_server(options, &error);
    let (client, task) = match tls {
        None => {
            let (client, connection) = config.connect(NoTls).await.map_err(failed)?;
            (client, drive(connection, warnings, ended))
        }
        Some(tls) => {
            let mut config = config;
            config.ssl_mode(tokio_postgres::config::SslMode::Require);
            let (client, connection) = config.connect(tls.clone()).await.map_err(failed)?;
            (client, drive(connection, warnings, ended))
        }
    };
    client.batch_execute(SESSION).await.map_err(failed)?;
    Ok((client, task))
}

/// Opens the connections, within the connection timeout (and as much again for the tables).
pub(crate) async fn connect(
    options: &ConnectOptions,
    tls: Option<&MakeRustls>,
) -> Result<Session, ConnectError> {
    let within = options.connect_timeout * 2;
    match tokio::time::timeout(within, connect_all(options, tls)).await {
        Ok(made) => made,
        Err(_) => {
            let reason = format!("no response within {} s", within.as_secs());
            Err(ConnectError::Server { server: options.to_string(), reason, retry: Retry::MayHelp })
        }
    }
}

async fn connect_all(
    options: &ConnectOptions,
    tls: Option<&MakeRustls>,
) -> Result<Session, ConnectError> {
    let failed = |error| ConnectError::of_server(options, &error);
    let warnings = Arc::new(Warnings::default());
    let (tell_ended, ended) = unbounded_channel();
    let (first, first_task) = open(options, tls, "writes", &warnings, &tell_ended).await?;
    schema::prepare(&first, &options.schema).await?;
    let durability = DurabilityReport::read(&first).await.map_err(failed)?;
    let more = (1..WRITERS).map(|_| open(options, tls, "writes", &warnings, &tell_ended));
    let (clients, mut tasks): (Vec<Client>, Vec<Task>) =
        [(first, first_task)].into_iter().chain(try_join_all(more).await?).unzip();
    let unwatched = Arc::new(Warnings::default());
    let (reader, reader_task) = open(options, tls, "reads", &unwatched, &tell_ended).await?;
    let reading = ReadStatements::prepare(&reader, &options.schema).await.map_err(failed)?;
    let reads_from = server_process(&reader).await.map_err(failed)?;
    let prepare = |client: Client| async {
        let statements = WriteStatements::prepare(&client, &options.schema).await;
        let writes_to = server_process(&client).await.map_err(failed)?;
        let writer =
            Writer { client, statements: statements.map_err(failed)?, operations: Cell::new(0) };
        // After a failover, both the old primary and the new one may accept connections.
        if writes_to == reads_from {
            return Ok(writer);
        }
        let reason = "two of its hosts accept writes; stop one of them".into();
        Err(ConnectError::Server { server: options.to_string(), reason, retry: Retry::MayHelp })
    };
    let writers = try_join_all(clients.into_iter().map(prepare)).await?;
    let mut round_trip = Duration::ZERO;
    for _ in 0..3 {
        let before = tokio::time::Instant::now();
        reader.batch_execute("").await.map_err(failed)?;
        round_trip = round_trip.max(before.elapsed());
    }
    tasks.push(reader_task);
    Ok(Session { writers, reader, reading, durability, round_trip, warnings, ended, tasks })
}

/// An identifier that no two servers share.
async fn server_process(client: &Client) -> Result<String, tokio_postgres::Error> {
    let row = client.query_one("SELECT pg_postmaster_start_time()::text", &[]).await?;
    Ok(row.get(0))
}

impl Session {
    /// Closes all connections; statements in progress on the server continue there.
    pub(crate) fn close(mut self) {
        self.tasks.clear();
    }
}
