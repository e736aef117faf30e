//! The HTTP/1.1 client of tools, nodes and webhooks: connections in the clear or through TLS, and a
//! blocking half for the tools, the keys of a foreign issuer and the export of figures. What is on
//! the wire is hyper's (decision 0036).

#![forbid(unsafe_code)]

pub mod authorization;
mod blocking;
pub mod connection;
pub mod endpoint;
pub mod message;
mod reactor;
#[cfg(any(test, feature = "testing"))]
pub mod test_server;
pub mod tls_fault;
pub mod trust;

pub use blocking::{Answer, Client, ClientError, Request};
pub use message::Stream;
pub use trust::UnusableClient;
