//! The naive fold: computes each answer from the whole history, with its own interpretation of the
//! events.

use super::Entry;
use serde_json::Value;
use std::collections::BTreeSet;

type HistoryEntry = (u64, String, Vec<String>, Value);

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    /// A deletion carries the time from which it limits accounts added later; the deletion of the
    /// only account becomes `AccountEnded` instead.
    history: Vec<HistoryEntry>,
}

/// The expected state of an account.
#[derive(Debug, PartialEq)]
pub(crate) struct KnownAccount {
    pub(crate) password: Option<String>,
    pub(crate) roles: Value,
    pub(crate) disabled: bool,
    pub(crate) valid_from_us: u64,
}

impl Oracle {
    pub(crate) fn add(&mut self, entry: &Entry) {
        let Entry { at_us, event, .. } = entry;
        let data = serde_json::from_slice(&event.data).expect("the tests write JSON");
        let mut told = (*at_us, event.event_type.clone(), event.tags.clone(), data);
        if told.1 == "AccountDeleted" {
            let account = told.2[0].strip_prefix("account:").expect("the tests tag so");
            let others = self.names().into_iter().filter(|name| name != account);
            if others.filter_map(|name| self.account(&name)).count() == 0 {
                told.1 = "AccountEnded".into();
            } else {
                let was = self.account(account).map(|known| known.valid_from_us);
                told.3 = was.map_or(0, |us| (*at_us).max(us + 1) + 1).into();
            }
        }
        self.history.push(told);
    }

    fn names(&self) -> BTreeSet<String> {
        let tags = self.history.iter().flat_map(|told| &told.2);
        tags.filter_map(|tag| tag.strip_prefix("account:")).map(str::to_owned).collect()
    }

    fn of<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a HistoryEntry> {
        self.history.iter().filter(move |(_, _, tags, _)| tags.iter().any(|t| t == tag))
    }

    /// The account's events since it was added.
    fn account_events<'a>(&'a self, tag: &'a str) -> impl Iterator<Item = &'a HistoryEntry> {
        let deleted = self.of(tag).filter(|told| told.1 == "AccountDeleted").count();
        let mut left = deleted;
        let lives = self.of(tag).skip_while(move |told| {
            let before = left > 0;
            left -= usize::from(told.1 == "AccountDeleted");
            before
        });
        lives.skip_while(|(_, event_type, ..)| event_type != "AccountAdded")
    }

    pub(crate) fn account(&self, name: &str) -> Option<KnownAccount> {
        let tag = format!("account:{name}");
        let (at_us, _, _, added) = self.account_events(&tag).next()?;
        let last = |types: &[&str]| {
            self.account_events(&tag).filter(|e| types.contains(&e.1.as_str())).last()
        };
        let text = |value: &Value| value["password"].as_str().map(str::to_owned);
        let added_at = self.account_events(&tag).next()?;
        let before = self.history.iter().take_while(|told| !std::ptr::eq(*told, added_at));
        let deleted = before.filter(|told| told.1 == "AccountDeleted");
        let mut valid_from_us =
            deleted.filter_map(|told| told.3.as_u64()).max().unwrap_or(0).max(*at_us);
        for (at_us, event_type, _, data) in self.account_events(&tag) {
            let ends = match event_type.as_str() {
                "PasswordSet" | "AccountDisabled" | "AccountEnded" => true,
                "TokensRevoked" => data["id"].is_null(),
                _ => false,
            };
            if ends {
                valid_from_us = (*at_us).max(valid_from_us + 1);
            }
        }
        Some(KnownAccount {
            password: last(&["PasswordSet"]).map_or_else(|| text(added), |e| text(&e.3)),
            roles: last(&["RolesSet"]).map_or(&added["roles"], |e| &e.3["roles"]).clone(),
            disabled: last(&["AccountDisabled", "AccountEnded", "AccountEnabled"])
                .is_some_and(|e| e.1 != "AccountEnabled"),
            valid_from_us,
        })
    }

    /// Whether a token is valid: revoked neither alone nor with all others.
    pub(crate) fn token_counts(&self, name: &str, id: &str, since_us: u64) -> bool {
        let Some(known) = self.account(name) else { return false };
        let tag = format!("account:{name}");
        // Revoked alone, with no later event that makes remembering it unnecessary.
        let mut revoked = false;
        for (_, event_type, _, data) in self.account_events(&tag) {
            match event_type.as_str() {
                "PasswordSet" | "AccountDisabled" | "AccountEnded" => revoked = false,
                "TokensRevoked" if data["id"].is_null() => revoked = false,
                "TokensRevoked" => revoked |= data["id"] == id,
                _ => {}
            }
        }
        !known.disabled && since_us >= known.valid_from_us && !revoked
    }

    /// The owner of a valid key.
    pub(crate) fn key_owner(&self, id: &str, now_us: u64) -> Option<String> {
        let tag = format!("key:{id}");
        let added = self.of(&tag).find(|e| {
            let owner = e.2.iter().find_map(|tag| tag.strip_prefix("account:"));
            // The owner must exist at that time.
            e.1 == "KeyAdded"
                && owner.is_some_and(|owner| {
                    let before = self.history.iter().take_while(|other| !std::ptr::eq(*other, *e));
                    Oracle { history: before.cloned().collect() }.account(owner).is_some()
                })
        })?;
        let owner = added.2.iter().find(|tag| tag.starts_with("account:"))?;
        let revoked = self.history.iter().skip_while(|e| !std::ptr::eq(*e, added)).any(|e| {
            let ended = e.1 == "AccountDeleted" || e.1 == "AccountEnded";
            (e.1 == "KeyRevoked" && e.2.contains(&tag)) || (ended && e.2.contains(owner))
        });
        let set = self
            .of(&tag)
            .skip_while(|e| !std::ptr::eq(*e, added))
            .filter(|e| e.1 == "KeyExpirySet");
        // The earliest of all expiries set.
        let ends = std::iter::once(added).chain(set).filter_map(|e| e.3["expires_at"].as_u64());
        let over = ends.min().is_some_and(|us| us <= now_us);
        let owner = added.2.iter().find_map(|tag| tag.strip_prefix("account:"))?;
        let lives = self.account(owner).is_some_and(|known| !known.disabled);
        (!revoked && !over && lives).then(|| owner.to_owned())
    }
}
