//! Which hosts links may, or may not, lead to.

use wellspring_host::hostname::HostList;

/// Which hosts links may lead to. The empty policy allows all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// If not empty, only these.
    pub allow: HostList,
    /// Never these, even if allowed.
    pub deny: HostList,
}

/// What a [`Policy`] says of a host.
#[derive(Debug, Copy, Clone, PartialEq, Eq)]
pub enum HostVerdict {
    /// A link may lead there.
    Allowed,
    /// It is on the list of denied hosts.
    Denied,
    /// There is a list of allowed hosts, and it is not on it.
    NotAllowed,
}

impl Policy {
    /// Judges a host as a target names it.
    pub fn judge(&self, host: &str) -> HostVerdict {
        if self.deny.matches(host) {
            HostVerdict::Denied
        } else if self.allow.is_empty() || self.allow.matches(host) {
            HostVerdict::Allowed
        } else {
            HostVerdict::NotAllowed
        }
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
    fn denial_wins_and_an_empty_list_allows_all() {
        let judge = |allow: &[&str], deny: &[&str], host| {
            Policy { allow: list(allow), deny: list(deny) }.judge(host)
        };
        assert_eq!(judge(&[], &[], "a.example"), HostVerdict::Allowed);
        assert_eq!(judge(&[], &["a.example"], "A.example"), HostVerdict::Denied);
        assert_eq!(judge(&["*.example"], &["a.example"], "a.example"), HostVerdict::Denied);
        assert_eq!(judge(&["*.example"], &["a.example"], "b.example"), HostVerdict::Allowed);
        assert_eq!(judge(&["*.example"], &[], "b.test"), HostVerdict::NotAllowed);
    }
}
