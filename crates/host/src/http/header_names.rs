//! Names of request headers that the HTTP library does not know, parsed once.

use crate::cluster;
use hyper::header::HeaderName;

/// Addresses of the proxies a request passed.
pub(crate) static X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// The client's own id for the request.
pub(crate) static X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// A position that the answer must reflect.
pub(crate) static WELLSPRING_MIN_POSITION: HeaderName =
    HeaderName::from_static("wellspring-min-position");
/// The history that the request is about.
pub(crate) static WELLSPRING_HISTORY: HeaderName = HeaderName::from_static(super::history::HEADER);
/// A position of the system log that must be known before authentication.
pub(crate) static WELLSPRING_MIN_SYSTEM_POSITION: HeaderName =
    HeaderName::from_static("wellspring-min-system-position");
/// Marks a request that another node sent.
pub(crate) static WELLSPRING_NODE: HeaderName = HeaderName::from_static(cluster::node_auth::HEADER);
/// The client's key of an append, for retries.
pub(crate) static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
