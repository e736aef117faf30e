//! Decisions: what is refused, and that an admin always remains, whatever is decided concurrently.

use super::{Entry, admin, hash, key_id, label, name, reader};
use proptest::prelude::*;
use wellspring_host::access::view::{
    Access, AccessOutcome, AccessRefusal, Command, Invalidation, MAX_REVOKED, SecretDigest,
    StagedAccess,
};
use wellspring_host::identity::{Grant, Grants, Role, TokenId};
use wellspring_host::view::contract::{Decision, View};
use wellspring_types::Position;

/// A log in memory and its view.
struct Shell {
    view: Access,
    log: Vec<Entry>,
}

impl Shell {
    fn new() -> Shell {
        Shell { view: Access::new(), log: Vec::new() }
    }

    fn decide(
        &self,
        staged: &StagedAccess,
        command: &Command,
    ) -> Result<Decision<AccessOutcome>, AccessRefusal> {
        Access::decide(self.view.folded(), staged, &(), command)
    }

    /// Appends the events unless an event after `after` violates the condition.
    fn append(&mut self, decision: &Decision<AccessOutcome>, after: Position) -> bool {
        let forbidden = self.log.iter().filter(|entry| entry.position > after).any(|entry| {
            let tags = || entry.event.tags.iter().map(String::as_str);
            decision.unless.iter().any(|item| item.matches(&entry.event.event_type, tags()))
        });
        if !forbidden {
            for event in &decision.events {
                event.as_ref().check().expect("an event the log accepts");
                let position = self.log.len() as u64 + 1;
                self.log.push(Entry { position, at_us: 10 * position, event: event.clone() });
            }
        }
        !forbidden
    }

    fn fold(&mut self) {
        let folded = self.view.folded().position();
        for entry in self.log.iter().filter(|entry| entry.position > folded) {
            self.view.apply(entry);
        }
    }

    fn execute(&mut self, command: &Command) -> Result<AccessOutcome, AccessRefusal> {
        let decision = self.decide(&StagedAccess::default(), command)?;
        assert!(self.append(&decision, self.view.folded().position()));
        self.fold();
        Ok(decision.outcome)
    }

    fn events(&mut self, command: &Command) -> usize {
        let before = self.log.len();
        self.execute(command).expect("no refusal");
        self.log.len() - before
    }
}

fn add(who: &str, roles: Grants) -> Command {
    Command::AddAccount { name: name(who), password: Some(hash(0)), roles }
}

fn set(who: &str, roles: Grants) -> Command {
    Command::SetRoles { name: name(who), roles }
}

fn disable(who: &str) -> Command {
    Command::Disable { name: name(who) }
}

fn add_key(id: &str, byte: u8, owner: &str, grant: Grant) -> Command {
    let (id, digest, owner) = (key_id(id), SecretDigest([byte; 32]), name(owner));
    let (label, expires_at_us, in_place_of, now_us) = (label(), None, None, 0);
    Command::AddKey { id, label, digest, grant, expires_at_us, owner, in_place_of, now_us }
}

#[test]
fn the_first_is_an_admin_and_the_last_stays_one() {
    let mut shell = Shell::new();
    assert_eq!(shell.execute(&add("bob", reader())), Err(AccessRefusal::FirstIsAdmin));
    let of_one_log = Grants::from(Grant::on(Role::Admin, "orders"));
    assert_eq!(shell.execute(&add("bob", of_one_log.clone())), Err(AccessRefusal::FirstIsAdmin));
    assert_eq!(shell.execute(&add("ann", admin())), Ok(AccessOutcome::AccountAdded(name("ann"))));
    assert_eq!(shell.execute(&add("ann", admin())), Err(AccessRefusal::NameTaken(name("ann"))));
    shell.execute(&add("bob", reader())).unwrap();
    let last = Err(AccessRefusal::LastAdmin(name("ann")));
    assert_eq!(shell.execute(&disable("ann")), last);
    assert_eq!(shell.execute(&set("ann", reader())), last);
    assert_eq!(shell.execute(&set("ann", of_one_log)), last);
    shell.execute(&set("bob", admin())).unwrap();
    shell.execute(&disable("ann")).unwrap();
    assert_eq!(shell.execute(&disable("bob")), Err(AccessRefusal::LastAdmin(name("bob"))));
    // A disabled admin does not count, so the role can be removed.
    shell.execute(&set("ann", reader())).unwrap();
    shell.execute(&Command::Enable { name: name("ann") }).unwrap();
    assert_eq!(shell.execute(&set("bob", reader())), Err(AccessRefusal::LastAdmin(name("bob"))));
}

