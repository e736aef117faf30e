//! Settings of access: tokens, tokens of an external issuer, pages of other origins.

use super::token::MAX_LIFE_S;
use crate::settings::section;
use crate::setup::SetupError;
use std::path::PathBuf;

section! {
    /// Settings of access: pages, tokens, other issuers.
    AccessConfig from AccessConfigArgs under "Access and audit":
    /// Origins whose pages may use this server from a browser; comma separated, e.g.
    /// https://app.example.com; * = any.
    [value_delimiter = ',']
    cors_origins: Vec<String> = "WELLSPRING_CORS_ORIGINS", Vec::new();
    /// Default lifetime of a token, in s, up to 31622400 (366 days).
    token_life_s: u64 = "WELLSPRING_TOKEN_LIFE_S", 3_600;
    /// Claim with the roles in tokens of --jwt-issuer: a list, or words in a text, such as writer
    /// or writer:LOG. Other words are ignored.
    jwt_roles_claim: String = "WELLSPRING_JWT_ROLES_CLAIM", "roles".to_owned();
    /// Claim with the account name in tokens of --jwt-issuer.
    jwt_account_claim: String = "WELLSPRING_JWT_ACCOUNT_CLAIM", "sub".to_owned();
    optional
    /// Issuer (`iss`) whose tokens are accepted in addition to our own; with --jwt-audience and
    /// --jwt-keys.
    jwt_issuer: String = "WELLSPRING_JWT_ISSUER";
    optional
    /// Audience (`aud`) required in tokens of --jwt-issuer: this server.
    jwt_audience: String = "WELLSPRING_JWT_AUDIENCE";
    optional
    /// Public keys of --jwt-issuer, a JWK Set: a file, an https URL, or an http URL on this
    /// machine.
    jwt_keys: String = "WELLSPRING_JWT_KEYS";
    optional
    /// PEM file of the authorities to trust at --jwt-keys, if that is an https URL. Not set: this
    /// machine's.
    jwt_keys_ca: PathBuf = "WELLSPRING_JWT_KEYS_CA";
}

impl AccessConfig {
    /// Checks the settings of this section.
    ///
    /// # Errors
    /// A sentence about the first setting that is wrong.
    pub(crate) fn check(&self) -> Result<(), SetupError> {
        if !(1..=MAX_LIFE_S).contains(&self.token_life_s) {
            return Err(format!("token_life_s must be from 1 to {MAX_LIFE_S}").into());
        }
        Ok(())
    }
}
