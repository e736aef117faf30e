//! How a node proves to another that a request comes from a node: by a header that only holders of
//! the cluster key can sign.
//!
//! ```text
//! Wellspring-Node: v1 node=a;at=1700000000000;client=203.0.113.9;mac=64 hexadecimal digits
//! ```
//! `at` is the time of signing, in ms since 1970 UTC; it is valid for a minute before and after.
//! `client` is the original client of the request, `-` if unknown. `mac` is HMAC-SHA-256 over all
//! of them, the method and the target. The content is not covered: on an untrusted network, use
//! `https://` between nodes.

use super::ClusterKey;
use ring::hmac;
use std::fmt;
use std::net::IpAddr;
use wellspring_types::hex;

/// Its name in lower case.
pub const HEADER: &str = "wellspring-node";
/// Most difference of two nodes' clocks plus the time a request takes, in ms.
const SKEW_MS: u64 = 60_000;
/// Longest value accepted, in bytes: the longest name, address and time.
const MAX_BYTES: usize = 256;
/// Longest name of a node, in bytes.
const MAX_NAME_BYTES: usize = 64;
/// Most digits of a time.
const MAX_DIGITS: usize = 16;

/// The name of a node: 1 to 64 characters a-z, 0-9, `-`, `_` and `.`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeName(Box<str>);

impl NodeName {
    /// Accepts a text that is a valid name.
    ///
    /// # Errors
    /// The rule for names, as a sentence.
    pub fn parse(text: &str) -> Result<NodeName, &'static str> {
        let fits = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.".contains(&b);
        if (1..=MAX_NAME_BYTES).contains(&text.len()) && text.bytes().all(fits) {
            return Ok(NodeName(text.into()));
        }
        Err("the name of a node must be 1 to 64 characters a-z, 0-9, -, _ and .")
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The sender of a request, according to the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sender {
    /// Not a node: there is no such header.
    NotOfANode,
    /// A node's.
    OfNode {
        /// Its name.
        node: NodeName,
        /// The original client, if known.
        client: Option<IpAddr>,
    },
    /// It claims to come from a node, without proof.
    Refused(NodeFault),
}

/// Why a header does not prove that a request comes from a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeFault {
    /// It is repeated.
    Twice,
    /// It does not have the format above.
    Form,
    /// It was signed with another key, or for another request.
    Mac,
    /// It was signed more than a minute from now.
    Time,
}

impl fmt::Display for NodeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            NodeFault::Twice => "Wellspring-Node is given more than once",
            NodeFault::Form => "Wellspring-Node is not in the format of this version",
            NodeFault::Mac => {
                "Wellspring-Node is not signed with this node's cluster key, or not for this request; all \
                 nodes need the same --cluster-key"
            }
            NodeFault::Time => {
                "Wellspring-Node was signed more than a minute from now; synchronize the \
                 clocks of the nodes"
            }
        })
    }
}

/// The value of the header of a request that a node sends at a time, in µs since 1970 UTC. `target`
/// is its path and query as sent.
pub fn sign(
    key: &ClusterKey,
    (method, target): (&str, &str),
    node: &NodeName,
    client: Option<IpAddr>,
    now_us: u64,
) -> String {
    let client = client.map_or_else(|| "-".to_owned(), |client| client.to_string());
    let said = format!("v1 node={node};at={};client={client}", now_us / 1_000);
    let mac = hmac::sign(key.nodes(), message(method, target, &said).as_bytes());
    let mut value = format!("{said};mac=");
    hex::push(&mut value, mac.as_ref());
    value
}

/// The sender of a request that arrived at a time, in µs since 1970 UTC, with these values of the
/// header.
pub fn judge<'v>(
    key: &ClusterKey,
    (method, target): (&str, &str),
    mut values: impl Iterator<Item = &'v [u8]>,
    now_us: u64,
) -> Sender {
    let Some(value) = values.next() else { return Sender::NotOfANode };
    if values.next().is_some() {
        return Sender::Refused(NodeFault::Twice);
    }
    let Some(Signed { said, node, at_ms, client, mac }) = read(value) else {
        return Sender::Refused(NodeFault::Form);
    };
    // In constant time, and before the clock reveals anything.
    if hmac::verify(key.nodes(), message(method, target, said).as_bytes(), &mac).is_err() {
        return Sender::Refused(NodeFault::Mac);
    }
    if at_ms.abs_diff(now_us / 1_000) > SKEW_MS {
        return Sender::Refused(NodeFault::Time);
    }
    Sender::OfNode { node, client }
}

/// The unverified content of a value of the header: the node, the time in ms since 1970 UTC, the
/// client. Proves nothing; for the fuzz target.
#[cfg(feature = "fuzzing")]
#[must_use]
pub fn unverified(value: &[u8]) -> Option<(NodeName, u64, Option<IpAddr>)> {
    read(value).map(|Signed { node, at_ms, client, .. }| (node, at_ms, client))
}

/// The signed text. No part can contain a line end.
fn message(method: &str, target: &str, said: &str) -> String {
    format!("{method}\n{target}\n{said}")
}

/// A value of the header, taken apart.
struct Signed<'v> {
    /// All but the signature, as received.
    said: &'v str,
    node: NodeName,
    at_ms: u64,
    client: Option<IpAddr>,
    mac: [u8; 32],
}

