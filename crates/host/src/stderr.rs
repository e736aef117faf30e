//! Standard error may be closed, or its reader may have gone (`2>&1 | head`).

/// As the standard library's, which would panic then: what is said there is lost instead, and the
/// exit code says the rest.
#[macro_export]
macro_rules! eprintln {
    ($($words:tt)+) => {{
        use std::io::Write as _;
        // There is no third place to complain to.
        let _ = writeln!(std::io::stderr(), $($words)+);
    }};
}
