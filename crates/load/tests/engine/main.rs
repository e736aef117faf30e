//! The engine over real sockets: HTTP/2 against the null server and servers that misbehave, and
//! TLS.

mod http2;
mod outage;
mod plans;
mod scripted;
mod tls;
mod tls_server;
