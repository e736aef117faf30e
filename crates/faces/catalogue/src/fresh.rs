//! The freshness of the catalogue's answers: by default the current fold.

use crate::CatalogueFace;
use crate::view::Catalogue;
use std::sync::Arc;
#[cfg(feature = "search")]
use std::time::Duration;
use wellspring_host::http::Request;
use wellspring_host::http::contract::{CONSISTENCY_CACHED, WAIT_MS};
#[cfg(feature = "search")]
use wellspring_host::http::required_freshness::Consistency;
use wellspring_host::http::required_freshness::Freshness;
use wellspring_host::view::Live;
use wellspring_host::wire::problem::Problem;

/// How long to wait for the full-text index; zero for requests that accept the current one.
///
/// # Errors
/// 422.
#[cfg(feature = "search")]
pub(crate) fn patience(request: &Request) -> Result<Option<Duration>, Box<Problem>> {
    let wait = Duration::from_millis(request.query(&WAIT_MS)?);
    let takes_any = request.query(&CONSISTENCY_CACHED)? == Consistency::Cached
        && request.header("wellspring-min-position").is_none();
    Ok((!takes_any).then_some(wait))
}

/// The catalogue, once it is as fresh as required.
///
/// # Errors
/// 400, 422, 503.
pub(crate) async fn fresh(
    face: &CatalogueFace,
    request: &Request,
) -> Result<Arc<Live<Catalogue>>, Box<Problem>> {
    let asked = Freshness::asked(request, &CONSISTENCY_CACHED, &WAIT_MS)?;
    let live = face.live()?;
    asked.view(request, &live, None).await?;
    Ok(live)
}
