//! How a definition says to reach a cluster. Passwords are named here and kept elsewhere.

use std::path::PathBuf;
use wellspring_kafka::{ConnectionSettings, Sasl, SaslMechanism, Tls};
use zeroize::Zeroizing;

/// A user, and the name of the secret that is its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaslUser {
    /// How the password is proved.
    pub mechanism: SaslMechanism,
    /// The user.
    pub user: String,
    /// Name of the secret.
    pub password_secret: String,
}

/// How to reach a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaConnection {
    /// `host:port` of brokers to begin with, at least one.
    pub brokers: Vec<String>,
    /// TLS; `None`: in the clear.
    pub tls: Option<Tls>,
    /// The user; `None`: no authentication.
    pub sasl: Option<SaslUser>,
}

impl KafkaConnection {
    /// The CA file named, if one is.
    #[must_use]
    pub fn ca_file(&self) -> Option<&PathBuf> {
        self.tls.as_ref()?.ca_file.as_ref()
    }

    /// The settings of a client. `secret` gives a secret by its name.
    ///
    /// # Errors
    /// That of `secret`.
    pub fn settings<E>(
        &self,
        client_id: &str,
        secret: impl Fn(&str) -> Result<Zeroizing<String>, E>,
    ) -> Result<ConnectionSettings, E> {
        let sasl = match &self.sasl {
            None => None,
            Some(sasl) => Some(Sasl {
                mechanism: sasl.mechanism,
                user: sasl.user.clone(),
                password: secret(&sasl.password_secret)?,
            }),
        };
        Ok(ConnectionSettings {
            brokers: self.brokers.clone(),
            tls: self.tls.clone(),
            sasl,
            client_id: client_id.to_owned(),
        })
    }
}
