//! The source of an external issuer's keys: a file, or a URL.

use super::config::AccessConfig;
use super::foreign::{ForeignIssuer, Issuer};
use super::foreign_claims::STANDARD;
use super::jwks::{self, KeySet};
use crate::setup::SetupError;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wellspring_client::endpoint::{Endpoint, Scheme};
use wellspring_client::trust::Trust;
use wellspring_client::{Client, ClientError, Request};
use wellspring_log::Clock;
use wellspring_tls::pem;
use wellspring_types::url::UrlParts;

/// Longest wait for the next bytes of an answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest time for a whole answer, µs.
const FETCH_US: u64 = 15_000_000;
/// Longest name of an issuer, an audience or a claim, in bytes.
const MAX_NAME_BYTES: usize = 1_024;

/// The source of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A file.
    File(PathBuf),
    /// A URL.
    Url(KeysUrl),
}

/// A URL of keys: https, or http on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeysUrl {
    server: Endpoint,
    /// Path and query.
    path: String,
    /// The authorities trusted there; `None`: those that this machine trusts.
    authorities: Option<PathBuf>,
}

/// The settings of an external issuer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignSettings {
    issuer: Issuer,
    /// The source of its keys.
    pub(crate) source: Source,
}

impl ForeignSettings {
    /// Reads the settings; `None` if there is no external issuer.
    ///
    /// # Errors
    /// A sentence about the first fault.
    pub(crate) fn of(config: &AccessConfig) -> Result<Option<ForeignSettings>, SetupError> {
        let AccessConfig { jwt_issuer, jwt_audience, jwt_keys, .. } = config;
        let (name, audience, keys) = match (jwt_issuer, jwt_audience, jwt_keys) {
            (None, None, None) if config.jwt_keys_ca.is_none() => return Ok(None),
            (Some(name), Some(audience), Some(keys)) => (name, audience, keys),
            _ => {
                return Err(
                    "--jwt-issuer, --jwt-audience and --jwt-keys must be set together: a token \
                     must come from the issuer, be meant for the audience and be signed with \
                     one of the keys"
                        .into(),
                );
            }
        };
        let issuer = Issuer {
            name: name.clone(),
            audience: audience.clone(),
            roles_claim: config.jwt_roles_claim.clone(),
            account_claim: config.jwt_account_claim.clone(),
        };
        let names = [
            ("jwt_issuer", &issuer.name),
            ("jwt_audience", &issuer.audience),
            ("jwt_roles_claim", &issuer.roles_claim),
            ("jwt_account_claim", &issuer.account_claim),
        ];
        for (setting, text) in names {
            if !(1..=MAX_NAME_BYTES).contains(&text.len()) || text.contains(char::is_control) {
                return Err(format!(
                    "{setting} must be 1 to {MAX_NAME_BYTES} bytes without control characters"
                )
                .into());
            }
        }
        for claim in [&issuer.roles_claim, &issuer.account_claim] {
            if STANDARD.contains(&claim.as_str()) {
                return Err(format!("the claim {claim} contains neither roles nor a name").into());
            }
        }
        if issuer.roles_claim == issuer.account_claim {
            return Err("jwt_roles_claim and jwt_account_claim must differ".into());
        }
        let source = Source::parse(keys)?.trusting(config.jwt_keys_ca.as_deref())?;
        Ok(Some(ForeignSettings { issuer, source }))
    }
}

impl Source {
    fn parse(text: &str) -> Result<Source, SetupError> {
        let wrong = |why: &str| format!("jwt_keys {text:?}: {why}");
        if !text.contains("://") {
            if text.is_empty() {
                return Err(wrong("must be a file or a URL").into());
            }
            return Ok(Source::File(PathBuf::from(text)));
        }
        let path = UrlParts::of(text).map_or("", |parts| parts.rest);
        let server = &text[..text.len() - path.len()];
        if path.contains('#') || !path.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong("the URL must be visible ASCII without a fragment").into());
        }
        let server = Endpoint::parse(server).map_err(|error| wrong(&error.to_string()))?;
        if !path.starts_with('/') {
            return Err(wrong("the URL has no path").into());
        }
        if server.scheme == Scheme::Http && !server.is_this_machine() {
            return Err(wrong(
                "plain http would let anyone on the network path substitute keys; use https, or \
                 http from this machine",
            )
            .into());
        }
        Ok(Source::Url(KeysUrl { server, path: path.to_owned(), authorities: None }))
    }

    /// The same, trusting only these authorities.
    fn trusting(mut self, authorities: Option<&Path>) -> Result<Source, SetupError> {
        let Some(authorities) = authorities else { return Ok(self) };
        match &mut self {
            Source::Url(url) if url.server.scheme == Scheme::Https => {
                url.authorities = Some(authorities.to_owned());
                Ok(self)
            }
            _ => Err("jwt_keys_ca requires jwt_keys at an https:// address".into()),
        }
    }
}

