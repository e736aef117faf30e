//! `POST /auth/rotate`: replaces the secret that signs tokens.

use super::{body, execute, optional_body_of};
use std::sync::Arc;
use wellspring_host::access::token::SecretSource;
use wellspring_host::access::view::Command;
use wellspring_host::http::work::elsewhere;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::problem::{self, of_fault};

/// Signs tokens with a new secret from now on; the previous one still verifies, until `retire`
/// drops it.
pub(crate) async fn rotate(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let bytes = optional_body_of(&mut request).await?;
    let retire = body::read_rotate(&bytes).map_err(|fault| of_fault(&fault, &bytes))?;
    let told = |secrets: u64| Response::json(200, format!("{{\"secrets\":{secrets}}}"));
    if host.access.tokens().source() == SecretSource::ClusterKey {
        let command = if retire { Command::RetireTokenSecret } else { Command::RotateTokenSecret };
        let position = execute(&host, &request, &[command]).await?;
        let counting = host.access.state().token_generations();
        return Ok(told(1 + counting.signs() - counting.oldest()).at(position));
    }
    let position = host.access.live().position();
    // A file is written and synced.
    let done = elsewhere(move || {
        let (tokens, data) = (host.access.tokens(), &host.process.data);
        if retire { tokens.retire(data) } else { tokens.rotate(data) }
    });
    done.await?
        .map_err(|error| problem::IO.because(format!("the token secret is unchanged: {error}")))?;
    Ok(told(if retire { 1 } else { 2 }).at(position))
}
