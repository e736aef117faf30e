//! Names of headers that requests are asked for and that HTTP's library does not know, parsed once.

use crate::cluster;
use hyper::header::HeaderName;

/// Addresses that a request came through.
pub(crate) static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The client's own id for the request.
pub(crate) static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A position that an answer has to show.
pub(crate) static WELLSPRING_MIN_POSITION: HeaderName =
    HeaderName::from_static("wellspring-min-position");
/// A position of the system log that has to be known before accounts are asked.
pub(crate) static WELLSPRING_MIN_SYSTEM_POSITION: HeaderName =
    HeaderName::from_static("wellspring-min-system-position");
/// That another node sent the request.
pub(crate) static WELLSPRING_NODE: HeaderName = HeaderName::from_static(cluster::node_auth::HEADER);
/// The client's own key of an append, for retries.
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
