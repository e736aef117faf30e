//! Lists of hosts in settings.

use super::{self as hostname, HostFault};
use std::collections::BTreeSet;
use std::fmt;

/// A set of hosts: `example.com` is that host alone, `*.example.com` all below it and not it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostList {
    /// Hosts in canonical form.
    hosts: BTreeSet<String>,
    /// Hosts in canonical form whose subdomains belong to the list.
    parents: BTreeSet<String>,
}

/// An entry of a list that is neither a host nor `*.` and a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostListFault {
    /// The entry as it was written.
    pub entry: String,
    /// What is wrong with it.
    pub fault: HostFault,
}

impl fmt::Display for HostListFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the entry {:?} of a host list {}; entries are like example.com or *.example.com, without scheme and port",
            self.entry, self.fault
        )
    }
}

impl std::error::Error for HostListFault {}

impl HostList {
    /// Reads the entries; white space around one is ignored.
    ///
    /// # Errors
    /// [`HostListFault`], naming the first bad one.
    pub fn parse(entries: &[String]) -> Result<HostList, HostListFault> {
        let mut list = HostList::default();
        for entry in entries {
            let written = entry.trim();
            let (host, set) = match written.strip_prefix("*.") {
                Some(parent) => (parent, &mut list.parents),
                None => (written, &mut list.hosts),
            };
            let is_address = hostname::canonical(host).parse::<core::net::Ipv4Addr>().is_ok()
                || host.starts_with('[');
            let checked = match hostname::check(host) {
                Ok(()) if is_address && host != written => Err(HostFault::Character('*')),
                checked => checked,
            };
            checked.map_err(|fault| HostListFault { entry: entry.clone(), fault })?;
            set.insert(hostname::canonical(host));
        }
        Ok(list)
    }

    /// Whether `host`, in any case and with or without a dot at its end, is of the list.
    pub fn matches(&self, host: &str) -> bool {
        if self.is_empty() {
            return false;
        }
        let host = hostname::canonical(host);
        if self.hosts.contains(&host) {
            return true;
        }
        let mut rest = host.as_str();
        while let Some((_, parent)) = rest.split_once('.') {
            if self.parents.contains(parent) {
                return true;
            }
            rest = parent;
        }
        false
    }

    /// Whether `host` itself is an entry of the list.
    pub fn names(&self, host: &str) -> bool {
        !self.hosts.is_empty() && self.hosts.contains(&hostname::canonical(host))
    }

    /// Whether no host at all is of the list.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.parents.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> HostList {
        let entries: Vec<String> = entries.iter().map(|&entry| entry.to_owned()).collect();
        HostList::parse(&entries).expect("a list")
    }

    #[test]
    fn a_host_is_matched_whole_and_a_star_stands_for_what_is_below() {
        let list = list(&["example.com", " *.Example.ORG. ", "bücher.de", "[::1]", "127.0.0.1"]);
        for host in [
            "example.com",
            "EXAMPLE.COM.",
            "a.example.org",
            "a.b.example.org.",
            "BÜCHER.de",
            "xn--bcher-kva.de",
            "[0:0::1]",
            "127.0.0.1",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(list.matches(host), "{host}");
        }
        for host in
            ["www.example.com", "example.org", "notexample.org", "com", "", "[::2]", ".", "org"]
        {
            assert!(!list.matches(host), "{host}");
        }
        assert!(!HostList::default().matches("example.com"));
    }

    #[test]
    fn a_bad_entry_is_named() {
        for (entry, fault) in [
            ("", HostFault::Empty),
            ("*", HostFault::Character('*')),
            ("*.", HostFault::Empty),
            ("a.*.b", HostFault::Character('*')),
            ("*.127.0.0.1", HostFault::Character('*')),
            ("*.[::1]", HostFault::Character('*')),
            ("http://example.com", HostFault::Character(':')),
            ("example.com:80", HostFault::Character(':')),
            ("a..b", HostFault::Label),
        ] {
            let found = HostList::parse(&["good.example".to_owned(), entry.to_owned()]);
            assert_eq!(found, Err(HostListFault { entry: entry.to_owned(), fault }));
        }
        let fault = HostListFault { entry: "*".to_owned(), fault: HostFault::Character('*') };
        assert!(
            fault.to_string().starts_with("the entry \"*\" of a host list has '*' in its host")
        );
    }
}
