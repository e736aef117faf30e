//! The engine over real sockets: HTTP/2 against the null server and servers that misbehave, TLS,
//! and answers that come in two pieces.

mod delayed_ack;
mod http2;
mod outage;
mod plans;
mod scripted;
mod tls;
mod tls_server;
mod unannounced;
