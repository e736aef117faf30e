//! How to connect to a cluster.

use std::fmt;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// The authentication mechanism of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaslMechanism {
    /// The password itself: only over TLS.
    Plain,
    /// A challenge-response proof of the password, with SHA-256.
    ScramSha256,
    /// A challenge-response proof of the password, with SHA-512.
    ScramSha512,
}

/// A user and password.
#[derive(Clone, PartialEq, Eq)]
pub struct Sasl {
    /// The mechanism.
    pub mechanism: SaslMechanism,
    /// The user.
    pub user: String,
    /// The password, wiped on drop.
    pub password: Zeroizing<String>,
}

impl fmt::Debug for Sasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sasl")
            .field("mechanism", &self.mechanism)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// TLS to the brokers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tls {
    /// PEM file of certificate authorities that replace those trusted by this machine.
    pub ca_file: Option<PathBuf>,
}

/// How to connect to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// Bootstrap brokers as `host:port`; they report the others.
    pub brokers: Vec<String>,
    /// TLS; `None`: plain text.
    pub tls: Option<Tls>,
    /// The credentials; `None`: no authentication.
    pub sasl: Option<Sasl>,
    /// The client's name in the brokers' logs and quotas.
    pub client_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_shown() {
        let password = Zeroizing::new("canary-77".to_owned());
        let sasl = Sasl { mechanism: SaslMechanism::Plain, user: "ann".into(), password };
        let settings = ConnectionSettings {
            brokers: vec!["b:9092".into()],
            tls: None,
            sasl: Some(sasl),
            client_id: "w".into(),
        };
        let shown = format!("{settings:?}");
        assert!(shown.contains("ann") && !shown.contains("canary-77"), "{shown}");
    }
}
