//! Connections: the number in all and per address.

use super::{ConcurrentShare, Limits};
use crate::stats::{OpenConnection, RefusalReason};
use crate::trouble::{Cause, FailedRequest};
use crate::wire::problem::{self, Problem};
use std::net::IpAddr;
use std::ops::Deref;

/// A connection counted in all and for its address, until dropped.
#[derive(Debug)]
pub(crate) struct CountedConnection {
    open: OpenConnection,
    _of_address: Option<ConcurrentShare>,
}

impl Deref for CountedConnection {
    type Target = OpenConnection;

    fn deref(&self) -> &OpenConnection {
        &self.open
    }
}

impl Limits {
    /// Admits a connection from `peer`, if that is known.
    ///
    /// # Errors
    /// Too many connections: the answer for the client, already counted.
    pub(crate) fn connect(&self, peer: Option<IpAddr>) -> Result<CountedConnection, Vec<u8>> {
        // A proxy's connections are those of many clients.
        let limited = self.connections.as_ref().filter(|_| !self.proxies.trusts(peer));
        let of_address = match limited {
            None => None,
            Some(connections) => match connections.hold(self.keys.of_address(peer)) {
                Some(held) => Some(held),
                None => {
                    self.stats.refuse_connection(RefusalReason::ConnectionOfAddress);
                    let most = connections.most();
                    let detail = format!("this address has {most} connections, the maximum");
                    let problem = problem::TOO_MANY_CONNECTIONS.because(detail);
                    return Err(self.turn_away(&problem.limit(most)));
                }
            },
        };
        match self.stats.open(self.most_connections) {
            Some(open) => Ok(CountedConnection { open, _of_address: of_address }),
            None => {
                let most = self.most_connections;
                let detail = format!("there are {most} connections, the maximum");
                let problem = problem::TOO_MANY_CONNECTIONS.because(detail);
                Err(self.turn_away(&problem.limit(most as u64)))
            }
        }
    }

    /// The answer to a client whose connection is refused.
    fn turn_away(&self, problem: &Problem) -> Vec<u8> {
        if let Some(cause) = Cause::of(problem) {
            let failed = FailedRequest { cause: &cause, route: None, log: "", request_id: None };
            self.stats.troubles.tell(failed, self.clock.monotonic_us());
        }
        problem.last_words()
    }
}
