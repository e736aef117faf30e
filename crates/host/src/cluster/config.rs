//! The settings of a node of a cluster: the journal of its logs, its identity, the shared key.

use super::NodeName;
use crate::settings::{ProcessConfig, section};
use crate::setup::SetupError;
use clap::ValueEnum;
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use wellspring_client::endpoint::Endpoint;

/// What a follower does with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FollowerWrites {
    /// It forwards it to the leader.
    Forward,
    /// It redirects the client to the leader (307).
    Redirect,
}

/// The URL of a journal. It may contain a password, which is never shown.
#[derive(Clone, Default, PartialEq, Eq, Deserialize)]
pub struct JournalUrl(String);

impl JournalUrl {
    /// The URL as it was given.
    pub fn secret_text(&self) -> &str {
        &self.0
    }
}

impl From<String> for JournalUrl {
    fn from(text: String) -> JournalUrl {
        JournalUrl(text)
    }
}

/// The URL without a password.
impl fmt::Display for JournalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((scheme, rest)) = self.0.split_once("://") else { return f.write_str(&self.0) };
        let authority = &rest[..rest.find('/').unwrap_or(rest.len())];
        match authority.rsplit_once('@').and_then(|(login, _)| login.split_once(':')) {
            Some((user, _)) => {
                let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
                write!(f, "{scheme}://{user}:***@{host}")
            }
            None => f.write_str(&self.0),
        }
    }
}

impl fmt::Debug for JournalUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for JournalUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

section! {
    /// Settings of a node of several.
    ClusterConfig from ClusterConfigArgs under "Several nodes":
    /// Journal of several nodes: raft, or postgres://wellspring@db.example/events. Without it the
    /// logs are files in the data folder.
    journal: JournalUrl = "WELLSPRING_JOURNAL", JournalUrl::default();
    /// Write events as rows, too, if the journal is a database, for SQL clients.
    [num_args = 0..=1, default_missing_value = "true"]
    journal_rows: bool = "WELLSPRING_JOURNAL_ROWS", true;
    /// What a follower does with a write: forward it to the leader, or redirect the client there
    /// (307).
    follower_writes: FollowerWrites = "WELLSPRING_FOLLOWER_WRITES", FollowerWrites::Forward;
    /// Maximum time that a write waits for a leader, in ms.
    leader_wait_ms: u64 = "WELLSPRING_LEADER_WAIT_MS", 5_000;
    /// Silence after which a leader is considered gone, in ms.
    lead_timeout_ms: u64 = "WELLSPRING_LEAD_TIMEOUT_MS", 2_000;
    /// With --journal raft: bytes of entries that each node keeps for nodes that were away,
    /// although the logs have them.
    raft_keep_bytes: u64 = "WELLSPRING_RAFT_KEEP_BYTES", 1 << 30;
    optional
    /// File with the password of the journal, readable by its owner only; or set PGPASSWORD.
    journal_password_file: PathBuf = "WELLSPRING_JOURNAL_PASSWORD_FILE";
    optional
    /// Name of this node, unique among the nodes.
    node: String = "WELLSPRING_NODE";
    optional
    /// URL at which other nodes and clients reach this node. Not set: that of --listen, if it is a
    /// loopback address.
    advertise: String = "WELLSPRING_ADVERTISE";
    optional
    /// File with the key that all nodes share; create it with `wellspring cluster key FILE`.
    cluster_key: PathBuf = "WELLSPRING_CLUSTER_KEY";
    optional
    /// PEM file of authorities to trust at https:// addresses of other nodes. Not set: this
    /// machine's.
    cluster_cacert: PathBuf = "WELLSPRING_CLUSTER_CACERT";
}

/// The identity of a node of a cluster, from its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeIdentity {
    /// Its name.
    pub name: NodeName,
    /// Its URL for others.
    pub url: String,
}

impl ClusterConfig {
    /// Whether the logs are copies of a shared journal.
    pub fn is_shared(&self) -> bool {
        !self.journal.0.is_empty()
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self, process: &ProcessConfig, has_tls: bool) -> Result<(), SetupError> {
        if !self.is_shared() {
            let alone = [
                ("journal_password_file", self.journal_password_file.is_some()),
                ("node", self.node.is_some()),
                ("advertise", self.advertise.is_some()),
                ("cluster_key", self.cluster_key.is_some()),
            ];
            return match alone.into_iter().find(|(_, is_set)| *is_set) {
                Some((name, _)) => {
                    Err(format!("{name} has no effect without --journal URL").into())
                }
                None => Ok(()),
            };
        }
        for (name, ms, least) in [
            ("leader_wait_ms", self.leader_wait_ms, 0),
            ("lead_timeout_ms", self.lead_timeout_ms, 100),
        ] {
            if !(least..=600_000).contains(&ms) {
                return Err(format!("{name} must be from {least} to 600000, not {ms}").into());
            }
        }
        if self.cluster_key.is_none() {
            return Err(
                "cluster_key is missing: with --journal the nodes share a key; create one with \
                 `wellspring cluster key FILE`, copy it to each node, and set --cluster-key FILE"
                    .into(),
            );
        }
        self.identity(process, has_tls).map(drop)
    }

