//! Settings of TLS: certificates, keys and authorities in PEM files ([`pem`]), and how a client
//! speaks with one server ([`ClientTerms`]). The cryptography is ring's, here and everywhere.

#![forbid(unsafe_code)]

mod client;
pub mod pem;
mod provider;
#[cfg(feature = "testing")]
pub mod testing;

pub use client::{ClientTerms, TermsFault};
pub use provider::provider;
