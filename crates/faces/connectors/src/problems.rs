//! The kinds of problems of connectors.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    SINK_NOT_FOUND 404 "sink-not-found" "No such sink" Retry::No,
        "No sink has this name.",
        "Define it with PUT /v1/sinks/{name}, or correct the name; GET /v1/sinks lists the sinks.";
    SOURCE_NOT_FOUND 404 "source-not-found" "No such source" Retry::No,
        "No source has this name.",
        "Define it with PUT /v1/sources/{name}, or correct the name; GET /v1/sources lists the sources.";
    CONNECTOR_CONFIGURED 409 "connector-configured" "The configuration defines this connector" Retry::No,
        "The sink or source is defined in the configuration of the server. Nothing was changed.",
        "Change it in the configuration and restart the server, or use another name.";
    TOO_MANY_CONNECTORS 409 "too-many-connectors" "Too many sinks and sources" Retry::No,
        "The server runs as many sinks and sources as it may. Nothing was changed.",
        "Delete one that is no longer used.";
    TOO_MANY_SKIPS 409 "too-many-skips" "Too many events to skip" Retry::No,
        "The sink has as many events to skip as it may have. Nothing was changed.",
        "Narrow the query of the sink instead, or reset it to a later position.";
    KAFKA_NOT_BUILT 501 "kafka-not-built" "This program cannot connect to Kafka" Retry::No,
        "The Kafka client is part of programs that are built with the feature kafka, as the released ones are.",
        "Use a released program, or build with --features kafka. Webhook sinks need none of it.";
}
