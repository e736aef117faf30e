//! What is wrong with TLS, and what to do about it, in words for a terminal.

use rustls::{AlertDescription, CertificateError, Error};
use std::fmt;

/// What is wrong with TLS towards a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFault(String);

impl fmt::Display for TlsFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for TlsFault {}

impl From<&Error> for TlsFault {
    fn from(error: &Error) -> TlsFault {
        TlsFault(in_words(error))
    }
}

fn in_words(error: &Error) -> String {
    use AlertDescription as Alert;
    match error {
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
    }
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
            let fault = TlsFault::from(&error).to_string();
            assert!(fault.contains(words), "{fault}");
        }
    }
}
