//! Whose certificates the tools accept, and which they show.

use crate::endpoint::{Endpoint, Scheme};
use rustls::RootCertStore;
use rustls::client::ResolvesClientCert;
use rustls::sign::SingleCertAndKey;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use wellspring_tls::pem::TlsFileError;
use wellspring_tls::{ClientTerms, TermsFault, pem};

/// Whose certificates are accepted from a server at https://, and which is shown to it.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Trust {
    /// PEM file of authorities to trust at https:// addresses, instead of this machine's
    #[arg(
        long,
        env = "WELLSPRING_CACERT",
        value_name = "FILE",
        global = true,
        hide_short_help = true
    )]
    cacert: Option<PathBuf>,
    /// PEM file of the client certificate and its chain, for servers that ask for one
    #[arg(
        long,
        env = "WELLSPRING_CLIENT_CERT",
        value_name = "FILE",
        requires = "client_key",
        global = true,
        hide_short_help = true
    )]
    client_cert: Option<PathBuf>,
    /// PEM file of the private key of --client-cert, readable by its owner only
    #[arg(
        long,
        env = "WELLSPRING_CLIENT_KEY",
        value_name = "FILE",
        requires = "client_cert",
        global = true,
        hide_short_help = true
    )]
    client_key: Option<PathBuf>,
}

/// Why no client can be made. A retry helps only after something was changed.
#[derive(Debug)]
pub enum UnusableClient {
    /// The file of authorities cannot be used.
    Authorities(TlsFileError),
    /// The client's own certificate or its key cannot be used.
    Certificate(TlsFileError),
    /// No certificate can be for this host.
    Host(String),
    /// No authorities are named, and this machine trusts none.
    NoAuthority,
    /// rustls does not take the settings, for this reason.
    Tls(String),
    /// The system has no file descriptors left.
    Reactor(io::Error),
}

impl fmt::Display for UnusableClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Authorities(why) => write!(f, "--cacert: {why}"),
            Self::Certificate(why) => write!(f, "--client-cert: {why}"),
            Self::Host(host) => write!(f, "no certificate can be for the host {host:?}"),
            Self::NoAuthority => f.write_str(
                "this machine trusts no authority: name one with --cacert, or install the package \
                 `ca-certificates`",
            ),
            Self::Tls(why) => write!(f, "TLS cannot be set up: {why}"),
            Self::Reactor(error) => write!(f, "no client can be made: {error}"),
        }
    }
}

impl std::error::Error for UnusableClient {}

impl Trust {
    /// Trusts the authorities of a PEM file, and shows nothing.
    pub fn of_authorities(path: PathBuf) -> Trust {
        Trust { cacert: Some(path), ..Trust::default() }
    }

    /// The flags that say the same on another command line.
    pub fn flags(&self) -> Vec<(&'static str, String)> {
        let flags = [
            ("--cacert", &self.cacert),
            ("--client-cert", &self.client_cert),
            ("--client-key", &self.client_key),
        ];
        let given = flags.into_iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?)));
        given.map(|(flag, file)| (flag, file.display().to_string())).collect()
    }

    /// The authorities of --cacert; `None` without it.
    ///
    /// # Errors
    /// A sentence: the file cannot be used.
    pub fn authorities(&self) -> Result<Option<RootCertStore>, UnusableClient> {
        let read = |path| pem::roots(path).map_err(UnusableClient::Authorities);
        self.cacert.as_deref().map(read).transpose()
    }

    /// The certificate of --client-cert; `None` without it.
    ///
    /// # Errors
    /// A sentence: one of the files cannot be used, or they do not belong together.
    pub fn shown(&self) -> Result<Option<Arc<dyn ResolvesClientCert>>, UnusableClient> {
        let (Some(certificate), Some(key)) = (&self.client_cert, &self.client_key) else {
            return Ok(None);
        };
        let shown = pem::certified(certificate, key).map_err(UnusableClient::Certificate)?;
        Ok(Some(Arc::new(SingleCertAndKey::from(shown))))
    }

    /// How TLS is spoken with this server; `None` if its address is http://.
    ///
    /// # Errors
    /// A sentence: a file cannot be used, no authority is known here, or no certificate can be
    /// for such a host.
    pub fn terms(&self, endpoint: &Endpoint) -> Result<Option<ClientTerms>, UnusableClient> {
        if endpoint.scheme == Scheme::Http {
            return Ok(None);
        }
        let host = &endpoint.host;
        let terms = ClientTerms::new(host, self.authorities()?, self.shown()?);
        terms.map(Some).map_err(|fault| match fault {
            TermsFault::Host => UnusableClient::Host(host.clone()),
            TermsFault::NoAuthority => UnusableClient::NoAuthority,
            TermsFault::Setup(why) => UnusableClient::Tls(why),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_tls::testing::{Authority, written};

    fn terms(url: &str, trust: &Trust) -> Result<Option<ClientTerms>, UnusableClient> {
        trust.terms(&Endpoint::parse(url).unwrap())
    }

    #[test]
    fn files_are_read_only_for_https_and_named_when_they_are_wrong() {
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let (certificate, key) = authority.issue(dir.path(), "c", 2100);
        let trust = Trust { cacert: Some(dir.path().join("none.pem")), ..Trust::default() };
        assert!(terms("http://a", &trust).unwrap().is_none());
        let refusal = terms("https://a", &trust).unwrap_err();
        assert!(
            refusal.to_string().contains("--cacert") && refusal.to_string().contains("none.pem"),
            "{refusal}"
        );
        let trust = Trust {
            cacert: Some(authority.written(dir.path())),
            client_cert: Some(certificate.clone()),
            client_key: Some(key),
        };
        assert_eq!(terms("https://[::1]:1", &trust).unwrap().unwrap().name.to_str(), "::1");
        assert!(terms("https://a_b..c", &trust).unwrap_err().to_string().contains("a_b..c"));
        let open = written(dir.path(), "open.key", "", 0o644);
        let refusal = terms("https://a", &Trust { client_key: Some(open), ..trust }).unwrap_err();
        assert!(
            refusal.to_string().contains("--client-cert") && refusal.to_string().contains("chmod"),
            "{refusal}"
        );
    }
}
