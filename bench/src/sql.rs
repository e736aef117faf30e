//! What PostgreSQL alone does, for comparison: the journal's compare-and-swap statement by hand,
//! and appends that are a transaction each, as stores of events over SQL make them.

use crate::{
    flags::{Flags, Outcome},
    row::{Row, Sink},
    sample::Samples,
};
use std::{
    rc::Rc,
    time::{Duration, Instant},
};
use tokio_postgres::{Client, NoTls, Statement};

/// Tables like the journal's, in a schema of their own, and one as others have it.
const TABLES: &str = "
CREATE SCHEMA IF NOT EXISTS floor;
CREATE TABLE IF NOT EXISTS floor.ws_end (log text PRIMARY KEY, place bigint NOT NULL) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS floor.ws_entry (log text, place bigint, entry bytea NOT NULL, PRIMARY KEY (log, place));
ALTER TABLE floor.ws_entry ALTER entry SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS floor.events (position bigserial PRIMARY KEY, type text NOT NULL, tags text[] NOT NULL,
    data bytea NOT NULL, created_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX IF NOT EXISTS events_tags ON floor.events USING gin (tags);
INSERT INTO floor.ws_end VALUES ('raw', 0) ON CONFLICT DO NOTHING;
";

/// The statement by which the journal offers an entry.
const OFFER: &str = "WITH e AS (UPDATE floor.ws_end SET place = place + 1 WHERE log = 'raw' AND place = $1 \
     RETURNING place) INSERT INTO floor.ws_entry SELECT 'raw', e.place, $2 FROM e";
/// The statement by which it looks at the end.
const END: &str = "UPDATE floor.ws_end SET place = place WHERE log = 'raw' RETURNING place";
/// An event of a store over SQL.
const INSERT: &str = "INSERT INTO floor.events (type, tags, data) VALUES ($1, $2, $3)";

/// `wsbench sql`: `--what` is `cas`, `end` (both one connection, `--count` times), `batches` (one
/// connection, entries of `--batch` events) or `transactions` (`--connections`, one event each;
/// both for `--seconds`).
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let what: String = flags.required("what")?;
    let url: String = flags.required("url")?;
    let sink = Sink::from_flags("sql", "postgres", &mut flags)?;
    let bytes: usize = flags.or("bytes", 400)?;
    let count: usize = flags.or("count", 500)?;
    let batch: usize = flags.or("batch", 100)?;
    let connections: usize = flags.or("connections", 64)?;
    let seconds = Duration::from_secs_f64(flags.or("seconds", 4.0)?);
    flags.finish()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, async {
        let client = connect(&url).await?;
        client.batch_execute(TABLES).await?;
        let row = match what.as_str() {
            "cas" => {
                let mut samples = offers(&client, bytes, Until::Count(count)).await?;
                latency(&sink, "compare-and-swap statement", &mut samples)
            }
            "end" => latency(&sink, "look at the end", &mut ends(&client, count).await?),
            "batches" => {
                let began = Instant::now();
                let samples = offers(&client, bytes * batch, Until::Passed(seconds)).await?;
                let rate = (samples.len() * batch) as f64 / began.elapsed().as_secs_f64();
                Row {
                    samples: samples.len() as u64,
                    ..sink.row(&format!("batches of {batch}"), rate, "events/s")
                }
            }
            "transactions" => {
                let (rate, samples) = transactions(&url, connections, bytes, seconds).await?;
                let case = format!("a transaction each, {connections} clients");
                Row { samples, ..sink.row(&case, rate, "events/s") }
            }
            _ => return Err("--what is cas, end, batches or transactions".into()),
        };
        sink.put(&row)
    })
}

fn latency(sink: &Sink, case: &str, samples: &mut Samples) -> Row {
    let p50 = samples.quantile_us(0.5).unwrap_or(0.0);
    let p99_us = samples.quantile_us(0.99);
    Row { p99_us, samples: samples.len() as u64, ..sink.row(case, p50, "µs p50") }
}

async fn connect(url: &str) -> Outcome<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::task::spawn_local(connection);
    client.batch_execute("SET plan_cache_mode = force_generic_plan").await?;
    Ok(client)
}

/// When to stop.
enum Until {
    Count(usize),
    Passed(Duration),
}

/// Entries one after another, each at the place behind the one before.
async fn offers(client: &Client, bytes: usize, until: Until) -> Outcome<Samples> {
    let statement = client.prepare(OFFER).await?;
    let mut place: i64 = client.query_one(END, &[]).await?.get(0);
    let entry = vec![7u8; bytes];
    let began = Instant::now();
    let mut samples = Samples::with_capacity(4096);
    loop {
        let sent = Instant::now();
        let placed = client.execute(&statement, &[&place, &&entry[..]]).await?;
        samples.add(sent.elapsed());
        if placed != 1 {
            return Err("somebody else writes to the schema floor".into());
        }
        place += 1;
        let is_over = match until {
            Until::Count(count) => samples.len() >= count,
            Until::Passed(time) => began.elapsed() >= time,
        };
        if is_over {
            return Ok(samples);
        }
    }
}

async fn ends(client: &Client, count: usize) -> Outcome<Samples> {
    let statement = client.prepare(END).await?;
    let mut samples = Samples::with_capacity(count);
    for _ in 0..count {
        let sent = Instant::now();
        client.query_one(&statement, &[]).await?;
        samples.add(sent.elapsed());
    }
    Ok(samples)
}

/// Appends of one event, each a transaction of its own: begin, insert, commit. Events a second, and
/// how many.
async fn transactions(
    url: &str,
    connections: usize,
    bytes: usize,
    time: Duration,
) -> Outcome<(f64, u64)> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let client = connect(url).await?;
        let statement = client.prepare(INSERT).await?;
        clients.push((client, statement));
    }
    let began = Instant::now();
    let data = Rc::new(vec![7u8; bytes]);
    let tasks: Vec<_> = clients
        .into_iter()
        .enumerate()
        .map(|(index, (client, statement))| {
            let data = data.clone();
            tokio::task::spawn_local(async move {
                let mut done = 0;
                while began.elapsed() < time {
                    transaction(&client, &statement, (index, done), &data).await?;
                    done += 1;
                }
                Ok::<u64, tokio_postgres::Error>(done)
            })
        })
        .collect();
    let mut done = 0;
    for task in tasks {
        done += task.await??;
    }
    Ok((done as f64 / began.elapsed().as_secs_f64(), done))
}

async fn transaction(
    client: &Client,
    insert: &Statement,
    (index, done): (usize, u64),
    data: &[u8],
) -> Result<(), tokio_postgres::Error> {
    client.batch_execute("BEGIN").await?;
    let tags = vec![format!("order:{index}-{done}"), format!("customer:{}", done % 10_007)];
    client.execute(insert, &[&"OrderPlaced", &tags, &data]).await?;
    client.batch_execute("COMMIT").await
}
