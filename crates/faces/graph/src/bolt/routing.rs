//! Routing tables: the servers that a driver talks to.
//!
//! A server alone is all of them, under the address by which its client knows it, which is right
//! behind port mappings as well. Of several nodes the leader of the log takes writes, and all
//! answer reads, the leader last.

use crate::server_facts::authority;
use wellspring_bolt::packstream::Writer;
use wellspring_host::http::{Host, Request};

/// How long a table holds, in s: a failover takes two to four.
const ALONE_S: i64 = 300;
const SEVERAL_S: i64 = 5;
/// Longest address, in bytes.
const MOST_ADDRESS_BYTES: usize = 256;

/// A routing table.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RoutingTable {
    ttl_s: i64,
    database: String,
    writers: Vec<String>,
    readers: Vec<String>,
    routers: Vec<String>,
}

impl RoutingTable {
    /// The table of a request's log, for a client that knows this server by this address.
    pub(super) fn of(host: &Host, request: &Request, known_as: Option<&str>) -> RoutingTable {
        let database = request.log_name.clone();
        let known_as = known_as.filter(|address| is_address(address));
        let alone = known_as.unwrap_or(&host.process.listen);
        let Some(cluster) = host.node.cluster() else {
            return RoutingTable::of_one(alone, database);
        };
        let here = authority(&cluster.url).to_owned();
        let leader = match &request.log {
            Some(log) if log.role().leads() => Some(here.clone()),
            Some(log) => {
                host.node.leader_of(&database, log).map(|leader| authority(&leader.url).to_owned())
            }
            None => None,
        };
        let members = host.node.members().unwrap_or_default();
        let mut nodes: Vec<String> =
            members.iter().map(|member| authority(&member.url).to_owned()).collect();
        if !nodes.contains(&here) {
            nodes.push(here);
        }
        // Reads go to those that do not lead, as long as there are any.
        nodes.sort_by_key(|node| Some(node) == leader.as_ref());
        RoutingTable {
            ttl_s: SEVERAL_S,
            database,
            writers: leader.into_iter().collect(),
            readers: nodes.clone(),
            routers: nodes,
        }
    }

    /// Gives it the name by which the client asked for the database.
    pub(super) fn name(&mut self, database: &str) {
        database.clone_into(&mut self.database);
    }

    fn of_one(address: &str, database: String) -> RoutingTable {
        let only = || vec![address.to_owned()];
        let (writers, readers, routers) = (only(), only(), only());
        RoutingTable { ttl_s: ALONE_S, database, writers, readers, routers }
    }

    /// Writes the value of the member `rt`.
    pub(super) fn push(&self, mut writer: Writer<'_>) {
        writer.map(3);
        writer.text("ttl");
        writer.int(self.ttl_s);
        writer.text("db");
        writer.text(&self.database);
        writer.text("servers");
        writer.list(3);
        for (role, addresses) in
            [("WRITE", &self.writers), ("READ", &self.readers), ("ROUTE", &self.routers)]
        {
            writer.map(2);
            writer.text("role");
            writer.text(role);
            writer.text("addresses");
            writer.list(addresses.len());
            addresses.iter().for_each(|address| writer.text(address));
        }
    }
}

/// Whether a text is a host and a port.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]%".contains(&byte);
    text.len() <= MOST_ADDRESS_BYTES
        && !host.is_empty()
        && host.bytes().all(is_host)
        && port.parse::<u16>().is_ok_and(|port| port > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        for good in ["localhost:7687", "10.0.0.1:4000", "[::1]:7687", "a.b-c.example:1"] {
            assert!(is_address(good), "{good}");
        }
        let long = format!("{}:1", "a".repeat(300));
        for bad in ["localhost", ":1", "a:0", "a:65536", "a b:1", "a\n:1", "http://a:1", &long] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