#[test]
fn an_admin_who_cannot_log_in_is_not_the_one_who_stays() {
    let mut shell = Shell::new();
    shell.execute(&add("ann", admin())).unwrap();
    let keys_only = Command::AddAccount { name: name("ci"), password: None, roles: admin() };
    shell.execute(&keys_only).unwrap();
    assert_eq!(shell.execute(&disable("ann")), Err(AccessRefusal::LastAdmin(name("ann"))));
    assert_eq!(shell.execute(&set("ann", reader())), Err(AccessRefusal::LastAdmin(name("ann"))));
    shell.execute(&disable("ci")).unwrap();
    shell.execute(&Command::Enable { name: name("ci") }).unwrap();
    let password = hash(1);
    shell.execute(&Command::SetPassword { name: name("ci"), password }).unwrap();
    shell.execute(&disable("ann")).unwrap();
}

#[test]
fn what_changes_nothing_appends_nothing() {
    let mut shell = Shell::new();
    shell.execute(&add("ann", admin())).unwrap();
    shell.execute(&add("bob", reader())).unwrap();
    assert_eq!(shell.events(&set("bob", reader())), 0);
    assert_eq!(shell.events(&Command::Enable { name: name("bob") }), 0);
    assert_eq!(shell.events(&disable("bob")), 1);
    assert_eq!(shell.events(&disable("bob")), 0);
    shell.execute(&add_key("k1", 1, "ann", Grant::everywhere(Role::Admin))).unwrap();
    let revoke = Command::RevokeKey { id: key_id("k1") };
    assert_eq!((shell.events(&revoke), shell.events(&revoke)), (1, 0));
    let (ann, id) = (name("ann"), TokenId::parse("t").unwrap());
    let revoke = |expires_at_us| Command::RevokeToken {
        name: ann.clone(),
        id: id.clone(),
        expires_at_us,
        now_us: 0,
    };
    assert_eq!((shell.events(&revoke(9)), shell.events(&revoke(9))), (1, 0));
    assert_eq!((shell.events(&revoke(10)), shell.events(&revoke(9))), (1, 0));
}

#[test]
fn keys_are_refused_for_a_reason() {
    let mut shell = Shell::new();
    let writer = Grant::on(Role::Writer, "orders");
    shell.execute(&add("ann", admin())).unwrap();
    shell.execute(&add("bob", Grants::from(writer.clone()))).unwrap();
    let unknown = Err(AccessRefusal::UnknownAccount(name("eve")));
    assert_eq!(shell.execute(&add_key("k1", 1, "eve", writer.clone())), unknown);
    for more in [Grant::everywhere(Role::Reader), Grant::on(Role::Reader, "clicks")] {
        let refused = Err(AccessRefusal::MoreThanOwner(more.clone()));
        assert_eq!(shell.execute(&add_key("k1", 1, "bob", more)), refused);
    }
    let bad = Grant { role: Role::Reader, log: Some("../x".into()) };
    assert_eq!(shell.execute(&add_key("k1", 1, "ann", bad)), Err(AccessRefusal::Log));
    let mut late = add_key("k1", 1, "ann", writer.clone());
    if let Command::AddKey { expires_at_us, .. } = &mut late {
        *expires_at_us = Some(u64::MAX);
    }
    assert_eq!(shell.execute(&late), Err(AccessRefusal::TooLate));
    let added = shell.execute(&add_key("k1", 1, "bob", writer.clone()));
    assert_eq!(added, Ok(AccessOutcome::KeyAdded(key_id("k1"))));
    let taken = Err(AccessRefusal::KeyTaken(key_id("k1")));
    assert_eq!(shell.execute(&add_key("k1", 2, "bob", writer.clone())), taken);
    let again = shell.execute(&add_key("k2", 1, "bob", writer.clone()));
    assert_eq!(again, Err(AccessRefusal::SecretTaken));
    shell.execute(&disable("bob")).unwrap();
    let disabled = Err(AccessRefusal::Disabled(name("bob")));
    assert_eq!(shell.execute(&add_key("k3", 3, "bob", writer)), disabled);
    let digest = SecretDigest([1; 32]);
    let state = shell.view.folded().now();
    assert_eq!(state.key_and_owner(&digest, 0).err(), Some(Invalidation::Disabled));
    shell.execute(&Command::RevokeKey { id: key_id("k1") }).unwrap();
    let state = shell.view.folded().now();
    assert_eq!(state.key_and_owner(&digest, 0).err(), Some(Invalidation::Revoked));
    // An id is never reused.
    assert_eq!(
        shell.execute(&add_key("k1", 4, "ann", Grant::everywhere(Role::Reader))),
        Err(AccessRefusal::KeyTaken(key_id("k1")))
    );
    let unknown = Command::RevokeKey { id: key_id("k9") };
    assert_eq!(shell.execute(&unknown), Err(AccessRefusal::UnknownKey(key_id("k9"))));
}