/// The external issuer with its current keys. An issuer whose URL does not answer has none yet,
/// which affects no other credentials.
///
/// # Errors
/// A sentence about wrong settings, or a file without keys.
pub(crate) fn open(
    config: &AccessConfig,
    clock: &dyn Clock,
) -> Result<Option<ForeignIssuer>, SetupError> {
    let Some(ForeignSettings { issuer, source }) = ForeignSettings::of(config)? else {
        return Ok(None);
    };
    if let Source::Url(KeysUrl { authorities: Some(path), .. }) = &source {
        // A wrong file stops the start.
        pem::roots(path).map_err(|why| format!("jwt_keys_ca: {why}"))?;
    }
    let keys = match &source {
        Source::File(path) => read(path)?,
        Source::Url(url) => fetch(url, clock).unwrap_or_else(|reason| {
            tracing::warn!(
                "{reason}; tokens of that issuer are refused until the keys have been read"
            );
            KeySet::default()
        }),
    };
    tell(keys.len(), keys.passed_over());
    Ok(Some(ForeignIssuer::new(issuer, keys)))
}

/// Logs the number of usable and unusable keys.
pub(crate) fn tell(keys: usize, passed_over: usize) {
    tracing::info!(keys, passed_over, "read the token issuer's keys");
}

/// The keys in a file.
///
/// # Errors
/// A sentence that names the file.
pub(crate) fn read(path: &Path) -> Result<KeySet, SetupError> {
    let name = path.display();
    let mut document = Vec::new();
    // One byte more, to detect files that are too long.
    let most = jwks::MAX_BYTES as u64 + 1;
    let read = File::open(path).and_then(|file| file.take(most).read_to_end(&mut document));
    read.map_err(|error| format!("cannot read the keys in {name}: {error}"))?;
    KeySet::read(&document)
        .map_err(|fault| SetupError::new(format!("the keys in {name} are invalid: {fault}")))
}

/// Fetches the keys from a URL. Blocks: 5 s for each wait, 15 s for the whole body. Redirects are
/// not followed: only the configured URL is trusted.
///
/// # Errors
/// A sentence that names the URL.
pub(crate) fn fetch(url: &KeysUrl, clock: &dyn Clock) -> Result<KeySet, SetupError> {
    let name = format!("{}{}", url.server.authority(), url.path);
    // The client's messages refer to options of the tools.
    let failed = |why: String| {
        let why = why.replace("--cacert", "--jwt-keys-ca");
        format!("cannot fetch the keys at {name}: {why}")
    };
    let begun_us = clock.monotonic_us();
    let trust = url.authorities.clone().map_or_else(Trust::default, Trust::of_authorities);
    let client = Client::new(url.server.clone(), &trust);
    let mut client = client.map_err(|error| failed(error.to_string()))?.with_patience(PATIENCE);
    let request = Request::get(&url.path, &[("Accept", "application/json")]);
    let (head, body) = client.open(&request).map_err(|error| match error {
        // The client's messages refer to Wellspring servers.
        ClientError::Connect { error, .. } => failed(error.to_string()),
        error => failed(error.to_string()),
    })?;
    if head.status != 200 {
        return Err(failed(format!("the server answered {}", head.status)).into());
    }
    let mut body = body.take(jwks::MAX_BYTES as u64 + 1);
    let mut document = Vec::new();
    let mut piece = [0; 8_192];
    loop {
        match body.read(&mut piece).map_err(|error| failed(error.to_string()))? {
            0 => break,
            length => document.extend_from_slice(&piece[..length]),
        }
        if clock.monotonic_us().saturating_sub(begun_us) > FETCH_US {
            return Err(failed("the answer arrives too slowly".to_owned()).into());
        }
    }
    KeySet::read(&document)
        .map_err(|fault| SetupError::new(format!("the keys at {name} are invalid: {fault}")))
}

#[cfg(test)]
mod tests {
    use super::super::test_issuer::{ed_jwk, jwks};
    use super::*;
    use crate::clock;
    use crate::config::HostConfig;
    use wellspring_client::test_server::{Reply, TestServer};

    const ISSUER: [&str; 4] = ["--jwt-issuer", "https://i.example", "--jwt-audience", "w"];

    fn settings(flags: &[&str]) -> Result<Option<ForeignSettings>, SetupError> {
        HostConfig::loaded(flags).map(|config| ForeignSettings::of(&config.access).unwrap())
    }

    fn source(keys: &str) -> Result<Source, SetupError> {
        settings(&[&ISSUER[..], &["--jwt-keys", keys]].concat()).map(|found| found.unwrap().source)
    }

