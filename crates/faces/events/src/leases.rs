//! Exclusive leases with fencing tokens.

use super::params::{LEASE, TOKEN};
use serde::Serialize;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;
use wellspring_host::http::content::expect_json;
use wellspring_host::http::{Answer, Host, Request, Response};
use wellspring_host::wire::json::{Cursor, Fault, FaultKind, Rfc3339};
use wellspring_host::wire::json::{document, missing, once, read_text, unknown};
use wellspring_host::wire::param::MAX_WAIT_MS;
use wellspring_host::wire::params::within;
use wellspring_host::wire::problem::{self, Problem, of_fault};
use wellspring_log::{Lease, LeaseError, LeaseHolder, LeaseProof, Leases, TooManyWaiters};
use wellspring_types::limits;

/// Longest time to live of a lease, in ms.
pub(crate) const MAX_LEASE_TTL_MS: u64 = 3_600_000;

/// Largest body of a lease request, in bytes.
const MAX_BODY_BYTES: usize = 4_096;

/// How long a node may take to find out whether another leads.
const CONFIRMED_WITHIN: Duration = Duration::from_secs(2);

/// A granted lease.
#[derive(Serialize)]
struct LeaseDocument<'a> {
    name: &'a str,
    token: u64,
    expires_at: Rfc3339,
    ttl_ms: u64,
}

/// A released lease.
#[derive(Serialize)]
struct ReleasedLease<'a> {
    released: &'a str,
}

/// The content of the bodies.
#[derive(Default)]
struct Fields {
    ttl_ms: Option<u64>,
    wait_ms: Option<u64>,
    token: Option<u64>,
    holder: Option<String>,
}

/// `POST /v1/leases/{name}`.
pub(crate) async fn acquire(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&LEASE)?;
    let known = "ttl_ms, wait_ms, holder";
    let fields = read(&mut request, &["ttl_ms", "wait_ms", "holder"], known).await?;
    let ttl_ms = ttl(&fields)?;
    let wait_ms = within(fields.wait_ms.unwrap_or(0), MAX_WAIT_MS, "wait_ms")?;
    let account = request.principal.holder().to_string();
    let holder = LeaseHolder { account: &account, chosen: fields.holder.as_deref() };
    let wanted = LeaseRequest { name: &name, holder, ttl_us: ttl_ms * 1000 };
    let lease = take(&host, &request, &wanted, wait_ms * 1000).await?;
    Ok(answer(&host, 201, &name, ttl_ms, &lease))
}

struct LeaseRequest<'a> {
    name: &'a str,
    holder: LeaseHolder<'a>,
    ttl_us: u64,
}

/// Acquires the lease as soon as it is free, waiting at most `wait_us`.
async fn take(
    host: &Host,
    request: &Request,
    wanted: &LeaseRequest<'_>,
    wait_us: u64,
) -> Result<Lease, Box<Problem>> {
    let (effects, log) = (&request.effects, request.log()?);
    let leases = log.leases();
    let deadline_us = host.clock.monotonic_us() + wait_us;
    let mut stopping = host.stopping.clone();
    let mut line = leases.line(wanted.name);
    loop {
        // Another node may lead already and have granted larger tokens.
        let confirmed = tokio::time::timeout(CONFIRMED_WITHIN, log.confirm()).await;
        if !matches!(confirmed, Ok(Ok(_))) {
            return Err(effects.refused(LeaseError::NotLeading).into());
        }
        // Checked before each try and not after: what is granted to a client that has left would
        // keep others out for its whole time.
        if request.may_have_no_client() {
            return Err(effects.refused(LeaseError::Held { remaining_us: 0 }).into());
        }
        let remaining_us = match leases.acquire(wanted.name, wanted.holder, wanted.ttl_us) {
            Err(LeaseError::Held { remaining_us }) => remaining_us,
            outcome => return Ok(effects.settle(outcome)?),
        };
        let left_us = deadline_us.saturating_sub(host.clock.monotonic_us());
        if left_us == 0 || host.is_stopping() {
            return Err(effects.refused(LeaseError::Held { remaining_us }).into());
        }
        // Only the first waiter checks when the holder's time is up.
        let patience_us = if line.is_first() { remaining_us.min(left_us) } else { left_us };
        let turn = poll_fn(|context| line.poll_turn(context));
        tokio::select! {
            turn = tokio::time::timeout(Duration::from_micros(patience_us + 1), turn) => {
                // The clock above decides about the timeout.
                turn.unwrap_or(Ok(()))?;
            }
            _ = stopping.wait_for(|&stopping| stopping) => {}
        }
    }
}

