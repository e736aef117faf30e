//! Procedures about the server and the transaction, which need no graph.

use super::built_in::BuiltInProcedure;
use super::signature::column;
use super::{Mode, NEO4J_VERSION};
use crate::value::Value;

pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "db.ping",
        description: "True if the database answers.",
        mode: Mode::Server,
        parameters: &[],
        columns: &[column("success", "BOOLEAN")],
        call: |_, _| Ok(vec![vec![Value::Boolean(true)]]),
    },
    // Tools ask it first, and decide by the version which statements they may send.
    BuiltInProcedure {
        name: "dbms.components",
        description: "The name, the versions and the edition that clients adapt to.",
        mode: Mode::Server,
        parameters: &[],
        columns: &[
            column("name", "STRING"),
            column("versions", "LIST<STRING>"),
            column("edition", "STRING"),
        ],
        call: |_, _| {
            let versions = Value::list(vec![Value::string(NEO4J_VERSION)]);
            Ok(vec![vec![Value::string("Neo4j Kernel"), versions, Value::string("community")]])
        },
    },
    BuiltInProcedure {
        name: "dbms.info",
        description: "The name of this server.",
        mode: Mode::Server,
        parameters: &[],
        columns: IDENTITY,
        call: |_, _| Ok(vec![vec![Value::Null, Value::string("wellspring"), Value::Null]]),
    },
    BuiltInProcedure {
        name: "db.info",
        description: "The name of this database.",
        mode: Mode::Server,
        parameters: &[],
        columns: IDENTITY,
        call: |_, context| {
            Ok(vec![vec![Value::Null, Value::string(context.database), Value::Null]])
        },
    },
    BuiltInProcedure {
        name: "dbms.clientConfig",
        description: "What programs such as Neo4j Browser read of the server's settings.",
        mode: Mode::Server,
        parameters: &[],
        columns: &[
            column("name", "STRING"),
            column("description", "STRING"),
            column("value", "STRING"),
            column("dynamic", "BOOLEAN"),
        ],
        call: |_, _| Ok(CLIENT_SETTINGS.iter().map(client_setting).collect()),
    },
    BuiltInProcedure {
        name: "tx.getMetaData",
        description: "What the client has attached to the transaction.",
        mode: Mode::Server,
        parameters: &[],
        columns: &[column("metadata", "MAP")],
        call: |_, context| {
            let metadata = context.server.transaction_metadata();
            context.budget.charge_steps(metadata.len() as u64)?;
            Ok(vec![vec![Value::map(metadata)]])
        },
    },
];

/// The columns of what `dbms.info` and `db.info` say; ids and dates are not kept here.
const IDENTITY: &[super::signature::Column] =
    &[column("id", "STRING"), column("name", "STRING"), column("creationDate", "STRING")];

/// Settings that clients ask for: a name, a description, a value. The values tell a client to
/// connect to this server only.
static CLIENT_SETTINGS: &[(&str, &str, &str)] = &[
    (
        "browser.allow_outgoing_connections",
        "Whether the client may load content from elsewhere",
        "false",
    ),
    ("browser.credential_timeout", "Time after which the client forgets credentials", "0s"),
    ("browser.remote_content_hostname_whitelist", "Hosts the client may load guides from", ""),
    ("browser.retain_connection_credentials", "Whether the client may store credentials", "true"),
    ("client.allow_telemetry", "Whether the client may report its use", "false"),
];

fn client_setting((name, description, value): &(&str, &str, &str)) -> Vec<Value> {
    let [name, description, value] = [name, description, value].map(Value::string);
    vec![name, description, value, Value::Boolean(false)]
}
