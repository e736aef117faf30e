//! The problem types of events, beyond those of every append.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    IMPORT_CHANGED 409 "import-changed" "The content has changed since it was imported" Retry::No,
        "This content was imported before and now differs from what the log holds of it. Nothing after the named line was added.",
        "Import the new events from a file of their own, or import everything again as new content under a label (--again).",
        "line 1001: this content was imported before and has changed since: this event differs, where the log holds position 2001 (positions 2001 to 2500 were imported as one). Give a label to import it as something new" r#""line":1001,"durable_lines":1000,"durable_last":2000,"added":0,"known":1000"#;
    TRIM_HELD 409 "trim-held" "Events of the log's beginning are still needed" Retry::No,
        "Something needs events that would be removed. Nothing was removed.",
        "Remove less: what stays begins at the smallest position of held_by. What consumers and sinks have not read goes with force=true; events of a view stay.",
        "the log would begin at position 1000001, and these need events before it: the consumer mailer from 990000 on; nothing was removed" r#""first":1000001,"held_by":[{"kind":"consumer","name":"mailer","position":990000}]"#;
    CONSUMER_NOT_FOUND 404 "consumer-not-found" "No such consumer" Retry::No,
        "The log has no consumer of this name.",
        "Define it with PUT /v1/consumers/{name}, or correct the name. GET /v1/consumers lists all consumers of the log.",
        "there is no consumer \"mailer\"; define it with PUT /v1/consumers/mailer";
    TOO_MANY_CONSUMERS 409 "too-many-consumers" "Too many consumers" Retry::No,
        "The log has as many consumers as it may have. Nothing was changed.",
        "Delete one that is no longer needed.",
        "the log has 64 consumers, the maximum" r#""limit":64"#;
    CONSUMER_BUSY 409 "consumer-busy" "The consumer has open keys" Retry::No,
        "What keeps its order cannot change while events are delivered, tried again or parked in the order before. Nothing was changed.",
        "Pause the consumer until its workers have settled what they hold, replay or skip what is parked, and try again; or define a consumer of another name.",
        "the consumer \"mailer\" has 12 open keys, and another key would give their events another order" r#""open_keys":12"#;
    TURN_PASSED 409 "turn-passed" "The worker has sent another request" Retry::No,
        "A worker counts its requests up, and a later one has come, or the same one again. This one gives it nothing.",
        "Give each worker a name of its own, drawn at its start, and send its requests one after the other.",
        "the worker has begun turn 9 already, after turn 7" r#""turn":9"#;
    DELIVERY_SETTLED 409 "delivery-settled" "An earlier append has settled the delivery" Retry::No,
        "An earlier append settled the delivery together with other events than those of this request, which appended nothing. first and last are the positions of what it appended.",
        "Take the delivery for done, and go on with the next.",
        "an earlier append with other events has settled the delivery; its events are at positions 4790 to 4790" r#""field":"settles.delivery","first":4790,"last":4790"#;
}
