//! What a report was measured on and with.

use super::noise::cgroup_folder;
use super::processors::allowed_cpus;
use crate::result::{Environment, ServerIdentity};
use sha2::{Digest as _, Sha256};
use std::fs;
use std::process::Command;

/// Describes this machine. What cannot be found out stays `None`.
#[must_use]
pub fn describe(client_version: &str, target: &str, target_is_local: Option<bool>) -> Environment {
    let cpuinfo = read("/proc/cpuinfo").unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let processors = cpuinfo.lines().filter(|line| line.starts_with("processor")).count();
    let memory_kib = read("/proc/meminfo")
        .and_then(|text| field(&text, "MemTotal"))
        .and_then(|value| value.split_whitespace().next()?.parse::<u64>().ok());
    let uname = rustix::system::uname();
    Environment {
        cpu_model: field(&cpuinfo, "model name"),
        cpus: u32::try_from(processors).ok().filter(|count| *count > 0),
        allowed_cpus: allowed_cpus(),
        cgroup_cpu_limit: cgroup_limit(),
        governor: read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        kernel: Some(format!(
            "{} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy()
        )),
        memory_bytes: memory_kib.map(|kib| kib * 1024),
        client_version: client_version.to_owned(),
        git_revision: git_revision(),
        target: target.to_owned(),
        target_is_local,
        server: ServerIdentity::default(),
        notes: Vec::new(),
    }
}

/// Adds the program behind a process number to what is known of the server.
pub(crate) fn identify_server(identity: &mut ServerIdentity, pid: u32) {
    let link = format!("/proc/{pid}/exe");
    identity.program = fs::read_link(&link).ok().map(|path| path.display().to_string());
    identity.program_sha256 = fs::read(&link).ok().map(|bytes| {
        use std::fmt::Write as _;
        Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    });
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// The quota of this process's cgroup (version 2) in processors, e.g. `1.5`.
fn cgroup_limit() -> Option<String> {
    let text = read(&format!("{}/cpu.max", cgroup_folder()?))?;
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.parse().ok()?);
    Some(format!("{}", quota / period))
}

/// Revision of the repository the client was started in, if it was started in one.
fn git_revision() -> Option<String> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let revision = git(&["rev-parse", "--short=12", "HEAD"])?;
    let modified = git(&["status", "--porcelain", "--untracked-files=no"])?;
    Some(if modified.is_empty() { revision } else { format!("{revision} (modified)") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_described() {
        let environment = describe("test 1", "127.0.0.1:1", Some(true));
        assert!(environment.kernel.is_some_and(|kernel| kernel.starts_with("Linux ")));
        assert!(!environment.allowed_cpus.is_empty());
        let mut identity = ServerIdentity::default();
        identify_server(&mut identity, std::process::id());
        assert_eq!(identity.program_sha256.map(|hash| hash.len()), Some(64));
    }
}
