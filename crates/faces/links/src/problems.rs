//! The problem types of links.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    URL_REQUIRED 400 "url-required" "A link needs a URL" Retry::No,
        "The request to create a link names no URL.",
        "Send {\"url\":\"https://…\"}.",
        "url is missing or empty; give an http:// or https:// URL" r#""field":"url","error":"URL is a required field""#;
    BAD_URL 400 "bad-url" "The URL cannot be a link's target" Retry::No,
        "The URL is not http or https, contains a user name, a control character or a backslash, or is too long.",
        "Correct the URL as detail says.",
        "url must begin with http:// or https://" r#""field":"url""#;
    HOST_REFUSED 400 "host-refused" "Links to this host are not allowed" Retry::No,
        "The settings of this server forbid links to that host.",
        "Use another host. The operator changes --link-allow-hosts and --link-deny-hosts.",
        "the host ads.example.com is on the list of hosts that links may not lead to" r#""field":"url""#;
    OWN_HOST 400 "own-host" "A link cannot lead to another short link" Retry::No,
        "A link to the shortener itself could lead round in circles.",
        "Use the target of the other link.",
        "url leads back to this server, go.example.com; links to links may go in circles" r#""field":"url""#;
    BAD_CODE 400 "bad-code" "This is not a valid code" Retry::No,
        "A code has 1 to 10 letters and digits; this is something else.",
        "Check the code: it may be cut off, or followed by punctuation.",
        "code \"my-link\" is invalid: the character \"-\" (byte 3) is not allowed; use only letters A-Z, a-z and digits 0-9" r#""field":"code""#;
    LINK_REFUSED 403 "link-refused" "The link is blocked" Retry::No,
        "The link exists, but the settings of this server forbid its target. No click was counted.",
        "Its owner can change the URL. The operator can change --link-allow-hosts, --link-deny-hosts or --own-hosts and restart the server.",
        "the link abc123 leads where the settings of this server allow no link to lead";
    LINK_NOT_FOUND 404 "link-not-found" "No such link" Retry::No,
        "No link has this code.",
        "Check the code.",
        "there is no link abc123";
    CODES_TAKEN 409 "codes-taken" "All codes for this URL are taken" Retry::No,
        "The first 64 codes derived from this URL belong to other links. Nothing was created.",
        "Choose an alias, or leave deterministic out.",
        "the first 64 codes of this URL are taken" r#""field":"deterministic""#;
    ALIAS_TAKEN 409 "alias-taken" "The alias is taken" Retry::No,
        "A link has this alias, or had it. Codes are never used twice.",
        "Choose another alias.",
        "the alias summer is taken" r#""field":"alias""#;
    LINK_DISABLED 410 "link-disabled" "The link is disabled" Retry::No,
        "The link exists and is disabled.",
        "Its owner can enable it again.",
        "the link abc123 is disabled for now";
    LINK_EXPIRED 410 "link-expired" "The link has expired" Retry::No,
        "The link exists and its expiry time has passed.",
        "Its owner can set a later expiry time.",
        "the link abc123 has expired";
    LINK_DELETED 410 "link-deleted" "The link has been deleted" Retry::No,
        "The link was deleted. Its code is never used again.",
        "The link cannot be restored. Create another.",
        "the link abc123 has been deleted";
    LINK_ERASED 410 "link-erased" "The link's target is erased" Retry::No,
        "The link's target was sealed for a data subject, and that is erased, or waits for its erasure.",
        "The link cannot be restored. Its owner can set another URL.",
        "the target of the link abc123 is erased, or about to be";
    ALIAS_RESERVED 422 "alias-reserved" "The alias is reserved" Retry::No,
        "The alias is a path of the server itself.",
        "Choose another alias.",
        "the alias health is reserved" r#""field":"alias""#;
    TOO_MANY_LINKS 429 "too-many-links" "Too many links created" Retry::Seconds(1),
        "The client exceeds the number of links that it may create per minute.",
        "Wait as long as Retry-After says.",
        "in 12 s this address may create another link" r#""limit":60"#;
    CODES_EXHAUSTED 503 "codes-exhausted" "All codes are taken" Retry::No,
        "Every automatic code of every length is taken.",
        "Use aliases.",
        "every code is taken";
}
