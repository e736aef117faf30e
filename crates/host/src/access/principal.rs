//! A principal: the authenticated caller and its roles. It is made of a proof and the state of the
//! view, and holds for that state alone: when the view has moved it is judged anew.

use super::foreign::ForeignClaims;
use super::token::{Claims, Verified};
use crate::identity::{Identity, Method};
use crate::names::SYSTEM_LOG;
use std::collections::BTreeSet;
use std::sync::Arc;
use wellspring_types::Position;
use wellspring_views::access::{
    AccountName, Grant, Grants, Invalidation, Role, SecretDigest, State,
};

/// What a credential has shown, once and for all.
#[derive(Debug, Clone)]
pub(crate) enum Proof {
    /// A genuine token said this.
    Token(Claims),
    /// A genuine token of another issuer said this.
    Foreign(ForeignClaims),
    /// Somebody has the secret of this digest.
    Key(SecretDigest),
    /// Somebody knew the account's password when its tokens counted from `since_us` on.
    Password {
        /// Whose.
        account: AccountName,
        /// The account's `tokens_valid_from_us` in the state whose password was verified.
        since_us: u64,
    },
}

/// Who is asking.
#[derive(Debug, Clone)]
pub struct Principal {
    identity: Identity,
    /// Position of the event that added the account; `None`: it is no account's.
    added_at: Option<Position>,
    /// What the account may.
    held: Arc<Grants>,
    /// What the credential may be used for at most; `None`: all that the account may.
    most: Option<Arc<Grants>>,
    /// When the credential ends, µs since 1970 UTC.
    until_us: Option<u64>,
    /// What it was made of, to be judged again; none: no credential was asked for.
    proof: Option<Arc<Proof>>,
}

/// Whose something is that outlives a request, whatever credentials are shown for it later. A name
/// is not enough: when an account is deleted, another may be made under its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// Anybody's: there are no accounts, or none was asked for.
    Anybody,
    /// That of the account which the event at this position of the system log added.
    Account(Position),
    /// That of a subject for which another issuer vouches; its name, as of [`Principal::name`].
    Subject(Box<str>),
}

/// Whether somebody may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Access is granted.
    Allowed,
    /// Access is denied: another role is needed.
    Denied {
        /// The least role that may.
        needs: Role,
        /// The role that the caller has there.
        has: Option<Role>,
    },
}

impl From<Verified> for Proof {
    fn from(verified: Verified) -> Proof {
        match verified {
            Verified::Own(claims) => Proof::Token(claims),
            Verified::Foreign(claims) => Proof::Foreign(claims),
        }
    }
}

impl Proof {
    /// Whether it is a token's, which falls when what it was verified with is replaced.
    pub(crate) fn is_of_token(&self) -> bool {
        matches!(self, Proof::Token(_) | Proof::Foreign(_))
    }

    /// Who it is, in this state and at this time (µs since 1970 UTC).
    ///
    /// # Errors
    /// Why the credential no longer counts: for our own eyes, not for the client's.
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
    /// A caller without credentials, to whom nothing is allowed that needs a role.
    pub fn nobody() -> Principal {
        Principal {
            identity: Identity::unknown(Method::None),
            added_at: None,
            held: Arc::default(),
            most: None,
            until_us: None,
            proof: None,
        }
    }

    /// Anybody, as long as there are no accounts; `None`: there are some.
    pub(crate) fn anybody(state: &State) -> Option<Principal> {
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

    /// Whose it is what the caller begins.
    pub fn holder(&self) -> Holder {
        match (self.added_at, self.identity.name()) {
            (Some(position), _) => Holder::Account(position),
            (None, Some(subject)) => Holder::Subject(subject.into()),
            (None, None) => Holder::Anybody,
        }
    }

    /// How the caller was authenticated.
    pub fn method(&self) -> &Method {
        &self.identity.method
    }

    /// When the credential ends, µs since 1970 UTC; `None`: it does not by itself.
    pub fn until_us(&self) -> Option<u64> {
        self.until_us
    }

    /// What it was made of, if a credential was shown.
    pub(super) fn proof(&self) -> Option<&Proof> {
        self.proof.as_deref()
    }

    /// The caller's role on a log, or on what is no log's (`None`): what both the account holds and
    /// the credential is for.
    pub fn role_on(&self, log: Option<&str>) -> Option<Role> {
        let log = log.filter(|log| *log != SYSTEM_LOG);
        let held = self.held.role_on(log)?;
        self.most.as_ref().map_or(Some(held), |most| Some(held.min(most.role_on(log)?)))
    }

    /// All roles of the caller: what both the account holds and the credential is for, that for all
    /// first, then by log. What the role for all gives anyway is left out.
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

    /// Whether the caller may read a log.
    pub fn may_read(&self, log: &str) -> bool {
        self.may(Role::Reader, Some(log)) == Verdict::Allowed
    }

    /// Whether the caller may end a key of its account that is for this: a token for reading, given
    /// to a program, shall not end keys that write. What the key says and the account does not hold
    /// counts for nothing.
    pub fn may_end(&self, grant: &Grant) -> bool {
        let log = grant.log.as_deref();
        let of_key = self.held.role_on(log).map(|held| held.min(grant.role));
        self.role_on(log) >= of_key
    }

    /// Whether this credential may end all tokens of its account: it grants no less than the
    /// account holds.
    pub fn may_end_all(&self) -> bool {
        // A role on the system log alone is none.
        let grants = self.held.iter().filter(|grant| grant.log.as_deref() != Some(SYSTEM_LOG));
        self.most.is_none() || { grants }.all(|grant| self.may_end(grant))
    }

    /// Whether the caller may do what needs a role on a log, or on what is no log's (`None`).
    pub fn may(&self, needs: Role, log: Option<&str>) -> Verdict {
        let needs = if log == Some(SYSTEM_LOG) { Role::Admin } else { needs };
        let has = self.role_on(log);
        if has >= Some(needs) { Verdict::Allowed } else { Verdict::Denied { needs, has } }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use wellspring_types::{Event, Position};
    use wellspring_views::access::{Access, Grant};
    use wellspring_views::view::{Recorded, View};

    /// An event as it lies in a log.
    pub(in super::super) struct Entry(Position, Event);

    impl Recorded for Entry {
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

    /// Ann: an operator of `orders`, a reader of all else; with a key that writes to `orders`.
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
        let anybody = Principal::anybody(&open.folded().now()).unwrap();
        assert_eq!(anybody.may(Role::Admin, None), Verdict::Allowed);
        assert_eq!(anybody.may(Role::Reader, Some(SYSTEM_LOG)), Verdict::Allowed);
        assert!(Principal::anybody(&with_ann().folded().now()).is_none());
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
        let open = Principal::anybody(&Access::new().folded().now()).unwrap();
        assert_eq!(open.roles(), [Grant::everywhere(Role::Admin)]);
        assert_eq!(Principal::nobody().roles(), []);
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
            proof.judge(&view.folded().now(), 0).map(|principal| principal.holder())
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
            Principal { identity: Identity::of_subject(subject), ..Principal::nobody() }.holder()
        };
        assert_eq!(subject("a"), subject("a"));
        assert_ne!(subject("a"), subject("b"));
        assert_ne!(subject("a"), Principal::nobody().holder());
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
