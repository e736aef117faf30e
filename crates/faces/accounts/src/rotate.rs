//! `POST /auth/rotate`: another secret signs tokens.

use super::{body, optional_body_of};
use std::sync::Arc;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::problem::{self, of_fault};

/// Draws a new secret that signs tokens from now on; the one before still verifies, until `retire`
/// drops it.
pub(crate) async fn rotate(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let bytes = optional_body_of(&mut request).await?;
    let retire = body::read_rotate(&bytes).map_err(|fault| of_fault(&fault, &bytes))?;
    // A file is written and synced.
    let done = elsewhere(move || {
        let (tokens, data) = (host.access.tokens(), &host.process.data);
        if retire { tokens.retire(data) } else { tokens.rotate(data) }
    });
    done.await?.map_err(|error| {
        problem::IO.because(format!("the secret of tokens is as it was: {error}"))
    })?;
    let secrets = if retire { 1 } else { 2 };
    Ok(Response::json(200, format!("{{\"secrets\":{secrets}}}")))
}
