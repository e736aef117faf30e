//! What `SHOW` statements list: procedures that only these call.

use super::built_in::{self, BuiltInProcedure};
use super::schema_items::{CONSTRAINT_COLUMNS, INDEX_COLUMNS, constraints, indexes};
use super::signature::{self, Column, Parameter, column};
use super::{ArgumentType, Mode, Rows};
use crate::context::Context;
use crate::error::Result;
use crate::functions::{self, aggregates};
use crate::value::Value;
use std::sync::Arc;

/// A list that a `SHOW` statement can ask for.
pub(crate) struct ShowCommandList {
    /// The procedure that lists it.
    pub(crate) procedure: &'static str,
    /// Its columns.
    pub(crate) columns: &'static [Column],
    /// Those shown without `YIELD`.
    pub(crate) brief: &'static [&'static str],
}

/// The lists, by the last words of their statements.
pub(crate) static SHOW_COMMAND_LISTS: &[(&[&str], ShowCommandList)] = &[
    (
        &["INDEX", "INDEXES"],
        ShowCommandList {
            procedure: "show.indexes",
            columns: INDEX_COLUMNS,
            brief: &[
                "id",
                "name",
                "state",
                "populationPercent",
                "type",
                "entityType",
                "labelsOrTypes",
                "properties",
                "indexProvider",
                "owningConstraint",
                "lastRead",
                "readCount",
            ],
        },
    ),
    (
        &["CONSTRAINT", "CONSTRAINTS"],
        ShowCommandList {
            procedure: "show.constraints",
            columns: CONSTRAINT_COLUMNS,
            brief: &[
                "id",
                "name",
                "type",
                "entityType",
                "labelsOrTypes",
                "properties",
                "ownedIndex",
                "propertyType",
            ],
        },
    ),
    (
        &["DATABASE", "DATABASES"],
        ShowCommandList {
            procedure: "show.databases",
            columns: DATABASE_COLUMNS,
            brief: &[
                "name",
                "type",
                "aliases",
                "access",
                "address",
                "role",
                "writer",
                "requestedStatus",
                "currentStatus",
                "statusMessage",
                "default",
                "home",
                "constituents",
            ],
        },
    ),
    (
        &["PROCEDURE", "PROCEDURES"],
        ShowCommandList {
            procedure: "show.procedures",
            columns: PROCEDURE_COLUMNS,
            brief: &["name", "description", "mode", "worksOnSystem"],
        },
    ),
    (
        &["FUNCTION", "FUNCTIONS"],
        ShowCommandList {
            procedure: "show.functions",
            columns: FUNCTION_COLUMNS,
            brief: &["name", "category", "description"],
        },
    ),
    (
        &["USER"],
        ShowCommandList {
            procedure: "show.user",
            columns: USER_COLUMNS,
            brief: &["user", "roles", "passwordChangeRequired", "suspended", "home"],
        },
    ),
];

/// What only `SHOW` statements call. The argument says which of them.
pub(super) static TABLE: &[BuiltInProcedure] = &[
    BuiltInProcedure {
        name: "show.indexes",
        description: "",
        mode: Mode::Read,
        parameters: WHICH,
        columns: INDEX_COLUMNS,
        call: |arguments, context| indexes(which(arguments), context),
    },
    BuiltInProcedure {
        name: "show.constraints",
        description: "",
        mode: Mode::Read,
        parameters: WHICH,
        columns: CONSTRAINT_COLUMNS,
        call: |arguments, context| constraints(which(arguments), context),
    },
    BuiltInProcedure {
        name: "show.databases",
        description: "",
        mode: Mode::Server,
        parameters: WHICH,
        columns: DATABASE_COLUMNS,
        call: |arguments, context| databases(which(arguments), context),
    },
    BuiltInProcedure {
        name: "show.procedures",
        description: "",
        mode: Mode::Server,
        parameters: WHICH,
        columns: PROCEDURE_COLUMNS,
        call: |_, context| procedures(context),
    },
    BuiltInProcedure {
        name: "show.functions",
        description: "",
        mode: Mode::Server,
        parameters: WHICH,
        columns: FUNCTION_COLUMNS,
        call: |arguments, context| all_functions(which(arguments), context),
    },
    BuiltInProcedure {
        name: "show.user",
        description: "",
        mode: Mode::Server,
        parameters: WHICH,
        columns: USER_COLUMNS,
        call: |_, context| Ok(current_user(context)),
    },
];

