//! The problem types of events, beyond those of every append.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    IMPORT_CHANGED 409 "import-changed" "The content has changed since it was imported" Retry::No,
        "This content was imported before and now differs from what the log holds of it. Nothing after the named line was added.",
        "Import the new events from a file of their own, or import everything again as new content under a label (--again).",
        "line 1001: this content was imported before and has changed since: this event differs, where the log holds position 2001 (positions 2001 to 2500 were imported as one). Give a label to import it as something new" r#""line":1001,"durable_lines":1000,"durable_last":2000,"added":0,"known":1000"#;
}
