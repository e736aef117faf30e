//! How a client speaks TLS with one server.

use crate::{pem, provider};
use rustls::client::ResolvesClientCert;
use rustls::pki_types::ServerName;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// How a client speaks TLS with one server, for HTTP/1.1.
#[derive(Debug, Clone)]
pub struct ClientTerms {
    /// Whom to trust, and what to show.
    pub config: Arc<ClientConfig>,
    /// What the server's certificate must be for.
    pub name: ServerName<'static>,
}

/// Why TLS cannot be spoken. Each but the first holds a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TermsFault {
    /// No certificate can be for such a host.
    Host,
    /// The file of authorities cannot be used.
    Authorities(String),
    /// No file of authorities is named, and this machine trusts none.
    NoAuthority,
    /// The certificate to show, or its key, cannot be used.
    Certificate(String),
    /// rustls takes no such settings.
    Setup(String),
}

impl ClientTerms {
    /// The terms with a host (a name, or an address without brackets): those in the PEM file
    /// `authorities` are trusted, or else those that this machine trusts. `shown` are a certificate
    /// with its chain and the key of it, for a server that asks for one.
    ///
    /// # Errors
    /// [`TermsFault`].
    pub fn new(
        host: &str,
        authorities: Option<&Path>,
        shown: Option<(&Path, &Path)>,
    ) -> Result<ClientTerms, TermsFault> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TermsFault::Host)?;
        let roots = match authorities {
            Some(path) => pem::roots(path).map_err(TermsFault::Authorities)?,
            None => of_this_machine().ok_or(TermsFault::NoAuthority)?,
        };
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| TermsFault::Setup(format!("TLS cannot be set up: {error}")))?
            .with_root_certificates(roots);
        let mut config = match shown {
            Some((certificate, key)) => {
                let shown = pem::certified(certificate, key).map_err(TermsFault::Certificate)?;
                let shown: Arc<dyn ResolvesClientCert> = Arc::new(SingleCertAndKey::from(shown));
                builder.with_client_cert_resolver(shown)
            }
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
    use crate::testing::Authority;

    #[test]
    fn the_host_the_authorities_and_what_is_shown_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let file = authority.written(dir.path());
        let (certificate, key) = authority.issue(dir.path(), "c", 2100);
        let none = dir.path().join("none.pem");
        let terms = |host: &str, authorities: &Path, key: &Path| {
            ClientTerms::new(host, Some(authorities), Some((&certificate, key)))
        };
        assert_eq!(terms("::1", &file, &key).unwrap().name.to_str(), "::1");
        assert_eq!(terms("a_b..c", &file, &key).unwrap_err(), TermsFault::Host);
        let fault = terms("a", &none, &key).unwrap_err();
        assert!(matches!(&fault, TermsFault::Authorities(why) if why.contains("none.pem")));
        let fault = terms("a", &file, &none).unwrap_err();
        assert!(matches!(&fault, TermsFault::Certificate(why) if why.contains("none.pem")));
    }
}
