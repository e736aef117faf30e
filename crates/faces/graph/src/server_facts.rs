//! What statements can ask of the server: databases, the account, the metadata of the transaction.

use crate::{csv_file, log_events};
use std::path::Path;
use std::sync::Arc;
use wellspring_cypher::error::Result;
use wellspring_cypher::value::Value;
use wellspring_cypher::{Account, Database, EachRecord, EventSink, EventsWanted, Server};
use wellspring_host::access::Principal;
use wellspring_host::http::Host;
use wellspring_host::names::{MAIN, SYSTEM_LOG};

/// What the statements of a transaction can ask of the server.
pub(crate) struct ServerFacts {
    pub(crate) host: Arc<Host>,
    /// The caller.
    pub(crate) principal: Arc<Principal>,
    /// The folder of files for `LOAD CSV`, if there is one.
    pub(crate) csv_folder: Option<Arc<Path>>,
    /// What the client has attached to the transaction.
    pub(crate) metadata: Vec<(Arc<str>, Value)>,
}

impl ServerFacts {
    fn database(&self, name: &str, is_writer: bool, aliases: &[&str]) -> Database {
        let address = match self.host.node.cluster() {
            Some(cluster) => authority(&cluster.url).into(),
            None => Arc::from(&*self.host.process.listen),
        };
        Database {
            name: name.into(),
            aliases: aliases.iter().copied().map(Arc::from).collect(),
            is_writer,
            is_writable: name != SYSTEM_LOG,
            is_default: name == MAIN,
            is_system: name == SYSTEM_LOG,
            address,
            unavailable: None,
        }
    }
}

/// Host and port of a URL.
pub(crate) fn authority(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.split('/').next().unwrap_or(rest)
}

impl Server for ServerFacts {
    fn databases(&self) -> Vec<Database> {
        let logs = self.host.node.all();
        let has = |name: &str| logs.iter().any(|(log, _)| log == name);
        let aliases: Vec<&str> =
            ["neo4j", "nornic"].into_iter().filter(|alias| !has(alias)).collect();
        let readable =
            logs.iter().filter(|(name, _)| name != SYSTEM_LOG && self.principal.may_read(name));
        let of_log = |(name, log): &(String, wellspring_log::Log)| {
            let aliases = if name == MAIN { &aliases[..] } else { &[] };
            self.database(name, log.role().leads(), aliases)
        };
        let mut all: Vec<Database> = readable.map(of_log).collect();
        all.push(self.database(SYSTEM_LOG, true, &[]));
        all
    }

    fn account(&self) -> Option<Account> {
        let name = self.principal.name()?;
        let grants = self.principal.roles();
        let roles = grants.iter().map(|grant| match &grant.log {
            None => grant.role.to_string().into(),
            Some(log) => format!("{}:{log}", grant.role).into(),
        });
        Some(Account { name: name.into(), roles: roles.collect() })
    }

    fn events(&self, wanted: &EventsWanted, sink: &mut dyn EventSink) -> Result<()> {
        let log = self.host.node.get(&wanted.database).filter(|_| *wanted.database != *SYSTEM_LOG);
        log.map_or(Ok(()), |log| log_events::pass(&log, wanted, sink))
    }

    fn csv(&self, source: &str, terminator: u8, each: &mut EachRecord<'_>) -> Result<()> {
        csv_file::pass(self.csv_folder.as_deref(), source, terminator, each)
    }

    fn transaction_metadata(&self) -> Vec<(Arc<str>, Value)> {
        self.metadata.clone()
    }
}
