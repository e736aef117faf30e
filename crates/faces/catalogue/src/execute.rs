//! One command of a request, executed and charged.

use crate::CatalogueFace;
use crate::refusal::another_request;
use crate::view::{Catalogue, CatalogueOutcome, CatalogueRefusal, Command};
use std::sync::Arc;
use wellspring_host::http::Request;
use wellspring_host::view::Live;
use wellspring_host::wire::problem::Problem;
use wellspring_log::RequestKey;

/// The result of a command.
pub(crate) struct Execution {
    /// The view, which shows the change.
    pub(crate) live: Arc<Live<Catalogue>>,
    /// Its outcome, or why it was refused.
    pub(crate) outcome: Result<CatalogueOutcome, CatalogueRefusal>,
    /// Whether an earlier request with the same key executed it.
    pub(crate) is_replayed: bool,
}

/// Executes a command, under a key if there is one, and charges the request for the decision.
///
/// # Errors
/// 422 if the key was used with a request of another kind, and those of [`Live::execute`].
pub(crate) async fn execute(
    face: &CatalogueFace,
    request: &Request,
    command: Command,
    key: Option<RequestKey>,
) -> Result<Execution, Box<Problem>> {
    let live = face.live()?;
    let executed =
        live.execute(&request.effects, &[command], key, face.host.commit_on(request)).await?;
    request.payer.work(executed.decided_us);
    let is_replayed = executed.appended.is_some_and(|appended| appended.replayed);
    let outcome = match (executed.refused, executed.outcomes.last()) {
        (Some(refusal), _) => Err(refusal),
        (None, Some(outcome)) => Ok(*outcome),
        (None, None) => return Err(another_request()),
    };
    Ok(Execution { live, outcome, is_replayed })
}
