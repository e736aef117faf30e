//! The problem types of sinks and sources.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    SINK_NOT_FOUND 404 "sink-not-found" "No such sink" Retry::No,
        "No sink has this name.",
        "Define it with PUT /v1/sinks/{name}, or correct the name. GET /v1/sinks lists all sinks.",
        "there is no sink \"orders-to-kafka\"";
    SOURCE_NOT_FOUND 404 "source-not-found" "No such source" Retry::No,
        "No source has this name.",
        "Define it with PUT /v1/sources/{name}, or correct the name. GET /v1/sources lists all sources.",
        "there is no source \"payments\"";
    CONNECTOR_CONFIGURED 409 "connector-configured" "The configuration defines this connector" Retry::No,
        "The sink or source is defined in the server's configuration. Nothing was changed.",
        "Change the configuration and restart the server, or use another name.",
        "the sink \"orders-to-kafka\" is defined in the server's configuration; change it there";
    TOO_MANY_CONNECTORS 409 "too-many-connectors" "Too many sinks and sources" Retry::No,
        "The limit of sinks and sources is reached. Nothing was changed.",
        "Delete one that is no longer needed.",
        "there are 64 sinks and sources, the maximum" r#""limit":64"#;
    TOO_MANY_SKIPS 409 "too-many-skips" "Too many events to skip" Retry::No,
        "The sink has reached its limit of events to skip. Nothing was changed.",
        "Narrow the query of the sink instead, or reset it to a later position.",
        "the sink \"orders-to-kafka\" has 1000 events to skip, the maximum" r#""limit":1000"#;
    KAFKA_NOT_BUILT 501 "kafka-not-built" "This program was built without Kafka" Retry::No,
        "The Kafka client is an optional feature; the released programs have it, and this one does not.",
        "Use a released program, or build with --features kafka. Webhook sinks work without it.",
        "this program was built without the feature kafka";
}
