//! Clients as limits know them: addresses by the network that stands for one customer, accounts and
//! subjects as [`Holder`]s; all as a 64-bit key.

use crate::identity::Holder;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{IpAddr, Ipv6Addr};

/// The part of an address that stands for one customer: all of an IPv4 address, the first 64 bits
/// of an IPv6 address, of which one customer has at least that many.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => address.into(),
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
    }
}

/// The key of a client. A collision is as likely as guessing a 64-bit hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(pub(super) u64);

/// Makes keys with a secretly keyed hash, so that clients cannot choose colliding names.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keys(RandomState);

impl Keys {
    /// The key of a client's address; all unknown addresses share one.
    pub(crate) fn of_address(&self, address: Option<IpAddr>) -> Key {
        let mut hasher = self.0.build_hasher();
        match address.map(network) {
            Some(IpAddr::V4(address)) => hasher.write_u32(address.to_bits()),
            Some(IpAddr::V6(address)) => hasher.write_u64((address.to_bits() >> 64) as u64),
            None => hasher.write_u8(0),
        }
        Key(hasher.finish())
    }

    /// The key of an account, or of an external subject.
    pub(crate) fn of_holder(&self, holder: Holder<'_>) -> Key {
        Key(self.0.hash_one(holder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_one_client() {
        let keys = Keys::default();
        let key = |text: &str| keys.of_address(Some(text.parse().expect("an address")));
        assert_eq!(key("1.2.3.4"), key("::ffff:1.2.3.4"));
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1"));
        let different =
            [key("1.2.3.4"), key("1.2.3.5"), key("2001:db8::1"), key("2001:db8:0:1::1")];
        let ann = Holder::Account { name: "ann", added_at: 3 };
        let again = Holder::Account { name: "ann", added_at: 7 };
        let bob = Holder::Subject("bob");
        let different: Vec<Key> = different
            .into_iter()
            .chain([
                keys.of_address(None),
                keys.of_holder(ann),
                keys.of_holder(again),
                keys.of_holder(bob),
            ])
            .collect();
        for (at, one) in different.iter().enumerate() {
            assert!(different[at + 1..].iter().all(|other| other != one), "{at}");
        }
        assert_ne!(Keys::default().of_holder(ann), key("1.2.3.4"));
        assert_ne!(Keys::default().of_holder(ann), keys.of_holder(ann), "no two alike");
    }
}
