//! TLS towards receivers: the certificate is for the host's name and signed by an authority that is
//! trusted.

use super::endpoint::Endpoint;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsConnector;
use wellspring_types::url::Scheme;

/// How TLS is spoken with one receiver.
pub(super) struct Tls {
    /// Makes a connection encrypted.
    pub(super) connector: TlsConnector,
    /// What its certificate must be for.
    pub(super) name: ServerName<'static>,
}

impl Tls {
    /// TLS for an endpoint; `None` if its URL is `http://`.
    ///
    /// # Errors
    /// A sentence that names the file at fault.
    pub(super) fn new(endpoint: &Endpoint, ca_file: Option<&Path>) -> Result<Option<Tls>, String> {
        if endpoint.scheme == Scheme::Http {
            return Ok(None);
        }
        let name = ServerName::try_from(endpoint.host.clone())
            .map_err(|_| format!("no certificate can be for the host {:?}", endpoint.host))?;
        let roots = match ca_file {
            Some(path) => of_file(path)?,
            None => of_this_machine()?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Some(Tls { connector: TlsConnector::from(Arc::new(config)), name }))
    }
}

fn of_file(path: &Path) -> Result<RootCertStore, String> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| format!("the file of authorities {name} cannot be read: {error}"))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        // What a parser says quotes lines, and this may be a key given by mistake.
        let certificate =
            certificate.map_err(|_| format!("the file of authorities {name} holds damaged PEM"))?;
        roots.add(certificate).map_err(|error| {
            format!("the file of authorities {name} holds what can be no authority: {error}")
        })?;
    }
    if roots.is_empty() {
        return Err(format!("the file of authorities {name} holds no certificate in PEM"));
    }
    Ok(roots)
}

fn of_this_machine() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Stores of operating systems hold a few certificates that rustls cannot use.
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        return Err("this machine trusts no authority: name one with a file of authorities, or \
                    install the package `ca-certificates`"
            .to_owned());
    }
    Ok(roots)
}
