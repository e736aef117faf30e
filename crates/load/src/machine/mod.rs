//! The machine: which processors there are, what else runs on them, and what was measured on.

mod environment;
mod noise;
mod processors;

pub use environment::{describe, identify_server};
pub use noise::{NoiseProbe, calibrate, process_cpu_ns, process_rss_bytes};
pub use processors::{
    allow_open_files, allowed_cpus, cpus_for, fine_timers, peak_rss_bytes, pin_to,
};
