//! What can be set: flags first, then `WELLSPRING_*`, then a TOML file, then the default.

use crate::access::jwks_source::ForeignSettings;
use crate::access::token::MAX_LIFE_S;
use crate::audit;
use crate::http::cors::Cors;
use crate::links::settings::{LinkSettings, ReferrerPolicy};
use crate::otlp::Otlp;
use crate::tls::{ClientAuth, Files};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellspring_log::batcher::Overflow;
use wellspring_types::limits;
use wellspring_types::valid::check_text;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// For machines, one object a line.
    Json,
}

/// What becomes of events that find no room in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IngestOverflow {
    /// Their clients are read more slowly.
    Block,
    /// They are refused with 429.
    Shed,
}

/// What `wellspring serve` takes.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// A TOML file with any of the settings, names as the flags with `_` for `-`.
    #[arg(long, env = "WELLSPRING_CONFIG")]
    config: Option<PathBuf>,
    /// Prints the effective configuration with every limit, and stops.
    #[arg(long)]
    pub(crate) print_config: bool,
    #[command(flatten)]
    settings: Settings,
}

// Those after `optional` have no default: that they are not set means something of its own.
macro_rules! settings {
    ($($(#[doc = $doc:literal])+ $([$($flag:tt)*])? $name:ident: $type:ty = $env:literal, $default:expr;)*
     $(optional $(#[doc = $maybe_doc:literal])+ $maybe:ident: $maybe_type:ty = $maybe_env:literal;)*) => {
        /// Settings as given in one place: flags and environment, or the file.
        #[derive(Debug, Default, Args, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        struct Settings {
            $($(#[doc = $doc])+ #[arg(long, env = $env, $($($flag)*)?)] $name: Option<$type>,)*
            $($(#[doc = $maybe_doc])+ #[arg(long, env = $maybe_env)] $maybe: Option<$maybe_type>,)*
        }

        /// The effective configuration.
        #[derive(Debug, Clone, Serialize)]
        pub(crate) struct Config {
            $($(#[doc = $doc])+ pub(crate) $name: $type,)*
            $($(#[doc = $maybe_doc])+ pub(crate) $maybe: Option<$maybe_type>,)*
        }

        impl Config {
            /// The settings without a default that are not set.
            fn unset(&self) -> Vec<&'static str> {
                let all = [$((stringify!($maybe), self.$maybe.is_some()),)*];
                all.into_iter().filter(|(_, is_set)| !is_set).map(|(name, _)| name).collect()
            }
        }

        impl Settings {
            /// These, and where they are silent `other`, and where both are the default.
            fn over(self, other: Settings) -> Config {
                Config {
                    $($name: self.$name.or(other.$name).unwrap_or_else(|| $default),)*
                    $($maybe: self.$maybe.or(other.$maybe),)*
                }
            }
        }
    };
}

settings! {
    /// Folder of the data.
    data: PathBuf = "WELLSPRING_DATA", PathBuf::from("./data");
    /// Lets a crash write the process's memory, and the secrets in it, to a core file.
    [num_args = 0..=1, default_missing_value = "true"]
    core_dumps: bool = "WELLSPRING_CORE_DUMPS", false;
    /// Address and port to listen on; port 0 takes a free one.
    listen: String = "WELLSPRING_LISTEN", "127.0.0.1:4000".to_owned();
    /// Allows a --listen address that other machines can reach, without accounts or encryption.
    [num_args = 0..=1, default_missing_value = "true"]
    insecure: bool = "WELLSPRING_INSECURE", false;
    /// When an append counts as durable: `always`, or `interval=<ms>` (a power loss may take that much).
    sync: String = "WELLSPRING_SYNC", "always".to_owned();
    /// Serves /cleanup and /load-test-data, which change or remove data without asking.
    [num_args = 0..=1, default_missing_value = "true"]
    dev_endpoints: bool = "WELLSPRING_DEV_ENDPOINTS", false;
    /// Serving threads; 0 = one for each core.
    threads: usize = "WELLSPRING_THREADS", 0;
    /// How log lines are written: text or json.
    log_format: LogFormat = "WELLSPRING_LOG_FORMAT", LogFormat::Text;
    /// Least severity written: error, warn, info, debug, trace.
    log_level: String = "WELLSPRING_LOG_LEVEL", "info".to_owned();
    /// Writes a line for every request at level info (else at debug).
    [num_args = 0..=1, default_missing_value = "true"]
    access_log: bool = "WELLSPRING_ACCESS_LOG", false;
    /// What is kept of who did what, as events of the log system: off, changes (what needs the role operator or admin, logins, changes of accounts and keys, refusals), writes (what needs writer, too), all (reads, too).
    audit: audit::Level = "WELLSPRING_AUDIT", audit::Level::Changes;
    /// Share of requests whose trace begins here and is exported, 0 to 1. Who sends a traceparent decides for himself.
    otlp_sample: f64 = "WELLSPRING_OTLP_SAMPLE", 0.01;
    /// Most logs.
    max_logs: usize = "WELLSPRING_MAX_LOGS", 256;
    /// Most connections at a time; further ones get 503.
    max_connections: usize = "WELLSPRING_MAX_CONNECTIONS", 16_384;
    /// Longest path and query of a URL, in bytes.
    max_url_bytes: usize = "WELLSPRING_MAX_URL_BYTES", 16_384;
    /// Most headers of a request.
    max_headers: usize = "WELLSPRING_MAX_HEADERS", 64;
    /// Largest read buffer of a connection: bounds the header section, in bytes.
    max_buffer_bytes: usize = "WELLSPRING_MAX_BUFFER_BYTES", 65_536;
    /// Most HTTP/2 streams of a connection.
    max_streams: u32 = "WELLSPRING_MAX_STREAMS", 256;
    /// Most memory that bodies being received, answers being sent and requests over HTTP/2 may take together, in bytes.
    body_memory_bytes: usize = "WELLSPRING_BODY_MEMORY_BYTES", 512 << 20;
    /// Most long reads at a time; further ones get 503.
    max_long_reads: usize = "WELLSPRING_MAX_LONG_READS", 64;
    /// Most subscriptions at a time; further ones get 503.
    max_subscribers: usize = "WELLSPRING_MAX_SUBSCRIBERS", 8_192;
    /// Longest time a projection may take, in ms.
    max_fold_ms: u64 = "WELLSPRING_MAX_FOLD_MS", 30_000;
    /// Largest JSON page of events, in bytes; a larger one is cut and has a `next`.
    max_page_bytes: usize = "WELLSPRING_MAX_PAGE_BYTES", 16 << 20;
    /// Largest segment file, in bytes.
    segment_bytes: u32 = "WELLSPRING_SEGMENT_BYTES", 256 << 20;
    /// Most bytes of a log that may wait to become durable.
    staged_bytes: usize = "WELLSPRING_STAGED_BYTES", 64 << 20;
    /// Memory of the index of the segment being written, for each log, in bytes; the next segment begins when it is full. Bounds the time of a start after a crash.
    active_index_bytes: usize = "WELLSPRING_ACTIVE_INDEX_BYTES", 8 << 20;
    /// Memory of filters and directories of the indexes of all other segments and logs together, in bytes.
    sealed_index_bytes: usize = "WELLSPRING_SEALED_INDEX_BYTES", 32 << 20;
    /// Type of events taken in by POST /e that name none.
    ingest_type: String = "WELLSPRING_INGEST_TYPE", "Ingested".to_owned();
    /// When no more may wait in memory: block (clients are read more slowly) or shed (429).
    ingest_overflow: IngestOverflow = "WELLSPRING_INGEST_OVERFLOW", IngestOverflow::Block;
    /// Memory of each serving thread and log for events accepted and not yet stored, in bytes: a power of two from 4194304 to 1073741824.
    ingest_partition_bytes: usize = "WELLSPRING_INGEST_PARTITION_BYTES", 8 << 20;
    /// Accepted events are stored at once when a serving thread has so many bytes of them; more than its memory for them means: only by time.
    ingest_flush_bytes: usize = "WELLSPRING_INGEST_FLUSH_BYTES", 1 << 20;
    /// Longest time between two times accepted events are stored, in ms.
    ingest_flush_ms: u64 = "WELLSPRING_INGEST_FLUSH_MS", 2;
    /// Serves POST /e by a loop of its own, and hands every other connection to the general one.
    [num_args = 0..=1, default_missing_value = "true"]
    lean_loop: bool = "WELLSPRING_LEAN_LOOP", true;
    /// Time for the header section of a request, in ms.
    header_timeout_ms: u64 = "WELLSPRING_HEADER_TIMEOUT_MS", 10_000;
    /// Time a connection may be idle between requests, in ms.
    idle_timeout_ms: u64 = "WELLSPRING_IDLE_TIMEOUT_MS", 90_000;
    /// Time for a body (for streamed bodies, for each piece of it), in ms.
    body_timeout_ms: u64 = "WELLSPRING_BODY_TIMEOUT_MS", 30_000;
    /// Time a client may leave an answer unread, in ms.
    write_timeout_ms: u64 = "WELLSPRING_WRITE_TIMEOUT_MS", 60_000;
    /// Time between signs of life on a subscription, in ms.
    heartbeat_ms: u64 = "WELLSPRING_HEARTBEAT_MS", 15_000;
    /// Time for requests in flight when the server stops, in ms.
    drain_timeout_ms: u64 = "WELLSPRING_DRAIN_TIMEOUT_MS", 10_000;
    /// Life of a token whose client does not say how long it is to live, in s, up to 31622400 (366 days).
    token_life_s: u64 = "WELLSPRING_TOKEN_LIFE_S", 3_600;
    /// Value of Referrer-Policy on redirects of links.
    link_referrer_policy: ReferrerPolicy = "WELLSPRING_LINK_REFERRER_POLICY", ReferrerPolicy::StrictOriginWhenCrossOrigin;
    /// Hosts that links may lead to, comma separated: example.com is that host, *.example.com all below it; none given: any host.
    [value_delimiter = ',']
    link_allow_hosts: Vec<String> = "WELLSPRING_LINK_ALLOW_HOSTS", Vec::new();
    /// Hosts that links may not lead to even if allowed, comma separated, as in --link-allow-hosts.
    [value_delimiter = ',']
    link_deny_hosts: Vec<String> = "WELLSPRING_LINK_DENY_HOSTS", Vec::new();
    /// Proxies whose X-Forwarded-For is believed, comma separated: addresses and prefixes (10.0.0.0/8).
    [value_delimiter = ',']
    trusted_proxies: Vec<String> = "WELLSPRING_TRUSTED_PROXIES", Vec::new();
    /// Claim of the --jwt-issuer's tokens that holds the roles, a list or words in a text: writer, or writer:LOG. Other words are passed over.
    jwt_roles_claim: String = "WELLSPRING_JWT_ROLES_CLAIM", "roles".to_owned();
    /// Claim of the --jwt-issuer's tokens that says whose they are.
    jwt_account_claim: String = "WELLSPRING_JWT_ACCOUNT_CLAIM", "sub".to_owned();
    /// Origins whose pages may use this server from a browser, comma separated, e.g. https://app.example.com; * = any; none given: none.
    [value_delimiter = ',']
    cors_origins: Vec<String> = "WELLSPRING_CORS_ORIGINS", Vec::new();
    optional
    /// OpenTelemetry collector that figures and traces are exported to, e.g. http://127.0.0.1:4318 (OTLP over HTTP, as JSON). Only in programs built with the feature otlp.
    otlp_endpoint: String = "WELLSPRING_OTLP_ENDPOINT";
    optional
    /// Issuer (`iss`) whose tokens are accepted besides our own; with --jwt-audience and --jwt-keys.
    jwt_issuer: String = "WELLSPRING_JWT_ISSUER";
    optional
    /// Audience (`aud`) that the --jwt-issuer's tokens must name: this server.
    jwt_audience: String = "WELLSPRING_JWT_AUDIENCE";
    optional
    /// Public keys of the --jwt-issuer, a JWK Set: a file, an https URL, or an http URL on this machine.
    jwt_keys: String = "WELLSPRING_JWT_KEYS";
    optional
    /// Most connections at a time from one address, those of trusted proxies aside; further ones get 503; 0 = any number. Not set: any number while --listen is a loopback address, else 1024.
    max_connections_per_address: u32 = "WELLSPRING_MAX_CONNECTIONS_PER_ADDRESS";
    optional
    /// Most requests a second over one connection; further ones get 429; 5 s' worth may come at once; 0 or not set: any number.
    requests_per_second_per_connection: u32 = "WELLSPRING_REQUESTS_PER_SECOND_PER_CONNECTION";
    optional
    /// Most requests a second from one address; 0 = any number. Not set: any number while --listen is a loopback address, else 10000.
    requests_per_second_per_address: u32 = "WELLSPRING_REQUESTS_PER_SECOND_PER_ADDRESS";
    optional
    /// Most requests a second of one account; 0 = any number. Not set: any number while --listen is a loopback address, else 50000.
    requests_per_second_per_account: u32 = "WELLSPRING_REQUESTS_PER_SECOND_PER_ACCOUNT";
    optional
    /// Most bytes a second of bodies from one address and of answers to it; over it, further requests get 429; 0 = any number. Not set: any number while --listen is a loopback address, else 134217728.
    bytes_per_second_per_address: u64 = "WELLSPRING_BYTES_PER_SECOND_PER_ADDRESS";
    optional
    /// Most bytes a second of bodies of one account and of answers to it; 0 = any number. Not set: any number while --listen is a loopback address, else 536870912.
    bytes_per_second_per_account: u64 = "WELLSPRING_BYTES_PER_SECOND_PER_ACCOUNT";
    optional
    /// Most subscriptions at a time from one address; further ones get 429; 0 = any number. Not set: any number while --listen is a loopback address, else 1024.
    max_subscribers_per_address: u32 = "WELLSPRING_MAX_SUBSCRIBERS_PER_ADDRESS";
    optional
    /// Most subscriptions at a time of one account; 0 = any number. Not set: any number while --listen is a loopback address, else 4096.
    max_subscribers_per_account: u32 = "WELLSPRING_MAX_SUBSCRIBERS_PER_ACCOUNT";
    optional
    /// Time of the server's threads that reads from one address may take, in ms a second; over it, further reads get 429; 0 = any. Not set: any while --listen is a loopback address, else 500.
    read_ms_per_second_per_address: u32 = "WELLSPRING_READ_MS_PER_SECOND_PER_ADDRESS";
    optional
    /// Time of the server's threads that reads of one account may take, in ms a second; 0 = any. Not set: any while --listen is a loopback address, else 1000.
    read_ms_per_second_per_account: u32 = "WELLSPRING_READ_MS_PER_SECOND_PER_ACCOUNT";
    optional
    /// PEM file of the certificate that TLS is spoken with, and of the chain behind it; with --tls-key. Not set: no TLS.
    tls_cert: PathBuf = "WELLSPRING_TLS_CERT";
    optional
    /// PEM file of the private key of --tls-cert, readable by its owner alone.
    tls_key: PathBuf = "WELLSPRING_TLS_KEY";
    optional
    /// PEM file of authorities: clients show a certificate that one of them has signed.
    tls_client_ca: PathBuf = "WELLSPRING_TLS_CLIENT_CA";
    optional
    /// Whether clients may or must show a certificate: optional or required. Not set: required with --tls-client-ca.
    tls_client_auth: ClientAuth = "WELLSPRING_TLS_CLIENT_AUTH";
    optional
    /// Scheme and host of short URLs, e.g. https://go.example.com; not set: http (with TLS https) and the Host of each request.
    link_base_url: String = "WELLSPRING_LINK_BASE_URL";
    optional
    /// Most links that a client address may make in a minute; 0 = any number. Not set: any number while --listen is a loopback address, else 600.
    link_creates_per_minute: u32 = "WELLSPRING_LINK_CREATES_PER_MINUTE";
}

impl Config {
    /// Puts flags, environment, file and defaults together and checks them.
    ///
    /// # Errors
    /// A sentence for the person who set them. Starting again unchanged does not help.
    pub(crate) fn load(args: ServeArgs) -> Result<Config, String> {
        let file = match &args.config {
            Some(path) => read_file(path)?,
            None => Settings::default(),
        };
        let config = args.settings.over(file);
        config.sync()?;
        let address = config.address()?;
        let tls = Files::of(&config)?;
        if !address.ip().is_loopback() && tls.is_none() && !config.insecure {
            return Err(format!(
                "--listen {address} can be reached from other machines, and without TLS others could \
                 read and change what goes to and fro; give --tls-cert and --tls-key (and make an \
                 account: `wellspring user add NAME --role admin --data {}`), or listen on 127.0.0.1, \
                 or say --insecure if the network is private",
                config.data.display()
            ));
        }
        if config.max_buffer_bytes < 8_192 || config.max_url_bytes > config.max_buffer_bytes {
            return Err("max_buffer_bytes must be at least 8192 and max_url_bytes".to_owned());
        }
        if !(64 << 10..=2 << 30).contains(&config.segment_bytes) {
            return Err("segment_bytes must be from 65536 to 2147483648".to_owned());
        }
        config.check_ingest()?;
        if !(1..=MAX_LIFE_S).contains(&config.token_life_s) {
            return Err(format!("token_life_s must be from 1 to {MAX_LIFE_S}"));
        }
        LinkSettings::of(&config)?;
        Otlp::open(&config)?;
        ForeignSettings::of(&config)?;
        Cors::of(&config)?;
        let zero = [config.heartbeat_ms, config.body_timeout_ms, config.header_timeout_ms];
        if zero.contains(&0) {
            return Err("timeouts and heartbeat_ms must not be 0".to_owned());
        }
        Ok(config)
    }

    fn check_ingest(&self) -> Result<(), String> {
        let partition = self.ingest_partition_bytes;
        if !partition.is_power_of_two() || !((4 << 20)..=(1 << 30)).contains(&partition) {
            return Err(format!(
                "ingest_partition_bytes must be a power of two from 4194304 to 1073741824, not {partition}"
            ));
        }
        if !(1..=60_000).contains(&self.ingest_flush_ms) {
            return Err(format!(
                "ingest_flush_ms must be from 1 to 60000, not {}",
                self.ingest_flush_ms
            ));
        }
        if self.ingest_flush_bytes == 0 {
            return Err("ingest_flush_bytes must be at least 1".to_owned());
        }
        check_text(&self.ingest_type, limits::MAX_TYPE_BYTES)
            .map_err(|reason| format!("ingest_type {reason}"))
    }

    /// How accepted events are gathered.
    pub(crate) fn batcher(&self) -> wellspring_log::batcher::Options {
        wellspring_log::batcher::Options {
            partition_bytes: self.ingest_partition_bytes,
            flush_bytes: self.ingest_flush_bytes,
            flush_age: Duration::from_millis(self.ingest_flush_ms),
            overflow: match self.ingest_overflow {
                IngestOverflow::Block => Overflow::Block,
                IngestOverflow::Shed => Overflow::Shed,
            },
        }
    }

    /// The address to listen on.
    ///
    /// # Errors
    /// A sentence about `listen`.
    pub(crate) fn address(&self) -> Result<SocketAddr, String> {
        let text = self.listen.replace("localhost:", "127.0.0.1:");
        text.parse().map_err(|_| {
            format!("--listen must be ADDRESS:PORT, e.g. 127.0.0.1:4000, not {:?}", self.listen)
        })
    }

    /// When an append counts as durable.
    ///
    /// # Errors
    /// A sentence about `sync`.
    pub(crate) fn sync(&self) -> Result<wellspring_log::Sync, String> {
        let interval = || {
            self.sync.strip_prefix("interval=")?.parse().ok().filter(|ms| (1..=60_000).contains(ms))
        };
        match (self.sync.as_str(), interval()) {
            ("always", _) => Ok(wellspring_log::Sync::Always),
            (_, Some(ms)) => Ok(wellspring_log::Sync::Interval(Duration::from_millis(ms))),
            _ => Err(format!(
                "--sync must be `always` or `interval=<ms>` with 1 to 60000 ms, not {:?}",
                self.sync
            )),
        }
    }

    /// The effective configuration as TOML, with the limits that cannot be set.
    pub(crate) fn to_toml(&self) -> String {
        let settings = toml::to_string(self).unwrap_or_else(|e| format!("# {e}\n"));
        let unset = match self.unset() {
            none if none.is_empty() => String::new(),
            unset => format!("# Not set: {}\n", unset.join(", ")),
        };
        format!(
            "{settings}{unset}\n# Part of the meaning of an event; the same everywhere:\n[limits]\n{}",
            fixed_limits()
        )
    }
}

fn fixed_limits() -> String {
    [
        ("max_type_bytes", limits::MAX_TYPE_BYTES),
        ("max_tag_bytes", limits::MAX_TAG_BYTES),
        ("max_tags", limits::MAX_TAGS),
        ("max_metadata_entries", limits::MAX_METADATA_ENTRIES),
        ("max_metadata_key_bytes", limits::MAX_METADATA_KEY_BYTES),
        ("max_metadata_value_bytes", limits::MAX_METADATA_VALUE_BYTES),
        ("max_data_bytes", limits::MAX_DATA_BYTES),
        ("max_events", limits::MAX_EVENTS),
        ("max_request_bytes", limits::MAX_REQUEST_BYTES),
        ("max_request_key_bytes", limits::MAX_REQUEST_KEY_BYTES),
        ("max_query_items", limits::MAX_QUERY_ITEMS),
        ("max_query_types", limits::MAX_QUERY_TYPES),
        ("max_json_depth", crate::http::MAX_JSON_DEPTH),
        ("max_page_events", crate::http::MAX_PAGE_EVENTS as usize),
        ("max_wait_ms", crate::http::MAX_WAIT_MS as usize),
        ("max_lease_ttl_ms", crate::http::MAX_LEASE_TTL_MS as usize),
    ]
    .iter()
    .map(|(name, limit)| format!("{name} = {limit}\n"))
    .collect()
}

fn read_file(path: &Path) -> Result<Settings, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| format!("the configuration {} cannot be read: {e}", path.display()))?;
    // The output of --print-config is accepted back.
    let mut table: toml::Table = text.parse().map_err(|e| format!("{}: {e}", path.display()))?;
    table.remove("limits");
    Settings::deserialize(table).map_err(|e| format!("{}: {e}", path.display()))
}

#[cfg(test)]
impl Config {
    /// The configuration that these flags give.
    pub(crate) fn for_tests(flags: &[&str]) -> Config {
        tests::load(flags).expect("flags that are right")
    }

    /// The configuration that these flags give, or what is wrong with them.
    pub(crate) fn loaded(flags: &[&str]) -> Result<Config, String> {
        tests::load(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    pub(super) fn load(flags: &[&str]) -> Result<Config, String> {
        let line = ["x"].iter().chain(flags);
        Config::load(Line::try_parse_from(line).map_err(|e| e.to_string())?.serve)
    }

    #[test]
    fn defaults_are_safe() {
        let config = load(&[]).unwrap();
        assert_eq!(config.listen, "127.0.0.1:4000");
        assert!(config.address().unwrap().ip().is_loopback());
        assert!(!config.dev_endpoints);
        assert_eq!(config.sync(), Ok(wellspring_log::Sync::Always));
    }

    #[test]
    fn a_public_address_must_be_meant() {
        assert!(load(&["--listen", "0.0.0.0:4000"]).unwrap_err().contains("--insecure"));
        assert!(load(&["--listen", "0.0.0.0:4000"]).unwrap_err().contains("--tls-cert"));
        assert!(load(&["--listen", "0.0.0.0:4000", "--insecure"]).is_ok());
        let pair = ["--tls-cert", "c", "--tls-key", "k"];
        assert!(load(&[&pair[..], &["--listen", "0.0.0.0:4000"]].concat()).is_ok());
    }

    #[test]
    fn flags_win_over_the_file_and_unknown_settings_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.toml");
        std::fs::write(&path, "threads = 3\nsync = \"interval=20\"\n[limits]\nx = 1\n").unwrap();
        let file = path.to_str().unwrap();
        let config = load(&["--config", file, "--threads", "5"]).unwrap();
        assert_eq!((config.threads, config.sync.as_str()), (5, "interval=20"));
        std::fs::write(&path, "thread = 3\n").unwrap();
        assert!(load(&["--config", file]).unwrap_err().contains("thread"));
    }

    #[test]
    fn what_is_printed_is_accepted_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.toml");
        let flags = ["--threads", "7", "--link-base-url", "http://a.example"];
        let printed = load(&flags).unwrap().to_toml();
        let unset = printed.lines().find_map(|line| line.strip_prefix("# Not set: "));
        let unset: Vec<&str> = unset.expect("a line").split(", ").collect();
        assert!(unset.contains(&"link_creates_per_minute"), "{printed}");
        assert!(unset.contains(&"max_connections_per_address"), "{printed}");
        assert!(!unset.contains(&"link_base_url"), "{printed}");
        std::fs::write(&path, printed).unwrap();
        let config = load(&["--config", path.to_str().unwrap()]).unwrap();
        assert_eq!((config.threads, config.link_creates_per_minute), (7, None));
        assert_eq!(config.link_base_url.as_deref(), Some("http://a.example"));
    }

    #[test]
    fn sync_modes_are_checked() {
        for bad in ["sometimes", "interval=", "interval=0", "interval=x", "interval=60001"] {
            assert!(load(&["--sync", bad]).is_err(), "{bad}");
        }
    }
}
