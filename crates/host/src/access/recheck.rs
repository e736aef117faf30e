//! Whether an admitted caller would still be admitted. Checked by long-running requests: a stream,
//! a body that arrives in pieces, a command that waited for a password hash. Otherwise a revoked
//! credential would stay valid for as long as a client keeps a request open.

use super::gate::{self, Gate};
use super::needs::Needs;
use super::principal::Principal;
use crate::identity::Method;
use crate::wire::problem::Problem;
use std::borrow::Cow;
use std::sync::Arc;
use wellspring_types::Position;

/// A state of accounts and tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Of the state of accounts.
    pub(super) position: Position,
    /// The generation of the tokens.
    pub(super) tokens: u64,
}

/// An admission, and what it was for.
#[derive(Debug)]
pub struct AccessRecheck {
    gate: Arc<Gate>,
    principal: Arc<Principal>,
    needs: Needs,
    log: Option<Cow<'static, str>>,
    moment: Moment,
}

impl AccessRecheck {
    /// The admission of a caller that the gate has just let in: what is needed, on the log
    /// concerned (`None`: on what belongs to no log). `moment` is from before the check, so that no
    /// change is missed.
    pub(crate) fn new(
        gate: &Arc<Gate>,
        moment: Moment,
        principal: &Arc<Principal>,
        needs: Needs,
        log: Option<Cow<'static, str>>,
    ) -> AccessRecheck {
        let (gate, principal) = (Arc::clone(gate), Arc::clone(principal));
        AccessRecheck { gate, principal, needs, log, moment }
    }

    /// The same for another need.
    pub fn for_need(&self, needs: Needs) -> AccessRecheck {
        let (gate, principal) = (Arc::clone(&self.gate), Arc::clone(&self.principal));
        AccessRecheck { gate, principal, needs, log: self.log.clone(), moment: self.moment }
    }

    /// Whether the gate would still admit the caller.
    pub fn holds(&self) -> bool {
        self.check().is_ok()
    }

    /// The same, with the answer if not. If nothing has moved it costs two loads, and a look at the
    /// clock if the credential expires.
    ///
    /// # Errors
    /// 401, 403.
    pub(crate) fn check(&self) -> Result<(), Box<Problem>> {
        let AccessRecheck { gate, principal, needs, log, moment } = self;
        // A node's signature does not expire within a request.
        if !needs.are_of_accounts() {
            return Ok(());
        }
        let Some(proof) = principal.proof() else {
            let is_open = *principal.method() == Method::Open && gate.is_open();
            return if is_open { Ok(()) } else { Err(gate::not_accepted()) };
        };
        let now = gate.moment();
        if now == *moment && principal.until_us().is_none() {
            return Ok(());
        }
        // The keys have changed since: the token must be verified again.
        if now.tokens != moment.tokens && proof.is_of_token() {
            return Err(gate::not_accepted());
        }
        let now_us = gate.wall_us();
        if now.position == moment.position && principal.until_us().is_some_and(|us| now_us < us) {
            return Ok(());
        }
        let principal = proof.judge(&gate.state(), now_us).map_err(|_| gate::not_accepted())?;
        gate::may(&principal, *needs, log.as_deref())
    }
}
