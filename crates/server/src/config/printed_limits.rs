//! The output of `--print-config`: the settings, the fixed limits, and the memory bound that
//! follows from them.

use super::{Config, Settings};
use wellspring_host::settings::Section as _;
use wellspring_types::limits;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Code, threads and their stacks, counters: memory taken before any client connects.
const BASE_BYTES: usize = 64 * MIB;
/// Remembered clients, credentials and logins.
const REMEMBERED_BYTES: usize = 32 * MIB;
/// Memory of a connection beyond its buffer.
const CONNECTION_BYTES: usize = 32 * KIB;
/// Memory of a long read beyond its page, and of a subscription whose client does not read.
const LONG_READ_BYTES: usize = 2 * MIB;
const SUBSCRIPTION_BYTES: usize = 320 * KIB;
/// Memory of merging the indexes of a log.
const MERGE_BYTES: usize = 96 * MIB;
/// Memory of a log's waiters, of two kinds.
const WAITERS_BYTES: usize = 2 * 65_536 * 48;
/// Logs that are written: `main` and `system`.
const LOGS: usize = 2;

/// The effective configuration as TOML. Fixed limits are comments, so that the output is accepted
/// as input.
pub(crate) fn page(config: &Config) -> String {
    let settings = toml::to_string(&config.settings).unwrap_or_else(|e| format!("# {e}\n"));
    let Settings { host, .. } = &config.settings;
    let is_alone = host.process.address().is_ok_and(|address| address.ip().is_loopback());
    let unset: String =
        config.settings.unset().into_iter().map(|(name, doc)| unset(name, doc, is_alone)).collect();
    format!(
        "{settings}{unset}\n# Limits that follow from the settings or cannot be set.\n\
         # What clients can make the server hold, with two logs, main and system:\n\
         # memory_bound_bytes = {}\n\
         # Part of the meaning of an event and a request; the same everywhere:\n{}",
        memory_bound_bytes(config),
        fixed()
    )
}

/// Most resident memory that clients can make a server with this configuration use, in bytes: the
/// table in docs/operations.md, "Memory". Views, links and graphs grow with their content and are
/// not included.
fn memory_bound_bytes(config: &Config) -> usize {
    let host = &config.settings.host;
    let threads = match host.process.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        set => set,
    };
    let of_log = 2 * threads * host.ingest.ingest_partition_bytes
        + 2 * host.storage.staged_bytes
        + 4 * host.storage.active_index_bytes
        + MERGE_BYTES
        + WAITERS_BYTES;
    BASE_BYTES
        + REMEMBERED_BYTES
        + host.limits.max_connections * (CONNECTION_BYTES + host.http.max_buffer_bytes)
        + host.limits.body_memory_bytes
        + host.http.max_long_reads * (LONG_READ_BYTES + 2 * host.http.max_page_bytes)
        + host.http.max_subscribers * SUBSCRIPTION_BYTES
        + host.storage.sealed_index_bytes
        + LOGS * of_log
        + config.settings.faces.graph.memory_bound_bytes(host.http.max_long_reads)
}

/// An unset setting as a TOML comment, with its meaning according to its description: for a server
/// that listens on loopback only (`is_alone`), or that other machines can reach.
fn unset(name: &str, description: &str, is_alone: bool) -> String {
    const ALONE: &str = " while --listen is a loopback address, else ";
    let meaning = description
        .trim()
        .trim_end_matches('.')
        .rsplit_once("ot set: ")
        .map(|(_, meaning)| meaning);
    match meaning.map(|meaning| meaning.split_once(ALONE).ok_or(meaning)) {
        Some(Ok((alone, public))) => {
            let (effective, why) = if is_alone {
                (alone, "as --listen is a loopback address")
            } else {
                (public, "as others can reach --listen")
            };
            format!("# {name} is not set: {effective}, {why}\n")
        }
        Some(Err(meaning)) => format!("# {name} is not set: {meaning}\n"),
        None => format!("# {name} is not set\n"),
    }
}

/// Fixed limits, as TOML comments.
fn fixed() -> String {
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
        ("max_query_terms", limits::MAX_QUERY_TERMS),
        ("max_projections", wellspring_face_events::view::MAX_PROJECTIONS),
        ("max_import_batch", limits::MAX_EVENTS),
        ("max_json_depth", wellspring_host::wire::json::MAX_DEPTH),
        ("max_wait_ms", wellspring_host::wire::param::MAX_WAIT_MS as usize),
    ]
    .into_iter()
    .chain(crate::faces::limits())
    .map(|(name, limit)| format!("# {name} = {limit}\n"))
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_set_is_told_with_what_that_means() {
        let doc =
            " Most of it; 0 = any. Not set: any while --listen is a loopback address, else 16.";
        assert_eq!(
            unset("x", doc, true),
            "# x is not set: any, as --listen is a loopback address\n"
        );
        assert_eq!(unset("x", doc, false), "# x is not set: 16, as others can reach --listen\n");
        assert_eq!(unset("x", " A file. Not set: no TLS.", true), "# x is not set: no TLS\n");
        assert_eq!(unset("x", " A file.", true), "# x is not set\n");
        let text = page(&Config::for_tests(&[]));
        let expected = "# max_long_reads_per_address is not set: any number, as --listen is a loopback address\n";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn what_is_printed_is_accepted_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.toml");
        let flags = ["--threads", "7", "--link-base-url", "http://a.example"];
        let printed = page(&Config::for_tests(&flags));
        let is_unset = |name| printed.contains(&format!("\n# {name} is not set"));
        assert!(is_unset("link_creates_per_minute"), "{printed}");
        assert!(is_unset("max_connections_per_address"), "{printed}");
        assert!(!is_unset("link_base_url"), "{printed}");
        for fixed in [
            "max_tags = 64",
            "max_query_items = 256",
            "max_query_terms = 4096",
            "max_subscription_query_bytes = 65536",
            "max_projections = 64",
            "max_page_terms = 10000",
            "max_import_batch = 1000",
        ] {
            assert!(printed.lines().any(|line| line == format!("# {fixed}")), "{fixed}: {printed}");
        }
        std::fs::write(&path, printed).unwrap();
        let config = Config::loaded(&["--config", path.to_str().unwrap()]).unwrap();
        assert_eq!(
            (
                config.settings.host.process.threads,
                config.settings.faces.links.link_creates_per_minute
            ),
            (7, None)
        );
        assert_eq!(config.settings.faces.links.link_base_url.as_deref(), Some("http://a.example"));
    }

    #[test]
    fn every_setting_of_memory_moves_the_bound() {
        let bound = |flags: &[&str]| memory_bound_bytes(&Config::for_tests(flags));
        let base = bound(&["--threads", "2"]);
        for (flag, value) in [
            ("--max-connections", "20000"),
            ("--max-buffer-bytes", "131072"),
            ("--body-memory-bytes", "1073741824"),
            ("--max-long-reads", "65"),
            ("--max-page-bytes", "33554432"),
            ("--max-subscribers", "8193"),
            ("--ingest-partition-bytes", "16777216"),
            ("--staged-bytes", "134217728"),
            ("--active-index-bytes", "16777216"),
            ("--sealed-index-bytes", "67108864"),
            ("--graph-queries-bytes", "2147483648"),
            ("--graph-transactions-bytes", "536870912"),
        ] {
            assert!(bound(&["--threads", "2", flag, value]) > base, "{flag}");
        }
    }
}
