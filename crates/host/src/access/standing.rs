//! Whether somebody who was let in still would be. Asked by whatever goes on after it was: a
//! stream, a body that comes piece by piece, a command that waited for a password to be hashed.
//! Without it what is revoked would go on counting for as long as a client cares to draw out a
//! request.

use super::gate::{self, Gate};
use super::needs::Needs;
use super::principal::Principal;
use crate::identity::Method;
use crate::wire::problem::Problem;
use std::borrow::Cow;
use std::sync::Arc;
use wellspring_types::Position;

/// Where accounts and tokens stood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Of the state of accounts.
    pub(super) position: Position,
    /// The generation of the tokens.
    pub(super) tokens: u64,
}

/// That somebody was let in, and for what.
#[derive(Debug)]
pub struct Standing {
    gate: Arc<Gate>,
    principal: Arc<Principal>,
    needs: Needs,
    log: Option<Cow<'static, str>>,
    moment: Moment,
}

impl Standing {
    /// That of a caller whom the gate has just let in: what is needed, on the log it is about
    /// (`None`: on what is no log's). `moment` is from before the check, so that nothing falls
    /// between.
    pub(crate) fn new(
        gate: &Arc<Gate>,
        moment: Moment,
        principal: &Arc<Principal>,
        needs: Needs,
        log: Option<Cow<'static, str>>,
    ) -> Standing {
        let (gate, principal) = (Arc::clone(gate), Arc::clone(principal));
        Standing { gate, principal, needs, log, moment }
    }

    /// Whether the gate would still let the caller in.
    pub fn holds(&self) -> bool {
        self.check().is_ok()
    }

    /// The same, with the answer if not. As long as nothing has moved it costs two loads, and a
    /// look at the clock if the credential ends.
    ///
    /// # Errors
    /// 401, 403.
    pub(crate) fn check(&self) -> Result<(), Box<Problem>> {
        let Standing { gate, principal, needs, log, moment } = self;
        // What a node signs does not end within a request.
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
        // With what it was verified is no longer what one is verified with: it has to be shown
        // anew.
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
