//! How to reach a cluster.

use std::fmt;
use std::path::PathBuf;
use zeroize::Zeroizing;

/// How a client proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaslMechanism {
    /// The password itself: over TLS alone.
    Plain,
    /// A proof of the password, with SHA-256.
    ScramSha256,
    /// A proof of the password, with SHA-512.
    ScramSha512,
}

/// A user and its password.
#[derive(Clone, PartialEq, Eq)]
pub struct Sasl {
    /// How it is proved.
    pub mechanism: SaslMechanism,
    /// The user.
    pub user: String,
    /// The password, wiped when it is dropped.
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
    /// PEM file of authorities to trust instead of those this machine trusts.
    pub ca_file: Option<PathBuf>,
}

/// How to reach a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// `host:port` of brokers to begin with; they name the others.
    pub brokers: Vec<String>,
    /// TLS; `None`: in the clear.
    pub tls: Option<Tls>,
    /// Who we are; `None`: nobody.
    pub sasl: Option<Sasl>,
    /// What brokers call us in their logs and quotas.
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
