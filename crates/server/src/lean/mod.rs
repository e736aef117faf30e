//! The lean loop: HTTP/1.1 for ingest requests and nothing else, one epoll loop a
//! serving thread, without a runtime (decision 0008).
//!
//! ```text
//! socket → conn → session → head, chunked → seam (Ingest) → the partition
//!            ↑        ↓
//!          flush ← answers        anything else: the socket and the bytes read → tokio
//! ```
//!
//! `session` is the protocol and knows no socket; `conn` and `worker` are the sockets.

mod answer;
mod chunked;
mod desk;
mod head;
mod repeat;
pub(crate) mod replay;
mod replies;
mod seam;
mod session;

#[cfg(test)]
mod session_tests;
