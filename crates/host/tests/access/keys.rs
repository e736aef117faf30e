//! Limits on an account's keys, rotation at the limit, and that every fold forgets the same ended
//! keys.

use super::{Entry, admin, hash, key_id, label, name};
use wellspring_host::access::view::{
    Access, AccessOutcome, AccessRefusal, Command, Invalidation, MAX_ENDED_OF_ACCOUNT, MAX_KEYS,
    MAX_KEYS_OF_ACCOUNT, SecretDigest, StagedAccess,
};
use wellspring_host::identity::{Grant, Role};
use wellspring_host::view::contract::View;

const DAY_US: u64 = 86_400_000_000;

/// A log in memory, its view and a clock.
struct Shell {
    view: Access,
    log: Vec<Entry>,
    now_us: u64,
}

impl Shell {
    fn with_ann() -> Shell {
        let mut shell = Shell { view: Access::new(), log: Vec::new(), now_us: 1 };
        shell.add_account("ann");
        shell
    }

    fn add_account(&mut self, who: &str) {
        let add = Command::AddAccount { name: name(who), password: Some(hash(0)), roles: admin() };
        self.execute(&add).unwrap();
    }

    fn execute(&mut self, command: &Command) -> Result<AccessOutcome, AccessRefusal> {
        let decision = Access::decide(self.view.folded(), &StagedAccess::default(), &(), command)?;
        for event in decision.events {
            event.as_ref().check().expect("an event the log accepts");
            let position = self.log.len() as u64 + 1;
            self.log.push(Entry { position, at_us: self.now_us, event });
            self.view.apply(self.log.last().unwrap());
        }
        Ok(decision.outcome)
    }

    fn key(
        &self,
        n: u64,
        owner: &str,
        in_place_of: Option<u64>,
        expires_at_us: Option<u64>,
    ) -> Command {
        Command::AddKey {
            id: id(n),
            label: label(),
            digest: digest(n),
            grant: Grant::everywhere(Role::Reader),
            expires_at_us,
            owner: name(owner),
            in_place_of: in_place_of.map(id),
            now_us: self.now_us,
        }
    }

    fn add(&mut self, n: u64) -> Result<AccessOutcome, AccessRefusal> {
        let command = self.key(n, "ann", None, None);
        self.execute(&command)
    }

    fn kept(&self) -> usize {
        self.view.folded().now().keys().count()
    }

    fn snapshot(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        Access::encode(self.view.folded(), &mut bytes).unwrap();
        bytes
    }

    /// Compares the view with one read from a snapshot and one folded again.
    fn is_the_same_folded_anew(&self) {
        let mut anew = Access::new();
        self.log.iter().for_each(|entry| anew.apply(entry));
        let read = Access::decode(&mut self.snapshot().as_slice()).unwrap();
        for other in [anew, read] {
            assert_eq!(*other.folded().now(), *self.view.folded().now());
        }
    }
}

fn id(n: u64) -> wellspring_host::identity::KeyId {
    key_id(&format!("{n:08x}"))
}

fn digest(n: u64) -> SecretDigest {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&n.to_le_bytes());
    SecretDigest(bytes)
}

#[test]
fn an_account_has_so_many_keys_and_what_has_ended_takes_no_room() {
    let mut shell = Shell::with_ann();
    shell.add_account("bob");
    let most = MAX_KEYS_OF_ACCOUNT as u64;
    (0..most).for_each(|n| drop(shell.add(n).unwrap()));
    assert_eq!(shell.add(most), Err(AccessRefusal::TooManyKeysOf(name("ann"))));
    let of_bob = shell.key(most, "bob", None, None);
    assert!(shell.execute(&of_bob).is_ok(), "another account has its own");
    shell.execute(&Command::RevokeKey { id: id(0) }).unwrap();
    let short = shell.key(most + 1, "ann", None, Some(50));
    shell.execute(&short).unwrap();
    assert!(shell.add(most + 2).is_err());
    shell.now_us = 50;
    shell.add(most + 2).unwrap();
    assert!(shell.add(most + 3).is_err());
    shell.is_the_same_folded_anew();
}

#[test]
fn a_key_in_the_place_of_another_needs_no_room() {
    let mut shell = Shell::with_ann();
    shell.add_account("bob");
    let most = MAX_KEYS_OF_ACCOUNT as u64;
    (0..most).for_each(|n| drop(shell.add(n).unwrap()));
    let next = shell.key(most, "ann", Some(0), None);
    assert_eq!(shell.execute(&next), Ok(AccessOutcome::KeyAdded(id(most))));
    let state = shell.view.folded().now();
    assert_eq!(state.key_and_owner(&digest(0), 1).err(), Some(Invalidation::Revoked));
    assert!(state.key_and_owner(&digest(most), 1).is_ok());
    // Neither in place of an ended key nor of another account's key.
    for (owner, old) in [("ann", 0), ("bob", 1)] {
        let wanted = shell.key(most + 1, owner, Some(old), None);
        assert_eq!(shell.execute(&wanted), Err(AccessRefusal::KeyEnded(id(old))));
    }
    let wanted = shell.key(most + 1, "ann", Some(999), None);
    assert_eq!(shell.execute(&wanted), Err(AccessRefusal::UnknownKey(id(999))));
    // Of two concurrent replacements, one succeeds.
    let decide = |shell: &Shell, n| {
        let wanted = shell.key(n, "ann", Some(1), None);
        Access::decide(shell.view.folded(), &StagedAccess::default(), &(), &wanted).unwrap()
    };
    let (one, two) = (decide(&shell, 500), decide(&shell, 501));
    let forbids = two.unless.iter().any(|item| {
        one.events
            .iter()
            .any(|event| item.matches(&event.event_type, event.tags.iter().map(String::as_str)))
    });
    assert!(forbids, "{:?}", two.unless);
}

