//! The problem types that any request may meet, in one table. The pages under `/problems` and
//! `docs/problems.md` are made from it.

use super::problem::Retry;

crate::kinds! {
    MALFORMED_JSON 400 "malformed-json" "Malformed JSON" Retry::No,
        "The body, or a parameter that takes JSON, is not valid JSON, or a string in it is not UTF-8. Nothing was done.",
        "Correct the JSON at the line and column given. Quote strings; send NDJSON as application/x-ndjson.",
        "expected `,` or `}` at line 1, column 18" r#""line":1,"column":18"#;
    BAD_REQUEST 400 "bad-request" "The request cannot be understood" Retry::No,
        "The request line, a header or a parameter is malformed. Nothing was done.",
        "Correct what detail names. GET /openapi.json lists the parameters of each route.",
        "HTTP/1.1 requires exactly one Host header";
    TLS_REQUIRED 400 "tls-required" "This port speaks TLS" Retry::No,
        "The client sent plain HTTP to a port that speaks TLS.",
        "Use https:// in the address.",
        "this port speaks TLS: use https:// instead of http://";
    MALFORMED_CREDENTIALS 400 "malformed-credentials" "The credentials cannot be understood" Retry::No,
        "A header with credentials is malformed, or the request has more than one of them.",
        "Send exactly one of Authorization: Bearer, Authorization: Basic and X-API-Key.",
        "send either Authorization or X-API-Key, not both";
    UNAUTHENTICATED 401 "unauthenticated" "Valid credentials are required" Retry::No,
        "The credentials are missing, wrong, expired or revoked. For security the answer does not say which.",
        "Log in (POST /auth/token or wellspring login), or use a valid API key.",
        "this route requires credentials: send Authorization: Bearer with a token or an API key, X-API-Key, or Authorization: Basic";
    NOT_A_NODE 401 "not-a-node" "The request does not come from a node of this cluster" Retry::No,
        "The route is reserved for the nodes of a cluster, the header Wellspring-Node is not validly signed, or the server is in no cluster: nothing was done.",
        "Give all nodes the same --cluster-key and synchronize their clocks. Clients must not send Wellspring-Node.",
        "Wellspring-Node was signed more than a minute from now; synchronize the clocks of the nodes";
    FORBIDDEN 403 "forbidden" "The credentials do not permit this" Retry::No,
        "The credentials are valid but grant no access to this log or operation.",
        "Use an account with the role that detail names, or ask an administrator to grant it.",
        "this needs the role writer on the log orders; these credentials grant no access to that log";
    FOREIGN_PAGE 403 "foreign-page" "A page of another site may not use this server" Retry::No,
        "A browser sent the request on behalf of a page of another site, and that origin is not allowed.",
        "If the page may use the server, add its origin to --cors-origins.",
        "a browser sent this for a page of another site, \"https://app.example.com\", with a password that it may have stored: send a token or an API key, or add the page's origin to --cors-origins";
    FOREIGN_HOST 403 "foreign-host" "The server does not answer under this host name" Retry::No,
        "The Host header names none of the server's own names. This stops DNS rebinding, where a page has its own name resolve to this machine.",
        "Use the address the server listens on, or localhost, or add the name to --own-hosts.",
        "the request is for \"intranet.example.com\", and a page of another site can have such a name resolve to this server";
    SYSTEM_LOG_KEPT 403 "system-log" "Only the server writes the system log" Retry::No,
        "The log system holds accounts and the audit; only the server writes it.",
        "Append to another log. Change accounts at /v1/accounts and keys at /v1/keys.",
        "the log system holds accounts and the audit; clients may read it, and only the server writes it";
    NOT_FOUND 404 "not-found" "Not found" Retry::No,
        "No route has this path, or what it names does not exist.",
        "Correct the path. GET /openapi.json lists the routes.",
        "/v1/evnts is not a route; GET /openapi.json lists all routes";
    LOG_NOT_FOUND 404 "log-not-found" "No such log" Retry::No,
        "No log has this name.",
        "Create the log with PUT /v1/logs/{log}, or correct the name. GET /v1/logs lists all logs.",
        "there is no log \"orders\"; create it with PUT /v1/logs/orders";
    METHOD_NOT_ALLOWED 405 "method-not-allowed" "Method not allowed" Retry::No,
        "The path exists but does not accept this method.",
        "Use a method listed in the Allow header.",
        "/v1/append accepts POST only, not GET";
    NOT_ACCEPTABLE 406 "not-acceptable" "None of the available formats matches Accept" Retry::No,
        "The answer is not available in any format that the Accept header names.",
        "Accept one of the formats that detail lists.",
        "none of the available formats matches Accept: image/png; available: application/json, application/x-ndjson, text/event-stream";
    REQUEST_TIMEOUT 408 "request-timeout" "The request took too long to arrive" Retry::Same,
        "The request's head did not arrive in time, and the connection was closed. Nothing was done.",
        "Retry on a new connection. The operator sets the time with --header-timeout-ms.",
        "the request's head did not arrive in time";
    BODY_TIMEOUT 408 "body-timeout" "The body took too long to arrive" Retry::Same,
        "The request body did not arrive in time. Of a bulk request, the first durable_lines lines are stored.",
        "Retry with the same idempotency key or ids. The operator sets the time with --body-timeout-ms.",
        "the body did not arrive within 30000 ms";
    CLUSTER_FOUNDED 409 "cluster-founded" "The node belongs to a cluster already" Retry::No,
        "A node belongs to one cluster for good: it has accepted another founding than the one that was asked for.",
        "Repeat wellspring cluster init with the nodes of that founding, or stop the node, empty its data folder and start it again.",
        "http://b.example:4000 answered 409: b: it has accepted to belong to the cluster 4f1c09d2a87b4e6f9033c5d1e2a4b687";
    NO_GROUP 409 "no-group" "The nodes of this cluster form no group" Retry::No,
        "The journal is another server, not the nodes themselves, so there is no group to found or to join.",
        "Start the nodes with --journal raft, or only start them: nodes over another server find each other.",
        "the journal of this node is postgres, whose nodes need neither init nor join";
    LAST_VOTER 409 "last-voter" "The node is the only voter" Retry::No,
        "A cluster has at least one node that votes, and this is the last.",
        "Have another node join with wellspring cluster join, and repeat the request once it votes.",
        "a is the only voter; let another node join before" r#""field":"node""#;
    NO_MAJORITY 409 "no-majority" "The nodes that stay would have no majority" Retry::No,
        "Without the node, fewer than a majority of the voters could be reached, and nothing could be written. Nothing was changed.",
        "Bring back the nodes that the answer names, or remove those first.",
        "without c, 1 of 2 voters would be reachable; not reached: b" r#""field":"node""#;
    CONDITION_FAILED 409 "append-condition-failed" "The append condition failed" Retry::AfterReread,
        "An event in the log matches the condition: another writer has changed what the decision was based on. Nothing was appended.",
        "Read the matching events up to conflict.position, decide again, and append with the new after.",
        "append condition failed: the event at position 42 matches item 0 of failIfEventsMatch" r#""conflict":{"position":42,"clause":"failIfEventsMatch","item":0}"#;
    SUBJECT_ERASED 409 "subject-erased" "The data subject is erased" Retry::No,
        "The data subject is erased, or about to be: nothing is sealed for it until the time in `until`; during a grace period there is no `until`, and the erasure can be cancelled. The request was not carried out; what an earlier attempt of it has stored is erased with the rest.",
        "Do not send it again: someone asked that it be forgotten. An erasure that waits can be cancelled.",
        "Wellspring-Subject is erased, or about to be: nothing is sealed for it" r#""field":"Wellspring-Subject","until":"2026-12-30T00:00:00Z""#;
    LEASE_LOST 409 "lease-lost" "The lease has expired or has another holder" Retry::AfterReread,
        "The lease has expired or was released, or another client holds it now. An append has stored nothing; a subscription has ended.",
        "Acquire the lease again, read the events appended meanwhile, and decide again.",
        "the lease has expired or has another holder" r#""field":"fence""#;
    LEASE_HELD 409 "lease-held" "Another client holds the lease" Retry::Same,
        "Another client holds the lease; remaining_ms says for how long at most, unless it renews.",
        "Retry later, or wait for the lease with wait_ms.",
        "another client holds the lease for up to 1200 ms more" r#""remaining_ms":1200"#;
    DELIVERY_LOST 409 "delivery-lost" "The delivery is no longer this worker's" Retry::No,
        "The delivery was settled, given back or taken away, its consumer was reset, or another node leads the log now. Nothing was done.",
        "Drop the delivery and go on with the next. What is not settled is delivered again.",
        "the delivery is no longer held by this worker" r#""field":"settles.delivery""#;
    DELIVERY_STAGED 409 "delivery-staged" "An append that settles the delivery is on its way" Retry::Same,
        "An earlier append that settles the delivery is not durable yet. This one was not made.",
        "Repeat the request: it is answered by what became of the earlier one.",
        "another append that settles the delivery is being made durable" r#""field":"settles.delivery""#;
    ANOTHER_HISTORY 409 "another-history" "The log has another history" Retry::No,
        "The request names a history, or a position, that is not of this log: it was restored from a backup or created anew since the client saw it. Nothing was done.",
        "Decide what becomes of what was derived from the other history. Then start again from a position of this log (its history and head are in the problem), or from the beginning.",
        "position 858 is ahead of the log, whose head is 580: it belongs to another history, or to another log" r#""head":580,"position":858,"history":"4f1c09d2a87b4e6f""#;
    SHARED_LOG 409 "shared-log" "The log is a copy of a shared log" Retry::No,
        "A node holds a copy of each log; the logs themselves are in the database of the journal.",
        "Back up the database that --journal names, and keep the cluster's key apart from it.",
        "the log main is a copy of a shared log: back up the database that its journal is in";
    ID_REUSED 409 "event-id-reused" "The event id is already used" Retry::No,
        "Another event in the log has this id, with different content. Nothing was appended.",
        "Use a new id for a new event. A retry must send exactly the same event.",
        "the id of event 0 is already used by the event at position 17" r#""field":"events[0].id","position":17"#;
    TOO_LARGE 413 "too-large" "Something exceeds its size limit" Retry::No,
        "The body, an event or a query exceeds its size limit. Nothing was done.",
        "Make it smaller or split it; the member limit gives the maximum. GET /openapi.json lists all limits.",
        "events[0].type is 300 bytes long; the limit is 255 bytes" r#""field":"events[0].type","limit":255"#;
    URL_TOO_LONG 414 "url-too-long" "The URL is too long" Retry::No,
        "The URL exceeds the server's limit.",
        "Send a long query in the body of POST /v1/query.",
        "the URL is 9000 bytes long; send long queries with POST /v1/query" r#""limit":8192"#;
    UNSUPPORTED_MEDIA 415 "unsupported-media-type" "Unsupported content type" Retry::No,
        "The route does not accept the body's content type, character set or encoding.",
        "Send application/json, or application/x-ndjson where the route accepts a bulk, without Content-Encoding.",
        "the body is \"text/plain\"; this route accepts JSON: send the header Content-Type: application/json";
    EXPECTATION_FAILED 417 "expectation-failed" "The expectation cannot be met" Retry::No,
        "The Expect header asks for something other than 100-continue.",
        "Remove the header.",
        "the server cannot meet the expectation \"102-processing\"";
    INVALID 422 "invalid" "A field is invalid" Retry::No,
        "The request is well-formed, but a value in it breaks a rule. Nothing was done.",
        "Correct the field that the problem names.",
        "events[0].tags[1] repeats an earlier tag; remove it" r#""field":"events[0].tags[1]""#;
    KEY_REUSED 422 "idempotency-key-reused" "The idempotency key was used with another body" Retry::No,
        "The idempotency key belongs to an earlier request with another body. Nothing was done.",
        "Use a new key for a new request. A retry must send exactly the same body.",
        "the idempotency key was used at position 17 with another body" r#""first":17"#;
    TOO_MANY_LOGINS 429 "too-many-logins" "Too many logins" Retry::Seconds(1),
        "Too many passwords were wrong, or too many are being verified at once.",
        "Wait as long as Retry-After says. Tokens and API keys are not affected.",
        "too many logins have failed; try again in 4 s";
    TOO_MANY_REQUESTS 429 "too-many-requests" "Too many requests" Retry::Seconds(1),
        "The client exceeds its request rate.",
        "Wait as long as Retry-After says, and send requests less often.",
        "more than 100 requests a second from this address; bursts may hold 10 seconds' worth" r#""limit":100"#;
    TOO_MANY_BYTES 429 "too-many-bytes" "Too many bytes" Retry::Seconds(1),
        "The request bodies and responses of this client exceed its byte rate.",
        "Wait as long as Retry-After says.",
        "request bodies and responses of this account exceed 1048576 bytes a second" r#""limit":1048576"#;
    READS_TOO_COSTLY 429 "reads-too-costly" "Reads use too much server time" Retry::Seconds(1),
        "The reads of this client have used more server time than its share.",
        "Wait as long as Retry-After says. Send narrower queries, and subscribe instead of polling.",
        "reads of this account used more than 500 ms of server time a second" r#""limit":500"#;
    TOO_MANY_SUBSCRIPTIONS 429 "too-many-subscriptions" "Too many subscriptions" Retry::Seconds(1),
        "The client has reached its limit of subscriptions.",
        "Close subscriptions, or share one.",
        "this account has 100 subscriptions, the maximum" r#""limit":100"#;
    TOO_MANY_LONG_READS 429 "too-many-long-reads" "Too many long reads in progress" Retry::Seconds(1),
        "The client has reached its limit of long reads in progress.",
        "Wait for one to finish, or send narrower queries.",
        "this account has 4 long reads in progress, the maximum" r#""limit":4"#;
    TOO_MUCH_MEMORY 429 "too-much-memory" "Too much server memory in use" Retry::Seconds(1),
        "The request bodies, queries and unread responses of this client use as much server memory as it may have.",
        "Read pending responses; send smaller bodies and fewer at a time.",
        "request bodies, queries and unread responses of this account use 67108864 bytes, the maximum" r#""limit":67108864"#;
    TOO_MANY_LEASES 429 "too-many-leases" "Too many leases" Retry::Seconds(1),
        "The limit of leases is reached.",
        "Release leases that are no longer needed, or wait until some expire.",
        "100000 leases exist, the maximum" r#""limit":100000"#;
    INGEST_FULL 429 "ingest-full" "Too many events are waiting to be stored" Retry::Seconds(1),
        "The events waiting to be stored fill the memory reserved for them. The event was not accepted.",
        "Wait as long as Retry-After says, then send it again.",
        "the memory for events that wait to be stored (67108864 bytes for each serving thread) is full; send more slowly" r#""limit":67108864"#;
    HEADERS_TOO_LARGE 431 "headers-too-large" "The request's head is too large" Retry::No,
        "The request's head is too long or has too many headers.",
        "Send fewer and shorter headers.",
        "there are more than 100 headers" r#""limit":100"#;
    TRIMMED 410 "trimmed" "The beginning of the log was removed" Retry::No,
        "The log no longer has its first events, and the answer depends on them. Nothing is answered from what is left.",
        "Ask for what comes after the position before first: after=first-1 in a read, after in a condition.",
        "events before position 1000001 were removed from the log, and the answer depends on them: ask for what comes after 1000000" r#""first":1000001"#;
    CORRUPT 500 "corrupt" "Stored data is damaged" Retry::No,
        "Bytes on disk differ from what was written. The server never answers with wrong or missing events instead.",
        "Stop the server and run wellspring mend with a backup; wellspring verify lists all damage.",
        "main/00000000000000000001.seg is damaged at byte 4096: the checksum of a record is wrong" r#""file":"main/00000000000000000001.seg","offset":4096"#;
    IO 500 "storage-failure" "The storage failed" Retry::Same,
        "The device or the operating system reported an error while the server read or wrote.",
        "Retry. If the problem persists, see the server's log and check the device.",
        "reading main/00000000000000000001.seg: Input/output error (os error 5)";
    INTERRUPTED 500 "interrupted" "The request was interrupted after a part of it was stored" Retry::No,
        "The server could not go on with the request, for example because another node took the lead. What was stored before stays stored; members such as durable_lines say how much.",
        "Send what is left, for a bulk the lines after the first durable_lines. If retry is same, the request has a key or is an import: send all of it again, and nothing is stored twice.",
        "this node does not lead the log; node-2 does" r#""durable_lines":21000,"durable_events":21000"#;
    OUTCOME_UNKNOWN 500 "outcome-unknown" "The append may or may not be stored" Retry::Same,
        "The device failed while the append was written: it may or may not be durable.",
        "Send the same request with the same Idempotency-Key or event ids: it is stored once, and the answer confirms it.",
        "the outcome is unknown: the barrier failed; retry with the same Idempotency-Key or event ids to learn which";
    INTERNAL 500 "internal" "Internal server error" Retry::Same,
        "The server failed unexpectedly.",
        "Retry. Please report the problem with the entry in the server's log that has the request's X-Request-Id.",
        "the work failed; see the server's log";
    TOO_COSTLY 503 "too-costly" "The read exceeds its time limit" Retry::No,
        "The request would take longer than one request may.",
        "Split it into narrower queries. The operator sets the time with --max-fold-ms.",
        "the read took longer than 10000 ms; narrow the query or begin after a later position" r#""limit":10000"#;
    OVERLOADED 503 "overloaded" "The server is overloaded" Retry::Seconds(1),
        "The server has reached a limit of work or memory. Nothing was done.",
        "Wait as long as Retry-After says.",
        "too many appends are waiting to become durable";
    TOO_MANY_WAITERS 503 "too-many-waiters" "Too many requests are waiting" Retry::Seconds(1),
        "The limit of requests that wait for this is reached.",
        "Wait as long as Retry-After says, or use a subscription.",
        "10000 requests are waiting, the maximum" r#""limit":10000"#;
    TOO_MANY_CONNECTIONS 503 "too-many-connections" "Too many connections" Retry::Seconds(1),
        "The limit of connections is reached, in all or for one address.",
        "Reuse connections, and close those that are idle.",
        "this address has 1000 connections, the maximum" r#""limit":1000"#;
    VIEW_NOT_READY 503 "view-not-ready" "The view is not ready yet" Retry::Seconds(1),
        "The server is building the view from the log's events.",
        "Wait. GET /v1/views shows the progress.",
        "the view is being rebuilt: 52000 of 80000 events";
    KEY_UNAVAILABLE 503 "key-unavailable" "The key of a data subject is not available" Retry::Same,
        "The key that seals the data of a subject could not be read or stored, or this server keeps none (in a cluster). It does not mean that the subject was erased.",
        "See the server's log, and put a backup of the keys in place if they are lost. A server of a cluster cannot seal.",
        "events[0].subject has no key: it cannot be read from the store" r#""field":"events[0].subject""#;
    NOT_YET 503 "not-yet" "The position has not been reached" Retry::Same,
        "The log did not reach the requested position in time.",
        "Retry, or wait longer with wait_ms.",
        "position 100 was not reached within 5000 ms; the head is 80";
    NOT_CONFIRMED 503 "not-confirmed" "The end of the log could not be confirmed" Retry::Same,
        "The request asked for a linearizable read, and the server could not confirm in time that it knows every appended event. It does not answer with older data instead.",
        "Retry, wait longer with wait_ms, or ask for what this server knows with consistency=local. GET /health/ready says whether the log has failed.",
        "the end of the log was not confirmed within 5000 ms";
    STORAGE_UNAVAILABLE 503 "storage-unavailable" "The storage is temporarily unavailable" Retry::Seconds(1),
        "The storage refused the write before anything was written. Nothing was done.",
        "Wait as long as Retry-After says.",
        "the journal could not accept the append now: too many open files";
    STORAGE_FULL 503 "storage-full" "The device is full" Retry::Seconds(30),
        "The device has no space left. Nothing of this request was stored; events accepted earlier are kept.",
        "Free disk space; the server then resumes by itself.",
        "no space left on the device";
    NOT_LEADING 503 "not-leading" "This node does not lead the log" Retry::Seconds(1),
        "Only the leader of a log appends to it and grants its leases, and this node is not the leader. Nothing was done.",
        "Send the request to leader_url if the answer names one; otherwise wait as long as Retry-After says.",
        "this node does not lead the log; node-2 does" r#""leader":"node-2","leader_url":"https://node-2.example.com:4000""#;
    CATCHING_UP 503 "catching-up" "The copy of the log is not complete yet" Retry::Seconds(1),
        "This node is still fetching what the shared log held when the node started.",
        "Wait, or ask another node. GET /v1/cluster shows the progress.",
        "the copy of main is not complete yet: at place 1200 of 5000";
    WAITING_FOR_CLUSTER 503 "waiting-for-cluster" "The node waits for its cluster" Retry::Seconds(1),
        "The node belongs to no cluster yet, or its cluster has no majority of voters that it could read its logs from. Nothing was done.",
        "Found a cluster with wellspring cluster init, add the node to one with wellspring cluster join, or start more of its nodes. wellspring cluster status says what is missing.",
        "this node waits for cluster init or join";
    MEMBERS_CHANGING 503 "members-changing" "Another change of the members is under way" Retry::Seconds(1),
        "A cluster changes its members one after the other. Nothing was done.",
        "Wait as long as Retry-After says.",
        "another change of the members is under way";
    NODE_UNREACHABLE 503 "node-unreachable" "The node cannot be reached" Retry::Seconds(1),
        "The node that was to lead or to take part does not answer this one, or no follower could take over. The leader has not changed.",
        "Check that node, and the network between the two. GET /v1/cluster shows which nodes answer.",
        "node-3: connection refused";
    JOURNAL_UNREACHABLE 503 "journal-unreachable" "The journal cannot be reached" Retry::Seconds(1),
        "The journal that orders the logs of all nodes does not answer this node, so the node cannot append.",
        "Check the journal (the database) and the network to it. The node reconnects by itself. Other nodes may still reach the journal.",
        "this node does not reach the journal (connection refused); GET /v1/cluster tells operators why";
    DETACHED 503 "detached" "The copy of the log is detached" Retry::No,
        "The history of this node's copy differs from that of the shared log, or the shared log cannot be used. The copy can be read but accepts no events.",
        "Find out which of the two is right. If it is the shared log: stop this node, run wellspring journal reset-copy, and start it again; it then fetches the log again.",
        "the copy of main on this node is detached: it holds an entry that the shared log does not have";
    LOG_CLOSED 503 "log-closed" "The log accepts no appends" Retry::Seconds(5),
        "After a device failure the log accepts no appends. It can be read.",
        "See the server's log and check the device, then restart the server.",
        "the log accepts no appends: the barrier failed";
    DAMAGED 503 "damaged" "Reads have found damaged data" Retry::No,
        "Reads have found bytes on disk that differ from what was written.",
        "Stop the server and run wellspring mend with a backup; wellspring verify lists all damage.",
        "log main: 00000000000000000001.seg is damaged; wellspring verify lists all damage. Stop the server, run `wellspring mend` with a backup, and restart";
    MENDED 200 "mended" "A damaged file was mended" Retry::No,
        "A file that is derived from events, or that the server holds in memory, was damaged on disk. The server wrote it again. No data was lost, and nothing waits.",
        "Check the device: it has changed what was written. The warning ends when a whole background pass finds nothing.",
        "logs/main/views/links.snapshot was damaged and has been mended; no data was lost. See the server's log, and check the device";
    MAIN_DELETED 503 "main-deleted" "The log main has been deleted" Retry::No,
        "The log main was deleted, and with it everything that is answered from it.",
        "Create it again, empty, with PUT /v1/logs/main. The next start creates it, too.",
        "the log main has been deleted; PUT /v1/logs/main creates an empty one, and so does the next start";
    SHUTTING_DOWN 503 "shutting-down" "The server is shutting down" Retry::Seconds(5),
        "The server is shutting down and accepts no new work.",
        "Retry once it has restarted, or send the request to another server.",
        "the server is shutting down";
    NEEDS_HTTP_11 505 "needs-http-1.1" "Streams need HTTP/1.1 or later" Retry::No,
        "The answer is a stream. HTTP/1.0 cannot tell the end of a stream from a failure.",
        "Use HTTP/1.1 or HTTP/2.",
        "use HTTP/1.1 or HTTP/2 for this route";
}
