//! The kinds of problems that any request may meet, in one table.

use super::problem::Retry;

crate::kinds! {
    MALFORMED_JSON 400 "malformed-json" "The body is not JSON" Retry::No,
        "The body is not JSON, or a text in it is not UTF-8. Nothing was done.",
        "Look at the line and column that detail names. A text needs quotes; NDJSON needs its own content type, application/x-ndjson.";
    BAD_REQUEST 400 "bad-request" "The request cannot be understood" Retry::No,
        "The request line, a header or a parameter cannot be understood. Nothing was done.",
        "Correct what detail names; GET /openapi.json lists the parameters of each route.";
    TLS_REQUIRED 400 "tls-required" "This port speaks TLS" Retry::No,
        "Plain HTTP came to a port that speaks TLS.",
        "Use https:// in the address.";
    MALFORMED_CREDENTIALS 400 "malformed-credentials" "The credentials cannot be understood" Retry::No,
        "The headers with credentials cannot be read, or there are two of them.",
        "Send one of Authorization: Bearer, Authorization: Basic and X-API-Key, once.";
    UNAUTHENTICATED 401 "unauthenticated" "This needs credentials that count" Retry::No,
        "Credentials are missing, wrong, have ended or were revoked. Which of these is not told.",
        "Log in (POST /auth/token, wellspring login), or use an API key that has not ended.";
    NOT_A_NODE 401 "not-a-node" "The request is not of a node of this cluster" Retry::No,
        "The route is for the nodes of a cluster alone, or the request says by Wellspring-Node that a node sent it and does not prove it.",
        "Give all nodes the same --cluster-key, and set their clocks. A client sends no such header.";
    FORBIDDEN 403 "forbidden" "The credentials are not for this" Retry::No,
        "The credentials count, but not for this.",
        "Use those of an account with the role that detail names, or ask an admin for it.";
    FOREIGN_PAGE 403 "foreign-page" "A page of another site may not use this server" Retry::No,
        "A page of another site asked, and this server does not answer such pages.",
        "Name the page's origin in --cors-origins if it may use the server.";
    FOREIGN_HOST 403 "foreign-host" "The server is not asked under this name" Retry::No,
        "The server was asked under a name that is not its own, as a page does whose name was made to mean this machine.",
        "Use the address the server listens on, localhost, or a name in its settings.";
    SYSTEM_LOG_KEPT 403 "system-log" "The server alone writes the system log" Retry::No,
        "The log system holds accounts and the audit; only the server writes it.",
        "Append to another log. Accounts are changed under /v1/accounts and /v1/keys.";
    NOT_FOUND 404 "not-found" "There is nothing here" Retry::No,
        "No route has this path, or what it names is not there.",
        "GET /openapi.json lists the routes.";
    LOG_NOT_FOUND 404 "log-not-found" "There is no such log" Retry::No,
        "There is no log of this name.",
        "Make it with PUT /v1/logs/{log}, or correct the name; GET /v1/logs lists those there are.";
    METHOD_NOT_ALLOWED 405 "method-not-allowed" "The resource does not know this method" Retry::No,
        "The path is right, the method is not.",
        "Use one of those in the header Allow.";
    NOT_ACCEPTABLE 406 "not-acceptable" "No representation that the client accepts" Retry::No,
        "The answer cannot be given in any form that Accept names.",
        "Accept one of the types that detail lists.";
    REQUEST_TIMEOUT 408 "request-timeout" "The request came too slowly" Retry::Same,
        "The head of the request came too slowly, and the connection was closed. Nothing was done.",
        "Try again on a new connection. Who runs the server sets --header-timeout-ms.";
    BODY_TIMEOUT 408 "body-timeout" "The body came too slowly" Retry::Same,
        "The body came too slowly. Of a bulk, what durable_lines says is kept.",
        "Try again, with the same key or ids. Who runs the server sets --body-timeout-ms.";
    CONDITION_FAILED 409 "append-condition-failed" "The append condition failed" Retry::AfterReread,
        "An event in the log matches the condition: what was decided on has changed. Nothing was appended.",
        "Read what matches up to conflict.position, decide again, and append with the new after.";
    LEASE_LOST 409 "lease-lost" "The lease has expired or has another holder" Retry::AfterReread,
        "The lease has expired, or another client holds it by now. Nothing was appended.",
        "Take the lease again, read what happened meanwhile, and decide again.";
    LEASE_HELD 409 "lease-held" "Another client holds the lease" Retry::Same,
        "Another client holds the lease.",
        "Try again later, or wait for it with wait_ms.";
    ID_REUSED 409 "event-id-reused" "An event id is taken" Retry::No,
        "An event with this id is in the log, and it is a different one. Nothing was appended.",
        "Use a new id for a new event; a retry must send the event as it was.";
    TOO_LARGE 413 "too-large" "Something is larger than its limit" Retry::No,
        "The body, an event or a query is larger than its limit. Nothing of it was done.",
        "Make it smaller, or cut it into several; limit says how large it may be, and GET /openapi.json what else there is.";
    URL_TOO_LONG 414 "url-too-long" "The URL is too long" Retry::No,
        "The request line is longer than the server reads.",
        "Send a query in a body: POST /v1/query.";
    UNSUPPORTED_MEDIA 415 "unsupported-media-type" "The content type is not known here" Retry::No,
        "The content type, or how the body is encoded, is not known on this route.",
        "Send application/json, or application/x-ndjson where a bulk is taken, without Content-Encoding.";
    EXPECTATION_FAILED 417 "expectation-failed" "An expectation cannot be met" Retry::No,
        "Expect holds something other than 100-continue.",
        "Leave the header out.";
    INVALID 422 "invalid" "A field breaks a rule" Retry::No,
        "The body is understood, and a value in it breaks a rule. Nothing was done.",
        "Correct the field that the problem names.";
    KEY_REUSED 422 "idempotency-key-reused" "The idempotency key was used with another body" Retry::No,
        "The key was used for another request. Nothing was done.",
        "Use a new key for a new request; a retry must send the same body.";
    TOO_MANY_LOGINS 429 "too-many-logins" "Too many logins" Retry::Seconds(1),
        "Passwords were wrong too often, or too many are being verified at once.",
        "Wait as long as Retry-After says. Tokens and API keys are not held up.";
    TOO_MANY_REQUESTS 429 "too-many-requests" "Requests come too fast" Retry::Seconds(1),
        "Requests come faster than one client may send them.",
        "Wait as long as Retry-After says, and send fewer.";
    TOO_MANY_BYTES 429 "too-many-bytes" "Bodies and answers are too many bytes" Retry::Seconds(1),
        "Bodies and answers of one client are more bytes a second than it may have.",
        "Wait as long as Retry-After says.";
    READS_TOO_COSTLY 429 "reads-too-costly" "Reads take too much of the server's time" Retry::Seconds(1),
        "The reads of one client have taken more of the server's time than it may have.",
        "Wait as long as Retry-After says; ask narrower queries, and follow with a subscription instead of asking again.";
    TOO_MANY_SUBSCRIPTIONS 429 "too-many-subscriptions" "One client has too many subscriptions" Retry::Seconds(1),
        "One client has as many subscriptions as it may.",
        "End some, or share one.";
    TOO_MANY_LONG_READS 429 "too-many-long-reads" "One client has too many long reads under way" Retry::Seconds(1),
        "One client has as many long reads under way as it may.",
        "Wait for one to end; ask narrower queries.";
    TOO_MUCH_MEMORY 429 "too-much-memory" "One client takes too much of the server's memory" Retry::Seconds(1),
        "Bodies and queries of one client, and answers that it has not read, take as much memory as they may.",
        "Read what was asked for; send smaller bodies, fewer at a time.";
    TOO_MANY_LEASES 429 "too-many-leases" "There are too many leases" Retry::Seconds(1),
        "There are as many leases as there may be.",
        "End those of no use, or wait until some have expired.";
    INGEST_FULL 429 "ingest-full" "As much is waiting to be stored as may be" Retry::Seconds(1),
        "What is waiting to be stored takes all the memory it may. The event was not accepted.",
        "Wait as long as Retry-After says, and send it again.";
    HEADERS_TOO_LARGE 431 "headers-too-large" "The head of the request is too large" Retry::No,
        "The head of the request is longer, or has more headers, than the server reads.",
        "Send fewer and shorter headers.";
    CORRUPT 500 "corrupt" "Stored bytes are damaged" Retry::No,
        "Bytes on disk are not what was written. No wrong or short answer is given instead.",
        "Do not append. Run wellspring verify on the data folder, and restore it from a backup.";
    IO 500 "storage-failure" "The storage could not be read" Retry::Same,
        "The device or the system failed while something was read or written.",
        "Try again; if it stays, look at the server's log and at the device.";
    OUTCOME_UNKNOWN 500 "outcome-unknown" "The append may or may not have been made" Retry::Same,
        "The device failed while the append was being written: it may be durable or not.",
        "Send the same again with the same Idempotency-Key or event ids: it is appended once, and the answer says so.";
    INTERNAL 500 "internal" "The server failed" Retry::Same,
        "The server failed in a way that was not foreseen.",
        "Try again. The request's id (X-Request-Id) is in the server's log; please report it.";
    TOO_COSTLY 503 "too-costly" "The read costs more than it may" Retry::No,
        "The request would take longer than one may.",
        "Ask several narrower queries. Who runs the server sets --max-fold-ms.";
    OVERLOADED 503 "overloaded" "The server has too much to do" Retry::Seconds(1),
        "The server has as much to do, or to remember, as it may. Nothing was done.",
        "Wait as long as Retry-After says.";
    TOO_MANY_WAITERS 503 "too-many-waiters" "Too many requests are waiting" Retry::Seconds(1),
        "As many requests wait for this as may.",
        "Wait as long as Retry-After says, or use a subscription.";
    TOO_MANY_CONNECTIONS 503 "too-many-connections" "There are too many connections" Retry::Seconds(1),
        "There are as many connections as there may be, in all or from one address.",
        "Keep connections and use them again; close those that are idle.";
    VIEW_NOT_READY 503 "view-not-ready" "A view does not answer yet" Retry::Seconds(1),
        "The view is being made from the log's events and does not answer yet.",
        "Wait; GET /v1/views says how far it is.";
    NOT_YET 503 "not-yet" "The position has not been reached" Retry::Same,
        "The position that was asked for did not come within the time.",
        "Ask again, or wait longer with wait_ms.";
    NOT_CONFIRMED 503 "not-confirmed" "The end of the log could not be confirmed" Retry::Same,
        "A linearizable read was asked for, and it could not be confirmed in time that nothing was appended that this server does not know. Nothing older is given instead.",
        "Ask again, wait longer with wait_ms, or ask for what this server knows, with consistency=local. GET /health/ready says whether its log has failed.";
    STORAGE_UNAVAILABLE 503 "storage-unavailable" "The storage refused for a moment" Retry::Seconds(1),
        "The system refused for a moment, before anything was written. Nothing was done.",
        "Wait as long as Retry-After says.";
    STORAGE_FULL 503 "storage-full" "No room left on the device" Retry::Seconds(30),
        "The device has no room left. Nothing of this was stored; what was accepted before is kept.",
        "Make room; the server goes on by itself.";
    NOT_LEADING 503 "not-leading" "This node does not lead the log" Retry::Seconds(1),
        "Only the node that leads a log appends to it and grants its leases, and this one does not. Nothing was done.",
        "Send it to the node that leads, if leader_url names one; otherwise wait as long as Retry-After says.";
    CATCHING_UP 503 "catching-up" "The copy of the log is not complete yet" Retry::Seconds(1),
        "This node is fetching what the shared log held when it was started.",
        "Wait, or ask another node; GET /v1/cluster says how far it is.";
    JOURNAL_UNREACHABLE 503 "journal-unreachable" "The journal cannot be reached" Retry::Seconds(1),
        "The journal that orders the logs of all nodes does not answer this node, so nothing is appended through it.",
        "Look at the journal (the database) and at the network to it; the node connects anew by itself. Other nodes may reach it.";
    DETACHED 503 "detached" "The copy of the log is detached" Retry::No,
        "The copy of the log on this node and the shared log have different pasts, or the shared log cannot be used. It takes nothing in; what is in the copy can be read.",
        "Find out which of the two is right. If the shared log is: stop this node, run wellspring journal reset-copy, and start it again; it fetches the log anew.";
    LOG_CLOSED 503 "log-closed" "The log takes no appends" Retry::Seconds(5),
        "After a failure of the device the log takes no appends; it can be read.",
        "Look at the server's log and at the device, then start the server anew.";
    DAMAGED 503 "damaged" "Stored bytes are damaged, and reads have met it" Retry::No,
        "Reads have met bytes on disk that are not what was written.",
        "Run wellspring verify on the data folder, and restore it from a backup.";
    MAIN_DELETED 503 "main-deleted" "The log main has been deleted" Retry::No,
        "The log main was deleted, and with it everything that is answered from it.",
        "Make it again, empty, with PUT /v1/logs/main; the next start does so, too.";
    SHUTTING_DOWN 503 "shutting-down" "The server is stopping" Retry::Seconds(5),
        "The server is stopping.",
        "Try again; the next one takes it.";
    NEEDS_HTTP_11 505 "needs-http-1.1" "Streams need HTTP/1.1 or later" Retry::No,
        "The answer is a stream, and HTTP/1.0 cannot tell its end from a failure.",
        "Use HTTP/1.1 or HTTP/2.";
}
