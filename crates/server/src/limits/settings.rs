//! What is limited, and how much of it there is if nothing is set: enough for any honest client
//! where others can reach the server, and any amount where only this machine can.

use super::rate::Rate;
use crate::config::Config;
use std::num::NonZeroU64;

/// Defaults where others can reach the server; 0: any number.
mod public {
    pub(super) const CONNECTIONS_PER_ADDRESS: u32 = 1_024;
    /// A connection of a proxy is that of many clients; addresses are limited anyway.
    pub(super) const REQUESTS_PER_CONNECTION: u32 = 0;
    pub(super) const REQUESTS_PER_ADDRESS: u32 = 10_000;
    pub(super) const REQUESTS_PER_ACCOUNT: u32 = 50_000;
    pub(super) const BYTES_PER_ADDRESS: u64 = 128 << 20;
    pub(super) const BYTES_PER_ACCOUNT: u64 = 512 << 20;
    pub(super) const SUBSCRIBERS_PER_ADDRESS: u32 = 1_024;
    pub(super) const SUBSCRIBERS_PER_ACCOUNT: u32 = 4_096;
    pub(super) const READ_MS_PER_ADDRESS: u32 = 500;
    pub(super) const READ_MS_PER_ACCOUNT: u32 = 1_000;
}

/// What one client, an address or an account, may have; `None`: any amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OfClient {
    /// Requests.
    pub(crate) requests: Option<Rate>,
    /// Bytes of bodies received and of answers sent.
    pub(crate) bytes: Option<Rate>,
    /// µs of our threads' time.
    pub(crate) reads: Option<Rate>,
    /// Subscriptions at a time.
    pub(crate) subscribers: Option<u32>,
}

/// What is limited; `None`: any amount.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LimitSettings {
    /// Connections at a time, of all.
    pub(crate) connections: usize,
    /// Connections at a time from an address.
    pub(crate) connections_per_address: Option<u32>,
    /// Requests over a connection.
    pub(crate) requests_per_connection: Option<Rate>,
    /// What an address may have besides.
    pub(crate) address: OfClient,
    /// What an account may have.
    pub(crate) account: OfClient,
}

impl LimitSettings {
    /// Those of a configuration.
    ///
    /// # Errors
    /// A sentence about `listen`.
    pub(crate) fn of(config: &Config) -> Result<LimitSettings, String> {
        let alone = config.address()?.ip().is_loopback();
        let set = |set: Option<u32>, public: u32| {
            Some(set.unwrap_or(if alone { 0 } else { public })).filter(|&most| most > 0)
        };
        let rate = |set_to: Option<u32>, public| Some(per_second(set(set_to, public)?.into()));
        let bytes = |set: Option<u64>, public: u64| {
            let bytes = set.unwrap_or(if alone { 0 } else { public });
            (bytes > 0).then(|| per_second(bytes))
        };
        // The time of threads is measured in µs.
        let reads = |ms, public| Some(per_second(1_000 * u64::from(set(ms, public)?)));
        Ok(LimitSettings {
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
            },
        })
    }
}

fn per_second(amount: u64) -> Rate {
    Rate::per_second(NonZeroU64::new(amount).unwrap_or(NonZeroU64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(flags: &[&str]) -> LimitSettings {
        LimitSettings::of(&Config::for_tests(flags)).expect("right settings")
    }

    const PUBLIC: [&str; 3] = ["--listen", "0.0.0.0:4000", "--insecure"];
    const NONE: OfClient = OfClient { requests: None, bytes: None, reads: None, subscribers: None };

    #[test]
    fn this_machine_alone_is_not_limited_and_others_are() {
        let alone = settings(&[]);
        assert_eq!((alone.address, alone.account), (NONE, NONE));
        assert_eq!((alone.connections_per_address, alone.requests_per_connection), (None, None));
        let public = settings(&PUBLIC);
        for of in [public.address, public.account] {
            assert!(of.requests.is_some() && of.bytes.is_some() && of.reads.is_some());
            assert!(of.subscribers.is_some());
        }
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
            "--read-ms-per-second-per-address",
            "--read-ms-per-second-per-account",
        ];
        let flags: Vec<&str> =
            PUBLIC.into_iter().chain(off.iter().flat_map(|f| [*f, "0"])).collect();
        let off = settings(&flags);
        assert_eq!((off.address, off.account, off.connections_per_address), (NONE, NONE, None));
    }
}
