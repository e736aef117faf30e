//! Encryption by rustls: the certificate must match the server's name and be signed by a trusted
//! authority.

use crate::options::{OptionsError, Tls};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::future::Future;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::{TlsConnector, client};

/// Encrypts connections to one host after another.
#[derive(Clone)]
pub(crate) struct MakeRustls(Arc<ClientConfig>);

impl MakeRustls {
    /// `None` if connections are not encrypted.
    pub(crate) fn new(tls: &Tls) -> Result<Option<MakeRustls>, OptionsError> {
        let Tls::VerifyFull { authorities } = tls else { return Ok(None) };
        let roots = match authorities {
            Some(path) => of_file(path)?,
            None => of_this_machine()?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| OptionsError(format!("TLS cannot be set up: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Some(MakeRustls(Arc::new(config))))
    }
}

fn of_file(path: &Path) -> Result<RootCertStore, OptionsError> {
    let name = path.display();
    let bytes = std::fs::read(path)
        .map_err(|error| OptionsError(format!("sslrootcert={name} cannot be read: {error}")))?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        // A parser's error quotes lines, and the file may be a key given by mistake.
        let certificate = certificate
            .map_err(|_| OptionsError(format!("sslrootcert={name} contains damaged PEM")))?;
        roots.add(certificate).map_err(|error| {
            OptionsError(format!(
                "sslrootcert={name} contains an invalid certificate authority: {error}"
            ))
        })?;
    }
    if roots.is_empty() {
        return Err(OptionsError(format!("sslrootcert={name} contains no PEM certificate")));
    }
    Ok(roots)
}

fn of_this_machine() -> Result<RootCertStore, OptionsError> {
    let mut roots = RootCertStore::empty();
    let (usable, _) =
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if usable == 0 {
        return Err(OptionsError(
            "this machine trusts no certificate: install the package ca-certificates, or name \
             authorities with sslrootcert=FILE"
                .into(),
        ));
    }
    Ok(roots)
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for MakeRustls {
    type Stream = EncryptedStream<S>;
    type TlsConnect = ConnectRustls;
    type Error = io::Error;

    fn make_tls_connect(&mut self, host: &str) -> Result<ConnectRustls, io::Error> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| io::Error::other(format!("no certificate can match the host {host:?}")))?;
        Ok(ConnectRustls { config: Arc::clone(&self.0), name })
    }
}

/// Encrypts one connection.
pub(crate) struct ConnectRustls {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for ConnectRustls {
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            TlsConnector::from(self.config).connect(self.name, stream).await.map(EncryptedStream)
        })
    }
}

/// An encrypted connection.
pub(crate) struct EncryptedStream<S>(client::TlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for EncryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        // The certificate was fully verified; channel binding would require parsing it.
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
