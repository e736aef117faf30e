//! What `BEGIN` and `RUN` say about a transaction.

use super::fields::{self, Parsed, RequestFault};
use super::{PackedMap, TextList};
use crate::packstream::Reader;

/// Largest metadata of a transaction, in bytes.
const METADATA: (usize, &str) = (16 << 10, "a map of at most 16 KiB");

/// Whether a transaction may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AccessMode {
    /// It may.
    #[default]
    Write,
    /// A statement that writes is refused.
    Read,
}

/// The least severity of a notification that a client wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationSeverity {
    /// No notification at all.
    Off,
    /// Warnings.
    Warning,
    /// Everything.
    Information,
}

/// Which notifications a client wants, from 5.2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NotificationFilter {
    /// The least severity; `None`: the server decides.
    pub minimum: Option<NotificationSeverity>,
    /// Classifications (categories up to 5.4) that it does not want; `None`: the server decides.
    pub disabled: Option<TextList>,
}

/// The settings of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransactionSettings {
    /// Whether it may write.
    pub mode: AccessMode,
    /// The database; `None`: the default one.
    pub db: Option<String>,
    /// What the transaction must have seen.
    pub bookmarks: TextList,
    /// Longest duration, in ms; `None`: the server's own.
    pub timeout_ms: Option<u64>,
    /// What the client wants to find again beside the transaction, 16 KiB at most.
    pub metadata: PackedMap,
    /// The account in whose name the client acts.
    pub imp_user: Option<String>,
    /// Which notifications the client wants, in place of those named by `HELLO`.
    pub notifications: NotificationFilter,
}

impl Default for TransactionSettings {
    fn default() -> TransactionSettings {
        TransactionSettings {
            mode: AccessMode::default(),
            db: None,
            bookmarks: TextList::default(),
            timeout_ms: None,
            metadata: PackedMap::empty(),
            imp_user: None,
            notifications: NotificationFilter::default(),
        }
    }
}

/// `RUN`: a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its text.
    pub text: String,
    /// Its parameters.
    pub parameters: PackedMap,
    /// The settings of its transaction. In an explicit transaction those of `BEGIN` count.
    pub settings: TransactionSettings,
}

impl NotificationFilter {
    /// Reads a member if it is one of a filter; `false`: it is not, and nothing is read.
    pub(super) fn read(&mut self, key: &str, reader: &mut Reader<'_>) -> Parsed<bool> {
        match key {
            "notifications_minimum_severity" => {
                const FIELD: &str = "notifications_minimum_severity";
                self.minimum = match fields::text_or_null(reader, FIELD)?.as_deref() {
                    None => None,
                    Some("OFF") => Some(NotificationSeverity::Off),
                    Some("WARNING") => Some(NotificationSeverity::Warning),
                    Some("INFORMATION") => Some(NotificationSeverity::Information),
                    Some(_) => {
                        let expected = "OFF, WARNING or INFORMATION";
                        return Err(RequestFault::Invalid { field: FIELD, expected });
                    }
                };
            }
            "notifications_disabled_categories" => {
                self.disabled = Some(fields::texts(reader, "notifications_disabled_categories")?);
            }
            "notifications_disabled_classifications" => {
                let field = "notifications_disabled_classifications";
                self.disabled = Some(fields::texts(reader, field)?);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

impl TransactionSettings {
    /// Reads the map of settings that comes next.
    pub(super) fn read(reader: &mut Reader<'_>) -> Parsed<TransactionSettings> {
        let mut settings = TransactionSettings::default();
        fields::members(reader, "extra", |key, reader| {
            match key {
                "mode" => settings.mode = access_mode(reader)?,
                "db" => settings.db = fields::text_or_null(reader, "db")?,
                "bookmarks" => settings.bookmarks = fields::texts(reader, "bookmarks")?,
                "tx_timeout" => {
                    let range = (0, "a number of milliseconds, 0 or more");
                    let timeout_ms = fields::int_or_null(reader, "tx_timeout", range)?;
                    settings.timeout_ms = timeout_ms.map(i64::cast_unsigned).filter(|ms| *ms > 0);
                }
                "tx_metadata" => {
                    settings.metadata = fields::packed_map(reader, "tx_metadata", METADATA)?;
                }
                "imp_user" => settings.imp_user = fields::text_or_null(reader, "imp_user")?,
                _ if settings.notifications.read(key, reader)? => {}
                _ => reader.skip()?,
            }
            Ok(())
        })?;
        Ok(settings)
    }
}

fn access_mode(reader: &mut Reader<'_>) -> Parsed<AccessMode> {
    match fields::text_or_null(reader, "mode")?.as_deref() {
        None | Some("w") => Ok(AccessMode::Write),
        Some("r") => Ok(AccessMode::Read),
        Some(_) => Err(RequestFault::Invalid { field: "mode", expected: "r or w" }),
    }
}
