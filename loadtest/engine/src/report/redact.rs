//! Secrets taken out of command lines before they are kept in a result file.

/// What stands in place of a secret.
pub(crate) const REDACTED: &str = "***";

/// Options whose whole value is a secret.
const SECRET_OPTIONS: [&str; 6] =
    ["--bearer", "--basic", "-u", "--user", "--password", "--client-secret"];
/// What the options of the login before the run begin with: bodies, header fields, credentials.
const TOKEN_OPTIONS: &str = "--token-";
/// Options whose value is a header field `Name: value`.
const HEADER_OPTIONS: [&str; 2] = ["-H", "--header"];
/// Options whose value is a URL of a token service: its query goes, too.
const TOKEN_URL_OPTIONS: [&str; 1] = ["--token-url"];
/// Parts of the names of header fields, query parameters and form fields that hold
/// secrets, compared in lower case and without `-` and `_`.
const SECRET_WORDS: [&str; 12] = [
    "authorization",
    "cookie",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "credential",
    "signature",
    "session",
    "privatekey",
    "assertion",
];

/// The command line with secrets replaced by `REDACTED`: the values of
/// `--bearer`, `--basic` and the like, of header fields that carry credentials,
/// the user and password of URLs, everything secret in a query or form, and the
/// query of `--token-url`. `--option value`, `--option=value` and `-Hvalue` are
/// all understood. What is not secret stays as it is; in doubt it goes.
#[must_use]
pub fn redact_command(command: &[String]) -> Vec<String> {
    let mut redacted = Vec::with_capacity(command.len());
    let mut expecting: Option<fn(&str) -> String> = None;
    for argument in command {
        if let Some(redact) = expecting.take() {
            redacted.push(redact(argument));
            continue;
        }
        expecting = redaction_of(argument);
        redacted.push(match expecting {
            Some(_) => argument.clone(),
            None => redact_argument(argument),
        });
    }
    redacted
}

/// How the value after this option is redacted; `None` if this is not an option with secrets.
fn redaction_of(option: &str) -> Option<fn(&str) -> String> {
    if HEADER_OPTIONS.contains(&option) {
        Some(redact_header)
    } else if TOKEN_URL_OPTIONS.contains(&option) {
        Some(redact_token_url)
    } else if SECRET_OPTIONS.contains(&option)
        || (option.starts_with(TOKEN_OPTIONS) && !option.contains('='))
    {
        Some(|_| REDACTED.to_owned())
    } else {
        None
    }
}

/// One argument that is not the value of the option before it.
fn redact_argument(argument: &str) -> String {
    if let Some((option, value)) = argument.split_once('=')
        && let Some(redact) = redaction_of(option)
    {
        return format!("{option}={}", redact(value));
    }
    for option in ["-H", "-u"] {
        if let Some(value) = argument.strip_prefix(option)
            && let Some(redact) = redaction_of(option)
        {
            return format!("{option}{}", redact(value));
        }
    }
    // The name of an option is no part of what it carries: `--var=password=…`.
    match argument.split_once('=') {
        Some((option, value)) if option.starts_with("--") => {
            format!("{option}={}", redact_text(value))
        }
        _ => redact_text(argument),
    }
}

/// A header field `Name: value`.
fn redact_header(field: &str) -> String {
    match field.split_once(':') {
        Some((name, _)) if is_secret_name(name) => format!("{name}: {REDACTED}"),
        Some((name, value)) => format!("{name}:{}", redact_text(value)),
        None => redact_text(field),
    }
}

/// A token service's URL: credentials and the whole query go.
fn redact_token_url(url: &str) -> String {
    let url = redact_credentials(url);
    match url.split_once('?') {
        Some((before, _)) => format!("{before}?{REDACTED}"),
        None => url,
    }
}

/// Text that may hold URLs, queries, forms or JSON with secrets.
fn redact_text(text: &str) -> String {
    redact_json(&redact_parameters(&redact_credentials(text)))
}

