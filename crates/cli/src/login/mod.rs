//! `wellspring login` and `wellspring logout`: store and remove a token for the other commands.

use crate::credentials;
use crate::exit::{Code, Failure, InputKind};
use crate::problem::Problem;
use crate::secret;
use crate::server::DEFAULT_URL;
use crate::span;
use crate::stored_login::{self, Login};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use wellspring_client::authorization::Authorization;
use wellspring_client::endpoint::Scheme;
use wellspring_client::trust::Trust;
use wellspring_client::{Client, Request};
use wellspring_host::clock;
use wellspring_host::identity::{AccountName, NameFault};
use zeroize::Zeroizing;

/// Which server.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Server")]
struct Server {
    /// Address of the server
    #[arg(long, env = "WELLSPRING_URL", default_value = DEFAULT_URL)]
    url: String,
    #[command(flatten)]
    trust: Trust,
}

/// What `wellspring login` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Stores the token in $XDG_STATE_HOME/wellspring/logins (default: ~/.local/state/wellspring/logins), \
readable by its owner only. It is sent to this server only. Other commands use it unless they are \
given --token-file, --user or WELLSPRING_TOKEN. `wellspring logout` revokes and removes it.

Examples:
  wellspring login ann
  wellspring login ann --url https://events.example.com --expires 8h
  wellspring login ci --password-file ./password")]
pub struct LoginArgs {
    /// Name of the account
    #[arg(value_parser = name)]
    name: AccountName,
    /// File with the password; - is standard input [default: ask]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Lifetime of the login: 8h, 30m, 7d [default: set by the server, usually 1h]
    #[arg(long, value_name = "TIME", value_parser = span::seconds)]
    expires: Option<u64>,
    #[command(flatten)]
    server: Server,
}

/// What `wellspring logout` takes.
#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    /// Revoke all tokens of the account, not only the stored one
    #[arg(long)]
    everywhere: bool,
    #[command(flatten)]
    server: Server,
}

fn name(text: &str) -> Result<AccountName, NameFault> {
    AccountName::parse(text)
}

#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    expires_in: u64,
}

/// Logs in, and stores the token.
pub(crate) fn run_login(args: &LoginArgs) -> Result<(), Failure> {
    let endpoint = crate::server::endpoint(&args.server.url)?;
    if endpoint.scheme == Scheme::Http && !endpoint.is_this_machine() {
        eprintln!(
            "wellspring: {} is not encrypted: others on the network can read the password and the token; use \
             https://",
            endpoint.origin()
        );
    }
    let mut client = Client::new(endpoint.clone(), &args.server.trust).map_err(Failure::usage)?;
    // Before anything is asked: a token that cannot be stored is not issued.
    let place = stored_login::place(&endpoint)?;
    let password = match &args.password_file {
        Some(path) => secret::of_file("--password-file", path)?,
        None => secret::ask(&format!("Password of {}: ", args.name), "--password-file")?,
    };
    let mut body = json!({"username": args.name.as_str(), "password": password.as_str()});
    if let Some(seconds) = args.expires {
        body["expires_in_s"] = seconds.into();
    }
    let answer = post(&mut client, "/auth/token", &body)?;
    // What serde says may hold the token.
    let issued: TokenAnswer = serde_json::from_slice(&answer).map_err(|_| {
        Failure::new(Code::Unavailable, "not an answer of a Wellspring server; check --url")
    })?;
    let life_us = issued.expires_in.saturating_mul(1_000_000);
    let until_us = clock::system().wall_us().saturating_add(life_us);
    let token = Zeroizing::new(issued.access_token);
    let login = Login::new(&endpoint, args.name.as_str(), token, until_us);
    stored_login::keep(&place, &login)?;
    eprintln!("Logged in to {} as {} until {}.", endpoint.origin(), args.name, login.until());
    if credentials::variable_is_set() {
        eprintln!(
            "wellspring: WELLSPRING_TOKEN is set, and the other commands use it instead of this login; unset \
             it to use the login"
        );
    }
    Ok(())
}

/// Revokes the token, and removes it.
pub(crate) fn run_logout(args: &LogoutArgs) -> Result<(), Failure> {
    let endpoint = crate::server::endpoint(&args.server.url)?;
    let origin = endpoint.origin();
    let Some(login) = stored_login::find(&endpoint)? else {
        return Err(Failure::new(Code::Refused, format!("not logged in to {origin}")));
    };
    let client = Client::new(endpoint.clone(), &args.server.trust).map_err(Failure::usage)?;
    let mut client = client.with_authorization(Some(Authorization::Bearer(login.token().clone())));
    let told = post(&mut client, "/auth/logout", &json!({"everywhere": args.everywhere}));
    stored_login::forget(&endpoint)?;
    match told {
        Ok(_) => eprintln!("Logged out of {origin}."),
        // It was invalid already.
        Err(failure) if matches!(failure.code, Code::Refused | Code::Denied) => {
            eprintln!("Logged out of {origin}; the token was no longer valid there.");
        }
        Err(failure) => {
            let message = format!(
                "removed the stored login, but {origin} could not be told; the token stays valid there until {}: {}",
                login.until(),
                failure.message
            );
            return Err(Failure::new(failure.code, message));
        }
    }
    Ok(())
}

fn post(client: &mut Client, path: &str, body: &Value) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let body = Zeroizing::new(body.to_string().into_bytes());
    let headers = &[("Content-Type", "application/json")];
    let answer = client.call(&Request { method: "POST", path, headers, body: Some(&body) })?;
    if answer.head.status == 200 {
        return Ok(Zeroizing::new(answer.body));
    }
    let problem = Problem::of(&answer).in_flags();
    Err(Failure::new(problem.code(InputKind::Data), problem.without_hint()))
}
