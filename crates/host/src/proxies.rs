//! The client's address when there are proxies in front of the server.
//!
//! Any client can send `X-Forwarded-For`. An entry is believed only if a trusted proxy added it:
//! entries are appended on the right, so they are read from there, and the first that is not itself
//! a trusted proxy is the client.

use std::net::{IpAddr, SocketAddr};

/// The addresses with a common prefix of bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Prefix {
    /// The bits as a number, most significant first; those of IPv4 in the upper 32.
    bits: u128,
    /// Length of the prefix: at most 32 for IPv4, 128 for IPv6.
    length: u32,
    is_ipv4: bool,
}

impl Prefix {
    /// `10.0.0.1`, `10.0.0.0/8`, `fd00::/8`.
    fn parse(text: &str) -> Option<Prefix> {
        let (address, length) = match text.split_once('/') {
            Some((address, length)) => (address, Some(length)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => most,
            Some(digits) if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) => {
                digits.parse().ok().filter(|&length| length <= most)?
            }
            Some(_) => return None,
        };
        Some(Prefix { bits: bits(address), length, is_ipv4: address.is_ipv4() })
    }

    fn covers(&self, address: IpAddr) -> bool {
        let differing = self.bits ^ bits(address);
        self.is_ipv4 == address.is_ipv4() && differing.leading_zeros() >= self.length
    }
}

fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// The proxies whose `X-Forwarded-For` is believed.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedProxies(Vec<Prefix>);

/// An entry that is neither an address nor a prefix.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InvalidProxy(pub(crate) String);

impl TrustedProxies {
    /// Parses addresses and prefixes; empty entries are ignored.
    ///
    /// # Errors
    /// The first entry that is neither.
    pub(crate) fn parse(entries: &[String]) -> Result<TrustedProxies, InvalidProxy> {
        let entries = entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty());
        entries
            .map(|entry| Prefix::parse(entry).ok_or_else(|| InvalidProxy(entry.to_owned())))
            .collect::<Result<_, _>>()
            .map(TrustedProxies)
    }

    /// Whether the peer of a connection is one of them.
    pub(crate) fn trusts(&self, peer: Option<IpAddr>) -> bool {
        peer.is_some_and(|peer| self.holds(peer.to_canonical()))
    }

    /// Whether an address belongs to one of them.
    fn holds(&self, address: IpAddr) -> bool {
        self.0.iter().any(|prefix| prefix.covers(address))
    }

    /// The client of a request: the peer, unless it is a trusted proxy that names another.
    /// `forwarded` are the values of all `X-Forwarded-For` headers, in order. An invalid entry ends
    /// the search: the last proxy found is then the client.
    pub(crate) fn client<'a>(
        &self,
        peer: Option<IpAddr>,
        forwarded: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> Option<IpAddr> {
        let mut client = peer?.to_canonical();
        if self.0.is_empty() {
            return Some(client);
        }
        let mut entries = forwarded.rev().flat_map(|value| value.rsplit(|&byte| byte == b','));
        while self.holds(client) {
            match entries.next().and_then(address_of) {
                Some(address) => client = address,
                None => break,
            }
        }
        Some(client)
    }
}

/// An entry as proxies write it: an address, with or without a port, IPv6 perhaps in brackets.
fn address_of(entry: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(entry).ok()?.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address: Result<IpAddr, _> = bare.parse();
    let address = address.or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proxies(entries: &[&str]) -> TrustedProxies {
        let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        TrustedProxies::parse(&entries).expect("right entries")
    }

    fn client(proxies: &TrustedProxies, peer: &str, forwarded: &[&str]) -> String {
        let peer = Some(peer.parse().expect("an address"));
        let forwarded = forwarded.iter().map(|value| value.as_bytes());
        proxies.client(peer, forwarded).expect("a client").to_string()
    }

    #[test]
    fn without_trusted_proxies_no_header_is_believed() {
        let none = proxies(&[]);
        assert_eq!(client(&none, "9.9.9.9", &["1.2.3.4"]), "9.9.9.9");
        let one = proxies(&["10.0.0.1"]);
        assert_eq!(client(&one, "9.9.9.9", &["1.2.3.4", "10.0.0.1"]), "9.9.9.9");
        assert_eq!(one.client(None, [&b"1.2.3.4"[..]].into_iter()), None);
    }

    #[test]
    fn what_the_client_forged_stands_left_of_what_the_proxy_added() {
        let one = proxies(&["10.0.0.0/8"]);
        assert_eq!(client(&one, "10.0.0.1", &["1.1.1.1, 2.2.2.2"]), "2.2.2.2");
        assert_eq!(client(&one, "10.0.0.1", &["1.1.1.1", "2.2.2.2"]), "2.2.2.2");
        assert_eq!(client(&one, "10.0.0.1", &["1.1.1.1, 2.2.2.2 ,10.7.7.7"]), "2.2.2.2");
        // Even an entry forged to look like a trusted proxy is only reached through one.
        assert_eq!(client(&one, "10.0.0.1", &["10.9.9.9, 2.2.2.2"]), "2.2.2.2");
    }

    #[test]
    fn without_an_entry_or_with_rubbish_the_last_proxy_counts() {
        let one = proxies(&["10.0.0.0/8"]);
        assert_eq!(client(&one, "10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(client(&one, "10.0.0.1", &["1.1.1.1, unknown"]), "10.0.0.1");
        assert_eq!(client(&one, "10.0.0.1", &["1.1.1.1,"]), "10.0.0.1");
        assert_eq!(client(&one, "10.0.0.1", &["1.1.1.1, x, 10.0.0.2"]), "10.0.0.2");
        assert_eq!(client(&one, "10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
        let not_text = one.client(Some("10.0.0.1".parse().unwrap()), [&b"\xff"[..]].into_iter());
        assert_eq!(not_text, Some("10.0.0.1".parse().unwrap()));
    }

    #[test]
    fn ports_brackets_and_mapped_addresses_are_understood() {
        let both = proxies(&["::1", "127.0.0.1"]);
        assert_eq!(client(&both, "::1", &["1.2.3.4:5678"]), "1.2.3.4");
        assert_eq!(client(&both, "::1", &["[2001:db8::7]:443"]), "2001:db8::7");
        assert_eq!(client(&both, "::1", &["[2001:db8::7]"]), "2001:db8::7");
        assert_eq!(client(&both, "::ffff:127.0.0.1", &["::ffff:1.2.3.4"]), "1.2.3.4");
    }

    #[test]
    fn prefixes_end_at_their_bits() {
        let some = proxies(&["192.168.4.0/22", "2001:db8::/33", "0.0.0.0/0"]);
        let covers = |at: usize, address: &str| some.0[at].covers(address.parse().unwrap());
        assert!(covers(0, "192.168.7.255") && !covers(0, "192.168.8.0"));
        assert!(covers(1, "2001:db8:7fff::1") && !covers(1, "2001:db8:8000::1"));
        assert!(covers(2, "255.0.0.1") && !covers(2, "::1"));
    }

    #[test]
    fn what_is_no_address_is_named() {
        for bad in ["10.0.0.0/33", "::/129", "host", "10.0.0.0/", "10.0.0.0/+8", "10.0.0", "/8"] {
            let error = TrustedProxies::parse(&["::1".to_owned(), bad.to_owned()]).unwrap_err();
            assert_eq!(error, InvalidProxy(bad.into()));
        }
        assert!(TrustedProxies::parse(&["".to_owned(), " ".to_owned()]).unwrap().0.is_empty());
    }
}
