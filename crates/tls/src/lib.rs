//! Settings of TLS: certificates, keys and authorities in PEM files ([`pem`]), and how a client
//! speaks with one server ([`ClientTerms`]). The cryptography is ring's, here and everywhere.

#![forbid(unsafe_code)]

mod client;
pub mod pem;
#[cfg(feature = "testing")]
pub mod testing;

pub use client::{ClientTerms, TermsFault};

use rustls::crypto::{CryptoProvider, ring};
use std::sync::Arc;

/// The cryptography of all TLS here.
#[must_use]
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}
