//! The TLS files: which they are, and reading them into a configuration.

use crate::settings::section;
use crate::setup::SetupError;
use crate::stamp::Stamp;
use clap::ValueEnum;
use rustls::ServerConfig;
use rustls::crypto::ring::Ticketer;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::sign::SingleCertAndKey;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use wellspring_tls::pem;

/// The ALPN names of the offered protocols, the preferred one first (RFC 9113 section 3.1, RFC 7301
/// section 6).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// Whether clients must show a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ClientAuth {
    /// They may; a certificate that is shown must be valid.
    Optional,
    /// They must.
    Required,
}

section! {
    /// Settings of TLS.
    TlsConfig from TlsConfigArgs under "TLS":
    optional
    /// PEM file of the TLS certificate and its chain; with --tls-key. Not set: no TLS.
    tls_cert: PathBuf = "WELLSPRING_TLS_CERT";
    optional
    /// PEM file of the private key of --tls-cert, readable by its owner only.
    tls_key: PathBuf = "WELLSPRING_TLS_KEY";
    optional
    /// PEM file of the authorities that sign client certificates.
    tls_client_ca: PathBuf = "WELLSPRING_TLS_CLIENT_CA";
    optional
    /// Whether client certificates are optional or required. Not set: required with
    /// --tls-client-ca.
    tls_client_auth: ClientAuth = "WELLSPRING_TLS_CLIENT_AUTH";
}

/// The configured files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Files {
    pub(super) certificate: PathBuf,
    key: PathBuf,
    /// The authorities of clients' certificates, and whether a client must show one.
    clients: Option<(PathBuf, ClientAuth)>,
}

/// A configuration made from the files.
pub(super) struct LoadedFiles {
    pub(super) config: Arc<ServerConfig>,
    /// Expiry of the chain: that of its first certificate to expire, in s since 1970 UTC; `None`:
    /// not known.
    pub(super) expires_s: Option<u64>,
}

impl TlsConfig {
    /// Whether TLS is on.
    pub fn is_on(&self) -> bool {
        self.tls_cert.is_some()
    }
}