/// `scheme://user:pass@host` loses user and password, wherever it stands in the text.
fn redact_credentials(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        // The authority ends at the first of these; a password may hold `@` itself.
        let end =
            after.find(|c: char| "/?#\"' ".contains(c) || c.is_control()).unwrap_or(after.len());
        let (authority, tail) = after.split_at(end);
        match authority.rsplit_once('@') {
            Some((_, host)) => {
                out.push_str(REDACTED);
                out.push('@');
                out.push_str(host);
            }
            None => out.push_str(authority),
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

/// `name=value` loses its value where the name tells of a secret: in queries and forms.
fn redact_parameters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for part in text.split_inclusive(['?', '&', ';', ' ']) {
        let end = part.len() - usize::from(part.ends_with(['?', '&', ';', ' ']));
        let (pair, separator) = part.split_at(end);
        match pair.split_once('=') {
            Some((name, value)) if is_secret_name(name) && !value.is_empty() => {
                out.push_str(name);
                out.push('=');
                out.push_str(REDACTED);
            }
            _ => out.push_str(pair),
        }
        out.push_str(separator);
    }
    out
}

/// `"name":"value"` loses its value where the name tells of a secret.
fn redact_json(text: &str) -> String {
    if !text.contains('"') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut name_is_secret = false;
    while let Some(start) = rest.find('"') {
        let (before, quoted) = rest.split_at(start);
        // Between a name and its value stands nothing but a colon; anything else forgets the name.
        name_is_secret = name_is_secret && before.trim() == ":";
        let length = string_length(quoted);
        let (string, after) = quoted.split_at(length);
        out.push_str(before);
        if name_is_secret {
            out.push('"');
            out.push_str(REDACTED);
            out.push('"');
        } else {
            out.push_str(string);
        }
        name_is_secret =
            !name_is_secret && after.trim_start().starts_with(':') && is_secret_name(string);
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Length of the JSON string at the beginning of `text`, its quotes included; all of it if it does
/// not end.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            '"' if !escaped => return at + 1,
            '\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET_WORDS.iter().any(|word| plain.contains(word))
        || matches!(plain.as_str(), "auth" | "pass" | "pwd" | "sig" | "key")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redact(command: &[&str]) -> String {
        let command: Vec<String> = command.iter().map(|a| (*a).to_owned()).collect();
        redact_command(&command).join(" ")
    }

    #[test]
    fn every_way_to_give_a_secret_is_known() {
        for (command, expected) in [
            (&["--bearer", "S3CRET"][..], "--bearer ***"),
            (&["--bearer=S3CRET"], "--bearer=***"),
            (&["--basic", "me:S3CRET", "-c", "4"], "--basic *** -c 4"),
            (&["--basic=me:S3=CRET"], "--basic=***"),
            (&["-u", "me:S3CRET"], "-u ***"),
            (&["-ume:S3CRET"], "-u***"),
            (&["-H", "Authorization: Bearer S3CRET"], "-H Authorization: ***"),
            (&["-HAuthorization: Bearer S3CRET"], "-HAuthorization: ***"),
            (&["--header=authorization:Basic S3CRET"], "--header=authorization: ***"),
            (&["-H", "Cookie: a=S3CRET"], "-H Cookie: ***"),
            (&["-H", "X-API-Key: S3CRET"], "-H X-API-Key: ***"),
            (&["-H", "Proxy-Authorization: S3CRET"], "-H Proxy-Authorization: ***"),
            (&["-H", "X-Auth-Token:S3CRET"], "-H X-Auth-Token: ***"),
            (&["http://me:S3CRET@host:8080/a"], "http://***@host:8080/a"),
            (&["http://S3CRET@host/a?b=c@d"], "http://***@host/a?b=c@d"),
            (&["https://me:S3@CRET@host"], "https://***@host"),
            (&["http://host/a?api_key=S3CRET&b=2"], "http://host/a?api_key=***&b=2"),
            (
                &["--token-url", "https://me:S3CRET@id/token?client_secret=S3CRET"],
                "--token-url https://***@id/token?***",
            ),
            (&["--token-url=https://id/token?x=S3CRET"], "--token-url=https://id/token?***"),
            (&["--token-header", "X: S3CRET"], "--token-header ***"),
            (&["--token-body", "grant=a&client=S3CRET"], "--token-body ***"),
            (&["-d", "user=me&password=S3CRET"], "-d user=me&password=***"),
            (
                &["--data={\"password\": \"S3\\\"CRET\", \"a\":\"b\"}"],
                "--data={\"password\": \"***\", \"a\":\"b\"}",
            ),
            (&["-H", "Referer: http://me:S3CRET@host/"], "-H Referer: http://***@host/"),
            (&["--var", "password=S3CRET"], "--var password=***"),
            (&["--var=password=S3CRET"], "--var=password=***"),
            (&["--var=api_key=S3=CRET"], "--var=api_key=***"),
        ] {
            let redacted = redact(command);
            assert_eq!(redacted, expected);
            assert!(!redacted.contains("S3"), "{redacted}");
        }
    }

    #[test]
    fn what_is_not_secret_stays() {
        for command in [
            &["wellspring", "bench", "http://host/a?b=c", "-c", "16", "-H", "Accept: text/html"][..],
            &["-H", "X-Time: 12:30", "--fail-if", "p99>5ms", "-d", "{\"a\":\"b:c\"}"],
            &["-Habc", "mail@host", "--bearer"],
        ] {
            assert_eq!(redact(command), command.join(" "));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_survived_and_a_second_time_changes_nothing(
            command in prop::collection::vec("(-H|--bearer=|http://|[a-z:@?&=\"\\\\ µ]){0,12}", 0..6)
        ) {
            let once = redact_command(&command);
            prop_assert_eq!(once.len(), command.len());
            prop_assert_eq!(&redact_command(&once), &once);
        }
    }
}
