//! The configured limits and their defaults: enough for any honest client where other machines can
//! reach the server, and unlimited where only this machine can.

use super::rate::Rate;
use crate::settings::section;
use std::net::SocketAddr;
use std::num::NonZeroU64;

/// Defaults where other machines can reach the server; 0: unlimited.
mod public {
    pub(super) const CONNECTIONS_PER_ADDRESS: u32 = 1_024;
    /// A connection of a proxy carries many clients; addresses are limited anyway.
    pub(super) const REQUESTS_PER_CONNECTION: u32 = 0;
    pub(super) const REQUESTS_PER_ADDRESS: u32 = 10_000;
    pub(super) const REQUESTS_PER_ACCOUNT: u32 = 50_000;
    pub(super) const BYTES_PER_ADDRESS: u64 = 128 << 20;
    pub(super) const BYTES_PER_ACCOUNT: u64 = 512 << 20;
    pub(super) const SUBSCRIBERS_PER_ADDRESS: u32 = 1_024;
    pub(super) const SUBSCRIBERS_PER_ACCOUNT: u32 = 4_096;
    /// The memory for bodies, divided by this number.
    pub(super) const MEMORY_SHARE_OF_ADDRESS: usize = 4;
    pub(super) const MEMORY_SHARE_OF_ACCOUNT: usize = 2;
    pub(super) const LONG_READS_PER_ADDRESS: u32 = 16;
    pub(super) const LONG_READS_PER_ACCOUNT: u32 = 32;
    pub(super) const READ_MS_PER_ADDRESS: u32 = 500;
    pub(super) const READ_MS_PER_ACCOUNT: u32 = 1_000;
}

section! {
    /// Settings of limits: for all clients together, and for each.
    LimitConfig from LimitConfigArgs under "Limits":
    /// Maximum number of connections; further ones get 503.
    max_connections: usize = "WELLSPRING_MAX_CONNECTIONS", 16_384;
    /// Memory for request bodies, responses in transit and HTTP/2 requests together, in bytes.
    body_memory_bytes: usize = "WELLSPRING_BODY_MEMORY_BYTES", 512 << 20;
    optional
    /// Maximum number of connections per client address, trusted proxies excepted; further ones get
    /// 503; 0 = any number. Not set: any number while --listen is a loopback address, else 1024.
    max_connections_per_address: u32 = "WELLSPRING_MAX_CONNECTIONS_PER_ADDRESS";
    optional
    /// Maximum request rate per connection, with bursts of 5 s' worth; further requests get 429; 0
    /// or not set: any number.
    requests_per_second_per_connection: u32 = "WELLSPRING_REQUESTS_PER_SECOND_PER_CONNECTION";
    optional
    /// Maximum request rate per client address; 0 = any number. Not set: any number while --listen
    /// is a loopback address, else 10000.
    requests_per_second_per_address: u32 = "WELLSPRING_REQUESTS_PER_SECOND_PER_ADDRESS";
    optional
    /// Maximum request rate per account; 0 = any number. Not set: any number while --listen is a
    /// loopback address, else 50000.
    requests_per_second_per_account: u32 = "WELLSPRING_REQUESTS_PER_SECOND_PER_ACCOUNT";
    optional
    /// Maximum bytes per second of request bodies and responses per client address; beyond it
    /// requests get 429; 0 = any number. Not set: any number while --listen is a loopback address,
    /// else 134217728.
    bytes_per_second_per_address: u64 = "WELLSPRING_BYTES_PER_SECOND_PER_ADDRESS";
    optional
    /// Maximum bytes per second of request bodies and responses per account; 0 = any number. Not
    /// set: any number while --listen is a loopback address, else 536870912.
    bytes_per_second_per_account: u64 = "WELLSPRING_BYTES_PER_SECOND_PER_ACCOUNT";
    optional
    /// Maximum number of subscriptions per client address; further ones get 429; 0 = any number.
    /// Not set: any number while --listen is a loopback address, else 1024.
    max_subscribers_per_address: u32 = "WELLSPRING_MAX_SUBSCRIBERS_PER_ADDRESS";
    optional
    /// Maximum number of subscriptions per account; 0 = any number. Not set: any number while
    /// --listen is a loopback address, else 4096.
    max_subscribers_per_account: u32 = "WELLSPRING_MAX_SUBSCRIBERS_PER_ACCOUNT";
    optional
    /// Memory for request bodies, queries and responses per client address, in bytes; beyond it
    /// requests get 429; 0 = any. Not set: any while --listen is a loopback address, else a quarter
    /// of --body-memory-bytes.
    body_memory_bytes_per_address: u64 = "WELLSPRING_BODY_MEMORY_BYTES_PER_ADDRESS";
    optional
    /// Memory for request bodies, queries and responses per account, in bytes; 0 = any. Not set:
    /// any while --listen is a loopback address, else half of --body-memory-bytes.
    body_memory_bytes_per_account: u64 = "WELLSPRING_BODY_MEMORY_BYTES_PER_ACCOUNT";
    optional
    /// Maximum number of concurrent long reads per client address; further ones get 429; 0 = any
    /// number. Not set: any number while --listen is a loopback address, else 16.
    max_long_reads_per_address: u32 = "WELLSPRING_MAX_LONG_READS_PER_ADDRESS";
    optional
    /// Maximum number of concurrent long reads per account; 0 = any number. Not set: any number
    /// while --listen is a loopback address, else 32.
    max_long_reads_per_account: u32 = "WELLSPRING_MAX_LONG_READS_PER_ACCOUNT";
    optional
    /// Server thread time for reads per client address, in ms per second; beyond it reads get 429;
    /// 0 = any. Not set: any while --listen is a loopback address, else 500.
    read_ms_per_second_per_address: u32 = "WELLSPRING_READ_MS_PER_SECOND_PER_ADDRESS";
    optional
    /// Server thread time for reads per account, in ms per second; 0 = any. Not set: any while
    /// --listen is a loopback address, else 1000.
    read_ms_per_second_per_account: u32 = "WELLSPRING_READ_MS_PER_SECOND_PER_ACCOUNT";
}

