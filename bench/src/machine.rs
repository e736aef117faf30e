//! What the machine gives and takes: pinning, CPU time, memory, and the environment to print.

use std::{fs, io, time::Duration};

/// Pins the calling thread (and threads it starts later) to one core.
pub(crate) fn pin_to(core: usize) -> io::Result<()> {
    // SAFETY: an all-zero cpu_set_t is a valid empty set, and CPU_SET checks the bounds.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        set
    };
    set_affinity(&set)
}

/// The cores the calling thread may use.
pub(crate) fn affinity() -> io::Result<libc::cpu_set_t> {
    // SAFETY: an all-zero cpu_set_t is valid, and the pointer is valid for the size told.
    let (failed, set) = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        (libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set), set)
    };
    if failed == 0 { Ok(set) } else { Err(io::Error::last_os_error()) }
}

/// Lets the calling thread use exactly these cores.
pub(crate) fn set_affinity(set: &libc::cpu_set_t) -> io::Result<()> {
    // SAFETY: the set is a valid reference for the size told.
    let failed = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), set) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// CPU time this process has used, user and system.
pub(crate) fn own_cpu() -> Duration {
    // SAFETY: rusage is plain data and the pointer is valid for the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let part = |time: libc::timeval| {
        Duration::from_secs(time.tv_sec as u64) + Duration::from_micros(time.tv_usec as u64)
    };
    part(usage.ru_utime) + part(usage.ru_stime)
}

/// CPU time another process has used; `None` once it is gone. Resolution is the kernel's tick, 10
/// ms.
pub(crate) fn cpu_of(pid: u32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command name may hold spaces and parentheses: fields are counted after the last ')'.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}

/// Resident memory of a process now, in MiB.
pub(crate) fn resident_mib(pid: u32) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kib: f64 = line.split_ascii_whitespace().nth(1)?.parse().ok()?;
    Some(kib / 1024.0)
}

/// Memory of a process that is not of files, in bytes, also what has been swapped out.
pub(crate) fn anonymous_bytes(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let kib = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_ascii_whitespace().nth(1)?.parse().ok()
    };
    Some((kib("RssAnon:")? + kib("VmSwap:")?) * 1024)
}

/// The environment as Markdown bullets.
pub(crate) fn environment() -> String {
    let first = |path: &str, key: &str| {
        fs::read_to_string(path)
            .ok()
            .and_then(|text| {
                let line = text.lines().find(|line| line.starts_with(key))?.to_owned();
                Some(line.split_once(':')?.1.trim().to_owned())
            })
            .unwrap_or_else(|| "unknown".into())
    };
    let whole = |path: &str| {
        fs::read_to_string(path).map(|t| t.trim().to_owned()).unwrap_or_else(|_| "unknown".into())
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let mut text =
        format!("- CPU: {}, {cores} cores usable\n", first("/proc/cpuinfo", "model name"));
    text += &format!("- kernel: {}\n", whole("/proc/sys/kernel/osrelease"));
    text += &format!("- memory: {}\n", first("/proc/meminfo", "MemTotal"));
    text += &format!("- load average: {}\n", whole("/proc/loadavg"));
    text += &format!(
        "- governor: {}\n",
        whole("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    );
    text += "- client and servers share this machine; loopback only\n";
    text
}
