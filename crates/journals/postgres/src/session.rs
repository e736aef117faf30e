//! The two connections of a node: how they are opened, and their notifications.

use crate::fault::{ConnectError, describe};
use crate::options::{ConnectOptions, Host};
use crate::report::DurabilityReport;
use crate::schema;
use crate::statements::{ReadStatements, SESSION, WriteStatements};
use crate::tls::MakeRustls;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;
use tokio_postgres::config::TargetSessionAttrs;
use tokio_postgres::error::Severity;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, NoTls};

/// The state of both connections of a node.
pub(crate) struct Session {
    pub(crate) writer: Client,
    pub(crate) reader: Client,
    pub(crate) writing: WriteStatements,
    pub(crate) reading: ReadStatements,
    pub(crate) durability: DurabilityReport,
    pub(crate) round_trip: Duration,
    /// Warnings on the writing connection: a commit with a warning may not be on the standby.
    warnings: Arc<Warnings>,
    ended: UnboundedReceiver<String>,
    tasks: Vec<Task>,
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
    /// Number of warnings so far.
    pub(crate) fn warnings(&self) -> u64 {
        self.warnings.count.load(Ordering::Relaxed)
    }

    /// The last warning.
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
    let failed =
        |error| ConnectError::Server { server: options.to_string(), reason: describe(&error) };
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

/// Opens both connections, within the connection timeout (and as much again for the tables).
pub(crate) async fn connect(
    options: &ConnectOptions,
    tls: Option<&MakeRustls>,
) -> Result<Session, ConnectError> {
    let within = options.connect_timeout * 2;
    let failed = |reason| ConnectError::Server { server: options.to_string(), reason };
    match tokio::time::timeout(within, connect_both(options, tls)).await {
        Ok(made) => made,
        Err(_) => Err(failed(format!("no response within {} s", within.as_secs()))),
    }
}

async fn connect_both(
    options: &ConnectOptions,
    tls: Option<&MakeRustls>,
) -> Result<Session, ConnectError> {
    let failed =
        |error| ConnectError::Server { server: options.to_string(), reason: describe(&error) };
    let warnings = Arc::new(Warnings::default());
    let (tell_ended, ended) = unbounded_channel();
    let (writer, writer_task) = open(options, tls, "writes", &warnings, &tell_ended).await?;
    schema::prepare(&writer, &options.schema).await?;
    let writing = WriteStatements::prepare(&writer, &options.schema).await.map_err(failed)?;
    let durability = DurabilityReport::read(&writer).await.map_err(failed)?;
    let unwatched = Arc::new(Warnings::default());
    let (reader, reader_task) = open(options, tls, "reads", &unwatched, &tell_ended).await?;
    let reading = ReadStatements::prepare(&reader, &options.schema).await.map_err(failed)?;
    // After a failover, both the old primary and the new one may accept connections.
    let (writes_to, reads_from) = (server_process(&writer).await, server_process(&reader).await);
    if writes_to.map_err(failed)? != reads_from.map_err(failed)? {
        let reason = "two of its hosts accept writes; stop one of them".into();
        return Err(ConnectError::Server { server: options.to_string(), reason });
    }
    let mut round_trip = Duration::ZERO;
    for _ in 0..3 {
        let before = tokio::time::Instant::now();
        reader.batch_execute("").await.map_err(failed)?;
        round_trip = round_trip.max(before.elapsed());
    }
    let tasks = vec![writer_task, reader_task];
    Ok(Session { writer, reader, writing, reading, durability, round_trip, warnings, ended, tasks })
}

/// An identifier that no two servers share.
async fn server_process(client: &Client) -> Result<String, tokio_postgres::Error> {
    let row = client.query_one("SELECT pg_postmaster_start_time()::text", &[]).await?;
    Ok(row.get(0))
}

impl Session {
    /// Closes both connections; statements in progress on the server continue there.
    pub(crate) fn close(mut self) {
        self.tasks.clear();
    }
}
