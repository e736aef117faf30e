//! Ctrl-C: a measurement ends early and is reported.

use crate::exit::Code;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A flag that Ctrl-C or a polite kill sets. The second one ends the process with 130. If the
/// system gives no signal handler, the first one simply ends the process.
pub(crate) fn stop_flag() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGINT] {
        // In this order: the first signal finds the flag unset and sets it.
        let _ = flag::register_conditional_shutdown(
            signal,
            Code::Interrupted as i32,
            Arc::clone(&stop),
        );
        let _ = flag::register(signal, Arc::clone(&stop));
    }
    stop
}

/// From now on a write beyond a limit on file sizes (`ulimit -f`) fails like one on a full disk; it
/// would end the process without a word.
pub(crate) fn survive_file_limit() {
    /// `SIGXFSZ`, the same on all of Linux' common architectures.
    const FILE_SIZE_LIMIT: i32 = 25;
    let _ = flag::register(FILE_SIZE_LIMIT, Arc::new(AtomicBool::new(false)));
}
