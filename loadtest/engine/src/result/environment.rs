//! Where and with what a report was measured: what must be equal before two reports are compared
//! (check C11).

use serde::{Deserialize, Serialize};

/// The machine, the client and the server. What could not be found out is `None`, never guessed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// The processor's name, e.g. `Intel(R) Xeon(R) Processor @ 2.60GHz`.
    pub cpu_model: Option<String>,
    /// Logical processors of the machine.
    pub cpus: Option<u32>,
    /// Processors this process may run on.
    pub allowed_cpus: Vec<u32>,
    /// The cgroup's limit, in processors (1.5 = one and a half); `None` without one.
    pub cgroup_cpu_limit: Option<String>,
    /// Frequency governor, e.g. `performance`.
    pub governor: Option<String>,
    /// Kernel, e.g. `Linux 6.18.5`.
    pub kernel: Option<String>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Version of the client program.
    pub client_version: String,
    /// Git revision and state of the folder the client was started in, e.g. `2a9d87d (modified)`.
    pub git_revision: Option<String>,
    /// The host asked, as in the URL, without credentials.
    pub target: String,
    /// Whether the target is this machine (check C16); `None` if unknown.
    pub target_is_local: Option<bool>,
    /// What is known of the server.
    pub server: ServerIdentity,
    /// Lines the user added with `--note KEY=VALUE`, in their order.
    #[serde(default)]
    pub notes: Vec<(String, String)>,
}

/// What is known of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerIdentity {
    /// Its `Server` header.
    pub header: Option<String>,
    /// The protocol spoken with it, e.g. `HTTP/1.1`, `h2c`, `h2`.
    pub protocol: Option<String>,
    /// With `--server-pid`: the path of its program.
    pub program: Option<String>,
    /// With `--server-pid`: SHA-256 of its program, in hexadecimal.
    pub program_sha256: Option<String>,
}
