//! The server a tool talks to, and the credentials it sends.

use crate::credentials::Credentials;
use crate::exit::Failure;
use wellspring_client::Client;
use wellspring_client::endpoint::Endpoint;
use wellspring_client::trust::Trust;

/// The server, unless another is named.
pub(crate) const DEFAULT_URL: &str = "http://127.0.0.1:4000";

/// The server, the authorities to trust, and the credentials to send.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Server {
    /// Address of the server
    #[arg(long, env = "WELLSPRING_URL", default_value = DEFAULT_URL, global = true)]
    pub(crate) url: String,
    #[command(flatten)]
    pub(crate) trust: Trust,
    #[command(flatten)]
    pub(crate) credentials: Credentials,
}

impl Server {
    /// A client for it; nothing is sent yet.
    ///
    /// # Errors
    /// Usage, if the address is not valid or the TLS options cannot be used; a failure of the
    /// credentials.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        let endpoint = endpoint(&self.url)?;
        let authorization = self.credentials.authorization(&endpoint)?;
        Ok(Client::new(endpoint, &self.trust)
            .map_err(Failure::usage)?
            .with_authorization(authorization))
    }

    /// The flags that name the same server with the same credentials on another command line.
    pub(crate) fn flags(&self) -> Vec<(&'static str, String)> {
        let url = (self.url != DEFAULT_URL).then(|| ("--url", self.url.clone()));
        url.into_iter().chain(self.trust.flags()).chain(self.credentials.flags()).collect()
    }
}

/// The server at an address.
///
/// # Errors
/// Usage, if the address is not valid.
pub(crate) fn endpoint(url: &str) -> Result<Endpoint, Failure> {
    Endpoint::parse(url).map_err(|error| Failure::usage(format!("--url {url}: {error}")))
}