fn read(value: &[u8]) -> Option<Signed<'_>> {
    let value = std::str::from_utf8(value).ok().filter(|value| value.len() <= MAX_BYTES)?;
    let (said, mac) = value.split_once(";mac=")?;
    let mut parts = said.strip_prefix("v1 ")?.split(';');
    let node = NodeName::parse(parts.next()?.strip_prefix("node=")?).ok()?;
    let at = parts.next()?.strip_prefix("at=")?;
    let is_number = at.len() <= MAX_DIGITS && at.bytes().all(|digit| digit.is_ascii_digit());
    let at_ms = at.parse().ok().filter(|_| is_number)?;
    let client = match parts.next()?.strip_prefix("client=")? {
        "-" => None,
        address => Some(address.parse::<IpAddr>().ok()?.to_canonical()),
    };
    let mac: [u8; 32] = hex::read(mac)?;
    parts.next().is_none().then_some(Signed { said, node, at_ms, client, mac })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW_US: u64 = 1_700_000_000_000_000;
    const ASKED: (&str, &str) = ("POST", "/v1/logs/main/events?x=1");

    fn node() -> NodeName {
        NodeName::parse("a-1").unwrap()
    }

    fn key() -> ClusterKey {
        ClusterKey::known(7)
    }

    fn client() -> Option<IpAddr> {
        Some("203.0.113.9".parse().unwrap())
    }

    fn judged(key: &ClusterKey, asked: (&str, &str), value: &str, now_us: u64) -> Sender {
        judge(key, asked, [value.as_bytes()].into_iter(), now_us)
    }

    #[test]
    fn what_a_node_signs_is_of_that_node_for_a_minute() {
        let addresses = [client(), Some("2001:db8::1".parse().unwrap()), None];
        for client in addresses {
            let value = sign(&key(), ASKED, &node(), client, NOW_US);
            for now_us in [NOW_US, NOW_US + 60_000_000, NOW_US - 60_000_000] {
                let of = Sender::OfNode { node: node(), client };
                assert_eq!(judged(&key(), ASKED, &value, now_us), of, "{value}");
            }
            for now_us in [NOW_US + 60_001_000, NOW_US - 60_001_000, 0, u64::MAX] {
                let late = Sender::Refused(NodeFault::Time);
                assert_eq!(judged(&key(), ASKED, &value, now_us), late);
            }
        }
        assert_eq!(judge(&key(), ASKED, [].into_iter(), NOW_US), Sender::NotOfANode);
        let value = sign(&key(), ASKED, &node(), None, NOW_US);
        let twice = [value.as_bytes(), value.as_bytes()].into_iter();
        assert_eq!(judge(&key(), ASKED, twice, NOW_US), Sender::Refused(NodeFault::Twice));
    }

    #[test]
    fn a_signature_for_another_request_or_by_another_key_is_refused() {
        let value = sign(&key(), ASKED, &node(), client(), NOW_US);
        let refused = Sender::Refused(NodeFault::Mac);
        assert_eq!(judged(&ClusterKey::known(8), ASKED, &value, NOW_US), refused);
        for asked in [("PUT", ASKED.1), (ASKED.0, "/"), ("POST", "/v1/logs/main/events?x=2")] {
            assert_eq!(judged(&key(), asked, &value, NOW_US), refused, "{asked:?}");
        }
        for (from, to) in [("a-1", "a-2"), ("at=1", "at=2"), ("203", "202"), ("203.0.113.9", "-")] {
            let changed = value.replacen(from, to, 1);
            assert_ne!(changed, value);
            assert_eq!(judged(&key(), ASKED, &changed, NOW_US), refused, "{changed}");
        }
    }

    #[test]
    fn what_no_node_sends_is_refused_for_its_form() {
        let value = sign(&key(), ASKED, &node(), client(), NOW_US);
        let (said, mac) = value.split_once(";mac=").unwrap();
        let long = format!("v1 node={};at=1;client=-;mac={mac}", "a".repeat(65));
        let bad = [
            "",
            "v1",
            "v1 ",
            said,
            &value[1..],
            &value[..value.len() - 1],
            &format!("{value}0"),
            &format!(" {value}"),
            &value.replace("v1", "v2"),
            &value.replace(";client=203.0.113.9", ""),
            &value.replace("client=203.0.113.9", "client="),
            &value.replace("203.0.113.9", "203.0.113.9:80"),
            &value.replace("at=", "at=+"),
            &value.replace("at=", "at=00000000000000000000"),
            &value.replace("a-1", "A"),
            &value.replace("node=a-1", "node="),
            &value.replace(";mac", ";more=1;mac"),
            &value.replace(";at", "; at"),
            &long,
        ];
        for value in bad {
            let form = Sender::Refused(NodeFault::Form);
            assert_eq!(judged(&key(), ASKED, value, NOW_US), form, "{value}");
        }
        for name in ["", "A", "a b", "a;b", "ä", "a\n", &"a".repeat(65)] {
            assert!(NodeName::parse(name).is_err(), "{name:?}");
        }
        assert!(NodeName::parse(&"a".repeat(64)).is_ok());
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_nodes_or_end_the_process(value in proptest::collection::vec(any::<u8>(), 0..300)) {
            let sender = judge(&key(), ASKED, [&*value].into_iter(), NOW_US);
            prop_assert_eq!(sender, Sender::Refused(NodeFault::Form));
        }

        #[test]
        fn a_changed_byte_is_refused(at in 0..200usize, to in any::<u8>()) {
            let mut value = sign(&key(), ASKED, &node(), client(), NOW_US).into_bytes();
            let at = at % value.len();
            // The digits of the signature may be upper case.
            prop_assume!(!value[at].eq_ignore_ascii_case(&to));
            value[at] = to;
            let sender = judge(&key(), ASKED, [&*value].into_iter(), NOW_US);
            prop_assert!(matches!(sender, Sender::Refused(_)), "{:?}", sender);
        }
    }
}
