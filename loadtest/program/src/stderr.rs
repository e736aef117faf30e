//! Standard error may be closed, or its reader may have gone (`2>&1 | head`).

/// Like the standard library's macro, which would panic then: the text is lost instead, and the
/// exit code remains.
#[macro_export]
macro_rules! eprintln {
    ($($words:tt)+) => {{
        use std::io::Write as _;
        // There is nowhere else to report this.
        let _ = writeln!(std::io::stderr(), $($words)+);
    }};
}
