//! What "durable" means on a server, from its settings.

use std::fmt;
use tokio_postgres::{Client, Error};

/// Settings of the server that decide what an acknowledged append survives.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DurabilityReport {
    /// `server_version`.
    pub server_version: String,
    /// `fsync`: commits are on the disk before they are acknowledged.
    pub fsync: bool,
    /// `full_page_writes`: a page that a power loss tears is mended.
    pub full_page_writes: bool,
    /// `synchronous_commit` as this node's sessions have it.
    pub synchronous_commit: String,
    /// `synchronous_standby_names`: empty if commits wait for no other server.
    pub synchronous_standby_names: String,
}

/// What survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A crash of the server's machine may lose what was acknowledged, or leave the tables damaged.
    Unsafe,
    /// What was acknowledged survives a power loss, and is lost with the server's disk.
    OneServer,
    /// It also survives the loss of the server, if a synchronous standby takes its place.
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

    /// What it comes to.
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
                 standby that takes its place may lack the last ones, because synchronous_standby_names is empty",
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
                     as long as nobody promotes a standby that is not synchronous"
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
