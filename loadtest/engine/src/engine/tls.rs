//! TLS between a socket and HTTP: rustls, driven by the worker's loop.
//!
//! The settings are made once for a run and shared, and with them the memory of
//! sessions: connections made anew during a run resume one where the server
//! allows it, as a browser would.

use super::socket::Socket;
use crate::invalid::Invalid;
use crate::plan::{Plan, Protocol, TrustedCertificates};
use rustix::io::Errno;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct,
    Error, RootCertStore, SignatureScheme,
};
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;

/// The ALPN name of HTTP/2 (RFC 9113 section 3.1).
const H2: &[u8] = b"h2";
/// The ALPN name of HTTP/1.1 (RFC 7301 section 6).
const HTTP1: &[u8] = b"http/1.1";

/// How every connection of a run speaks TLS.
#[derive(Clone, Debug)]
pub(super) struct TlsSettings {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    protocol: Protocol,
}

impl TlsSettings {
    /// The settings of a plan whose target is `https`.
    ///
    /// # Errors
    /// A sentence: the host cannot stand in a certificate, or no certificate is trusted here.
    pub(super) fn new(plan: &Plan) -> Result<Self, Invalid> {
        let host = &plan.target.host;
        let name = ServerName::try_from(host.clone())
            .map_err(|_| format!("the host {host:?} cannot be asked for by TLS"))?;
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        let builder = match &plan.tls.accepted {
            TrustedCertificates::OfThisMachine => builder.with_root_certificates(trusted()?),
            TrustedCertificates::Of(authorities) => {
                builder.with_root_certificates(authorities.clone())
            }
            TrustedCertificates::Any => {
                let anyone = Arc::new(AcceptAnyone(provider));
                builder.dangerous().with_custom_certificate_verifier(anyone)
            }
        };
        let mut config = match &plan.tls.shown {
            Some(shown) => builder.with_client_cert_resolver(Arc::clone(shown)),
            None => builder.with_no_client_auth(),
        };
        let protocol = plan.settings.protocol;
        config.alpn_protocols = match protocol {
            Protocol::Http1 => vec![HTTP1.to_vec()],
            Protocol::Http2 => vec![H2.to_vec()],
        };
        let config = Arc::new(config);
        // What could fail for a connection would fail for every one: better before the run.
        ClientConnection::new(Arc::clone(&config), name.clone())
            .map_err(|error| format!("TLS cannot be set up: {error}"))?;
        Ok(TlsSettings { config, name, protocol })
    }

    /// TLS for a fresh connection.
    pub(super) fn begin(&self) -> Box<Tls> {
        let connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())
            .expect("it could be made with these settings before");
        Box::new(Tls { connection, protocol: self.protocol, closed: false })
    }
}

fn trusted() -> Result<RootCertStore, Invalid> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Stores of operating systems hold a few certificates that rustls cannot use.
    let (usable, _) = roots.add_parsable_certificates(found.certs);
    if usable == 0 {
        let why = found.errors.first().map_or(String::new(), |error| format!(" ({error})"));
        return Err(format!(
            "this machine trusts no authority{why}; name one with --cacert, install the package \
             `ca-certificates`, or accept any certificate with --insecure"
        )
        .into());
    }
    Ok(roots)
}

/// Why nothing was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Nothing is there yet.
    Later,
    /// The system refused.
    System(Errno),
    /// TLS broke, in words.
    Tls(String),
    /// The connection ended without the goodbye that TLS demands: what came last may be cut off.
    Cut,
}

/// One connection's TLS.
#[derive(Debug)]
pub(super) struct Tls {
    connection: ClientConnection,
    protocol: Protocol,
    closed: bool,
}

impl Tls {
    pub(super) fn handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    pub(super) fn wants_write(&self) -> bool {
        self.connection.wants_write()
    }

    /// Whether the peer has said goodbye.
    pub(super) fn closed(&self) -> bool {
        self.closed
    }

    /// After the handshake: whether the protocol asked for was agreed on. A
    /// server that knows nothing of ALPN speaks HTTP/1.1.
    ///
    /// # Errors
    /// A sentence for the user.
    pub(super) fn agreed(&self) -> Result<(), Invalid> {
        match (self.protocol, self.connection.alpn_protocol()) {
            (Protocol::Http2, Some(H2)) | (Protocol::Http1, Some(HTTP1) | None) => Ok(()),
            (Protocol::Http2, _) => Err(no_common_protocol(Protocol::Http2).into()),
            (Protocol::Http1, Some(other)) => {
                let other = String::from_utf8_lossy(other);
                Err(format!("the server chose the protocol {other:?} instead of HTTP/1.1").into())
            }
        }
    }