    #[test]
    fn the_three_belong_together() {
        assert_eq!(settings(&[]), Ok(None));
        let all = [&ISSUER[..], &["--jwt-keys", "k.json"]].concat();
        let found = settings(&all).unwrap().unwrap();
        assert_eq!(found.source, Source::File("k.json".into()));
        assert_eq!((&*found.issuer.roles_claim, &*found.issuer.account_claim), ("roles", "sub"));
        for out in 0..3 {
            let mut some = all.clone();
            some.drain(2 * out..2 * out + 2);
            assert!(
                settings(&some).unwrap_err().to_string().contains("must be set together"),
                "{some:?}"
            );
        }
        for (flag, wrong) in [
            ("--jwt-roles-claim", "exp"),
            ("--jwt-roles-claim", "sub"),
            ("--jwt-account-claim", "iss"),
            ("--jwt-account-claim", ""),
            ("--jwt-roles-claim", "a\nb"),
        ] {
            assert!(settings(&[&all[..], &[flag, wrong]].concat()).is_err(), "{flag} {wrong:?}");
        }
        assert!(settings(&[&all[..], &["--jwt-roles-claim", "scope"]].concat()).is_ok());
    }

    #[test]
    fn a_key_url_is_one_that_others_cannot_serve() {
        for (url, server, path) in [
            ("http://127.0.0.1:8080/keys", "127.0.0.1:8080", "/keys"),
            ("http://localhost/a/b?c=d", "localhost:80", "/a/b?c=d"),
            ("http://[::1]:1/", "[::1]:1", "/"),
        ] {
            let Ok(Source::Url(found)) = source(url) else { panic!("{url}") };
            assert_eq!((found.server.authority().as_str(), found.path.as_str()), (server, path));
        }
        for (wrong, why) in [
            ("http://issuer.example/keys", "https"),
            ("http://10.0.0.1/keys", "https"),
            ("ftp://127.0.0.1/keys", "http"),
            ("http://127.0.0.1", "path"),
            ("http://u:p@127.0.0.1/keys", "host"),
            ("http://127.0.0.1/a b", "ASCII"),
            ("http://127.0.0.1/a#b", "fragment"),
            ("", "file"),
        ] {
            let message = source(wrong).unwrap_err();
            assert!(
                message.to_string().contains("jwt_keys") && message.to_string().contains(why),
                "{wrong}: {message}"
            );
        }
        assert_eq!(source("/etc/keys.json"), Ok(Source::File("/etc/keys.json".into())));
    }

    #[test]
    fn a_file_without_keys_stops_the_start_and_a_url_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys.json");
        let open = |keys: &str| {
            let config = HostConfig::for_tests(&[&ISSUER[..], &["--jwt-keys", keys]].concat());
            open(&config.access, &*clock::system()).map(|foreign| foreign.unwrap().has_keys())
        };
        let file = path.to_str().unwrap();
        assert!(open(file).unwrap_err().to_string().contains("keys.json"));
        std::fs::write(&path, "{}").unwrap();
        assert!(open(file).unwrap_err().to_string().contains("JWK Set"));
        std::fs::write(&path, jwks(&[ed_jwk(1, "")])).unwrap();
        assert_eq!(open(file), Ok(true));
        assert_eq!(open("http://127.0.0.1:1/keys"), Ok(false), "nobody is there");
    }

    #[test]
    fn keys_are_fetched_from_whom_is_configured() {
        let server = TestServer::start(|request, _| {
            assert_eq!((&*request.method, request.header("authorization")), ("GET", ""));
            match request.path.as_str() {
                "/keys?v=1" => Reply::json(200, &jwks(&[ed_jwk(1, "")])),
                "/moved" => {
                    Reply::raw("HTTP/1.1 302 X\r\nLocation: /keys?v=1\r\nContent-Length: 0\r\n\r\n")
                }
                "/huge" => Reply::json(200, &" ".repeat(jwks::MAX_BYTES + 1)),
                "/cut" => {
                    Reply::raw("HTTP/1.1 200 X\r\nContent-Length: 99\r\n\r\n{").then_hang_up()
                }
                _ => Reply::json(200, "{}"),
            }
        });
        let fetch = |path: &str| {
            let Source::Url(url) = source(&format!("{}{path}", server.url())).unwrap() else {
                panic!("a URL")
            };
            fetch(&url, &*clock::system()).map(|keys| keys.len())
        };
        assert_eq!(fetch("/keys?v=1"), Ok(1));
        for (path, why) in
            [("/moved", "302"), ("/huge", "262144"), ("/none", "JWK Set"), ("/cut", "")]
        {
            let message = fetch(path).unwrap_err();
            assert!(
                message.to_string().contains(path) && message.to_string().contains(why),
                "{message}"
            );
        }
    }
}
