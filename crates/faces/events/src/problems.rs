//! The kinds of problems of events besides those of any append.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    IMPORT_CHANGED 409 "import-changed" "The content was imported before and has changed since" Retry::No,
        "This content was imported before, and differs now from what the log holds of it. Nothing after the line was added.",
        "Import what is new from a file of its own, or all of it as something new under a label (--again).";
}