const WHICH: &[Parameter] = &[Parameter::optional("which", ArgumentType::Any)];

fn which(arguments: &[Value]) -> &Value {
    arguments.first().unwrap_or(&Value::Null)
}

const DATABASE_COLUMNS: &[Column] = &[
    column("name", "STRING"),
    column("type", "STRING"),
    column("aliases", "LIST<STRING>"),
    column("access", "STRING"),
    column("databaseID", "STRING"),
    column("serverID", "STRING"),
    column("address", "STRING"),
    column("role", "STRING"),
    column("writer", "BOOLEAN"),
    column("requestedStatus", "STRING"),
    column("currentStatus", "STRING"),
    column("statusMessage", "STRING"),
    column("default", "BOOLEAN"),
    column("home", "BOOLEAN"),
    column("currentPrimariesCount", "INTEGER"),
    column("currentSecondariesCount", "INTEGER"),
    column("requestedPrimariesCount", "INTEGER"),
    column("requestedSecondariesCount", "INTEGER"),
    column("creationTime", "ZONED DATETIME"),
    column("lastStartTime", "ZONED DATETIME"),
    column("lastStopTime", "ZONED DATETIME"),
    column("store", "STRING"),
    column("lastCommittedTxn", "INTEGER"),
    column("replicationLag", "INTEGER"),
    column("constituents", "LIST<STRING>"),
    column("options", "MAP"),
];

const PROCEDURE_COLUMNS: &[Column] = &[
    column("name", "STRING"),
    column("description", "STRING"),
    column("mode", "STRING"),
    column("worksOnSystem", "BOOLEAN"),
    column("signature", "STRING"),
    column("argumentDescription", "LIST<MAP>"),
    column("returnDescription", "LIST<MAP>"),
    column("admin", "BOOLEAN"),
    column("rolesExecution", "LIST<STRING>"),
    column("rolesBoostedExecution", "LIST<STRING>"),
    column("isDeprecated", "BOOLEAN"),
    column("deprecatedBy", "STRING"),
    column("option", "MAP"),
];

const FUNCTION_COLUMNS: &[Column] = &[
    column("name", "STRING"),
    column("category", "STRING"),
    column("description", "STRING"),
    column("signature", "STRING"),
    column("isBuiltIn", "BOOLEAN"),
    column("argumentDescription", "LIST<MAP>"),
    column("returnDescription", "STRING"),
    column("aggregating", "BOOLEAN"),
    column("rolesExecution", "LIST<STRING>"),
    column("rolesBoostedExecution", "LIST<STRING>"),
    column("isDeprecated", "BOOLEAN"),
    column("deprecatedBy", "STRING"),
];

const USER_COLUMNS: &[Column] = &[
    column("user", "STRING"),
    column("roles", "LIST<STRING>"),
    column("passwordChangeRequired", "BOOLEAN"),
    column("suspended", "BOOLEAN"),
    column("home", "STRING"),
];

fn strings<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Value {
    Value::list(texts.into_iter().map(Value::string).collect())
}

