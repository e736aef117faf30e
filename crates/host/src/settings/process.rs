//! Settings that several rooms read: the data folder, the address, threads, the server's names,
//! proxies.

use super::section;
use crate::proxies::{InvalidProxy, TrustedProxies};
use crate::setup::SetupError;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::PathBuf;

/// How log lines are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// For people.
    Text,
    /// For machines, one object per line.
    Json,
}

section! {
    /// Settings of the process, and those that several rooms read.
    ProcessConfig from ProcessConfigArgs under "Process":
    /// Data folder.
    data: PathBuf = "WELLSPRING_DATA", PathBuf::from("./data");
    /// Allow core dumps; they contain the memory of the process, secrets included.
    [num_args = 0..=1, default_missing_value = "true"]
    core_dumps: bool = "WELLSPRING_CORE_DUMPS", false;
    /// Address and port to listen on; port 0 selects a free one.
    listen: String = "WELLSPRING_LISTEN", "127.0.0.1:4000".to_owned();
    /// A second address and port to listen on, such as 127.0.0.1:7687, where drivers of Neo4j look;
    /// empty for none.
    listen_also: String = "WELLSPRING_LISTEN_ALSO", String::new();
    /// Allow a --listen address that other machines can reach, without accounts or encryption.
    [num_args = 0..=1, default_missing_value = "true"]
    insecure: bool = "WELLSPRING_INSECURE", false;
    /// Number of serving threads; 0 = one per core.
    threads: usize = "WELLSPRING_THREADS", 0;
    /// Format of log lines: text or json.
    log_format: LogFormat = "WELLSPRING_LOG_FORMAT", LogFormat::Text;
    /// Minimum level of log lines: error, warn, info, debug, trace.
    log_level: String = "WELLSPRING_LOG_LEVEL", "info".to_owned();
    /// Host names of this server, needed while there are no accounts; comma separated. localhost,
    /// IP addresses and names without a dot always count. example.com is that name, *.example.com
    /// every name below it.
    [value_delimiter = ',']
    own_hosts: Vec<String> = "WELLSPRING_OWN_HOSTS", Vec::new();
    /// Proxies whose X-Forwarded-For is trusted; comma separated addresses and prefixes
    /// (10.0.0.0/8).
    [value_delimiter = ',']
    trusted_proxies: Vec<String> = "WELLSPRING_TRUSTED_PROXIES", Vec::new();
}

impl ProcessConfig {
    /// Checks the settings of this section.
    ///
    /// # Errors
    /// A sentence about the first invalid setting.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        if self.threads > 1_024 {
            return Err(format!("threads must be from 0 to 1024, not {}", self.threads).into());
        }
        self.proxies().map(drop)
    }

    /// The address to listen on.
    ///
    /// # Errors
    /// A sentence about `listen`.
    pub fn address(&self) -> Result<SocketAddr, SetupError> {
        address_of("listen", &self.listen)
    }

    /// The second address to listen on, if any.
    ///
    /// # Errors
    /// A sentence about `listen_also`.
    pub(crate) fn second_address(&self) -> Result<Option<SocketAddr>, SetupError> {
        let given = Some(&*self.listen_also).filter(|text| !text.is_empty());
        given.map(|text| address_of("listen-also", text)).transpose()
    }

    /// The proxies whose `X-Forwarded-For` is trusted.
    ///
    /// # Errors
    /// A sentence about `trusted_proxies`.
    pub(crate) fn proxies(&self) -> Result<TrustedProxies, SetupError> {
        TrustedProxies::parse(&self.trusted_proxies).map_err(|InvalidProxy(entry)| {
            SetupError::new(format!(
                "trusted_proxies must be addresses or prefixes like 10.0.0.0/8, not {entry:?}"
            ))
        })
    }
}

fn address_of(flag: &str, given: &str) -> Result<SocketAddr, SetupError> {
    let text = given.replace("localhost:", "127.0.0.1:");
    text.parse().map_err(|_| {
        let example = "e.g. 127.0.0.1:4000";
        SetupError::new(format!("--{flag} must be ADDRESS:PORT, {example}, not {given:?}"))
    })
}