/// An account with more keys than the quota, from before it existed, can still rotate them.
#[test]
fn an_account_over_its_quota_rotates_too() {
    let mut shell = Shell::with_ann();
    let most = MAX_KEYS_OF_ACCOUNT as u64;
    (0..most).for_each(|n| drop(shell.add(n).unwrap()));
    for n in most..MAX_KEYS as u64 + 5 {
        // As an earlier version wrote it.
        let mut event = shell
            .log
            .iter()
            .rev()
            .find(|e| e.event.event_type == "KeyAdded")
            .unwrap()
            .event
            .clone();
        event.tags = vec!["account:ann".to_owned(), format!("key:{}", id(n))];
        let old = String::from_utf8(event.data.clone()).unwrap();
        let mut data: serde_json::Value = serde_json::from_str(&old).unwrap();
        data["sha256"] = digest(n).0.iter().map(|b| format!("{b:02x}")).collect::<String>().into();
        event.data = data.to_string().into_bytes();
        let position = shell.log.len() as u64 + 1;
        shell.log.push(Entry { position, at_us: 1, event });
        shell.view.apply(shell.log.last().unwrap());
    }
    assert_eq!(shell.kept(), MAX_KEYS + 5);
    shell.add_account("bob");
    let of_bob = shell.key(1 << 40, "bob", None, None);
    assert_eq!(shell.execute(&of_bob), Err(AccessRefusal::TooManyKeys));
    // A hundred ended keys, and those that are scanned together.
    let (kept, mut last) = (shell.kept(), 7);
    for n in 0..1_000 {
        let next = shell.key((1 << 41) + n, "ann", Some(last), None);
        shell.execute(&next).unwrap();
        last = (1 << 41) + n;
    }
    assert!(shell.kept() <= kept + MAX_ENDED_OF_ACCOUNT + 128, "{}", shell.kept());
    shell.is_the_same_folded_anew();
}

#[test]
fn keys_that_have_ended_are_forgotten_by_number_and_by_time() {
    let mut shell = Shell::with_ann();
    shell.add(0).unwrap();
    let rotations = 3 * MAX_ENDED_OF_ACCOUNT as u64;
    for n in 1..=rotations {
        shell.now_us = 10 * n;
        let next = shell.key(n, "ann", Some(n - 1), None);
        shell.execute(&next).unwrap();
    }
    assert_eq!(shell.kept(), MAX_ENDED_OF_ACCOUNT + 1);
    let fallen =
        |shell: &Shell, n| shell.view.folded().now().key_and_owner(&digest(n), shell.now_us).err();
    assert_eq!(fallen(&shell, 0), Some(Invalidation::Unknown));
    assert_eq!(fallen(&shell, rotations - 1), Some(Invalidation::Revoked));
    assert_eq!(fallen(&shell, rotations), None);
    assert!(shell.execute(&Command::RevokeKey { id: id(0) }).is_err(), "it is not there");
    shell.is_the_same_folded_anew();
    // A month later only valid keys remain, once any key of the account changes.
    shell.now_us += 31 * DAY_US;
    shell.add(rotations + 1).unwrap();
    assert_eq!(shell.kept(), 2);
    assert!(fallen(&shell, rotations).is_none());
    shell.is_the_same_folded_anew();
}

#[test]
fn what_happens_to_a_forgotten_key_changes_nothing() {
    let mut shell = Shell::with_ann();
    shell.add(0).unwrap();
    for n in 1..=2 * MAX_ENDED_OF_ACCOUNT as u64 {
        let next = shell.key(n, "ann", Some(n - 1), None);
        shell.execute(&next).unwrap();
    }
    let before = shell.kept();
    for (event_type, data) in [("KeyRevoked", "{}"), ("KeyExpirySet", r#"{"expires_at":5}"#)] {
        let event = wellspring_types::Event::json(event_type, &[&format!("key:{}", id(0))], data);
        let position = shell.log.len() as u64 + 1;
        shell.log.push(Entry { position, at_us: 1, event });
        shell.view.apply(shell.log.last().unwrap());
    }
    assert_eq!(shell.kept(), before);
    shell.is_the_same_folded_anew();
}
