//! The tables: made by whoever comes first, with a version that a program knows or refuses.

use crate::fault::{ConnectError, describe};
use tokio_postgres::Client;

/// The version of the tables written here.
pub(crate) const SCHEMA_VERSION: i64 = 1;

/// Names what is locked while tables are made: "wellspri" as a number.
const MAKING: i64 = 0x7765_6c6c_7370_7269;

fn tables(schema: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(
        r#"
CREATE TABLE IF NOT EXISTS "{schema}".ws_meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS "{schema}".ws_end (
    log text PRIMARY KEY,
    place bigint NOT NULL,
    rows_place bigint NOT NULL DEFAULT 0,
    rows_epoch bigint NOT NULL DEFAULT 0,
    rows_head bigint NOT NULL DEFAULT 0,
    rows_chain bigint NOT NULL DEFAULT 0,
    rows_cluster text
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
CREATE TABLE IF NOT EXISTS "{schema}".ws_entry (
    log text NOT NULL, place bigint NOT NULL, entry bytea NOT NULL, PRIMARY KEY (log, place)
);
ALTER TABLE "{schema}".ws_entry ALTER entry SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS "{schema}".ws_event (
    log text NOT NULL,
    position bigint NOT NULL,
    recorded_at timestamptz NOT NULL,
    type text NOT NULL,
    tags text[] NOT NULL,
    id uuid,
    metadata jsonb NOT NULL,
    data text,
    data_bytes bytea,
    PRIMARY KEY (log, position)
);
CREATE INDEX IF NOT EXISTS ws_event_tags ON "{schema}".ws_event USING gin (tags);
CREATE INDEX IF NOT EXISTS ws_event_type ON "{schema}".ws_event (log, type, position);
COMMENT ON TABLE "{schema}".ws_entry IS 'Wellspring: the entries of each log in order. Never change or delete one.';
COMMENT ON TABLE "{schema}".ws_event IS 'Wellspring: the events that count, for SQL readers. Read only.';
INSERT INTO "{schema}".ws_meta VALUES ('schema_version', '{SCHEMA_VERSION}'), ('made_by', 'wellspring {version}')
    ON CONFLICT DO NOTHING;
"#
    )
}

/// What is there.
async fn version(client: &Client, schema: &str) -> Result<Option<i64>, ConnectError> {
    let table = format!("\"{schema}\".ws_meta");
    let failed = |error| ConnectError::Schema(describe(&error));
    // Not by to_regclass: that may remember, within a transaction, that there was no such schema.
    let there = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n \
         ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relname = 'ws_meta')";
    let there = client.query_one(there, &[&schema]).await.map_err(failed)?;
    if !there.get::<_, bool>(0) {
        return Ok(None);
    }
    let select = format!("SELECT value FROM {table} WHERE key = 'schema_version'");
    let row = client.query_opt(&select, &[]).await.map_err(failed)?;
    let unknown = || {
        ConnectError::Schema(format!(
            "{table} is there but is not of Wellspring: name another schema with ?schema=NAME"
        ))
    };
    let value: String = row.ok_or_else(unknown)?.get(0);
    Ok(Some(value.parse().map_err(|_| unknown())?))
}

/// Sees to it that the tables are there and of a version that is known.
pub(crate) async fn prepare(client: &Client, schema: &str) -> Result<(), ConnectError> {
    let found = match version(client, schema).await? {
        Some(found) => found,
        None => {
            make(client, schema).await?;
            version(client, schema).await?.unwrap_or(0)
        }
    };
    if found == SCHEMA_VERSION {
        return Ok(());
    }
    let newer = found > SCHEMA_VERSION;
    let what = if newer {
        "run the newer program on every node"
    } else {
        "restore it from a copy that is whole"
    };
    Err(ConnectError::Schema(format!(
        "the tables in the schema {schema:?} are of version {found}, and this program knows version \
         {SCHEMA_VERSION}: {what}"
    )))
}

async fn make(client: &Client, schema: &str) -> Result<(), ConnectError> {
    let failed = |error: &str| {
        ConnectError::Schema(format!(
            "the tables could not be made in the schema {schema:?}: {error}; let the user own the schema \
             (CREATE SCHEMA {schema} AUTHORIZATION …), or have its owner start the program once"
        ))
    };
    let run = async |sql: String| {
        client.batch_execute(&sql).await.map_err(|error| failed(&describe(&error)))
    };
    // In one transaction. Nodes that start together come one after another, and only the first
    // makes something: another would lock tables that the first has begun to use.
    run(format!("BEGIN; SELECT pg_advisory_xact_lock({MAKING})")).await?;
    if version(client, schema).await?.is_none() {
        run(format!(
            "DO $$ BEGIN IF to_regnamespace('\"{schema}\"') IS NULL THEN \
             CREATE SCHEMA \"{schema}\"; END IF; END $$; {}",
            tables(schema)
        ))
        .await?;
    }
    run("COMMIT".into()).await
}
