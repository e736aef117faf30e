//! `wellspring login` and `wellspring logout`: a token of a server, kept for the other commands.

use crate::credentials;
use crate::exit::{Code, Failure};
use crate::kept_login::{self, Login};
use crate::problem::Problem;
use crate::secret;
use crate::span;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;
use wellspring_host::client::authorization::Authorization;
use wellspring_host::client::endpoint::Scheme;
use wellspring_host::client::trust::Trust;
use wellspring_host::client::{Client, Request};
use wellspring_host::clock;
use wellspring_views::access::{AccountName, NameFault};
use zeroize::Zeroizing;

/// Which server.
#[derive(Debug, Clone, clap::Args)]
struct Server {
    /// Address of the server.
    #[arg(long, env = "WELLSPRING_URL", default_value = "http://127.0.0.1:4000")]
    url: String,
    #[command(flatten)]
    trust: Trust,
}

/// What `wellspring login` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The token is kept in $XDG_STATE_HOME/wellspring/logins (otherwise ~/.local/state/wellspring/logins), readable by its
owner alone, and is shown to the server it came from and to no other. The other commands show it if they are given
neither --token-file nor --user nor WELLSPRING_TOKEN. `wellspring logout` ends and forgets it.

Exit codes: 0 done, 1 refused, 64 or 2 usage, 65 bad data, 66 no such file, 69 server not reachable or too many
attempts (the message says when to try again), 74 it cannot be kept, 77 not the right password.

Examples:
  wellspring login ann                                     asks for the password
  wellspring login ann --url https://events.example.com --expires 8h
  wellspring login ci --password-file ./password")]
pub struct LoginArgs {
    /// Whose.
    #[arg(value_parser = name)]
    name: AccountName,
    #[command(flatten)]
    server: Server,
    /// A file with the password; - is standard input. Otherwise it is asked for.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// How long it is to count: 8h, 30m, 7d; as the server has it otherwise (an hour, by default).
    #[arg(long, value_name = "TIME", value_parser = span::seconds)]
    expires: Option<u64>,
}

/// What `wellspring logout` takes.
#[derive(Debug, clap::Args)]
pub struct LogoutArgs {
    #[command(flatten)]
    server: Server,
    /// Ends all tokens of the account, not only the one that is kept here.
    #[arg(long)]
    everywhere: bool,
}

fn name(text: &str) -> Result<AccountName, NameFault> {
    AccountName::parse(text)
}

#[derive(Deserialize)]
struct Issued {
    access_token: String,
    expires_in: u64,
}

/// Logs in, and keeps the token.
pub(crate) fn run_login(args: &LoginArgs) -> Result<(), Failure> {
    let endpoint = crate::server::endpoint(&args.server.url)?;
    if endpoint.scheme == Scheme::Http && !endpoint.is_this_machine() {
        eprintln!(
            "wellspring: {} is in the clear: the password and the token can be read on the way; use https://",
            endpoint.origin()
        );
    }
    let mut client = Client::new(endpoint.clone(), &args.server.trust).map_err(Failure::usage)?;
    // Before anything is asked: where it cannot be kept, no token is made.
    let place = kept_login::place(&endpoint)?;
    let password = match &args.password_file {
        Some(path) => secret::of_file("--password-file", path)?,
        None => secret::ask(&format!("Password of {}: ", args.name), "--password-file")?,
    };
    let mut body = json!({"username": args.name.as_str(), "password": password.as_str()});
    if let Some(seconds) = args.expires {
        body["expires_in_s"] = seconds.into();
    }
    let answer = post(&mut client, "/auth/token", &body)?;
    let issued: Issued = serde_json::from_slice(&answer).map_err(|_| {
        Failure::new(Code::Unavailable, "the answer is not that of a Wellspring server (--url)")
    })?;
    let life_us = issued.expires_in.saturating_mul(1_000_000);
    let until_us = clock::system().wall_us().saturating_add(life_us);
    let token = Zeroizing::new(issued.access_token);
    let login = Login::new(&endpoint, args.name.as_str(), token, until_us);
    kept_login::keep(&place, &login)?;
    eprintln!("logged in at {} as {} until {}", endpoint.origin(), args.name, login.until());
    if credentials::variable_is_set() {
        eprintln!(
            "wellspring: WELLSPRING_TOKEN is set, and the other commands show what it holds, not this login; \
             unset it to use the login"
        );
    }
    Ok(())
}

/// Ends the token, and forgets it.
pub(crate) fn run_logout(args: &LogoutArgs) -> Result<(), Failure> {
    let endpoint = crate::server::endpoint(&args.server.url)?;
    let origin = endpoint.origin();
    let Some(login) = kept_login::find(&endpoint)? else {
        return Err(Failure::new(Code::Refused, format!("not logged in at {origin}")));
    };
    let client = Client::new(endpoint.clone(), &args.server.trust).map_err(Failure::usage)?;
    let mut client = client.with_authorization(Some(Authorization::Bearer(login.token().clone())));
    let told = post(&mut client, "/auth/logout", &json!({"everywhere": args.everywhere}));
    kept_login::forget(&endpoint)?;
    match told {
        Ok(_) => eprintln!("logged out at {origin}"),
        // It had ended before.
        Err(failure) if matches!(failure.code, Code::Refused | Code::Denied) => {
            eprintln!("logged out at {origin}; the token had ended there already");
        }
        Err(failure) => {
            let message = format!(
                "forgotten here, but {origin} was not told, and the token counts there until {}: {}",
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
    let code = match answer.head.status {
        // The route is not there: no server of ours.
        404 => Code::Unavailable,
        _ => problem.code(Code::Data),
    };
    Err(Failure::new(code, problem.without_hint()))
}
