//! The options of `curl` that matter here, from its manual page.

/// What an option means for a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Braces and brackets of URLs are themselves.
    NoGlobs,
    Method,
    Header,
    Data,
    DataRaw,
    DataBinary,
    DataUrlencode,
    Json,
    Form,
    User,
    Bearer,
    Cookie,
    UserAgent,
    Referer,
    Get,
    Head,
    Upload,
    Url,
    Next,
    /// No difference to what is sent, or none that matters.
    Ignored,
    /// Left out, and this is what to say.
    Told(&'static str),
}

/// An option.
pub(super) struct CurlOption {
    /// Its letter, or a space.
    pub(super) short: char,
    pub(super) long: &'static str,
    /// Whether a value follows.
    pub(super) takes: bool,
    pub(super) meaning: Meaning,
}

const fn option(short: char, long: &'static str, takes: bool, meaning: Meaning) -> CurlOption {
    CurlOption { short, long, takes, meaning }
}

use Meaning as M;

const TIMEOUT: M = M::Told("A time limit is given on the command line: --timeout.");
const PROTOCOL: M = M::Told("The protocol is chosen on the command line: --http2 or --h2c.");
const PROXY: M = M::Told("Proxies are not used.");
const CERTIFICATE: M =
    M::Told("Certificates are given on the command line: --cacert, --client-cert, --client-key.");

