//! The cryptography of TLS, for servers and clients: `ring`.

use rustls::crypto::{CryptoProvider, ring};
use std::sync::Arc;

/// The cryptography of all TLS here.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
