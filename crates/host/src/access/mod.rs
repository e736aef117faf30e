//! The shell of access: from a request's headers to the caller's identity and roles.
//!
//! ```text
//! headers ─► credentials ─► cache ── hit ──────────────────────────────► principal.may(role, log)
//!                             └ miss ─► token | key | password ─► proof ─► judged by the view ─┘
//! ```
//! A **proof** is what a credential has shown once and for all: that a token is genuine, that a
//! password was right. Whether it still counts is the view's to say (`views/access`), anew
//! whenever the view has moved. Clients are told that they are not let in, never why.
//!
//! Tokens are ours (`token`, `token_secret`; in a cluster `derived`) or another issuer's
//! (`foreign`, `jwks`); what they are verified with changes while the server runs (`rotation`,
//! `renewal`), and then proofs of tokens fall.

pub mod api_key;
pub(crate) mod cache;
pub(crate) mod config;
pub(crate) mod credentials;
mod derived;
pub(crate) mod first;
pub(crate) mod foreign;
mod foreign_claims;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzed;
pub mod gate;
pub(crate) mod joining;
pub mod json;
pub(crate) mod jwks;
pub(crate) mod jwks_source;
mod needs;
pub mod offline;
pub(crate) mod origins;
pub(crate) mod page;
pub mod password;
pub mod principal;
pub(crate) mod renewal;
pub(crate) mod rotation;
pub mod sealed;
pub(crate) mod standing;
#[cfg(test)]
mod test_issuer;
pub(crate) mod throttle;
pub mod token;
pub(crate) mod token_secret;

pub(crate) use gate::{Asking, Gate, Pass};
pub use needs::Needs;
pub use principal::{Holder, Principal};
pub use standing::Standing;

use crate::names::SYSTEM_LOG;
use crate::node::Node;
use crate::view::{Live, ViewSlot};
use std::sync::Arc;
use wellspring_views::access::Access;

/// Has the accounts in the system log folded. That log is never dropped, so they stay the same
/// view.
///
/// # Errors
/// A sentence: the system gives no thread.
pub(crate) fn attach(node: &Node) -> Result<Arc<Live<Access>>, String> {
    let slot = ViewSlot::new(|| Ok(()));
    node.attach(SYSTEM_LOG, Arc::clone(&slot) as _).map_err(|error| error.to_string())?;
    slot.live().ok_or_else(|| "there is no system log".to_owned())
}