/// All options known.
pub(super) const OPTIONS: &[CurlOption] = &[
    option('X', "request", true, M::Method),
    option('H', "header", true, M::Header),
    option('d', "data", true, M::Data),
    option(' ', "data-ascii", true, M::Data),
    option(' ', "data-raw", true, M::DataRaw),
    option(' ', "data-binary", true, M::DataBinary),
    option(' ', "data-urlencode", true, M::DataUrlencode),
    option(' ', "json", true, M::Json),
    option('F', "form", true, M::Form),
    option(' ', "form-string", true, M::Form),
    option('u', "user", true, M::User),
    option(' ', "oauth2-bearer", true, M::Bearer),
    option('b', "cookie", true, M::Cookie),
    option('A', "user-agent", true, M::UserAgent),
    option('e', "referer", true, M::Referer),
    option('G', "get", false, M::Get),
    option('I', "head", false, M::Head),
    option('T', "upload-file", true, M::Upload),
    option(' ', "url", true, M::Url),
    option(':', "next", false, M::Next),
    option(
        'k',
        "insecure",
        false,
        M::Told("Any certificate is accepted with --insecure on the command line."),
    ),
    option(
        'L',
        "location",
        false,
        M::Told("Redirects are never followed: the redirect is the answer."),
    ),
    option(
        ' ',
        "location-trusted",
        false,
        M::Told("Redirects are never followed: the redirect is the answer."),
    ),
    option(
        ' ',
        "compressed",
        false,
        M::Told("Compressed answers are not asked for: they would be measured, but not read."),
    ),
    option(
        ' ',
        "unix-socket",
        true,
        M::Told("A Unix socket is given on the command line: --unix-socket."),
    ),
    option(' ', "digest", false, M::Told("Digest authentication is not supported.")),
    option(' ', "ntlm", false, M::Told("NTLM authentication is not supported.")),
    option(' ', "negotiate", false, M::Told("Negotiate authentication is not supported.")),
    option(' ', "aws-sigv4", true, M::Told("Signed requests (AWS) are not supported.")),
    option('K', "config", true, M::Told("curl's configuration files are not read.")),
    option('r', "range", true, M::Told("For a range, set the header `range`.")),
    option(
        'z',
        "time-cond",
        true,
        M::Told("For a condition on time, set the header `if-modified-since`."),
    ),
    option('m', "max-time", true, TIMEOUT),
    option(' ', "connect-timeout", true, TIMEOUT),
    option('0', "http1.0", false, PROTOCOL),
    option(' ', "http1.1", false, M::Ignored),
    option(' ', "http2", false, PROTOCOL),
    option(' ', "http2-prior-knowledge", false, PROTOCOL),
    option(' ', "http3", false, PROTOCOL),
    option('x', "proxy", true, PROXY),
    option('U', "proxy-user", true, PROXY),
    option(' ', "proxy-header", true, PROXY),
    option(' ', "noproxy", true, M::Ignored),
    option(
        ' ',
        "resolve",
        true,
        M::Told("Addresses are not overridden; use the server's address as the base."),
    ),
    option(
        ' ',
        "connect-to",
        true,
        M::Told("Addresses are not overridden; use the server's address as the base."),
    ),
    option('E', "cert", true, CERTIFICATE),
    option(' ', "key", true, CERTIFICATE),
    option(' ', "cacert", true, CERTIFICATE),
    option(' ', "capath", true, CERTIFICATE),
    option(' ', "pass", true, CERTIFICATE),
    option(' ', "cert-type", true, M::Ignored),
    option(' ', "key-type", true, M::Ignored),
    option(' ', "ciphers", true, M::Ignored),
    option(' ', "tls-max", true, M::Ignored),
    option(' ', "basic", false, M::Ignored),
    option(' ', "anyauth", false, M::Ignored),
    option(' ', "path-as-is", false, M::Ignored),
    option('g', "globoff", false, M::NoGlobs),
    option('s', "silent", false, M::Ignored),
    option('S', "show-error", false, M::Ignored),
    option('v', "verbose", false, M::Ignored),
    option('i', "include", false, M::Ignored),
    option(' ', "show-headers", false, M::Ignored),
    option('f', "fail", false, M::Ignored),
    option(' ', "fail-with-body", false, M::Ignored),
    option(' ', "fail-early", false, M::Ignored),
    option('N', "no-buffer", false, M::Ignored),
    option('O', "remote-name", false, M::Ignored),
    option('J', "remote-header-name", false, M::Ignored),
    option('R', "remote-time", false, M::Ignored),
    option('#', "progress-bar", false, M::Ignored),
    option('4', "ipv4", false, M::Ignored),
    option('6', "ipv6", false, M::Ignored),
    option('q', "disable", false, M::Ignored),
    option('j', "junk-session-cookies", false, M::Ignored),
    option('Z', "parallel", false, M::Ignored),
    option(' ', "tcp-nodelay", false, M::Ignored),
    option(' ', "tcp-fastopen", false, M::Ignored),
    option(' ', "no-keepalive", false, M::Ignored),
    option(' ', "raw", false, M::Ignored),
    option(' ', "trace-time", false, M::Ignored),
    option(' ', "create-dirs", false, M::Ignored),
    option('o', "output", true, M::Ignored),
    option('D', "dump-header", true, M::Ignored),
    option('c', "cookie-jar", true, M::Ignored),
    option('w', "write-out", true, M::Ignored),
    option(' ', "stderr", true, M::Ignored),
    option(' ', "trace", true, M::Ignored),
    option(' ', "trace-ascii", true, M::Ignored),
    option(' ', "output-dir", true, M::Ignored),
    option(
        ' ',
        "retry",
        true,
        M::Told("Requests are never repeated on their own: a failure counts."),
    ),
    option(' ', "retry-delay", true, M::Ignored),
    option(' ', "retry-max-time", true, M::Ignored),
    option(' ', "retry-all-errors", false, M::Ignored),
    option(' ', "limit-rate", true, M::Ignored),
    option(' ', "rate", true, M::Ignored),
    option(' ', "max-redirs", true, M::Ignored),
    option(' ', "max-filesize", true, M::Ignored),
    option(' ', "keepalive-time", true, M::Ignored),
    option(' ', "interface", true, M::Ignored),
    option(' ', "local-port", true, M::Ignored),
    option('C', "continue-at", true, M::Ignored),
    option('Y', "speed-limit", true, M::Ignored),
    option('y', "speed-time", true, M::Ignored),
    option(' ', "expect100-timeout", true, M::Ignored),
];

/// The option with this letter.
pub(super) fn short(letter: char) -> Option<&'static CurlOption> {
    OPTIONS.iter().find(|option| option.short == letter && letter != ' ')
}

/// The option with this name.
pub(super) fn long(name: &str) -> Option<&'static CurlOption> {
    OPTIONS.iter().find(|option| option.long == name)
}
