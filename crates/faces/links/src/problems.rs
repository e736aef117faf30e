//! The kinds of problems of links.

use wellspring_host::wire::problem::Retry;

wellspring_host::kinds! {
    URL_REQUIRED 400 "url-required" "A link needs a URL" Retry::No,
        "A link was to be made without a URL.",
        "Send {\"url\":\"https://…\"}.";
    BAD_URL 400 "bad-url" "No link may lead to this URL" Retry::No,
        "The URL is not http or https, holds a user, a control character or a backslash, or is too long.",
        "Correct the URL; detail says what is wrong with it.";
    HOST_REFUSED 400 "host-refused" "No link may lead to this host" Retry::No,
        "The settings of this server do not let links lead to that host.",
        "Use another host. Who runs the server changes --link-allow-hosts and --link-deny-hosts.";
    OWN_HOST 400 "own-host" "A link may not lead back here" Retry::No,
        "A link to the shortener itself would go round in a circle.",
        "Let the link lead to where the other one does.";
    BAD_CODE 400 "bad-code" "This cannot be a code" Retry::No,
        "A code is 1 to 10 letters and digits; this is something else.",
        "Look the code up again; it may have been cut or have a sign behind it.";
    LINK_REFUSED 403 "link-refused" "The link may not be followed" Retry::No,
        "The link is there, but the settings of this server let no link lead where it leads. No click was counted.",
        "Who made it changes its URL; who runs the server changes --link-allow-hosts, --link-deny-hosts or --own-hosts and starts it again.";
    LINK_NOT_FOUND 404 "link-not-found" "There is no such link" Retry::No,
        "No link has this code.",
        "Look the code up again.";
    CODES_TAKEN 409 "codes-taken" "The codes that the URL asks for are taken" Retry::No,
        "The first 64 codes that this URL asks for are those of other links. Nothing was made.",
        "Choose an alias, or leave deterministic out.";
    ALIAS_TAKEN 409 "alias-taken" "The alias is taken" Retry::No,
        "A link has, or had, this alias.",
        "Choose another; a code is never given twice.";
    LINK_DISABLED 410 "link-disabled" "The link is disabled" Retry::No,
        "The link is there and was disabled.",
        "Who made it can enable it again.";
    LINK_EXPIRED 410 "link-expired" "The link has expired" Retry::No,
        "The time of the link is over.",
        "Who made it can set another end.";
    LINK_DELETED 410 "link-deleted" "The link has been deleted" Retry::No,
        "The link was deleted. Its code is not given again.",
        "Nothing brings it back; make another.";
    ALIAS_RESERVED 422 "alias-reserved" "The alias is reserved" Retry::No,
        "The alias is a path of the server itself.",
        "Choose another.";
    TOO_MANY_LINKS 429 "too-many-links" "One client made too many links" Retry::Seconds(1),
        "One client has made as many links in a minute as it may.",
        "Wait as long as Retry-After says.";
    CODES_EXHAUSTED 503 "codes-exhausted" "Every code there can be is taken" Retry::No,
        "Every code of every length is taken.",
        "Use aliases.";
}
