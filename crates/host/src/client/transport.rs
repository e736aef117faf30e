//! The bytes to and from a server: as they are, or through TLS.

use crate::client::trust::Terms;
use rustls::{AlertDescription, CertificateError, ClientConnection, Error};
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// A connection to a server.
#[derive(Debug)]
pub enum Transport {
    /// The socket itself.
    Plain(TcpStream),
    /// TLS on it.
    Tls(Box<Tls>),
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(socket) => socket.read(buffer),
            Transport::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Transport::Plain(socket) => socket.write(bytes),
            Transport::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// TLS on a blocking socket. Unlike rustls' own stream it reads on when nothing can be written
/// any more: a server that refuses early answers before it has read everything, and closes.
#[derive(Debug)]
pub struct Tls {
    connection: ClientConnection,
    socket: TcpStream,
}

impl Tls {
    /// Makes the handshake.
    ///
    /// # Errors
    /// The socket's, or what TLS finds wrong, in words: see [`is_of_tls`].
    pub(crate) fn begin(terms: &Terms, mut socket: TcpStream) -> io::Result<Tls> {
        let connection = ClientConnection::new(terms.config.clone(), terms.name.clone());
        let mut connection = connection.map_err(in_words)?;
        while connection.is_handshaking() {
            connection.complete_io(&mut socket).map_err(|error| match error.downcast() {
                Ok(error) => in_words(error),
                Err(error) => error,
            })?;
        }
        Ok(Tls { connection, socket })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return done,
            }
            // Words of TLS itself. If the server takes no more, reading tells.
            let _ = self.push();
            self.connection.read_tls(&mut self.socket)?;
            self.connection.process_new_packets().map_err(in_words)?;
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.connection.writer().write(bytes)?;
        self.push()?;
        Ok(count)
    }

    /// Writes what TLS has made of it.
    fn push(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            match self.connection.write_tls(&mut self.socket) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// Whether an error is one of TLS and not of the socket: it will be the same next time.
pub(crate) fn is_of_tls(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|inner| inner.is::<Words>())
}

/// What TLS finds wrong, and what to do about it.
#[derive(Debug)]
struct Words(String);

impl std::fmt::Display for Words {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Words {}

fn in_words(error: Error) -> io::Error {
    use AlertDescription as Alert;
    let words = match error {
        Error::InvalidCertificate(why) => {
            let why = match why {
                CertificateError::UnknownIssuer => "its issuer is not trusted here; --cacert FILE \
                                                    names the authority that signed it"
                    .to_owned(),
                // How it is put when a certificate that calls itself an authority serves a host.
                CertificateError::Other(_) => {
                    "it is self-signed, or not fit for a server".to_owned()
                }
                CertificateError::Expired => "it has expired".to_owned(),
                why => why.to_string(),
            };
            format!("the server's certificate is not accepted: {why}")
        }
        Error::InvalidMessage(_) => {
            format!("what came back is not TLS ({error}); is it an http:// address? (--url)")
        }
        Error::AlertReceived(Alert::CertificateRequired) => {
            "the server asks for a certificate: show one with --client-cert and --client-key"
                .to_owned()
        }
        Error::AlertReceived(
            alert @ (Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::UnknownCA
            | Alert::AccessDenied),
        ) => format!("the server does not accept the certificate of --client-cert ({alert:?})"),
        other => format!("TLS failed: {other}"),
    };
    io::Error::other(Words(words))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_tls_is_said_with_what_to_do() {
        let unknown = CertificateError::UnknownIssuer;
        for (error, words) in [
            (Error::InvalidCertificate(unknown), "--cacert"),
            (Error::InvalidCertificate(CertificateError::Expired), "expired"),
            (Error::AlertReceived(AlertDescription::CertificateRequired), "--client-cert"),
            (Error::AlertReceived(AlertDescription::UnknownCA), "UnknownCA"),
            (Error::HandshakeNotComplete, "TLS failed"),
        ] {
            let error = in_words(error);
            assert!(is_of_tls(&error) && error.to_string().contains(words), "{error}");
        }
        assert!(!is_of_tls(&io::ErrorKind::ConnectionReset.into()));
        assert!(!is_of_tls(&io::Error::other("x")));
    }
}