    /// The identity of this node.
    ///
    /// # Errors
    /// A sentence about `node` or `advertise`.
    pub fn identity(
        &self,
        process: &ProcessConfig,
        has_tls: bool,
    ) -> Result<NodeIdentity, SetupError> {
        let name =
            NodeName::parse(self.node.as_deref().unwrap_or_default()).map_err(
                |rule| match &self.node {
                    None => {
                        "node is missing: with --journal each node needs a unique name".to_owned()
                    }
                    Some(name) => format!("node {name:?} is not a valid name: {rule}"),
                },
            )?;
        let url = match &self.advertise {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => of_listen(process, has_tls)?,
        };
        let endpoint =
            Endpoint::parse(&url).map_err(|error| format!("advertise {url}: {error}"))?;
        if url.starts_with("http://") && !endpoint.is_this_machine() && !process.insecure {
            return Err(format!(
                "advertise {url} is reached without TLS, and others could read and change the \
                 traffic of nodes and clients; set --tls-cert and --tls-key and an https:// \
                 address, or set --insecure if the network is private"
            )
            .into());
        }
        Ok(NodeIdentity { name, url })
    }

    /// The silence after which a leader is considered gone.
    pub fn lead_timeout(&self) -> Duration {
        Duration::from_millis(self.lead_timeout_ms)
    }

    /// How long a write waits for a leader.
    pub fn leader_wait(&self) -> Duration {
        Duration::from_millis(self.leader_wait_ms)
    }
}

/// The URL of a listener that only this machine can reach.
fn of_listen(process: &ProcessConfig, has_tls: bool) -> Result<String, SetupError> {
    let address = process.address()?;
    if !address.ip().is_loopback() || address.port() == 0 {
        return Err(format!(
            "advertise is missing: set the URL at which other nodes and clients reach this one \
             (--listen {} does not tell)",
            process.listen
        )
        .into());
    }
    Ok(format!("{}://{address}", if has_tls { "https" } else { "http" }))
}

#[cfg(test)]
mod tests {
    use crate::config::HostConfig;

    const SHARED: &[&str] = &["--journal", "postgres://x/y", "--node", "a", "--cluster-key", "key"];

    fn refused(flags: &[&str]) -> String {
        HostConfig::loaded(flags).map(drop).unwrap_err().to_string()
    }

    #[test]
    fn a_node_has_a_name_a_key_and_an_address() {
        let config = HostConfig::for_tests(SHARED);
        let identity = config.cluster.identity(&config.process, false).unwrap();
        assert_eq!((identity.name.as_str(), identity.url.as_str()), ("a", "http://127.0.0.1:4000"));
        assert!(refused(&SHARED[..4]).starts_with("cluster_key is missing"));
        assert!(refused(&[&SHARED[..2], &SHARED[4..]].concat()).starts_with("node "));
        for name in ["A", "a b", "", "a/b", &"x".repeat(65)] {
            let flags = ["--journal", "postgres://x/y", "--cluster-key", "k", "--node", name];
            assert!(refused(&flags).starts_with("node "), "{name}");
        }
        for (flag, value, says) in [
            ("--listen", "127.0.0.1:0", "advertise is missing"),
            ("--advertise", "10.0.0.1:4000", "advertise 10.0.0.1:4000: must begin with"),
            ("--advertise", "http://10.0.0.1:4000", "without TLS"),
            ("--lead-timeout-ms", "5", "lead_timeout_ms must be"),
        ] {
            let refused = refused(&[SHARED, &[flag, value]].concat());
            assert!(refused.contains(says), "{refused}");
        }
        HostConfig::for_tests(&[SHARED, &["--advertise", "https://a.example"]].concat());
    }

    #[test]
    fn a_password_in_a_url_is_not_shown() {
        for (text, shown) in [
            ("postgres://u:p@h/db?x=1", "postgres://u:***@h/db?x=1"),
            ("postgres://u:p%40@h:1,g:2/db", "postgres://u:***@h:1,g:2/db"),
            ("postgres://u@h/db", "postgres://u@h/db"),
            ("", ""),
        ] {
            let url = super::JournalUrl::from(text.to_owned());
            assert_eq!((url.to_string().as_str(), url.secret_text()), (shown, text));
            assert_eq!(format!("{url:?}"), shown);
        }
    }

    #[test]
    fn the_settings_of_a_cluster_mean_nothing_alone() {
        for flags in
            [["--node", "a"], ["--cluster-key", "k"], ["--advertise", "http://localhost:1"]]
        {
            assert!(refused(&flags).contains("has no effect without --journal"));
        }
    }
}
