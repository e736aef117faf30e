//! Authentication and authorization: from a request's headers to the caller's identity and roles.
//!
//! ```text
//! headers ─► credentials ─► cache ── hit ──────────────────────────────► principal.may(role, log)
//!                             └ miss ─► token | key | password ─► proof ─► judged by the view ─┘
//! ```
//! A **proof** is what a credential has shown once and for all: that a token is genuine, that a
//! password was right. Whether it is still valid is decided by the view (`access/view`), again
//! whenever the view has moved. Clients learn that access was denied, never why.
//!
//! Tokens are ours (`token`, `token_secret`; in a cluster `derived`) or an external issuer's
//! (`foreign`, `jwks`); the keys that verify them change while the server runs (`rotation`,
//! `renewal`), which invalidates the proofs of tokens.
//!
//! Every request passes the gate (`gate`) before its log is looked up, its body read or anything
//! decided: `http/dispatch.rs` asks it with what the route needs, `lean/seam.rs` with what a fast
//! path claims. The lean loop admits what it can judge at once and hands over everything else.
//!
//! Without accounts every client may do everything. The server then listens on loopback only, and
//! every request must use one of the server's own names, which no page of another site can have
//! (`page`).

pub mod accounts_marker;
pub mod api_key;
pub(crate) mod cache;
pub(crate) mod config;
pub(crate) mod cors_origins;
pub(crate) mod credentials;
mod derived_secrets;
pub(crate) mod first_admin;
pub(crate) mod foreign;
mod foreign_claims;
pub(crate) mod foreign_page;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzed;
pub mod gate;
pub(crate) mod joining_node;
pub mod json;
pub(crate) mod jwks;
pub(crate) mod jwks_source;
pub(crate) mod kept_files;
pub(crate) mod key_refresh;
mod needs;
pub mod offline;
pub mod password;
pub mod principal;
pub(crate) mod recheck;
pub(crate) mod rotation;
#[cfg(test)]
mod test_issuer;
pub(crate) mod throttle;
pub mod token;
pub(crate) mod token_secret;
pub mod view;
mod waiting;

pub use crate::identity::Holder;
pub(crate) use gate::{Gate, GateRequest, Pass};
pub use needs::Needs;
pub use principal::Principal;
pub use recheck::AccessRecheck;
pub use token_secret::has_token_secret;

use crate::access::view::Access;
use crate::names::SYSTEM_LOG;
use crate::node::Node;
use crate::setup::SetupError;
use crate::view::{Live, ViewSlot};
use std::sync::Arc;

/// Attaches the view of accounts to the system log. That log is never dropped, so the view stays
/// the same.
///
/// # Errors
/// A sentence: the system provides no thread.
pub(crate) fn attach(node: &Node) -> Result<Arc<Live<Access>>, SetupError> {
    let slot = ViewSlot::new(|| Ok(()));
    node.attach(SYSTEM_LOG, Arc::clone(&slot) as _).map_err(|error| error.to_string())?;
    slot.live().ok_or_else(|| SetupError::new("there is no system log"))
}