/// All databases; the default one for true; the one with a name or alias.
fn databases(which: &Value, context: &mut Context<'_>) -> Result<Rows> {
    let mut rows = Rows::new();
    for database in context.server.databases() {
        context.budget.charge_steps(DATABASE_COLUMNS.len() as u64)?;
        let is_wanted = match which {
            Value::Boolean(_) => database.is_default,
            Value::String(name) => database.name == *name || database.aliases.contains(name),
            _ => true,
        };
        if !is_wanted {
            continue;
        }
        let status = if database.unavailable.is_none() { "online" } else { "offline" };
        let default = Value::Boolean(database.is_default);
        rows.push(vec![
            Value::String(Arc::clone(&database.name)),
            Value::string(if database.is_system { "system" } else { "standard" }),
            strings(&database.aliases),
            Value::string(if database.is_writable { "read-write" } else { "read-only" }),
            Value::Null,
            Value::Null,
            Value::String(Arc::clone(&database.address)),
            Value::string("primary"),
            Value::Boolean(database.is_writer),
            Value::string("online"),
            Value::string(status),
            Value::string(database.unavailable.as_deref().unwrap_or_default()),
            default.clone(),
            default,
            Value::Integer(1),
            Value::Integer(0),
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Null,
            Value::Integer(0),
            strings::<&str>([]),
            Value::map([]),
        ]);
    }
    Ok(rows)
}

fn procedures(context: &mut Context<'_>) -> Result<Rows> {
    let listed = built_in::listed();
    context.budget.charge_steps((listed.len() * PROCEDURE_COLUMNS.len()) as u64)?;
    let row = |procedure: &&BuiltInProcedure| {
        let mode = match procedure.mode {
            Mode::Server => "DBMS",
            Mode::Read => "READ",
            Mode::Write => "WRITE",
        };
        vec![
            Value::string(procedure.name),
            Value::string(procedure.description),
            Value::string(mode),
            Value::Boolean(procedure.mode == Mode::Server),
            Value::string(signature::text(procedure)),
            signature::parameters(procedure),
            signature::columns(procedure),
            Value::Boolean(false),
            Value::Null,
            Value::Null,
            Value::Boolean(false),
            Value::Null,
            Value::map([("deprecated".into(), Value::Boolean(false))]),
        ]
    };
    Ok(listed.iter().map(row).collect())
}

/// All functions; those that are not built in, of which there are none, for false.
fn all_functions(which: &Value, context: &mut Context<'_>) -> Result<Rows> {
    if matches!(which, Value::Boolean(false)) {
        return Ok(Rows::new());
    }
    let mut all: Vec<_> = functions::listed()
        .map(|(function, category)| (function.name, category, function.least, function.most, false))
        .collect();
    all.extend(aggregates().map(|(name, arity)| (name, "Aggregating", arity, arity, true)));
    all.sort_unstable_by_key(|function| function.0);
    context.budget.charge_steps((all.len() * FUNCTION_COLUMNS.len()) as u64)?;
    let row = |(name, category, least, most, is_aggregating): (&str, &str, usize, usize, bool)| {
        let arguments = (1..=most.min(least + 3)).map(|number| {
            let default = if number > least { " = null" } else { "" };
            format!("input{number}{default} :: ANY")
        });
        let arguments = arguments.collect::<Vec<_>>().join(", ");
        vec![
            Value::string(name),
            Value::string(category),
            Value::string(format!("{category} function, see the manual of the language.")),
            Value::string(format!("{name}({arguments}) :: ANY")),
            Value::Boolean(true),
            Value::list(Vec::new()),
            Value::string("ANY"),
            Value::Boolean(is_aggregating),
            Value::Null,
            Value::Null,
            Value::Boolean(false),
            Value::Null,
        ]
    };
    Ok(all.into_iter().map(row).collect())
}

fn current_user(context: &Context<'_>) -> Rows {
    let account = context.server.account();
    let row = account.map(|account| {
        let default = context.server.databases().into_iter().find(|it| it.is_default);
        let home = default.map_or(Value::Null, |database| Value::String(database.name));
        let (required, suspended) = (Value::Boolean(false), Value::Boolean(false));
        vec![Value::String(account.name), strings(&account.roles), required, suspended, home]
    });
    row.into_iter().collect()
}
