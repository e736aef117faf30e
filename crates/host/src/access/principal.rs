//! A principal: the authenticated caller and its roles. It is derived from a proof and one state of
//! the view; when the view has moved it is judged again.

use super::foreign::ForeignClaims;
use super::token::{Claims, VerifiedToken};
use crate::access::view::{Invalidation, SecretDigest, State};
use crate::identity::{AccountName, Grant, Grants, Role};
use crate::identity::{Holder, Identity, Method};
use crate::names::SYSTEM_LOG;
use std::collections::BTreeSet;
use std::sync::Arc;
use wellspring_types::Position;

/// What a credential has proved, once and for all.
#[derive(Debug, Clone)]
pub(crate) enum Proof {
    /// The content of a genuine token.
    Token(Claims),
    /// The content of a genuine external token.
    Foreign(ForeignClaims),
    /// Possession of the secret with this digest.
    Key(SecretDigest),
    /// Knowledge of the account's password at a time when its tokens were valid from `since_us` on.
    Password {
        /// The account.
        account: AccountName,
        /// The account's `tokens_valid_from_us` in the state whose password was verified.
        since_us: u64,
    },
}

/// The authenticated caller.
#[derive(Debug, Clone)]
pub struct Principal {
    identity: Identity,
    /// Position of the event that added the account; `None` if the caller has no account.
    added_at: Option<Position>,
    /// The account's roles.
    held: Arc<Grants>,
    /// The most that the credential grants; `None`: all that the account has.
    most: Option<Arc<Grants>>,
    /// When the credential expires, in µs since 1970 UTC.
    until_us: Option<u64>,
    /// The proof, to be judged again; none if no credential was required.
    proof: Option<Arc<Proof>>,
}

/// Whether a caller has access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Access is granted.
    Allowed,
    /// Access is denied: another role is needed.
    Denied {
        /// The least role required.
        needs: Role,
        /// The role that the caller has there.
        has: Option<Role>,
    },
}

impl From<VerifiedToken> for Proof {
    fn from(verified: VerifiedToken) -> Proof {
        match verified {
            VerifiedToken::Own(claims) => Proof::Token(claims),
            VerifiedToken::Foreign(claims) => Proof::Foreign(claims),
        }
    }
}

impl Proof {
    /// Whether the proof is a token, which is invalidated when its keys change.
    pub(crate) fn is_of_token(&self) -> bool {
        matches!(self, Proof::Token(_) | Proof::Foreign(_))
    }

    /// The principal in this state and at this time (µs since 1970 UTC).
    ///
    /// # Errors
    /// Why the credential is no longer valid: for diagnosis, not for the client.
    pub(crate) fn judge(&self, state: &State, now_us: u64) -> Result<Principal, Invalidation> {
        match self {
            Proof::Token(claims) => {
                if claims.until_us() <= now_us {
                    return Err(Invalidation::Expired);
                }
                let Claims { account, id, since_us, generation, .. } = claims;
                let counting = state.token_generations();
                if generation.is_some_and(|generation| !counting.count(generation)) {
                    return Err(Invalidation::Superseded);
                }
                let account = state.account_of_token(account.as_str(), id.as_ref(), *since_us)?;
                Ok(Principal {
                    identity: Identity::of_account(
                        account.name().clone(),
                        Method::Token(id.clone()),
                    ),
                    added_at: Some(account.added_at()),
                    held: Arc::clone(account.grants()),
                    most: Some(Arc::new(claims.grants.clone())),
                    until_us: Some(claims.until_us()),
                    proof: Some(Arc::new(self.clone())),
                })
            }
            Proof::Foreign(claims) => {
                if claims.until_us() <= now_us {
                    return Err(Invalidation::Expired);
                }
                Ok(Principal {
                    identity: Identity::of_subject(claims.subject.clone()),
                    added_at: None,
                    held: Arc::clone(&claims.grants),
                    most: None,
                    until_us: Some(claims.until_us()),
                    proof: Some(Arc::new(self.clone())),
                })
            }
            Proof::Key(digest) => {
                let (key, owner) = state.key_and_owner(digest, now_us)?;
                Ok(Principal {
                    identity: Identity::of_account(
                        owner.name().clone(),
                        Method::Key(key.id().clone()),
                    ),
                    added_at: Some(owner.added_at()),
                    held: Arc::clone(owner.grants()),
                    most: Some(Arc::new(key.grant().clone().into())),
                    until_us: key.expires_at_us(),
                    proof: Some(Arc::new(self.clone())),
                })
            }
            Proof::Password { account, since_us } => {
                let account = state.account_of_password(account.as_str(), *since_us)?;
                Ok(Principal {
                    identity: Identity::of_account(account.name().clone(), Method::Password),
                    added_at: Some(account.added_at()),
                    held: Arc::clone(account.grants()),
                    most: None,
                    until_us: None,
                    proof: Some(Arc::new(self.clone())),
                })
            }
        }
    }
}