/// Found by the property below: a decider that had not folded an account's promotion to admin could
/// remove that role, while others that had folded it gave up theirs.
#[test]
fn an_admin_that_is_not_folded_yet_is_not_lost() {
    for (before, after, last) in [
        (vec![disable("ann")], Command::Enable { name: name("ann") }, set("ann", reader())),
        (vec![set("ann", reader())], set("ann", admin()), set("ann", Grants::default())),
        (vec![set("ann", reader())], set("ann", admin()), disable("ann")),
    ] {
        let mut shell = Shell::new();
        shell.execute(&add("ann", admin())).unwrap();
        shell.execute(&add("bob", admin())).unwrap();
        before.iter().for_each(|command| drop(shell.execute(command).unwrap()));
        let seen = shell.view.folded().position();
        let stale = shell.decide(&StagedAccess::default(), &last).unwrap();
        shell.execute(&after).unwrap();
        shell.execute(&set("bob", reader())).unwrap();
        assert!(!shell.append(&stale, seen), "{last:?}");
    }
}

#[test]
fn the_very_first_is_the_first_or_none() {
    let mut shell = Shell::new();
    let first =
        |who: &str, roles| Command::AddFirstAccount { name: name(who), password: hash(1), roles };
    let keys_only = Command::AddAccount { name: name("ann"), password: None, roles: admin() };
    assert_eq!(shell.execute(&keys_only), Err(AccessRefusal::FirstHasPassword));
    assert_eq!(shell.execute(&first("ann", reader())), Err(AccessRefusal::FirstIsAdmin));
    // Two concurrent decisions: only one adds the first account.
    let seen = shell.view.folded().position();
    let decided = ["ann", "bob"]
        .map(|who| shell.decide(&StagedAccess::default(), &first(who, admin())).unwrap());
    assert_eq!(decided.map(|decision| shell.append(&decision, seen)), [true, false]);
    shell.fold();
    assert_eq!(shell.execute(&first("bob", admin())), Err(AccessRefusal::NotFirst));
    assert_eq!(shell.execute(&first("ann", admin())), Err(AccessRefusal::NotFirst));
    let keys_only = Command::AddAccount { name: name("bob"), password: None, roles: admin() };
    assert!(shell.execute(&keys_only).is_ok(), "the second may have keys only");
}

#[test]
fn a_key_may_end_earlier_and_never_later() {
    let mut shell = Shell::new();
    shell.execute(&add("ann", admin())).unwrap();
    shell.execute(&add_key("k1", 1, "ann", Grant::everywhere(Role::Reader))).unwrap();
    let end = |expires_at_us| Command::EndKey { id: key_id("k1"), expires_at_us };
    assert_eq!(shell.execute(&end(u64::MAX)), Err(AccessRefusal::TooLate));
    assert_eq!(shell.execute(&end(50)), Ok(AccessOutcome::KeyChanged(key_id("k1"))));
    assert_eq!((shell.events(&end(50)), shell.events(&end(60)), shell.events(&end(40))), (0, 0, 1));
    let lives = |shell: &Shell, now_us| {
        shell.view.folded().now().key_and_owner(&SecretDigest([1; 32]), now_us).is_ok()
    };
    assert!(lives(&shell, 39) && !lives(&shell, 40));
    shell.execute(&Command::RevokeKey { id: key_id("k1") }).unwrap();
    assert_eq!(shell.events(&end(30)), 0, "it has ended");
    let unknown = Command::EndKey { id: key_id("k9"), expires_at_us: 1 };
    assert_eq!(shell.execute(&unknown), Err(AccessRefusal::UnknownKey(key_id("k9"))));
}

