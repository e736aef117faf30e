//! For any log: the view answers as the oracle does, is unchanged when events are applied twice or
//! it is read from a snapshot, and a reader keeps its state.

use super::Entry;
use super::oracle::Oracle;
use proptest::prelude::*;
use wellspring_host::access::view::{Access, SecretDigest};
use wellspring_host::identity::TokenId;
use wellspring_host::view::contract::View;
use wellspring_types::Event;

const NAMES: [&str; 3] = ["ann", "bob", "eve"];
const KEYS: [&str; 3] = ["k0", "k1", "k2"];
const TOKENS: [&str; 2] = ["t0", "t1"];

fn digest(key: &str) -> String {
    key.bytes().last().map(|b| format!("{b:02x}").repeat(32)).expect("not empty")
}

fn secret(key: &str) -> SecretDigest {
    SecretDigest([key.bytes().last().expect("not empty"); 32])
}

/// An event about one of a few names, so that events interact. Revoked tokens expire far in the
/// future.
fn event() -> impl Strategy<Value = Event> {
    let number = (0..14usize, 0..3usize, 0..3usize, 0..40u64);
    number.prop_map(|(kind, who, which, time)| {
        let account = format!("account:{}", NAMES[who]);
        let key = format!("key:{}", KEYS[which]);
        let role = ["reader", "writer", "admin"][which];
        let roles = format!(r#"[{{"role":"{role}"}},{{"role":"operator","log":"orders"}}]"#);
        let one = |event_type, data: &str| Event::json(event_type, &[&account], data);
        match kind {
            0 | 1 if time % 2 == 0 => one("AccountAdded", &format!(r#"{{"roles":{roles}}}"#)),
            0 | 1 => one("AccountAdded", &format!(r#"{{"roles":{roles},"password":"$x${time}"}}"#)),
            2 => one("PasswordSet", &format!(r#"{{"password":"$x${time}"}}"#)),
            3 => one("RolesSet", &format!(r#"{{"roles":{roles}}}"#)),
            4 => one("AccountDisabled", "{}"),
            5 => one("AccountEnabled", "{}"),
            11 => one("AccountDeleted", "{}"),
            12 | 13 => {
                let event_type = ["TokenSecretRotated", "TokenSecretRetired"][kind - 12];
                Event::json(event_type, &[], &format!(r#"{{"generation":{}}}"#, time % 5))
            }
            6 => {
                let sha256 = digest(KEYS[which]);
                let ends =
                    if time % 3 == 0 { String::new() } else { format!(r#","expires_at":{time}"#) };
                let data = format!(
                    r#"{{"label":"x","sha256":"{sha256}","role":"{role}","log":"orders"{ends}}}"#
                );
                Event::json("KeyAdded", &[&account, &key], &data)
            }
            7 => Event::json("KeyRevoked", &[&key], "{}"),
            8 => one("TokensRevoked", "{}"),
            9 => {
                let data = format!(r#"{{"expires_at":{time}}}"#);
                Event::json("KeyExpirySet", &[&account, &key], &data)
            }
            _ => {
                let token = TOKENS[which % 2];
                one("TokensRevoked", &format!(r#"{{"id":"{token}","expires_at":{}}}"#, 1u64 << 50))
            }
        }
    })
}

fn log() -> impl Strategy<Value = Vec<Entry>> {
    prop::collection::vec((event(), 1..4u64, 0..3u64), 0..60).prop_map(|events| {
        let (mut position, mut at_us) = (0, 0);
        let mut entry = |(event, step, later)| {
            position += step;
            at_us += later;
            Entry { position, at_us, event }
        };
        events.into_iter().map(&mut entry).collect()
    })
}

fn agree(view: &Access, oracle: &Oracle, at_us: u64) -> Result<(), TestCaseError> {
    let state = view.folded().now();
    for name in NAMES {
        let account = state.account(name);
        let known = oracle.account(name);
        prop_assert_eq!(account.is_some(), known.is_some());
        if let (Some(account), Some(known)) = (account, known) {
            prop_assert_eq!(account.password().map(|p| p.as_str().to_owned()), known.password);
            let roles = serde_json::to_value(&**account.grants()).unwrap();
            prop_assert_eq!(roles, known.roles);
            prop_assert_eq!(account.is_disabled(), known.disabled);
            prop_assert_eq!(account.tokens_valid_from_us(), known.valid_from_us);
        }
        for token in TOKENS {
            for since_us in [0, at_us / 2, at_us, at_us + 20] {
                let id = TokenId::parse(token).unwrap();
                let found = state.account_of_token(name, Some(&id), since_us).is_ok();
                prop_assert_eq!(found, oracle.token_counts(name, token, since_us));
            }
        }
    }
    for key in KEYS {
        for now_us in [0, 5, 20, 50] {
            let found = state.key_and_owner(&secret(key), now_us).ok();
            let owner = found.map(|(_, owner)| owner.name().to_string());
            prop_assert_eq!(owner, oracle.key_owner(key, now_us));
        }
    }
    Ok(())
}

fn snapshot(view: &Access) -> Vec<u8> {
    let mut bytes = Vec::new();
    Access::encode(view.folded(), &mut bytes).unwrap();
    bytes
}

proptest! {
    #[test]
    fn the_view_answers_as_the_oracle_does(log in log()) {
        let (mut view, mut oracle) = (Access::new(), Oracle::default());
        for entry in &log {
            view.apply(entry);
            oracle.add(entry);
            prop_assert_eq!(view.folded().position(), entry.position);
        }
        agree(&view, &oracle, log.last().map_or(0, |entry| entry.at_us))?;
    }

    #[test]
    fn applied_again_or_from_a_snapshot_it_is_the_same(
        log in log(),
        cut in 0..60usize,
        back in 0..60usize,
    ) {
        let cut = cut.min(log.len());
        let mut view = Access::new();
        log[..cut].iter().for_each(|entry| view.apply(entry));
        let kept = view.folded().now();
        let bytes = snapshot(&view);
        let mut again = Access::decode(&mut bytes.as_slice()).unwrap();
        prop_assert_eq!(&*again.folded().now(), &*kept);
        prop_assert_eq!(again.folded().position(), view.folded().position());
        prop_assert_eq!(snapshot(&again), bytes);
        // From somewhere before the cut, so some events are applied twice.
        log[cut.saturating_sub(back)..].iter().for_each(|entry| again.apply(entry));
        log[cut..].iter().for_each(|entry| view.apply(entry));
        prop_assert_eq!(snapshot(&again), snapshot(&view));
        // A reader keeps its state.
        prop_assert_eq!(kept.applied(), if cut == 0 { 0 } else { log[cut - 1].position });
    }

    #[test]
    fn a_damaged_snapshot_is_refused_or_at_least_read_whole(log in log(), at in 0..4000usize, byte: u8) {
        let mut view = Access::new();
        log.iter().for_each(|entry| view.apply(entry));
        let bytes = snapshot(&view);
        let cut = at % bytes.len();
        prop_assert!(Access::decode(&mut &bytes[..cut]).is_err());
        let mut damaged = bytes;
        damaged[cut] = byte;
        if let Ok(view) = Access::decode(&mut damaged.as_slice()) {
            prop_assert!(Access::decode(&mut snapshot(&view).as_slice()).is_ok());
        }
    }
}

#[test]
fn a_revoked_token_is_forgotten_a_day_after_it_ends() {
    const DAY_US: u64 = 86_400_000_000;
    let mut view = Access::new();
    let mut position = 0;
    let mut apply = |at_us, event_type, data: String| {
        position += 1;
        let event = Event::json(event_type, &["account:ann"], &data);
        view.apply(&Entry { position, at_us, event });
        let state = view.folded().now();
        let bytes = snapshot(&view);
        let text = String::from_utf8(bytes).unwrap();
        let kept =
            ["t0", "t1", "t2"].iter().filter(|id| text.contains(&format!("\"{id}\""))).count();
        let revoked = |id: &str| {
            state.account_of_token("ann", Some(&TokenId::parse(id).unwrap()), u64::MAX).is_err()
        };
        (kept, revoked("t0"))
    };
    apply(0, "AccountAdded", r#"{"roles":[]}"#.into());
    assert_eq!(apply(1, "TokensRevoked", r#"{"id":"t0","expires_at":10}"#.into()), (1, true));
    let other = |id: &str| format!(r#"{{"id":"{id}","expires_at":{}}}"#, 9 * DAY_US);
    assert_eq!(apply(DAY_US, "TokensRevoked", other("t1")), (2, true));
    assert_eq!(apply(DAY_US + 11, "TokensRevoked", other("t2")), (2, false));
}