impl Principal {
    /// An unauthenticated caller, which no role is granted to.
    pub fn unauthenticated() -> Principal {
        Principal {
            identity: Identity::unknown(Method::None),
            added_at: None,
            held: Arc::default(),
            most: None,
            until_us: None,
            proof: None,
        }
    }

    /// The caller while there are no accounts; `None` if there are any.
    pub(crate) fn of_open_server(state: &State) -> Option<Principal> {
        state.is_open().then(|| Principal {
            identity: Identity::unknown(Method::Open),
            added_at: None,
            held: Arc::new(Grant::everywhere(Role::Admin).into()),
            most: None,
            until_us: None,
            proof: None,
        })
    }

    /// The caller's identity.
    pub(crate) fn identity(&self) -> &Identity {
        &self.identity
    }

    /// The caller's account, if there are accounts.
    pub fn account(&self) -> Option<&AccountName> {
        self.identity.account.as_ref()
    }

    /// As `Identity::name`.
    pub fn name(&self) -> Option<&str> {
        self.identity.name()
    }

    /// The owner of what the caller starts.
    pub fn holder(&self) -> Holder<'_> {
        match (self.added_at, self.identity.name()) {
            (Some(added_at), Some(name)) => Holder::Account { name, added_at },
            (_, Some(subject)) => Holder::Subject(subject),
            (_, None) => Holder::AnyCaller,
        }
    }

    /// How the caller was authenticated.
    pub fn method(&self) -> &Method {
        &self.identity.method
    }

    /// When the credential expires, in µs since 1970 UTC; `None`: never.
    pub fn until_us(&self) -> Option<u64> {
        self.until_us
    }

    /// The proof, if a credential was shown.
    pub(super) fn proof(&self) -> Option<&Proof> {
        self.proof.as_deref()
    }

    /// The caller's role on a log, or on what belongs to no log (`None`): granted by both the
    /// account and the credential.
    pub fn role_on(&self, log: Option<&str>) -> Option<Role> {
        let log = log.filter(|log| *log != SYSTEM_LOG);
        let held = self.held.role_on(log)?;
        self.most.as_ref().map_or(Some(held), |most| Some(held.min(most.role_on(log)?)))
    }

    /// All roles of the caller, granted by both the account and the credential: first the one for
    /// all logs, then by log. Roles implied by the one for all are omitted.
    pub fn roles(&self) -> Vec<Grant> {
        let of_all = self.role_on(None);
        let most = self.most.iter().flat_map(|most| most.iter());
        let logs: BTreeSet<&str> =
            self.held.iter().chain(most).filter_map(|grant| grant.log.as_deref()).collect();
        let of_logs = logs.into_iter().filter(|log| *log != SYSTEM_LOG).filter_map(|log| {
            let role = self.role_on(Some(log)).filter(|role| Some(*role) > of_all)?;
            Some(Grant::on(role, log))
        });
        of_all.map(Grant::everywhere).into_iter().chain(of_logs).collect()
    }

    /// Whether the server opens the personal data of a log for the caller: it does so for the role
    /// writer and above.
    pub fn sees_personal(&self, log: Option<&str>) -> bool {
        self.role_on(log) >= Some(Role::Writer)
    }

    /// Whether the caller may read a log.
    pub fn may_read(&self, log: &str) -> bool {
        self.may(Role::Reader, Some(log)) == Verdict::Allowed
    }

    /// Whether the caller may revoke a key of its account with this grant: a token for reading,
    /// given to a program, must not revoke keys that write. Rights that the key names but the
    /// account lacks do not count.
    pub fn may_end(&self, grant: &Grant) -> bool {
        let log = grant.log.as_deref();
        let of_key = self.held.role_on(log).map(|held| held.min(grant.role));
        self.role_on(log) >= of_key
    }

    /// Whether this credential may end all tokens of its account: it grants no less than the
    /// account has.
    pub fn may_end_all(&self) -> bool {
        // A role on the system log alone does not count.
        let grants = self.held.iter().filter(|grant| grant.log.as_deref() != Some(SYSTEM_LOG));
        self.most.is_none() || { grants }.all(|grant| self.may_end(grant))
    }

    /// Whether the caller has a role on a log, or on what belongs to no log (`None`).
    pub fn may(&self, needs: Role, log: Option<&str>) -> Verdict {
        let needs = if log == Some(SYSTEM_LOG) { Role::Admin } else { needs };
        let has = self.role_on(log);
        if has >= Some(needs) { Verdict::Allowed } else { Verdict::Denied { needs, has } }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::access::view::Access;
    use crate::identity::Grant;
    use crate::view::contract::{LogEvent, View};
    use wellspring_types::{Event, Position};

    /// An event as stored in a log.
    pub(in super::super) struct Entry(Position, Event);

    impl LogEvent for Entry {
        fn position(&self) -> Position {
            self.0
        }
        fn recorded_at_us(&self) -> u64 {
            self.0 * 1_000
        }
        fn event_type(&self) -> &str {
            &self.1.event_type
        }
        fn tags(&self) -> impl Iterator<Item = &str> {
            self.1.tags.iter().map(String::as_str)
        }
        fn data(&self) -> &[u8] {
            &self.1.data
        }
    }

    /// Folds the next event about ann.
    pub(in super::super) fn fold(view: &mut Access, event_type: &str, data: &str) {
        let event = Event::json(event_type, &["account:ann", "key:k1"], data);
        view.apply(&Entry(view.folded().position() + 1, event));
    }

    /// Ann: an operator of `orders` and a reader of all else, with a key that writes to `orders`.
    pub(in super::super) fn with_ann() -> Access {
        let mut view = Access::new();
        let roles = r#"{"roles":[{"role":"reader"},{"role":"operator","log":"orders"}]}"#;
        fold(&mut view, "AccountAdded", roles);
        let sha256 = "07".repeat(32);
        let key = format!(
            r#"{{"label":"x","sha256":"{sha256}","role":"writer","log":"orders","expires_at":90000000}}"#
        );
        fold(&mut view, "KeyAdded", &key);
        view
    }

    pub(in super::super) fn ann_by_token(since_us: u64) -> Proof {
        Proof::Token(Claims {
            account: AccountName::parse("ann").unwrap(),
            grants: Grant::everywhere(Role::Writer).into(),
            id: None,
            since_us,
            expires_at_us: 50_000_000,
            generation: None,
        })
    }

    fn by_password() -> Proof {
        Proof::Password { account: AccountName::parse("ann").unwrap(), since_us: 1_000 }
    }

    fn denied(needs: Role, has: Option<Role>) -> Verdict {
        Verdict::Denied { needs, has }
    }

    #[test]
    fn anybody_may_everything_until_there_are_accounts() {
        let open = Access::new();
        let open_caller = Principal::of_open_server(&open.folded().now()).unwrap();
        assert_eq!(open_caller.may(Role::Admin, None), Verdict::Allowed);
        assert_eq!(open_caller.may(Role::Reader, Some(SYSTEM_LOG)), Verdict::Allowed);
        assert!(Principal::of_open_server(&with_ann().folded().now()).is_none());
    }

    #[test]
    fn the_lesser_of_account_and_credential_counts() {
        let view = with_ann();
        let state = view.folded().now();
        let may = |proof: &Proof, needs, log| proof.judge(&state, 0).unwrap().may(needs, log);
        use Role::{Operator, Reader, Writer};
        let (password, token, key) =
            (by_password(), ann_by_token(1_000), Proof::Key(SecretDigest([7; 32])));
        let orders = Some("orders");
        assert_eq!(may(&password, Operator, orders), Verdict::Allowed);
        assert_eq!(may(&password, Writer, Some("other")), denied(Writer, Some(Reader)));
        assert_eq!(may(&password, Reader, None), Verdict::Allowed);
        assert_eq!(may(&token, Writer, orders), Verdict::Allowed);
        assert_eq!(may(&token, Operator, orders), denied(Operator, Some(Writer)));
        assert_eq!(may(&token, Writer, None), denied(Writer, Some(Reader)));
        assert_eq!(may(&key, Writer, orders), Verdict::Allowed);
        assert_eq!(may(&key, Operator, orders), denied(Operator, Some(Writer)));
        assert_eq!(may(&key, Reader, Some("other")), denied(Reader, None));
        assert_eq!(may(&key, Reader, None), denied(Reader, None));
        for proof in [&password, &token] {
            let system = may(proof, Reader, Some(SYSTEM_LOG));
            assert_eq!(system, denied(Role::Admin, Some(Reader)), "only admins see it");
        }
    }

    #[test]
    fn roles_are_what_both_allow() {
        let view = with_ann();
        let state = view.folded().now();
        let roles = |proof: &Proof| {
            let roles = proof.judge(&state, 0).unwrap().roles();
            roles.iter().map(Grant::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(roles(&by_password()), "reader operator:orders");
        assert_eq!(roles(&ann_by_token(1_000)), "reader writer:orders");
        assert_eq!(roles(&Proof::Key(SecretDigest([7; 32]))), "writer:orders");
        let open = Principal::of_open_server(&Access::new().folded().now()).unwrap();
        assert_eq!(open.roles(), [Grant::everywhere(Role::Admin)]);
        assert_eq!(Principal::unauthenticated().roles(), []);
    }

    #[test]
    fn an_admin_of_the_system_log_alone_is_none() {
        let mut view = Access::new();
        let roles = r#"{"roles":[{"role":"admin","log":"system"}]}"#;
        fold(&mut view, "AccountAdded", roles);
        let ann = by_password().judge(&view.folded().now(), 0).unwrap();
        assert_eq!(ann.may(Role::Reader, Some(SYSTEM_LOG)), denied(Role::Admin, None));
    }

    #[test]
    fn whose_something_is_does_not_hang_on_a_name() {
        let mut view = with_ann();
        let holder = |proof: &Proof, view: &Access| {
            proof.judge(&view.folded().now(), 0).map(|principal| principal.holder().to_string())
        };
        let first = holder(&by_password(), &view).unwrap();
        assert_eq!(holder(&Proof::Key(SecretDigest([7; 32])), &view).unwrap(), first);
        assert_eq!(holder(&ann_by_token(u64::MAX), &view).unwrap(), first);
        let other = Event::json("AccountAdded", &["account:bob"], r#"{"roles":[]}"#);
        view.apply(&Entry(view.folded().position() + 1, other));
        fold(&mut view, "PasswordSet", r#"{"password":"$x"}"#);
        assert_eq!(holder(&ann_by_token(u64::MAX), &view).unwrap(), first);
        fold(&mut view, "AccountDeleted", "{}");
        fold(&mut view, "AccountAdded", r#"{"roles":[{"role":"reader"}]}"#);
        let second = holder(&ann_by_token(u64::MAX), &view).unwrap();
        assert_ne!(second, first);
        let subject = |name: &str| {
            let subject = crate::identity::Subject::parse(name).unwrap();
            Principal { identity: Identity::of_subject(subject), ..Principal::unauthenticated() }
                .holder()
                .to_string()
        };
        assert_eq!(subject("a"), subject("a"));
        assert_ne!(subject("a"), subject("b"));
        assert_ne!(subject("a"), Principal::unauthenticated().holder().to_string());
    }

    #[test]
    fn what_has_fallen_is_judged_so() {
        let mut view = with_ann();
        let state = view.folded().now();
        let key = Proof::Key(SecretDigest([7; 32]));
        let fallen = |proof: &Proof, state: &State, now_us| proof.judge(state, now_us).unwrap_err();
        assert_eq!(fallen(&Proof::Key(SecretDigest([8; 32])), &state, 0), Invalidation::Unknown);
        assert_eq!(fallen(&key, &state, 90_000_000), Invalidation::Expired);
        assert_eq!(fallen(&ann_by_token(1_000), &state, 80_000_000), Invalidation::Expired);
        assert!(ann_by_token(1_000).judge(&state, 79_999_999).is_ok());
        assert_eq!(fallen(&ann_by_token(999), &state, 0), Invalidation::Superseded);
        fold(&mut view, "PasswordSet", r#"{"password":"$x"}"#);
        assert_eq!(fallen(&by_password(), &view.folded().now(), 0), Invalidation::Superseded);
        assert!(key.judge(&view.folded().now(), 0).is_ok(), "keys outlive passwords");
        fold(&mut view, "AccountDisabled", "{}");
        for proof in [&by_password(), &ann_by_token(u64::MAX), &key] {
            assert_eq!(fallen(proof, &view.folded().now(), 0), Invalidation::Disabled);
        }
        fold(&mut view, "AccountEnabled", "{}");
        fold(&mut view, "KeyRevoked", "{}");
        assert_eq!(fallen(&key, &view.folded().now(), 0), Invalidation::Revoked);
    }
}
