//! The problem types of a service of several nodes.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    NODE_NOT_FOUND 404 "node-not-found" "No such node" Retry::No,
        "No node of this name has ever joined the service.",
        "Correct the name. GET /v1/cluster lists the nodes.",
        "no node \"node-4\" has joined";
    NO_CLUSTER 409 "no-cluster" "The server is not part of a cluster" Retry::No,
        "The logs of this server are its own files, so no other node can lead them.",
        "Start nodes with --journal to form a cluster.",
        "this server is not part of a cluster: its logs are its own files; start nodes with --journal to form one";
    NODE_LEADS 409 "node-leads" "The node is the leader" Retry::No,
        "The node to be forgotten leads, so it is running.",
        "Transfer the lead (POST /v1/cluster/transfer) and stop the node first.",
        "node-2 leads; transfer the lead to another node and stop it first";
}
