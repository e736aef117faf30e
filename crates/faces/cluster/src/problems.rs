//! The kinds of problems of a service of several nodes.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    NODE_NOT_FOUND 404 "node-not-found" "There is no such node" Retry::No,
        "No node of this name has ever joined the service.",
        "GET /v1/cluster lists the nodes.";
    NO_CLUSTER 409 "no-cluster" "The server is alone" Retry::No,
        "The logs of this server are files of its own, so there is no other node to lead them.",
        "Start nodes with --journal to have several.";
    NODE_LEADS 409 "node-leads" "The node leads" Retry::No,
        "The node that is to be forgotten leads, so it is there.",
        "Have another one lead (POST /v1/cluster/transfer) and stop this one first.";
    NODE_UNREACHABLE 503 "node-unreachable" "No such node can be reached" Retry::Seconds(1),
        "The node that is to lead does not answer this one, or no node follows that could take over. It leads who led.",
        "Look at that node, and at the network between the two; GET /v1/cluster says who answers.";
}
