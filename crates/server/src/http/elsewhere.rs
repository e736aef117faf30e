//! What is short is done by the thread that serves; what may be long is done elsewhere, on threads
//! kept for it. A serving thread is held for about a tenth of a millisecond, whatever a request
//! asks for.

use super::Shell;
use super::json::{Cursor, Fault};
use super::problem::{self, Problem, of_fault};
use super::wire;
use crate::limits::{Reads, Refused};
use bytes::Bytes;
use std::borrow::Borrow;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use wellspring_log::CompiledQuery;
use wellspring_types::Query;

/// Bodies over this size are parsed elsewhere, in bytes: parsing takes a few µs for each KiB.
const SHORT_BODY_BYTES: usize = 16 << 10;
/// Queries and conditions of more types and tags are compiled and asked elsewhere: each takes a
/// fraction of a µs, and there may be thousands.
const SHORT_TERMS: usize = 64;

/// What is known of a piece of work before it is begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Price {
    /// It may be done by a serving thread.
    Short,
    /// It is done elsewhere.
    Dear,
}

impl Price {
    /// Of parsing so many bytes.
    pub(super) fn of_bytes(bytes: usize) -> Price {
        if bytes > SHORT_BODY_BYTES { Price::Dear } else { Price::Short }
    }

    /// Of compiling so many types and tags, and of looking them up.
    pub(super) fn of_terms(terms: usize) -> Price {
        if terms > SHORT_TERMS { Price::Dear } else { Price::Short }
    }
}

/// A permit for a long read.
///
/// # Errors
/// 503, counted: as many as may be are under way.
pub(super) fn long_read(shell: &Shell) -> Result<OwnedSemaphorePermit, Box<Problem>> {
    Arc::clone(&shell.long_reads).try_acquire_owned().map_err(|_| {
        let limit = shell.config.max_long_reads;
        shell.stats.refusals.count(Refused::LongRead);
        problem::OVERLOADED
            .because(format!("{limit} long reads are under way, the most at a time"))
            .limit(limit as u64)
    })
}

/// Does blocking work on a thread kept for it.
///
/// # Errors
/// 500, logged: the work panicked.
pub(crate) async fn elsewhere<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Box<Problem>> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        tracing::error!(%error, "a blocking task died");
        problem::INTERNAL.because("the work died; the server's log says more")
    })
}

/// Does work here if it is short.
///
/// # Errors
/// Those of [`elsewhere`].
pub(super) async fn at_price<T: Send + 'static>(
    price: Price,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Box<Problem>> {
    match price {
        Price::Short => Ok(work()),
        Price::Dear => elsewhere(work).await,
    }
}

/// Parses a body that is one JSON document.
///
/// # Errors
/// The problem of what is wrong with it.
pub(super) async fn parse<T: Send + 'static>(
    body: Bytes,
    read: fn(&mut Cursor<'_>) -> Result<T, Box<Fault>>,
) -> Result<T, Box<Problem>> {
    let price = Price::of_bytes(body.len());
    let parse = move || wire::document(&body, read).map_err(|fault| of_fault(&fault, &body));
    at_price(price, parse).await?
}

/// A query that was compiled, and what asking it costs.
pub(super) struct PricedQuery {
    pub(super) query: Arc<CompiledQuery>,
    pub(super) price: Price,
}

impl PricedQuery {
    /// Compiles a query for `reads`. Let go of elsewhere too: it is thousands of texts.
    ///
    /// # Errors
    /// Those of [`elsewhere`].
    pub(super) async fn compile(
        query: impl Borrow<Query> + Send + 'static,
        reads: &Reads,
    ) -> Result<PricedQuery, Box<Problem>> {
        let price = Price::of_terms(query.borrow().term_count());
        let reads = reads.clone();
        let compile = move || reads.timed(|| CompiledQuery::shared(query.borrow()));
        Ok(PricedQuery { query: at_price(price, compile).await?, price })
    }
}
