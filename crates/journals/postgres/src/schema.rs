//! The tables: created by the first node that connects, with a version that is checked.

use crate::fault::{ConnectError, describe};
use tokio_postgres::Client;

/// The version of the tables.
pub(crate) const SCHEMA_VERSION: i64 = 1;

/// The lock held while tables are created: "wellspri" as a number.
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

/// The version of the existing tables.
async fn version(client: &Client, schema: &str) -> Result<Option<i64>, ConnectError> {
    let table = format!("\"{schema}\".ws_meta");
    let failed = |error| ConnectError::Schema(describe(&error));
    // Not with to_regclass, which may cache, within a transaction, that the schema did not exist.
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
            "{table} exists but does not belong to Wellspring; name another schema with ?schema=NAME"
        ))
    };
    let value: String = row.ok_or_else(unknown)?.get(0);
    Ok(Some(value.parse().map_err(|_| unknown())?))
}

/// Ensures that the tables exist with a supported version.
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
        "restore it from an intact copy"
    };
    Err(ConnectError::Schema(format!(
        "the tables in the schema {schema:?} have version {found}, while this program supports version \
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
    // In one transaction. Nodes that start together go one after another, and only the first
    // creates anything: a second creation would lock tables that the first node already uses.
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