#[test]
fn too_many_revoked_tokens_are_revoked_at_once() {
    let mut shell = Shell::new();
    shell.execute(&add("ann", admin())).unwrap();
    let revoke = |n: usize| {
        let id = TokenId::parse(&format!("t{n}")).unwrap();
        Command::RevokeToken { name: name("ann"), id, expires_at_us: 9, now_us: 8 }
    };
    for n in 0..MAX_REVOKED {
        shell.execute(&revoke(n)).unwrap();
    }
    let full = Err(AccessRefusal::TooManyRevoked(name("ann")));
    assert_eq!(shell.execute(&revoke(MAX_REVOKED)), full);
    assert!(shell.execute(&revoke(0)).is_ok(), "it is there already");
    let mut later = revoke(MAX_REVOKED);
    if let Command::RevokeToken { now_us, .. } = &mut later {
        *now_us = 2 * 86_400_000_000;
    }
    let decided = shell.decide(&StagedAccess::default(), &later);
    assert!(decided.is_ok(), "what has ended makes room");
    let since_us = shell.view.folded().now().account("ann").unwrap().tokens_valid_from_us();
    shell.execute(&Command::RevokeAllTokens { name: name("ann") }).unwrap();
    let state = shell.view.folded().now();
    assert_eq!(state.account_of_token("ann", None, since_us).err(), Some(Invalidation::Superseded));
    assert!(shell.execute(&revoke(MAX_REVOKED)).is_ok());
}

#[test]
fn decisions_see_what_is_staged_and_forget_what_came_to_nothing() {
    let mut shell = Shell::new();
    shell.execute(&add("ann", admin())).unwrap();
    let mut staged = StagedAccess::default();
    let decision = shell.decide(&staged, &add("bob", admin())).unwrap();
    Access::stage(&mut staged, &decision, 1);
    let refused = shell.decide(&staged, &add("bob", reader()));
    assert_eq!(refused.unwrap_err(), AccessRefusal::NameTaken(name("bob")));
    let decision = shell.decide(&staged, &disable("ann")).unwrap();
    Access::stage(&mut staged, &decision, 2);
    assert!(matches!(shell.decide(&staged, &disable("bob")), Err(AccessRefusal::LastAdmin(_))));
    Access::settle(&mut staged, 2);
    assert!(shell.decide(&staged, &disable("bob")).is_ok());
    Access::settle(&mut staged, 1);
    assert!(matches!(
        shell.decide(&staged, &disable("bob")),
        Err(AccessRefusal::UnknownAccount(_))
    ));
    assert!(shell.view.folded().now().account("bob").is_none(), "answers do not see it");
}

fn command() -> impl Strategy<Value = Command> {
    let names = prop::sample::select(vec!["ann", "bob", "eve"]);
    (0..6u8, names, any::<bool>()).prop_map(|(kind, who, is_admin)| {
        let roles = if is_admin { admin() } else { reader() };
        match kind {
            0 => add(who, roles),
            1 => set(who, roles),
            2 | 3 => disable(who),
            4 => Command::Enable { name: name(who) },
            _ => Command::SetPassword { name: name(who), password: hash(1) },
        }
    })
}

proptest! {
    /// Deciders that have folded different prefixes of the log: the append conditions alone
    /// preserve an admin.
    #[test]
    fn there_is_always_an_admin(steps in prop::collection::vec((command(), 0..3u8), 1..60)) {
        let mut shells = [Shell::new(), Shell::new()];
        for (command, who) in steps {
            let [one, other] = &mut shells;
            if who == 2 {
                one.fold();
                continue;
            }
            // The second folds independently of the first, and both append to the first's log.
            let (seen, decision) = if who == 0 {
                (one.view.folded().position(), one.decide(&StagedAccess::default(), &command))
            } else {
                other.log.clone_from(&one.log);
                other.fold();
                (other.view.folded().position(), other.decide(&StagedAccess::default(), &command))
            };
            if let Ok(decision) = decision {
                one.append(&decision, seen);
            }
            let mut fresh = Access::new();
            one.log.iter().for_each(|entry| fresh.apply(entry));
            let state = fresh.folded().now();
            let has_admin = state
                .accounts()
                .any(|account| !account.is_disabled() && account.grants().are_admins());
            prop_assert!(state.is_open() || has_admin);
        }
    }
}

fn delete(who: &str) -> Command {
    Command::Delete { name: name(who) }
}