/// The limits of one client, an address or an account; `None`: unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfClient {
    pub(crate) requests: Option<Rate>,
    /// Bytes of bodies received and of answers sent.
    pub(crate) bytes: Option<Rate>,
    /// CPU time in µs.
    pub(crate) reads: Option<Rate>,
    /// Subscriptions at a time.
    pub(crate) subscribers: Option<u32>,
    /// Long reads at a time.
    pub(crate) long_reads: Option<u32>,
    /// Bytes of memory at a time.
    pub(crate) memory: Option<u64>,
}

/// All limits; `None`: unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitSettings {
    /// Connections at a time, in all.
    pub(crate) connections: usize,
    /// Connections at a time from an address.
    pub(crate) connections_per_address: Option<u32>,
    /// Requests over a connection.
    pub(crate) requests_per_connection: Option<Rate>,
    /// Further limits of an address.
    pub(crate) address: OfClient,
    /// Limits of an account.
    pub(crate) account: OfClient,
}

impl LimitSettings {
    /// The limits of a configuration. `listen` is the address that the server listens on.
    pub(crate) fn of(config: &LimitConfig, listen: SocketAddr) -> LimitSettings {
        let alone = listen.ip().is_loopback();
        let set = |set: Option<u32>, public: u32| {
            Some(set.unwrap_or(if alone { 0 } else { public })).filter(|&most| most > 0)
        };
        let rate = |set_to: Option<u32>, public| Some(per_second(set(set_to, public)?.into()));
        let bytes = |set: Option<u64>, public: u64| {
            let bytes = set.unwrap_or(if alone { 0 } else { public });
            (bytes > 0).then(|| per_second(bytes))
        };
        // One client's share.
        let memory = |set: Option<u64>, share: usize| {
            let public = (config.body_memory_bytes / share) as u64;
            Some(set.unwrap_or(if alone { 0 } else { public })).filter(|&bytes| bytes > 0)
        };
        // The time of threads is measured in µs.
        let reads = |ms, public| Some(per_second(1_000 * u64::from(set(ms, public)?)));
        LimitSettings {
            connections: config.max_connections,
            connections_per_address: set(
                config.max_connections_per_address,
                public::CONNECTIONS_PER_ADDRESS,
            ),
            requests_per_connection: rate(
                config.requests_per_second_per_connection,
                public::REQUESTS_PER_CONNECTION,
            ),
            address: OfClient {
                requests: rate(
                    config.requests_per_second_per_address,
                    public::REQUESTS_PER_ADDRESS,
                ),
                bytes: bytes(config.bytes_per_second_per_address, public::BYTES_PER_ADDRESS),
                reads: reads(config.read_ms_per_second_per_address, public::READ_MS_PER_ADDRESS),
                subscribers: set(
                    config.max_subscribers_per_address,
                    public::SUBSCRIBERS_PER_ADDRESS,
                ),
                long_reads: set(config.max_long_reads_per_address, public::LONG_READS_PER_ADDRESS),
                memory: memory(
                    config.body_memory_bytes_per_address,
                    public::MEMORY_SHARE_OF_ADDRESS,
                ),
            },
            account: OfClient {
                requests: rate(
                    config.requests_per_second_per_account,
                    public::REQUESTS_PER_ACCOUNT,
                ),
                bytes: bytes(config.bytes_per_second_per_account, public::BYTES_PER_ACCOUNT),
                reads: reads(config.read_ms_per_second_per_account, public::READ_MS_PER_ACCOUNT),
                subscribers: set(
                    config.max_subscribers_per_account,
                    public::SUBSCRIBERS_PER_ACCOUNT,
                ),
                long_reads: set(config.max_long_reads_per_account, public::LONG_READS_PER_ACCOUNT),
                memory: memory(
                    config.body_memory_bytes_per_account,
                    public::MEMORY_SHARE_OF_ACCOUNT,
                ),
            },
        }
    }
}

