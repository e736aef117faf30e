//! How fresh an answer of the catalogue is to be: what is folded now, unless its client asks for more.

use crate::CatalogueFace;
use crate::view::Catalogue;
use std::sync::Arc;
use wellspring_host::http::Request;
use wellspring_host::http::contract::{CONSISTENCY_CACHED, WAIT_MS};
use wellspring_host::http::fresh::Freshness;
use wellspring_host::view::Live;
use wellspring_host::wire::problem::Problem;

/// The catalogue, once it shows what a request asks for.
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
