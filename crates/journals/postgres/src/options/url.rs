//! Parses the URL of a server strictly: unknown parts are refused by name. Errors never quote
//! anything that may be the password.

use super::{
    ConnectOptions, DEFAULT_PORT, DEFAULT_SCHEMA, EventRows, Host, OptionsError, Password, Tls,
};
use std::time::Duration;

const SHAPE: &str = "write postgres://USER[:PASSWORD]@HOST[:PORT]/DATABASE";

fn fault(what: &str) -> OptionsError {
    OptionsError(format!("{what}: {SHAPE}"))
}

/// Reads it.
pub(crate) fn parse(text: &str) -> Result<ConnectOptions, OptionsError> {
    let rest = text
        .strip_prefix("postgres://")
        .or_else(|| text.strip_prefix("postgresql://"))
        .ok_or_else(|| fault("a journal in PostgreSQL must be given as a URL"))?;
    if rest.contains('#') {
        return Err(fault("the URL contains a #; write %23 for it in a password"));
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) =
        rest.split_once('/').ok_or_else(|| fault("the URL contains no database"))?;
    if database.contains('/') {
        return Err(fault("the URL contains too many /; write %2F for one in a name or password"));
    }
    // The last @: a host contains none, and one in a password is a common mistake.
    let (who, hosts) =
        authority.rsplit_once('@').ok_or_else(|| fault("the URL contains no user"))?;
    if who.contains('@') {
        return Err(fault("the URL contains too many @; write %40 for one in a name or password"));
    }
    let (user, password) = match who.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (who, None),
    };
    let password = match password {
        Some(password) => Some(Password::new(decode(password, "the password")?)),
        None => None,
    };
    let hosts = hosts.split(',').map(host).collect::<Result<Vec<_>, _>>()?;
    let local = hosts.iter().all(Host::is_local);
    let mut options = ConnectOptions {
        hosts,
        user: name(user, "the user")?,
        password: password.filter(|password| !password.bytes().is_empty()),
        database: name(database, "the database")?,
        schema: DEFAULT_SCHEMA.into(),
        tls: if local { Tls::Off } else { Tls::VerifyFull { authorities: None } },
        connect_timeout: Duration::from_secs(5),
        application_name: "wellspring".into(),
        event_rows: EventRows::default(),
    };
    read_query(query, &mut options)?;
    options.check()?;
    Ok(options)
}

fn read_query(query: &str, options: &mut ConnectOptions) -> Result<(), OptionsError> {
    let mut seen = Vec::new();
    let mut authorities = None;
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            OptionsError(format!("{pair:?} in the URL has no value; write {pair}=VALUE"))
        })?;
        if seen.contains(&key) {
            return Err(OptionsError(format!("{key} is given twice in the URL; remove one")));
        }
        seen.push(key);
        let value = name(value, key)?;
        match key {
            "schema" => options.schema = value,
            "connect_timeout" => options.connect_timeout = seconds(&value)?,
            "sslrootcert" => authorities = Some(value.into()),
            "sslmode" => {
                options.tls = match value.as_str() {
                    "disable" => Tls::Off,
                    "verify-full" => Tls::VerifyFull { authorities: None },
                    _ => {
                        return Err(OptionsError(format!(
                            "sslmode={value} is not taken, because it does not make sure who answers: \
                             write sslmode=verify-full, or disable for a server on this machine"
                        )));
                    }
                }
            }
            "password" => {
                return Err(OptionsError(
                    "put the password before the @ of the URL, in PGPASSWORD or in a file".into(),
                ));
            }
            _ => {
                return Err(OptionsError(format!(
                    "{key:?} in the URL is not known: there are schema, sslmode, sslrootcert and \
                     connect_timeout"
                )));
            }
        }
    }
    match (&mut options.tls, authorities) {
        (_, None) => Ok(()),
        (Tls::VerifyFull { authorities }, given) => {
            *authorities = given;
            Ok(())
        }
        (Tls::Off, Some(_)) => Err(OptionsError(
            "sslrootcert has no effect without encryption; add sslmode=verify-full".into(),
        )),
    }
}

fn seconds(value: &str) -> Result<Duration, OptionsError> {
    match value.parse() {
        Ok(seconds @ 1..=300) => Ok(Duration::from_secs(seconds)),
        _ => Err(OptionsError(format!(
            "connect_timeout={value} is invalid; write seconds from 1 to 300"
        ))),
    }
}

fn host(text: &str) -> Result<Host, OptionsError> {
    let (name_part, port) = if let Some(rest) = text.strip_prefix('[') {
        let (address, rest) =
            rest.split_once(']').ok_or_else(|| fault("an address after [ has no closing ]"))?;
        if address.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(fault("the text in [ ] is not an IPv6 address"));
        }
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port),
            None if rest.is_empty() => None,
            None => return Err(fault("only :PORT can follow ]")),
        };
        (address, port)
    } else {
        match text.split_once(':') {
            Some((name, port)) => (name, Some(port)),
            None => (text, None),
        }
    };
    let port = match port {
        None => DEFAULT_PORT,
        Some(port) => match port.parse() {
            Ok(port) if port > 0 => port,
            // Not quoted: with an unencoded : or @ in the password, it would be a part of the
            // password.
            _ => return Err(fault("a port in the URL is not a number from 1 to 65535")),
        },
    };
    let name = name(name_part, "the host")?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._:%/".contains(c);
    if !name.chars().all(plain) {
        return Err(fault(
            "the host in the URL contains characters that host names cannot contain",
        ));
    }
    Ok(Host { name, port })
}

/// A text that must not be empty.
fn name(text: &str, what: &str) -> Result<String, OptionsError> {
    let bytes = decode(text, what)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| fault(&format!("{what} in the URL is not UTF-8 after decoding")))?;
    if text.is_empty() {
        return Err(fault(&format!("{what} in the URL is empty")));
    }
    if text.chars().any(char::is_control) {
        return Err(fault(&format!("{what} in the URL contains a control character")));
    }
    Ok(text)
}

fn decode(text: &str, what: &str) -> Result<Vec<u8>, OptionsError> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| (byte? as char).to_digit(16);
        match (digit(bytes.next()), digit(bytes.next())) {
            (Some(high), Some(low)) => decoded.push((high * 16 + low) as u8),
            _ => {
                return Err(fault(&format!(
                    "a % in {what} is not followed by two hexadecimal digits; write %25 for a literal %"
                )));
            }
        }
    }
    Ok(decoded)
}
