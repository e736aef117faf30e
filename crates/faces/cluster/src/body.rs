//! Parsing the bodies of this face.

use wellspring_host::wire::json::{Fault, document, once, unknown};

/// Largest body, in bytes.
pub(super) const MAX_BODY_BYTES: usize = 4 << 10;

/// Parses the node that is to lead; `None`: any.
///
/// # Errors
/// The field at fault.
pub(super) fn read_transfer(body: &[u8]) -> Result<Option<String>, Box<Fault>> {
    read_name(body, "to")
}

/// Parses the node that the sender means; `None`: unspecified.
///
/// # Errors
/// The field at fault.
pub(super) fn read_lead(body: &[u8]) -> Result<Option<String>, Box<Fault>> {
    read_name(body, "node")
}

/// Parses an object with at most one member: a node's name.
fn read_name(body: &[u8], member: &'static str) -> Result<Option<String>, Box<Fault>> {
    document(body, |cursor| {
        let mut name = None;
        cursor.object(|key, value| {
            let at = value.at();
            match key {
                key if key == member && value.null()? => Ok(()),
                key if key == member => once(&mut name, at, value.string()?.into_owned()),
                _ => unknown(at, member),
            }
        })?;
        Ok(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_named_or_not_and_nothing_else() {
        let read = |text: &str| read_transfer(text.as_bytes());
        assert_eq!(read("{}").unwrap(), None);
        assert_eq!(read(r#"{"to":null}"#).unwrap(), None);
        assert_eq!(read(r#"{"to":"b"}"#).unwrap().as_deref(), Some("b"));
        for bad in ["", "[]", r#"{"to":1}"#, r#"{"To":"b"}"#, r#"{"to":"b","to":"c"}"#] {
            assert!(read(bad).is_err(), "{bad}");
        }
        assert_eq!(read_lead(br#"{"node":"b"}"#).unwrap().as_deref(), Some("b"));
        assert!(read_lead(br#"{"to":"b"}"#).is_err() && read_lead(b"{}").unwrap().is_none());
    }
}
