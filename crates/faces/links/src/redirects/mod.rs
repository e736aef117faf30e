//! Redirects as a fast path: the target of a code, the refusal of a code without one, and the
//! recorded click.
//!
//! The code is looked up in what the view has folded, without a lock. A `LinkClicked` goes into the
//! thread's partition like any ingested event; its visitor is named by a hash whose key changes
//! daily (`visitor`). If there is no room, the click is counted as shed and the answer is still
//! sent. Whether the settings allow the target is stored with the link, judged when it was folded,
//! so the check costs nothing (decision 0020). While the view is being rebuilt, the connection goes
//! to the general stack, which answers 503 `view-not-ready`.

mod click;
mod path;
mod refusal;
mod visit;
mod visitor;

pub(crate) use path::{RedirectContext, fast_path};
pub(crate) use refusal::of_lookup;
pub(crate) use refusal::{deleted, unknown, unknown_to_visitors, with_error};
pub(crate) use visit::{ClickHeaders, Visit};
pub(crate) use visitor::{VisitorKeys, kept_file as visitor_key_file};

use crate::view::{Context, Links, TargetRule};
use std::sync::Arc;
use wellspring_host::names::MAIN;
use wellspring_host::node::Node;
use wellspring_host::setup::SetupError;
use wellspring_host::view::ViewSlot;

/// Attaches the view of links to the log `main`, each time that log is opened. `targets` decides
/// which targets are allowed, `reserved` which words cannot be codes.
///
/// # Errors
/// A sentence: the system provides no thread or no random bytes.
pub(crate) fn attach(
    node: &Node,
    targets: TargetRule,
    reserved: fn(&str) -> bool,
) -> Result<Arc<ViewSlot<Links>>, SetupError> {
    let slot = ViewSlot::new(move || {
        let key = wellspring_host::random::bytes()
            .map_err(|error| format!("cannot generate the code key: {error}"))?;
        Ok(Context { key, reserved, targets: targets.clone() })
    });
    node.attach(MAIN, Arc::clone(&slot) as _).map_err(|error| error.to_string())?;
    Ok(slot)
}

/// `Cache-Control` of every redirect: each visit is another click, and the link may change.
pub(crate) const REDIRECT_CACHING: &str = "private, no-store";
