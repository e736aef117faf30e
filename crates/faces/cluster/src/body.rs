//! Parsing the bodies of this face.

use wellspring_host::wire::json::{Fault, document, once, unknown};

/// Largest body, in bytes.
pub(super) const MAX_BODY_BYTES: usize = 4 << 10;

/// Parses the node that is to lead; `None`: any.
///
/// # Errors
/// The field at fault.
pub(super) fn read_transfer(body: &[u8]) -> Result<Option<String>, Box<Fault>> {
    read_names(body, ["to"], "to").map(|[to]| to)
}

/// Parses the node that is to lead, and the log; both `None`: unspecified.
///
/// # Errors
/// The field at fault.
pub(super) fn read_lead(body: &[u8]) -> Result<(Option<String>, Option<String>), Box<Fault>> {
    let [node, log] = read_names(body, ["node", "log"], "node, log")?;
    Ok((node, log))
}

/// Parses an object with at most these members: names.
fn read_names<const N: usize>(
    body: &[u8],
    members: [&str; N],
    known: &'static str,
) -> Result<[Option<String>; N], Box<Fault>> {
    document(body, |cursor| {
        let mut names = [const { None }; N];
        cursor.object(|key, value| {
            let at = value.at();
            let Some(member) = members.iter().position(|member| *member == key) else {
                return unknown(at, known);
            };
            if value.null()? {
                return Ok(());
            }
            once(&mut names[member], at, value.string()?.into_owned())
        })?;
        Ok(names)
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
        let named = |name: &str| Some(name.to_owned());
        let both = br#"{"node":"b","log":"orders"}"#;
        assert_eq!(read_lead(both).unwrap(), (named("b"), named("orders")));
        assert!(read_lead(br#"{"to":"b"}"#).is_err());
        assert_eq!(read_lead(b"{}").unwrap(), (None, None));
    }
}
