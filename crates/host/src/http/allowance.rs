//! Charges a request to its quotas: of its connection, its address, its account, and the memory for
//! answers.

use super::body_memory;
use super::routes::{Route, Scope};
use super::{Answer, Content, Host, Request, Response};
use crate::access::{Holder, Needs};
use crate::identity::Role;
use crate::limits::{Payer, QuotaKeys};
use crate::wire::problem::Problem;
use hyper::{Method, Version};

/// Takes the request from the quotas of its connection and its address, and charges its body to the
/// address. Health checks and preflight requests are not limited; their content is charged all the
/// same.
///
/// # Errors
/// 429.
pub(super) fn of_client(host: &Host, request: &mut Request) -> Result<(), Box<Problem>> {
    let is_counted = request.connection.as_ref().is_some_and(|ties| ties.is_counted);
    if is_counted || !host.limits.looks_at_requests() {
        return Ok(());
    }
    let quota_keys = host.limits.quota_keys(request.client);
    request.pay_by(Payer::new(&host.limits, quota_keys));
    let is_health = matches!(request.uri.path(), "/health" | "/health/live" | "/health/ready");
    if is_health || request.method == Method::OPTIONS {
        return Ok(());
    }
    let now_us = host.clock.monotonic_us();
    let rate = request.connection.as_ref().and_then(|ties| ties.rate.as_deref());
    host.limits.admit(rate, quota_keys, now_us)
}

/// The same for the account, now that it is known.
///
/// # Errors
/// 429.
pub(super) fn of_account(host: &Host, request: &mut Request) -> Result<(), Box<Problem>> {
    let holder = request.principal.holder();
    let of_account = |keys: &QuotaKeys| holder != Holder::AnyCaller && !keys.have_account();
    let Some(mut quota_keys) = request.payer.quota_keys().filter(of_account) else {
        return Ok(());
    };
    let now_us = host.clock.monotonic_us();
    let admitted = host.limits.admit_account(&mut quota_keys, holder, now_us);
    request.pay_by(Payer::new(&host.limits, quota_keys));
    admitted
}

/// Keeps the response charged against the memory limit until it is sent; otherwise slow readers
/// could exhaust memory with small requests. Outcomes of writes and answers about the server itself
/// are always sent.
///
/// # Errors
/// 503: too many unread responses.
pub(super) fn of_memory(
    host: &Host,
    route: &Route,
    version: Version,
    payer: &Payer,
    mut response: Response,
) -> Answer {
    let only_reads = route.needs <= Needs::Role(Role::Reader) && route.scope != Scope::Node;
    if let Content::Full(bytes) = &mut response.content
        && only_reads
    {
        *bytes = body_memory::charged(&host.body_memory, payer, version, std::mem::take(bytes))?;
    }
    Ok(response)
}