    /// Reads what is there into `buffer`, deciphered; `Ok(0)` means that the peer has closed.
    pub(super) fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> Result<usize, Unread> {
        // One quarter for what comes from the socket leaves room for all that it can become,
        // with a record of 16 KiB of which most came before.
        let (plain, sealed) = buffer.split_at_mut(buffer.len() / 4 * 3);
        let count = match socket.read(sealed) {
            Ok(0) if self.closed => return Ok(0),
            Ok(0) => return Err(Unread::Cut),
            Ok(count) => count,
            Err(Errno::AGAIN | Errno::INTR) => return Err(Unread::Later),
            Err(error) => return Err(Unread::System(error)),
        };
        let mut rest = &sealed[..count];
        let mut filled = 0;
        while !rest.is_empty() {
            let taken = self.connection.read_tls(&mut rest);
            taken.map_err(|error| Unread::Tls(error.to_string()))?;
            match self.connection.process_new_packets() {
                Ok(state) => self.closed |= state.peer_has_closed(),
                Err(error) => {
                    // Tell the peer why, if there is room; nothing depends on it.
                    let _ = self.connection.write_tls(&mut Outlet(socket));
                    return Err(Unread::Tls(sentence(&error, self.protocol)));
                }
            }
            // Nothing to read is said as an error, and that is no news here.
            while let Ok(more @ 1..) = self.connection.reader().read(&mut plain[filled..]) {
                filled += more;
            }
        }
        match filled {
            0 if self.closed => Ok(0),
            0 => Err(Unread::Later),
            _ => Ok(filled),
        }
    }

    /// Enciphers `out` from `written` on and writes as much as there is room for.
    /// `Ok(true)` when nothing is left.
    pub(super) fn flush(
        &mut self,
        socket: &mut Socket,
        out: &[u8],
        written: &mut usize,
    ) -> Result<bool, Errno> {
        loop {
            if *written < out.len() {
                // Writing to memory fails only after the connection broke, which reading tells.
                *written += self.connection.writer().write(&out[*written..]).unwrap_or(0);
            }
            while self.connection.wants_write() {
                match self.connection.write_tls(&mut Outlet(socket)) {
                    Ok(_) => {}
                    Err(error) => match Errno::from_io_error(&error) {
                        Some(Errno::AGAIN) => return Ok(false),
                        Some(Errno::INTR) => {}
                        errno => return Err(errno.unwrap_or(Errno::IO)),
                    },
                }
            }
            if *written == out.len() {
                return Ok(true);
            }
        }
    }

    /// Says goodbye, if there is room for it.
    pub(super) fn close(&mut self, socket: &mut Socket) {
        self.connection.send_close_notify();
        let _ = self.connection.write_tls(&mut Outlet(socket));
    }
}

/// The socket as rustls wants to see it.
struct Outlet<'a>(&'a mut Socket);

impl io::Write for Outlet<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(self.0.write(bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The server does not offer the version of HTTP that was asked for.
fn no_common_protocol(asked: Protocol) -> String {
    match asked {
        Protocol::Http1 => "the server does not offer HTTP/1.1 over TLS (by ALPN); try --http2",
        Protocol::Http2 => {
            "the server does not offer HTTP/2 over TLS (by ALPN); try HTTP/1.1 (without --http2)"
        }
    }
    .to_owned()
}

/// What went wrong, and what to do about it.
fn sentence(error: &Error, protocol: Protocol) -> String {
    match error {
        Error::InvalidCertificate(why) => {
            let why = match why {
                // How webpki puts it when a certificate that calls itself an authority serves a
                // host.
                CertificateError::Other(_) => {
                    "it is self-signed or not fit for a server".to_owned()
                }
                CertificateError::UnknownIssuer => "its issuer is not known here".to_owned(),
                why => why.to_string(),
            };
            format!(
                "the server's certificate is not accepted: {why}; --cacert names an authority to \
                 trust, and --insecure accepts any certificate"
            )
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server asks for a client certificate; show one with --client-cert and --client-key"
                .to_owned()
        }
        // What servers say of a client certificate that they do not accept.
        Error::AlertReceived(
            alert @ (AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateExpired
            | AlertDescription::CertificateUnknown
            | AlertDescription::UnknownCA),
        ) => format!("the server does not accept the client certificate ({alert:?})"),
        Error::AlertReceived(AlertDescription::NoApplicationProtocol)
        | Error::NoApplicationProtocol => no_common_protocol(protocol),
        Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the server speaks neither TLS 1.2 nor TLS 1.3, the only versions this client has"
                .to_owned()
        }
        Error::PeerIncompatible(why) => format!(
            "this client and the server have no version or cipher of TLS in common ({why:?}); the \
             client has TLS 1.2 and 1.3 with forward secrecy"
        ),
        Error::AlertReceived(AlertDescription::HandshakeFailure) => {
            "the server refused the handshake: it has no cipher in common with this client, or asks \
             for a client certificate (--client-cert)"
                .to_owned()
        }
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            "the server has no certificate for the host of this URL".to_owned()
        }
        Error::InvalidMessage(_) => {
            format!("what came back is not TLS ({error}); is it an https server?")
        }
        other => other.to_string(),
    }
}

/// Accepts every certificate: what `--insecure` asks for. Signatures are not
/// looked at either, since the maker of a certificate could forge them.
#[derive(Debug)]
struct AcceptAnyone(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAnyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
