//! The address of the server and how to connect: a strictly parsed URL, and a password that is
//! never shown.

mod url;

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

/// PostgreSQL's default port.
pub(crate) const DEFAULT_PORT: u16 = 5432;
/// The default schema of the tables.
pub(crate) const DEFAULT_SCHEMA: &str = "wellspring";

/// A password. Wiped on drop and never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// A password with these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Password {
        Password(Zeroizing::new(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(…)")
    }
}

/// Invalid options. The text says what to write instead, and never contains the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionsError(pub(crate) String);

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for OptionsError {}

/// The address of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// A host name, an IP address, or the folder of a Unix socket.
    pub name: String,
    /// The port.
    pub port: u16,
}

impl Host {
    /// Whether the connection stays on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.name.starts_with('/')
            || self.name == "localhost"
            || self.name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

/// Whether connections are encrypted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tls {
    /// Not encrypted: allowed to this machine only.
    Off,
    /// Encrypted, and the server's certificate must match its name and be signed by a trusted
    /// authority.
    VerifyFull {
        /// PEM file of the certificate authorities; `None` for those trusted by this machine.
        authorities: Option<PathBuf>,
    },
}

/// Whether events are also written as rows, for any SQL client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EventRows {
    /// Into `ws_event`, in the statement that places the batch.
    #[default]
    Write,
    /// Not by this node.
    Omit,
}

/// How a node connects to its server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectOptions {
    /// The servers, tried in this order until one accepts writes.
    pub hosts: Vec<Host>,
    /// The user.
    pub user: String,
    /// The password, if the server requires one.
    pub password: Option<Password>,
    /// The database.
    pub database: String,
    /// The schema of the tables.
    pub schema: String,
    /// Whether connections are encrypted.
    pub tls: Tls,
    /// Timeout of a connection attempt.
    pub connect_timeout: Duration,
    /// The node's name on the server (`pg_stat_activity.application_name`).
    pub application_name: String,
    /// Whether events are written as rows.
    pub event_rows: EventRows,
}

impl ConnectOptions {
    /// Parses `postgres://USER[:PASSWORD]@HOST[:PORT][,HOST…]/DATABASE[?NAME=VALUE&…]`,
    /// percent-encoded where necessary; a host that begins with `%2F` is the folder of a socket.
    /// Names:
    ///
    /// - `schema`: the schema of the tables (`wellspring`).
    /// - `sslmode`: `disable`, allowed to this machine only, where it is the default; or
    ///   `verify-full`.
    /// - `sslrootcert`: PEM file of the certificate authorities to trust.
    /// - `connect_timeout`: in seconds (5).
    ///
    /// # Errors [`OptionsError`]: what is wrong, and what to write.
    pub fn parse(text: &str) -> Result<ConnectOptions, OptionsError> {
        url::parse(text)
    }

    /// Sets the password, unless the URL contains one.
    #[must_use]
    pub fn or_password(mut self, password: Option<Password>) -> ConnectOptions {
        self.password = self.password.or(password);
        self
    }

    /// Sets the password from the environment variable `PGPASSWORD`, unless there is one already.
    #[must_use]
    pub fn or_password_of_environment(self) -> ConnectOptions {
        use std::os::unix::ffi::OsStringExt as _;
        let password = std::env::var_os("PGPASSWORD").filter(|password| !password.is_empty());
        self.or_password(password.map(|password| Password::new(password.into_vec())))
    }

    /// Sets the password from a file, without its final newline. Replaces any other password.
    ///
    /// # Errors
    /// [`OptionsError`]: the file cannot be read, is empty, or is accessible to other users.
    pub fn with_password_file(mut self, path: &Path) -> Result<ConnectOptions, OptionsError> {
        use std::os::unix::fs::PermissionsExt as _;
        let name = path.display();
        let fault = |why| OptionsError(format!("the password file {name} cannot be read: {why}"));
        let mode = std::fs::metadata(path).map_err(fault)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(OptionsError(format!(
                "the password file {name} is accessible to other users (mode {mode:04o}); run chmod 600 {name}"
            )));
        }
        let mut bytes = Zeroizing::new(std::fs::read(path).map_err(fault)?);
        while bytes.last().is_some_and(|byte| matches!(byte, b'\n' | b'\r')) {
            bytes.pop();
        }
        if bytes.is_empty() {
            return Err(OptionsError(format!(
                "the password file {name} is empty; write the password on its first line"
            )));
        }
        self.password = Some(Password(bytes));
        Ok(self)
    }

    /// Checks options of any origin.
    ///
    /// # Errors
    /// [`OptionsError`].
    pub fn check(&self) -> Result<(), OptionsError> {
        if self.hosts.is_empty() {
            return Err(OptionsError(
                "no server is given; write postgres://USER@HOST/DATABASE".into(),
            ));
        }
        let foreign = self.hosts.iter().find(|host| !host.is_local());
        if let (Tls::Off, Some(host)) = (&self.tls, foreign) {
            return Err(OptionsError(format!(
                "the connection to {host} leaves this machine and would not be encrypted: write \
                 sslmode=verify-full, with sslrootcert=FILE for an authority of your own"
            )));
        }
        let socket = self.hosts.iter().find(|host| host.name.starts_with('/'));
        if let (Tls::VerifyFull { .. }, Some(host)) = (&self.tls, socket) {
            return Err(OptionsError(format!(
                "sslmode=verify-full does not go with the socket {}: a socket stays on this machine; \
                 leave sslmode out",
                host.name
            )));
        }
        let mut schema = self.schema.bytes();
        let begins = schema.next().is_some_and(|byte| byte.is_ascii_lowercase() || byte == b'_');
        let goes_on =
            schema.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
        if !begins || !goes_on || self.schema.len() > 63 || self.schema.starts_with("pg_") {
            return Err(OptionsError(format!(
                "schema={:?} cannot be: it is 1 to 63 of a-z, 0-9 and _, does not begin with a digit \
                 nor with pg_",
                self.schema
            )));
        }
        Ok(())
    }
}

/// The URL without the password.
impl fmt::Display for ConnectOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "postgres://{}@", self.user)?;
        for (at, host) in self.hosts.iter().enumerate() {
            write!(f, "{}{host}", if at == 0 { "" } else { "," })?;
        }
        write!(f, "/{}?schema={}", self.database, self.schema)
    }
}

#[cfg(test)]
mod tests;
