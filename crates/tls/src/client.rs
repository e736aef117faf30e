//! How a client speaks TLS with one server.

use crate::provider::provider;
use rustls::client::ResolvesClientCert;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::sync::Arc;

/// How a client speaks TLS with one server, for HTTP/1.1.
#[derive(Debug, Clone)]
pub struct ClientTerms {
    /// Whom to trust, and what to show.
    pub config: Arc<ClientConfig>,
    /// What the server's certificate must be for.
    pub name: ServerName<'static>,
}

/// Why TLS cannot be spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermsFault {
    /// No certificate can be for such a host.
    Host,
    /// No authorities are named, and this machine trusts none.
    NoAuthority,
    /// rustls does not take the settings, for this reason.
    Setup(String),
}

impl ClientTerms {
    /// The terms with a host (a name, or an address without brackets). `None` as `authorities`
    /// stands for those that this machine trusts; `shown` is for a server that asks for a
    /// certificate.
    ///
    /// # Errors
    /// [`TermsFault`].
    pub fn new(
        host: &str,
        authorities: Option<RootCertStore>,
        shown: Option<Arc<dyn ResolvesClientCert>>,
    ) -> Result<ClientTerms, TermsFault> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TermsFault::Host)?;
        let roots = authorities.or_else(of_this_machine).ok_or(TermsFault::NoAuthority)?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TermsFault::Setup(error.to_string()))?
            .with_root_certificates(roots);
        let mut config = match shown {
            Some(shown) => builder.with_client_cert_resolver(shown),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(ClientTerms { config: Arc::new(config), name })
    }
}

fn of_this_machine() -> Option<RootCertStore> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Stores of operating systems hold a few certificates that rustls cannot use.
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    (usable > 0).then_some(roots)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pem;
    use crate::testing::Authority;

    #[test]
    fn terms_are_for_the_host_as_certificates_name_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = Authority::new().written(dir.path());
        let terms = |host: &str| ClientTerms::new(host, Some(pem::roots(&file).unwrap()), None);
        assert_eq!(terms("::1").unwrap().name.to_str(), "::1");
        assert_eq!(terms("a_b..c").unwrap_err(), TermsFault::Host);
    }
}
