//! The connection settings of a Kafka cluster in a document.

use super::{FieldFault, MAX_LIST, checked, fault};
use crate::secrets;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use wellspring_connectors::{KafkaConnection, SaslUser};
use wellspring_kafka::{SaslMechanism, Tls};

/// `true`, or an object with a file of authorities.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum TlsDocument {
    /// With the authorities this machine trusts, or without TLS.
    Plain(bool),
    /// With these.
    With(TlsFiles),
}

/// Files of TLS.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TlsFiles {
    #[serde(skip_serializing_if = "Option::is_none")]
    ca_file: Option<PathBuf>,
}

/// A user and the name of the secret with its password.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaslDocument {
    mechanism: String,
    user: String,
    password_secret: String,
}

/// A topic name that brokers accept.
pub(super) fn topic(field: &str, text: &str) -> Result<String, FieldFault> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let ok = (1..=249).contains(&text.len()) && text.bytes().all(fits);
    if ok && text != "." && text != ".." {
        return Ok(text.to_owned());
    }
    fault(field, "must be 1 to 249 of letters, digits, '.', '_' and '-'")
}

/// Combines the fields of a connection.
pub(super) fn connection(
    brokers: &[String],
    tls: Option<&TlsDocument>,
    sasl: Option<&SaslDocument>,
) -> Result<KafkaConnection, FieldFault> {
    if brokers.is_empty() || brokers.len() > MAX_LIST {
        return fault("brokers", format!("must list 1 to {MAX_LIST} of host:port"));
    }
    for (at, broker) in brokers.iter().enumerate() {
        let field = format!("brokers[{at}]");
        let port = checked(&field, broker)?.rsplit_once(':').map(|(host, port)| {
            !host.is_empty()
                && !host.contains('/')
                && port.parse::<u16>().is_ok_and(|port| port > 0)
        });
        if port != Some(true) {
            return fault(&field, "must be host:port, such as kafka-1:9092");
        }
    }
    let tls = match tls {
        None | Some(TlsDocument::Plain(false)) => None,
        Some(TlsDocument::Plain(true)) => Some(Tls::default()),
        Some(TlsDocument::With(files)) => Some(Tls { ca_file: files.ca_file.clone() }),
    };
    let sasl = sasl.map(|sasl| user(sasl, tls.is_some())).transpose()?;
    Ok(KafkaConnection { brokers: brokers.to_vec(), tls, sasl })
}

fn user(sasl: &SaslDocument, has_tls: bool) -> Result<SaslUser, FieldFault> {
    let mechanism = match sasl.mechanism.as_str() {
        "PLAIN" if !has_tls => {
            return fault("sasl.mechanism", "PLAIN would send the password in the clear: set tls");
        }
        "PLAIN" => SaslMechanism::Plain,
        "SCRAM-SHA-256" => SaslMechanism::ScramSha256,
        "SCRAM-SHA-512" => SaslMechanism::ScramSha512,
        _ => return fault("sasl.mechanism", "must be PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512"),
    };
    let user = checked("sasl.user", &sasl.user)?;
    let password_secret = secrets::check_name("sasl.password_secret", &sasl.password_secret)?;
    Ok(SaslUser { mechanism, user, password_secret })
}
