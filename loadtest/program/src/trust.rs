//! Whose certificates the client accepts, and which it shows.

use rustls::RootCertStore;
use rustls::client::ResolvesClientCert;
use rustls::sign::SingleCertAndKey;
use std::path::PathBuf;
use std::sync::Arc;
use wellspring_load::invalid::Invalid;
use wellspring_tls::pem;

/// Whose certificates are accepted from a server at https://, and which is shown to it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Trust {
    /// PEM file of authorities to trust at https:// addresses, instead of this machine's
    #[arg(long, env = "WELLSPRING_CACERT", value_name = "FILE", hide_short_help = true)]
    cacert: Option<PathBuf>,
    /// PEM file of the client certificate and its chain, for servers that ask for one
    #[arg(
        long,
        env = "WELLSPRING_CLIENT_CERT",
        value_name = "FILE",
        requires = "client_key",
        hide_short_help = true
    )]
    client_cert: Option<PathBuf>,
    /// PEM file of the private key of --client-cert, readable by its owner only
    #[arg(
        long,
        env = "WELLSPRING_CLIENT_KEY",
        value_name = "FILE",
        requires = "client_cert",
        hide_short_help = true
    )]
    client_key: Option<PathBuf>,
}

impl Trust {
    /// The authorities of --cacert; `None` without it.
    ///
    /// # Errors
    /// A sentence: the file cannot be used.
    pub(crate) fn authorities(&self) -> Result<Option<RootCertStore>, Invalid> {
        let read = |path| pem::roots(path).map_err(|why| Invalid::new(format!("--cacert: {why}")));
        self.cacert.as_deref().map(read).transpose()
    }

    /// The certificate of --client-cert; `None` without it.
    ///
    /// # Errors
    /// A sentence: one of the files cannot be used, or they do not belong together.
    pub(crate) fn shown(&self) -> Result<Option<Arc<dyn ResolvesClientCert>>, Invalid> {
        let (Some(certificate), Some(key)) = (&self.client_cert, &self.client_key) else {
            return Ok(None);
        };
        let shown =
            pem::certified(certificate, key).map_err(|why| format!("--client-cert: {why}"))?;
        Ok(Some(Arc::new(SingleCertAndKey::from(shown))))
    }
}
