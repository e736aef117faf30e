//! The settings of requests and answers.

use crate::settings::section;
use crate::setup::SetupError;

section! {
    /// Settings of requests and their answers.
    HttpConfig from HttpConfigArgs under "HTTP":
    /// Maximum length of path and query of a URL, in bytes.
    max_url_bytes: usize = "WELLSPRING_MAX_URL_BYTES", 16_384;
    /// Maximum number of headers of a request.
    max_headers: usize = "WELLSPRING_MAX_HEADERS", 64;
    /// Maximum size of the read buffer of a connection, in bytes; bounds the header section.
    max_buffer_bytes: usize = "WELLSPRING_MAX_BUFFER_BYTES", 65_536;
    /// Maximum number of HTTP/2 streams per connection.
    max_streams: u32 = "WELLSPRING_MAX_STREAMS", 256;
    /// Time limit for receiving the headers of a request, in ms.
    header_timeout_ms: u64 = "WELLSPRING_HEADER_TIMEOUT_MS", 10_000;
    /// Time a connection may be idle between requests, in ms.
    idle_timeout_ms: u64 = "WELLSPRING_IDLE_TIMEOUT_MS", 90_000;
    /// Time limit for receiving a body (a streamed body: each piece), in ms.
    body_timeout_ms: u64 = "WELLSPRING_BODY_TIMEOUT_MS", 30_000;
    /// Time a client may leave a response unread, in ms.
    write_timeout_ms: u64 = "WELLSPRING_WRITE_TIMEOUT_MS", 60_000;
    /// Time limit for requests in flight when the server stops, in ms.
    drain_timeout_ms: u64 = "WELLSPRING_DRAIN_TIMEOUT_MS", 10_000;
    /// Serve fast paths such as POST /e in a loop of their own.
    [num_args = 0..=1, default_missing_value = "true"]
    lean_loop: bool = "WELLSPRING_LEAN_LOOP", true;
    /// Maximum number of concurrent long reads; further ones get 503.
    max_long_reads: usize = "WELLSPRING_MAX_LONG_READS", 64;
    /// Maximum number of subscriptions; further ones get 503.
    max_subscribers: usize = "WELLSPRING_MAX_SUBSCRIBERS", 8_192;
    /// Processor time that a long read may take, in ms; ten times as much may pass in all.
    max_fold_ms: u64 = "WELLSPRING_MAX_FOLD_MS", 30_000;
    /// Maximum size of a JSON page of events, in bytes; a larger one is cut and has a `next`.
    max_page_bytes: usize = "WELLSPRING_MAX_PAGE_BYTES", 16 << 20;
    /// Interval between heartbeats on a subscription, in ms.
    heartbeat_ms: u64 = "WELLSPRING_HEARTBEAT_MS", 15_000;
    /// Serve /cleanup and /load-test-data, which change or delete data without confirmation.
    [num_args = 0..=1, default_missing_value = "true"]
    dev_endpoints: bool = "WELLSPRING_DEV_ENDPOINTS", false;
    /// Log every request at level info instead of debug.
    [num_args = 0..=1, default_missing_value = "true"]
    access_log: bool = "WELLSPRING_ACCESS_LOG", false;
}

impl HttpConfig {
    /// Refuses settings with which a server would start and answer nothing.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        if self.max_buffer_bytes < 8_192 || self.max_url_bytes > self.max_buffer_bytes {
            return Err("max_buffer_bytes must be at least 8192 and max_url_bytes".into());
        }
        for (name, set, least) in [
            ("heartbeat_ms", self.heartbeat_ms, 1),
            ("body_timeout_ms", self.body_timeout_ms, 1),
            ("header_timeout_ms", self.header_timeout_ms, 1),
            ("idle_timeout_ms", self.idle_timeout_ms, 1),
            ("write_timeout_ms", self.write_timeout_ms, 1),
            ("max_url_bytes", self.max_url_bytes as u64, 64),
            ("max_headers", self.max_headers as u64, 16),
        ] {
            if set < least {
                return Err(format!("{name} must be at least {least}, not {set}").into());
            }
        }
        Ok(())
    }
}
