//! How to connect to a Kafka cluster. A connection names its passwords; the secrets are stored
//! elsewhere.

use std::path::PathBuf;
use wellspring_kafka::{ConnectionSettings, Sasl, SaslMechanism, Tls};
use zeroize::Zeroizing;

/// A user and the name of the secret that holds its password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SaslUser {
    /// The SASL mechanism.
    pub mechanism: SaslMechanism,
    /// The user.
    pub user: String,
    /// Name of the secret.
    pub password_secret: String,
}

/// How to connect to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KafkaConnection {
    /// Bootstrap brokers as `host:port`, at least one.
    pub brokers: Vec<String>,
    /// TLS settings; `None`: plain text.
    pub tls: Option<Tls>,
    /// The user; `None`: no authentication.
    pub sasl: Option<SaslUser>,
}

impl KafkaConnection {
    /// The CA file, if one is configured.
    #[must_use]
    pub fn ca_file(&self) -> Option<&PathBuf> {
        self.tls.as_ref()?.ca_file.as_ref()
    }

    /// The client's settings. `secret` returns a secret by name.
    ///
    /// # Errors
    /// Those of `secret`.
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