impl Files {
    /// The files of a configuration; `None` if it is without TLS.
    ///
    /// # Errors
    /// A sentence: one is set without its counterpart.
    pub(crate) fn of(config: &TlsConfig) -> Result<Option<Files>, SetupError> {
        let (certificate, key) = match (&config.tls_cert, &config.tls_key) {
            (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
            (None, None) if config.tls_client_ca.is_none() && config.tls_client_auth.is_none() => {
                return Ok(None);
            }
            (None, None) => {
                return Err(
                    "--tls-client-ca and --tls-client-auth need --tls-cert and --tls-key: \
                     without TLS clients show no certificate"
                        .into(),
                );
            }
            (Some(_), None) => return Err("--tls-cert needs --tls-key, its private key".into()),
            (None, Some(_)) => {
                return Err("--tls-key needs --tls-cert, the certificate it belongs to".into());
            }
        };
        let clients = match (&config.tls_client_ca, config.tls_client_auth) {
            (None, None) => None,
            (Some(path), auth) => Some((path.clone(), auth.unwrap_or(ClientAuth::Required))),
            (None, Some(_)) => {
                return Err("--tls-client-auth needs --tls-client-ca, the authorities that \
                            issue the clients' certificates"
                    .into());
            }
        };
        Ok(Some(Files { certificate, key, clients }))
    }

    /// The stamp of each file; `None`: it cannot be read.
    pub(super) fn stamps(&self) -> Vec<Option<Stamp>> {
        let clients = self.clients.as_ref().map(|(path, _)| path);
        [Some(&self.certificate), Some(&self.key), clients]
            .into_iter()
            .flatten()
            .map(|path| Stamp::of(path).ok())
            .collect()
    }

    /// Reads all files. A session is resumed only under the load that started it: a client whose
    /// authority was removed cannot resume, and its certificate is judged again.
    ///
    /// # Errors
    /// A sentence that names the file at fault.
    pub(super) fn load(&self) -> Result<LoadedFiles, SetupError> {
        let odd = |error: rustls::Error| format!("cannot set up TLS: {error}");
        let certified = pem::certified(&self.certificate, &self.key)
            .map_err(|why| format!("--tls-cert, --tls-key: {why}"))?;
        let expires_s = certified.cert.iter().filter_map(super::expiry::expires_s).min();
        let builder = ServerConfig::builder_with_provider(wellspring_tls::provider())
            .with_safe_default_protocol_versions()
            .map_err(odd)?;
        let builder = match &self.clients {
            None => builder.with_no_client_auth(),
            Some((path, auth)) => builder.with_client_cert_verifier(verifier(path, *auth)?),
        };
        let mut config = builder.with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        config.ticketer = Ticketer::new().map_err(odd)?;
        Ok(LoadedFiles { config: Arc::new(config), expires_s })
    }
}

fn verifier(path: &Path, auth: ClientAuth) -> Result<Arc<dyn ClientCertVerifier>, SetupError> {
    let roots = Arc::new(pem::roots(path).map_err(|why| format!("--tls-client-ca: {why}"))?);
    let builder = WebPkiClientVerifier::builder_with_provider(roots, wellspring_tls::provider());
    let builder = match auth {
        ClientAuth::Optional => builder.allow_unauthenticated(),
        ClientAuth::Required => builder,
    };
    builder.build().map_err(|error| SetupError::new(format!("{}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostConfig;
    use wellspring_tls::testing::Authority;

    #[test]
    fn files_that_belong_together_are_named_together() {
        let refused = |flags: &[&str]| HostConfig::loaded(flags).unwrap_err();
        assert!(refused(&["--tls-cert", "c"]).to_string().contains("--tls-key"));
        assert!(refused(&["--tls-key", "k"]).to_string().contains("--tls-cert"));
        assert!(refused(&["--tls-client-ca", "a"]).to_string().contains("--tls-cert"));
        assert!(refused(&["--tls-client-auth", "optional"]).to_string().contains("--tls-cert"));
        let pair = ["--tls-cert", "c", "--tls-key", "k"];
        let with = |more: &[&str]| HostConfig::loaded(&[&pair[..], more].concat());
        assert!(
            with(&["--tls-client-auth", "optional"])
                .unwrap_err()
                .to_string()
                .contains("--tls-client-ca")
        );
        assert!(
            with(&["--tls-client-auth", "perhaps"]).unwrap_err().to_string().contains("required")
        );
        let clients = |more: &[&str]| Files::of(&with(more).unwrap().tls).unwrap().unwrap().clients;
        assert_eq!(clients(&[]), None);
        let ca = ["--tls-client-ca", "a"];
        assert_eq!(clients(&ca), Some(("a".into(), ClientAuth::Required)));
        let optional = [&ca[..], &["--tls-client-auth", "optional"]].concat();
        assert_eq!(clients(&optional), Some(("a".into(), ClientAuth::Optional)));
        assert_eq!(Files::of(&HostConfig::for_tests(&[]).tls), Ok(None));
    }

    #[test]
    fn a_chain_ends_with_the_first_of_its_certificates() {
        let dir = tempfile::tempdir().unwrap();
        let (outer, inner) = (Authority::new(), Authority::new());
        let (certificate, key) = inner.issue(dir.path(), "a", 2090);
        let (early, _) = outer.issue(dir.path(), "b", 2040);
        let both =
            [&certificate, &early].map(|path| std::fs::read_to_string(path).unwrap()).concat();
        let files = Files { certificate, key, clients: None };
        let before = files.stamps();
        assert_eq!(files.load().unwrap().expires_s, Some(3_786_912_000));
        std::fs::write(&files.certificate, both).unwrap();
        assert_ne!(files.stamps(), before);
        assert_eq!(files.load().unwrap().expires_s, Some(2_208_988_800));
    }

    #[test]
    fn authorities_of_clients_are_certificates() {
        let dir = tempfile::tempdir().unwrap();
        let (certificate, key) = Authority::new().issue(dir.path(), "a", 2090);
        let clients = Some((key.clone(), ClientAuth::Required));
        let files = Files { certificate, key, clients };
        let refusal = files.load().err().unwrap();
        assert!(refusal.to_string().contains("a.key holds no certificate"), "{refusal}");
    }
}