/// `PUT /v1/leases/{name}`.
pub(crate) async fn renew(host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&LEASE)?;
    let fields = read(&mut request, &["ttl_ms", "token"], "token, ttl_ms").await?;
    let ttl_ms = ttl(&fields)?;
    let token = fields.token.ok_or_else(|| absent("token"))?;
    let holder = request.principal.holder().to_string();
    let renewed = request.log()?.leases().renew(&name, &holder, token, ttl_ms * 1000);
    let lease = request.effects.settle(renewed)?;
    Ok(answer(&host, 200, &name, ttl_ms, &lease))
}

/// `DELETE /v1/leases/{name}`.
pub(crate) async fn release(_host: Arc<Host>, mut request: Box<Request>) -> Answer {
    let name = request.segment(&LEASE)?;
    let fields = read(&mut request, &["token"], "token").await?;
    let token = match request.query(&TOKEN)?.or(fields.token) {
        Some(token) => token,
        None => return Err(absent("token")),
    };
    let holder = request.principal.holder().to_string();
    request.effects.settle(request.log()?.leases().release(&name, &holder, token))?;
    Ok(Response::of(200, &ReleasedLease { released: &name }))
}

async fn read(
    request: &mut Request,
    allowed: &[&str],
    known: &'static str,
) -> Result<Fields, Box<Problem>> {
    let only_token = allowed == ["token"];
    let body = request.body.read(MAX_BODY_BYTES).await?;
    if body.is_empty() && only_token {
        return Ok(Fields::default());
    }
    expect_json(request)?;
    document(&body, |cursor| read_fields(cursor, allowed, known))
        .map_err(|fault| of_fault(&fault, &body))
}

fn read_fields(
    cursor: &mut Cursor<'_>,
    allowed: &[&str],
    known: &'static str,
) -> Result<Fields, Box<Fault>> {
    let mut fields = Fields::default();
    let start = cursor.at();
    cursor.object(|key, value| {
        let at = value.at();
        let slot = match key {
            _ if !allowed.contains(&key) => return unknown(at, known),
            "ttl_ms" => &mut fields.ttl_ms,
            "wait_ms" => &mut fields.wait_ms,
            "holder" => {
                return once(&mut fields.holder, at, read_text(value, limits::MAX_TAG_BYTES)?);
            }
            _ => &mut fields.token,
        };
        once(slot, at, value.u64()?)
    })?;
    if allowed.contains(&"ttl_ms") && fields.ttl_ms.is_none() {
        return missing("ttl_ms", start);
    }
    if fields.ttl_ms == Some(0) {
        return Err(Fault::of("ttl_ms", start, FaultKind::Rule("must be at least 1".into())));
    }
    Ok(fields)
}

/// Waits until the lease that a proof names has ended.
///
/// # Errors
/// 503: too many wait.
pub(crate) async fn ended(leases: &Leases, proof: &LeaseProof) -> Result<(), TooManyWaiters> {
    let mut end = leases.end_of(proof.clone());
    while let Ok(remaining_us) = leases.remaining_us(proof) {
        let ended = poll_fn(|context| end.poll_end(context));
        // It may have been renewed by then.
        tokio::time::timeout(Duration::from_micros(remaining_us), ended).await.unwrap_or(Ok(()))?;
    }
    Ok(())
}

fn ttl(fields: &Fields) -> Result<u64, Box<Problem>> {
    within(fields.ttl_ms.unwrap_or(0), MAX_LEASE_TTL_MS, "ttl_ms")
}

fn absent(field: &str) -> Box<Problem> {
    problem::INVALID.because(format!("{field} is missing")).field(field)
}

fn answer(host: &Host, status: u16, name: &str, ttl_ms: u64, lease: &Lease) -> Response {
    let left_us = lease.expires_us.saturating_sub(host.clock.monotonic_us());
    let document = LeaseDocument {
        name,
        token: lease.token,
        expires_at: Rfc3339(host.clock.wall_us() + left_us),
        ttl_ms,
    };
    Response::of(status, &document)
}
