//! The machine: which processors there are, what else runs on them, and what was measured on.

mod environment;
mod noise;
mod processors;

pub use environment::describe;
pub(crate) use environment::identify_server;
pub(crate) use noise::process_rss_bytes;
pub use noise::{NoiseProbe, process_cpu_ns};
pub(crate) use processors::{allow_open_files, cpus_for, fine_timers, peak_rss_bytes};
pub use processors::{allowed_cpus, pin_to};
