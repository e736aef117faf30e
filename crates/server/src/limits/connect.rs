//! Connections: how many there are in all and from an address.

use super::{Held, Limits, Refused};
use crate::http::problem::{self, Problem};
use crate::stats::OpenConnection;
use std::net::IpAddr;
use std::ops::Deref;

/// A connection that is counted, in all and for its address, until this is dropped.
#[derive(Debug)]
pub(crate) struct Connected {
    open: OpenConnection,
    _of_address: Option<Held>,
}

impl Deref for Connected {
    type Target = OpenConnection;

    fn deref(&self) -> &OpenConnection {
        &self.open
    }
}

impl Limits {
    /// Takes a connection from `peer`, if that is known.
    ///
    /// # Errors
    /// There are too many. What its client is to be told, counted.
    pub(crate) fn connect(&self, peer: Option<IpAddr>) -> Result<Connected, Vec<u8>> {
        // A proxy's connections are those of many clients.
        let limited = self.connections.as_ref().filter(|_| !self.proxies.trusts(peer));
        let of_address = match limited {
            None => None,
            Some(connections) => match connections.hold(self.keys.of_address(peer)) {
                Some(held) => Some(held),
                None => {
                    self.stats.refuse_connection(Refused::ConnectionOfAddress);
                    let most = connections.most();
                    let detail = format!("this address has {most} connections, the most at a time");
                    let problem = problem::TOO_MANY_CONNECTIONS.because(detail);
                    return Err(last_words(&problem.limit(most.into())));
                }
            },
        };
        match self.stats.open(self.most_connections) {
            Some(open) => Ok(Connected { open, _of_address: of_address }),
            None => {
                let most = self.most_connections;
                let detail = format!("there are {most} connections, the most at a time");
                let problem = problem::TOO_MANY_CONNECTIONS.because(detail);
                Err(last_words(&problem.limit(most as u64)))
            }
        }
    }
}

/// An answer to whatever would be asked, as short as it can be.
fn last_words(problem: &Problem) -> Vec<u8> {
    let document = problem.to_json();
    let head = format!(
        "HTTP/1.1 503 Service Unavailable\r\n\
         Retry-After: {}\r\n\
         Content-Type: application/problem+json\r\n\
         Content-Length: {}\r\n\
         Connection: close\r\n\
         \r\n",
        problem.retry_after_s().unwrap_or(1),
        document.len()
    );
    [head.into_bytes(), document].concat()
}
