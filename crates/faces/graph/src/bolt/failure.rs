//! Faults of statements and problems of the server as failures that drivers act on.
//!
//! Drivers decide by the code alone: they repeat a managed transaction after
//! `Neo.TransientError.*`, look for the leader again after `NotALeader`, and throw an address out
//! of their pools after `DatabaseUnavailable`.

use crate::envelope::{code_of, fault_message, not_open, shortened};
use crate::open::NotOpen;
use crate::transactions::TransactionRefusal;
use wellspring_bolt::Failure;
use wellspring_cypher::error::{Detail, Error, ErrorKind};
use wellspring_host::wire::problem::{self, Kind, Problem};

/// Whether the client has proved who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Proof {
    /// It is about to.
    Awaited,
    /// It has.
    Given,
}

/// The status of what the kind of an error tells, and its description.
fn status_of(kind: ErrorKind, detail: Detail) -> Option<(&'static str, &'static str)> {
    Some(match (kind, detail) {
        (ErrorKind::SyntaxError, _) => {
            ("42001", "error: syntax error or access rule violation - invalid syntax.")
        }
        (_, Detail::DivisionByZero) => ("22012", "error: data exception - division by zero."),
        (_, Detail::IntegerOverflow | Detail::FloatingPointOverflow) => {
            ("22003", "error: data exception - numeric value out of range.")
        }
        _ => return None,
    })
}

/// The failure of a statement.
pub(super) fn of_fault(fault: &Error) -> Failure {
    let code = match (fault.kind, fault.detail) {
        // The transient form is not repeated either: drivers write it as this one.
        (ErrorKind::Terminated, Detail::Cancelled) => "Neo.ClientError.Transaction.Terminated",
        _ => fault.code(),
    };
    let failure = Failure::new(code, shortened(&fault_message(fault)));
    match status_of(fault.kind, fault.detail) {
        Some((status, description)) => failure.with_status(status, description),
        None => failure,
    }
}

/// The failure of an operation.
pub(super) fn of_problem(problem: &Problem, proof: Proof) -> Failure {
    let is = |kind: &'static Kind| problem.kind.is(kind);
    let code = match problem.kind.status {
        // A retry on this address helps; it should stay in pools.
        429 if !is(&problem::TOO_MANY_LOGINS) => "Neo.TransientError.Request.NoThreadsAvailable",
        _ if is(&problem::OVERLOADED) || is(&problem::TOO_MANY_LONG_READS) => {
            "Neo.TransientError.Request.NoThreadsAvailable"
        }
        _ if is(&problem::NOT_LEADING) => "Neo.ClientError.Cluster.NotALeader",
        401 if proof == Proof::Given => "Neo.ClientError.Security.AuthorizationExpired",
        400 if proof == Proof::Awaited => "Neo.ClientError.Security.Unauthorized",
        _ => code_of(problem.kind, problem.kind.retry),
    };
    let failure = Failure::new(code, shortened(&problem.detail));
    if is(&problem::OUTCOME_UNKNOWN) {
        let what = "error: connection exception - transaction resolution unknown.";
        return failure.with_status("08007", what);
    }
    failure
}

/// The failure of what is done in a transaction.
pub(super) fn of_refusal(refusal: &TransactionRefusal) -> Failure {
    match refusal {
        TransactionRefusal::Problem(problem) => of_problem(problem, Proof::Given),
        TransactionRefusal::NotOpen(NotOpen::Unknown) => Failure::new(
            "Neo.ClientError.Transaction.TransactionTimedOut",
            "The transaction has been rolled back: it was idle for too long \
             (--graph-transaction-timeout-ms), or its database is gone.",
        ),
        TransactionRefusal::NotOpen(why) => {
            let (code, message) = not_open(*why);
            Failure::new(code, message)
        }
    }
}
