//! The settings of connectors.

use crate::document::{FieldFault, SinkDocument, SourceDocument, check_name, fault, read_value};
use crate::view::ConnectorKey;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::str::FromStr;
use wellspring_host::settings::section;
use wellspring_host::setup::SetupError;

section! {
    /// Settings of sinks and sources.
    ConnectorConfig from ConnectorConfigArgs under "Sinks and sources":
    optional
    /// Folder with the secrets of sinks and sources (passwords, signing keys), one file each,
    /// readable by its owner only.
    secrets: PathBuf = "WELLSPRING_SECRETS";
    optional
    /// Sinks as in PUT /v1/sinks/{name}, with their names: a JSON array; in the file one [[sink]]
    /// each.
    sink: ConnectorTables = "WELLSPRING_SINK";
    optional
    /// Sources as in PUT /v1/sources/{name}, with their names: a JSON array; in the file one
    /// [[source]] each.
    source: ConnectorTables = "WELLSPRING_SOURCE";
}

/// Definitions in the configuration.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConnectorTables(Vec<Map<String, Value>>);

impl FromStr for ConnectorTables {
    type Err = SetupError;

    fn from_str(text: &str) -> Result<ConnectorTables, SetupError> {
        serde_json::from_str(text)
            .map_err(|error| SetupError::new(format!("must be a JSON array of objects: {error}")))
    }
}

/// A connector defined by the configuration.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredConnector {
    pub(crate) key: ConnectorKey,
    /// Its definition as stored.
    pub(crate) definition: Value,
}

impl ConnectorConfig {
    /// The connectors of the configuration.
    ///
    /// # Errors
    /// A sentence about the first invalid one.
    pub(crate) fn connectors(&self) -> Result<Vec<ConfiguredConnector>, SetupError> {
        let mut connectors: Vec<ConfiguredConnector> = Vec::new();
        let sinks = self.sink.iter().flat_map(|tables| &tables.0);
        let sources = self.source.iter().flat_map(|tables| &tables.0);
        let tables =
            sinks.map(|table| (table, "sink")).chain(sources.map(|table| (table, "source")));
        for (table, kind) in tables {
            let name = table.get("name").and_then(Value::as_str).unwrap_or_default();
            let connector = read(table, kind)
                .map_err(|refused| format!("[[{kind}]] {name:?}: {}", refused.sentence()))?;
            if connectors.iter().any(|other| other.key == connector.key) {
                return Err(
                    format!("[[{kind}]] {name:?} is defined twice; names must be unique").into()
                );
            }
            connectors.push(connector);
        }
        Ok(connectors)
    }
}

fn read(table: &Map<String, Value>, kind: &str) -> Result<ConfiguredConnector, FieldFault> {
    let mut table = table.clone();
    let name = match table.remove("name") {
        Some(Value::String(name)) => name,
        Some(_) => return fault("name", "must be a string"),
        None => return fault("name", "is missing"),
    };
    check_name(&name)?;
    let table = Value::Object(table);
    let (key, definition) = if kind == "sink" {
        let document: SinkDocument = read_value(table)?;
        document.definition()?;
        (ConnectorKey::sink(&name), document.stored()?)
    } else {
        let document: SourceDocument = read_value(table)?;
        document.definition()?;
        (ConnectorKey::source(&name), document.stored()?)
    };
    Ok(ConfiguredConnector { key, definition })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_host::settings::Section;

    fn config(text: &str) -> Result<Vec<ConfiguredConnector>, SetupError> {
        let args = ConnectorConfig::read(text).map_err(|error| error.to_string())?;
        ConnectorConfig::merge(ConnectorConfigArgs::default(), args).connectors()
    }

    #[test]
    fn tables_of_a_file_are_the_documents_of_the_api() {
        let text = r#"
            [[sink]]
            name = "orders"
            brokers = ["localhost:9092"]
            topic = "orders"
            partition_by = "customer"
            query = { items = [{ types = ["OrderPlaced"] }] }
            [[sink]]
            name = "hook"
            url = "http://localhost:1/x"
            [[source]]
            name = "payments"
            brokers = ["localhost:9092"]
            topic = "payments"
            type = "PaymentReceived"
        "#;
        let connectors = config(text).unwrap();
        let keys: Vec<String> = connectors.iter().map(|it| it.key.to_string()).collect();
        assert_eq!(keys, ["sink:orders", "sink:hook", "source:payments"]);
        assert_eq!(connectors[0].definition["query"]["items"][0]["types"][0], "OrderPlaced");
    }

    #[test]
    fn what_is_wrong_is_told_with_the_table_and_the_field() {
        for (text, told) in [
            ("[[sink]]\nbrokers = [\"a:1\"]\ntopic = \"t\"\n", "[[sink]] \"\": name is missing"),
            ("[[sink]]\nname = \"a\"\nurl = \"ftp://x\"\n", "[[sink]] \"a\": url "),
            ("[[sink]]\nname = \"a\"\nurll = \"http://x\"\n", "unknown field `urll`"),
            ("[[source]]\nname = \"a\"\ntopic = \"t\"\n", "[[source]] \"a\": brokers is missing"),
            (
                "[[sink]]\nname = \"a\"\nurl = \"http://x\"\n[[sink]]\nname = \"a\"\nurl = \"http://x\"\n",
                "is defined twice",
            ),
        ] {
            let refused = config(text).unwrap_err();
            assert!(refused.to_string().contains(told), "{refused}");
        }
    }

    #[test]
    fn the_environment_holds_them_as_json() {
        let tables: ConnectorTables = r#"[{"name":"a","url":"http://x"}]"#.parse().unwrap();
        assert_eq!(tables.0.len(), 1);
        assert!("{".parse::<ConnectorTables>().is_err());
    }
}
