//! Redirects as a fast path: the target of a code, the refusal of one that leads nowhere, and the
//! click that is counted beside it.

mod click;
mod path;
mod refusal;
mod visit;
mod visitor;

pub(crate) use path::{RedirectContext, fast_path};
pub(crate) use refusal::{deleted, unknown, with_error};
pub(crate) use visitor::VisitorKeys;

use std::sync::Arc;
use wellspring_host::names::MAIN;
use wellspring_host::node::Node;
use wellspring_host::view::ViewSlot;
use wellspring_views::links::{Context, Links, TargetRule};

/// Has the links of the log `main` folded, each time that log is opened. `targets` tells where a
/// link may lead, `reserved` which words no code may be.
///
/// # Errors
/// A sentence: the system gives no thread or no randomness.
pub(crate) fn attach(
    node: &Node,
    targets: TargetRule,
    reserved: fn(&str) -> bool,
) -> Result<Arc<ViewSlot<Links>>, String> {
    let slot = ViewSlot::new(move || {
        let key = wellspring_host::random::bytes()
            .map_err(|error| format!("cannot generate the code key: {error}"))?;
        Ok(Context { key, reserved, targets: targets.clone() })
    });
    node.attach(MAIN, Arc::clone(&slot) as _).map_err(|error| error.to_string())?;
    Ok(slot)
}

/// `Cache-Control` of every redirect: the next visit is another click, and the link may change.
const REDIRECT_CACHING: &str = "private, no-store";