fn per_second(amount: u64) -> Rate {
    Rate::per_second(NonZeroU64::new(amount).unwrap_or(NonZeroU64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostConfig;

    fn settings(flags: &[&str]) -> LimitSettings {
        let config = HostConfig::for_tests(flags);
        LimitSettings::of(&config.limits, config.process.address().expect("an address"))
    }

    const PUBLIC: [&str; 3] = ["--listen", "0.0.0.0:4000", "--insecure"];
    const NONE: OfClient = OfClient {
        requests: None,
        bytes: None,
        reads: None,
        subscribers: None,
        long_reads: None,
        memory: None,
    };

    #[test]
    fn this_machine_alone_is_not_limited_and_others_are() {
        let alone = settings(&[]);
        assert_eq!((alone.address, alone.account), (NONE, NONE));
        assert_eq!((alone.connections_per_address, alone.requests_per_connection), (None, None));
        let public = settings(&PUBLIC);
        for of in [public.address, public.account] {
            assert!(of.requests.is_some() && of.bytes.is_some() && of.reads.is_some());
            assert!(of.subscribers.is_some() && of.long_reads.is_some());
        }
        assert_eq!(public.address.memory, Some(128 << 20));
        assert_eq!(public.account.memory, Some(256 << 20));
        assert_eq!(public.connections_per_address, Some(1_024));
        assert_eq!(public.requests_per_connection, None);
    }

    #[test]
    fn what_is_set_counts_and_0_is_any_number() {
        let set = settings(&[
            "--requests-per-second-per-connection",
            "3",
            "--bytes-per-second-per-account",
            "4294967296000",
            "--read-ms-per-second-per-address",
            "20",
        ]);
        assert_eq!(set.requests_per_connection, Some(per_second(3)));
        assert_eq!(set.account, OfClient { bytes: Some(per_second(4_294_967_296_000)), ..NONE });
        assert_eq!(set.address, OfClient { reads: Some(per_second(20_000)), ..NONE });
        let off = [
            "--max-connections-per-address",
            "--requests-per-second-per-address",
            "--requests-per-second-per-account",
            "--bytes-per-second-per-address",
            "--bytes-per-second-per-account",
            "--max-subscribers-per-address",
            "--max-subscribers-per-account",
            "--max-long-reads-per-address",
            "--max-long-reads-per-account",
            "--body-memory-bytes-per-address",
            "--body-memory-bytes-per-account",
            "--read-ms-per-second-per-address",
            "--read-ms-per-second-per-account",
        ];
        let flags: Vec<&str> =
            PUBLIC.into_iter().chain(off.iter().flat_map(|f| [*f, "0"])).collect();
        let off = settings(&flags);
        assert_eq!((off.address, off.account, off.connections_per_address), (NONE, NONE, None));
    }
}
