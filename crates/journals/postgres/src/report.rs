//! The meaning of "durable" on a server, derived from its settings.

use std::fmt;
use tokio_postgres::{Client, Error};

/// The server settings that determine what acknowledged appends survive.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DurabilityReport {
    /// `server_version`.
    pub server_version: String,
    /// `fsync`: commits are on disk before they are acknowledged.
    pub fsync: bool,
    /// `full_page_writes`: a page torn by a power loss can be repaired.
    pub full_page_writes: bool,
    /// `synchronous_commit` in this node's sessions.
    pub synchronous_commit: String,
    /// `synchronous_standby_names`: empty if commits wait for no other server.
    pub synchronous_standby_names: String,
}

/// What acknowledged appends survive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the server's machine may lose acknowledged appends or damage the tables.
    Unsafe,
    /// Acknowledged appends survive a power loss, but not the loss of the server's disk.
    OneServer,
    /// They also survive the loss of the server, if a synchronous standby replaces it.
    Standby,
}

impl DurabilityReport {
    pub(crate) async fn read(client: &Client) -> Result<DurabilityReport, Error> {
        let names = "SELECT current_setting('server_version'), current_setting('fsync'), \
             current_setting('full_page_writes'), current_setting('synchronous_commit'), \
             current_setting('synchronous_standby_names')";
        let row = client.query_one(names, &[]).await?;
        let text = |at| row.get::<_, String>(at);
        Ok(DurabilityReport {
            server_version: text(0),
            fsync: text(1) == "on",
            full_page_writes: text(2) == "on",
            synchronous_commit: text(3),
            synchronous_standby_names: text(4),
        })
    }

    /// The resulting durability.
    #[must_use]
    pub fn durability(&self) -> Durability {
        if !self.fsync || !self.full_page_writes {
            Durability::Unsafe
        } else if self.synchronous_standby_names.trim().is_empty() {
            Durability::OneServer
        } else {
            Durability::Standby
        }
    }
}

impl fmt::Display for DurabilityReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSQL {}: ", self.server_version)?;
        match self.durability() {
            Durability::Unsafe => {
                let off = if self.fsync { "full_page_writes" } else { "fsync" };
                write!(
                    f,
                    "a crash of its machine may lose acknowledged appends, because {off} is off; set {off} = on"
                )
            }
            Durability::OneServer => f.write_str(
                "an acknowledged append is on its disk and survives a power loss; it is lost with that disk, and a \
                 standby that replaces it may lack the last ones, because synchronous_standby_names is empty",
            ),
            Durability::Standby => {
                let (names, commit) = (&self.synchronous_standby_names, &self.synchronous_commit);
                let there = match commit.as_str() {
                    "remote_write" => "handed to the system of the synchronous standby, not yet on its disk",
                    "remote_apply" => "on the disk of the synchronous standby, and applied there",
                    _ => "on the disk of the synchronous standby",
                };
                write!(
                    f,
                    "an acknowledged append is on its disk and {there} ({names}): it survives the loss of either, \
                     as long as no asynchronous standby is promoted"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_said_in_words() {
        let safe = DurabilityReport {
            server_version: "15.18".into(),
            fsync: true,
            full_page_writes: true,
            synchronous_commit: "on".into(),
            synchronous_standby_names: String::new(),
        };
        assert_eq!(safe.durability(), Durability::OneServer);
        assert!(safe.to_string().contains("synchronous_standby_names is empty"));
        let standby = DurabilityReport { synchronous_standby_names: "b".into(), ..safe.clone() };
        assert_eq!(standby.durability(), Durability::Standby);
        assert!(standby.to_string().contains("disk of the synchronous standby (b)"));
        let unsafe_ = DurabilityReport { fsync: false, ..standby };
        assert_eq!(unsafe_.durability(), Durability::Unsafe);
        assert!(unsafe_.to_string().contains("fsync = on"));
    }
}
