//! What statements can ask of the server around the graph.

use crate::value::Value;
use std::sync::Arc;

/// What statements can ask of the server around the graph. It answers from memory.
pub trait Server: Sync {
    /// The databases that the account may read, by name.
    fn databases(&self) -> Vec<Database> {
        Vec::new()
    }

    /// The account for which the statement runs; `None` where accounts are not used.
    fn account(&self) -> Option<Account> {
        None
    }

    /// What the client has attached to the transaction, by name.
    fn transaction_metadata(&self) -> Vec<(Arc<str>, Value)> {
        Vec::new()
    }
}

/// A database, as far as lists of databases show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Its name.
    pub name: Arc<str>,
    /// Its other names.
    pub aliases: Vec<Arc<str>>,
    /// Whether this server is where it is written.
    pub is_writer: bool,
    /// Whether it may be written at all.
    pub is_writable: bool,
    /// Whether it is used where a client names none.
    pub is_default: bool,
    /// Whether it is the server's own, without a graph.
    pub is_system: bool,
    /// The address at which drivers find it, with its port.
    pub address: Arc<str>,
    /// Why it cannot be used now, if it cannot.
    pub unavailable: Option<Arc<str>>,
}

/// An account, as far as it is shown to itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// Its name.
    pub name: Arc<str>,
    /// Its roles in Neo4j's words, such as `reader`.
    pub roles: Vec<Arc<str>>,
}

/// No server: a graph alone.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoServer;

impl Server for NoServer {}