#[test]
fn the_last_admin_is_not_deleted_and_what_is_deleted_leaves_nothing_to_its_successor() {
    let mut shell = Shell::new();
    assert_eq!(shell.execute(&delete("ann")), Err(AccessRefusal::UnknownAccount(name("ann"))));
    shell.execute(&add("ann", admin())).unwrap();
    shell.execute(&add("bob", reader())).unwrap();
    assert_eq!(shell.execute(&delete("ann")), Err(AccessRefusal::LastAdmin(name("ann"))));
    shell.execute(&add_key("k1", 1, "bob", Grant::everywhere(Role::Reader))).unwrap();
    let old_us = shell.view.folded().now().account("bob").unwrap().tokens_valid_from_us();
    assert_eq!(shell.execute(&delete("bob")), Ok(AccessOutcome::AccountDeleted(name("bob"))));
    let (digest, now) = (SecretDigest([1; 32]), shell.view.folded().now());
    assert!(now.account("bob").is_none());
    assert_eq!(now.key_and_owner(&digest, 0).err(), Some(Invalidation::Revoked));
    assert_eq!(shell.execute(&delete("bob")), Err(AccessRefusal::UnknownAccount(name("bob"))));
    // The same name again, under a clock that was set back: no token or key of the first account is
    // valid.
    shell.execute(&add("bob", reader())).unwrap();
    let now = shell.view.folded().now();
    assert!(now.account("bob").unwrap().tokens_valid_from_us() > old_us);
    assert_eq!(now.account_of_token("bob", None, old_us).err(), Some(Invalidation::Superseded));
    assert_eq!(now.key_and_owner(&digest, 0).err(), Some(Invalidation::Revoked));
    let again = add_key("k1", 2, "bob", Grant::everywhere(Role::Reader));
    assert_eq!(shell.execute(&again), Err(AccessRefusal::KeyTaken(key_id("k1"))));
}

#[test]
fn a_decision_about_an_account_does_not_hold_for_its_successor() {
    let mut shell = Shell::new();
    for (who, roles) in [("ann", admin()), ("eve", admin()), ("bob", reader())] {
        shell.execute(&add(who, roles)).unwrap();
    }
    let password = hash(1);
    for command in [
        Command::SetPassword { name: name("bob"), password },
        set("bob", admin()),
        disable("bob"),
        add_key("k1", 1, "bob", Grant::everywhere(Role::Reader)),
    ] {
        let (decision, after) = (
            shell.decide(&StagedAccess::default(), &command).unwrap(),
            shell.view.folded().position(),
        );
        shell.execute(&delete("bob")).unwrap();
        shell.execute(&add("bob", reader())).unwrap();
        assert!(!shell.append(&decision, after), "{command:?}");
    }
    // Two admins, each deleted while the other still exists.
    let both = [delete("ann"), delete("eve")];
    let decided = both.map(|command| shell.decide(&StagedAccess::default(), &command).unwrap());
    let after = shell.view.folded().position();
    assert!(shell.append(&decided[0], after) && !shell.append(&decided[1], after));
}

#[test]
fn no_event_opens_what_accounts_have_closed() {
    let mut view = Access::new();
    for (position, (event_type, data)) in
        [("AccountAdded", r#"{"roles":[]}"#), ("AccountDeleted", "{}")].into_iter().enumerate()
    {
        let event = wellspring_types::Event::json(event_type, &["account:ann"], data);
        view.apply(&Entry { position: position as u64 + 1, at_us: 1, event });
    }
    let state = view.folded().now();
    assert!(!state.is_open() && state.account("ann").unwrap().is_disabled());
}

#[test]
fn rotations_of_the_secret_of_tokens_follow_each_other() {
    let mut shell = Shell::new();
    let (rotate, retire) = (Command::RotateTokenSecret, Command::RetireTokenSecret);
    let counting = |shell: &Shell| {
        let generations = shell.view.folded().now().token_generations();
        (generations.signs(), generations.oldest())
    };
    assert_eq!(shell.events(&retire), 0, "there is but one");
    assert_eq!(shell.execute(&rotate), Ok(AccessOutcome::TokenSecretRotated(1)));
    assert_eq!(counting(&shell), (1, 0));
    assert_eq!(shell.execute(&retire), Ok(AccessOutcome::TokenSecretRetired(1)));
    assert_eq!(counting(&shell), (1, 1));
    assert_eq!(shell.events(&retire), 0);
    // Of two concurrent decisions on two nodes, the later one is decided again.
    let nobody = StagedAccess::default();
    let decisions = [shell.decide(&nobody, &rotate), shell.decide(&nobody, &rotate)];
    let after = shell.view.folded().position();
    let appended = decisions.map(|decision| shell.append(&decision.unwrap(), after));
    assert_eq!(appended, [true, false]);
    shell.fold();
    assert_eq!(shell.execute(&rotate), Ok(AccessOutcome::TokenSecretRotated(3)));
    assert_eq!(counting(&shell), (3, 2));
    assert!(shell.view.folded().now().is_open(), "no account is needed, and none is made");
}
