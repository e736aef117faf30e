//! The settings of the catalogue.

use crate::view::{Currency, PREFIX, TYPES};
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::names::MAIN;
use wellspring_host::settings::section;
use wellspring_host::setup::SetupError;

section! {
    /// Settings of the catalogue.
    CatalogueConfig from CatalogueConfigArgs under "Catalogue":
    /// Currency of items added without one, an ISO 4217 code.
    catalogue_currency: String = "WELLSPRING_CATALOGUE_CURRENCY", "USD".to_owned();
    /// Let clients append catalogue events (CatalogueItemAdded and so on) to the log main, as
    /// restoring an export requires.
    [num_args = 0..=1, default_missing_value = "true"]
    catalogue_accept_events: bool = "WELLSPRING_CATALOGUE_ACCEPT_EVENTS", false;
}

/// The events of the catalogue. Appended by a client they could sell items that do not exist.
static KEPT: KeptEvents = KeptEvents {
    log: Some(MAIN),
    types: &TYPES,
    prefix: PREFIX,
    advice: "only the catalogue of this log writes: use /v1/catalogue. To restore an export, \
             start the server with --catalogue-accept-events",
};

impl CatalogueConfig {
    /// The events that clients may not append.
    pub(crate) fn kept_events(&self) -> Option<&'static KeptEvents> {
        (!self.catalogue_accept_events).then_some(&KEPT)
    }

    /// The default currency of items.
    ///
    /// # Errors
    /// A sentence: the currency is unknown.
    pub(crate) fn currency(&self) -> Result<Currency, SetupError> {
        let code = &self.catalogue_currency;
        Currency::in_use(code).ok_or_else(|| {
            SetupError::new(format!("catalogue_currency must be a code of ISO 4217 that is in use, such as EUR, not {code:?}"))
        })
    }
}
