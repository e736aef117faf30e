//! What the system tells of a server's process.

use crate::server::Server;

/// A memory figure of the server's process in kB, by its name in `/proc/PID/status`.
pub fn memory_kb(server: &Server, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).expect("a line");
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Processor time of a server in ms, including threads that have ended.
pub fn processor_ms(server: &Server) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", server.pid())).unwrap();
    let fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).map(|field| field.parse::<u64>().unwrap()).sum();
    ticks * 1_000 / rustix::param::clock_ticks_per_second()
}
