//! The search room without the feature: the same names without an index.

use crate::CatalogueFace;
use crate::problems::SEARCH_NOT_BUILT;
use crate::view::Catalogue;
use std::sync::Arc;
use wellspring_host::http::{Answer, Request};
use wellspring_host::setup::SetupError;
use wellspring_host::stats::family::Family;
use wellspring_host::view::ViewSlot;

/// No index.
pub(crate) struct SearchRoom;

impl SearchRoom {
    /// No index.
    pub(crate) fn open(_: &Arc<ViewSlot<Catalogue>>) -> Result<SearchRoom, SetupError> {
        Ok(SearchRoom)
    }

    /// No figures.
    pub(crate) fn figures(&self) -> Vec<Family> {
        Vec::new()
    }
}

/// `GET /v1/catalogue/search`: reports that there is no search.
pub(crate) async fn search(_: Arc<CatalogueFace>, _: Box<Request>) -> Answer {
    Err(SEARCH_NOT_BUILT.because("this program was built without the feature search"))
}
