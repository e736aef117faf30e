//! `wellspring token`: API keys, which work until they expire or are revoked.

use super::store::{KeyFilter, KeyRow, StoreArgs, WantedKey};
use super::user::name;
use crate::argument_error::ArgumentError;
use crate::exit::{Code, Failure, say, say_lines};
use crate::numbers::counted;
use crate::span::{self, End};
use crate::table::table;
use wellspring_host::access::offline::IfMissing;
use wellspring_host::identity::{AccountName, Grant, KeyId, Label, NameFault, Role};

/// What `wellspring token` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
A token created here is an API key: send it as `Authorization: Bearer` or as `X-API-Key`. It is listed \
and works until it expires or is revoked. Its secret is shown once. POST /auth/token issues tokens \
that live for an hour. See docs/access.md.

Examples:
  export WELLSPRING_TOKEN=$(wellspring token create --user ann \\
    --role writer --log orders --expires 90d)
  wellspring token list
  wellspring token rotate 75bbcf34ea86d8bb --overlap 1h
  wellspring token revoke 75bbcf34ea86d8bb")]
pub struct TokenArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    what: TokenCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TokenCommand {
    /// Create a key and print its secret on standard output
    Create {
        /// reader, writer, operator or admin
        #[arg(long, value_parser = role)]
        role: Role,
        /// Limit the key to this log [default: all logs]
        #[arg(long)]
        log: Option<String>,
        /// When the key expires: 90d, 12h, a date or a time [default: never]
        #[arg(long, value_name = "WHEN", value_parser = span::end)]
        expires: Option<End>,
        /// Account that owns the key [default: yours]
        #[arg(long, value_name = "NAME", value_parser = name)]
        account: Option<AccountName>,
        /// Label shown by `list`
        #[arg(long, value_name = "TEXT", value_parser = label)]
        label: Option<Label>,
    },
    /// List your keys; an admin sees all
    List {
        /// Only keys of this account
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
        /// Include revoked keys
        #[arg(long)]
        revoked: bool,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key, permanently
    Revoke {
        /// Id of the key, as shown by `list`
        #[arg(value_parser = key_id)]
        id: KeyId,
    },
    /// Replace a key by a new one and print its secret
    Rotate {
        /// Id of the old key, as shown by `list`
        #[arg(value_parser = key_id)]
        id: KeyId,
        /// How long both keys work, up to 30d
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span::seconds)]
        overlap: u64,
        /// When the new key expires [default: after the old key's lifetime]
        #[arg(long, value_name = "WHEN", value_parser = span::end)]
        expires: Option<End>,
    },
}

fn role(text: &str) -> Result<Role, ArgumentError> {
    Role::parse(text).ok_or_else(|| {
        ArgumentError::new("must be reader, writer, operator or admin; name the log with --log")
    })
}

fn label(text: &str) -> Result<Label, NameFault> {
    Label::parse(text)
}

fn key_id(text: &str) -> Result<KeyId, ArgumentError> {
    // The text is not repeated: it may be the secret.
    KeyId::parse(text).map_err(|fault| {
        ArgumentError::new(format!(
            "{fault}. Pass the key's id as shown by `token list`, not its label or secret"
        ))
    })
}

/// Runs the command.
pub(crate) fn run(args: &TokenArgs) -> Result<(), Failure> {
    args.store.keeping_owner(|| execute(args))
}

fn execute(args: &TokenArgs) -> Result<(), Failure> {
    let mut store = args.store.store(IfMissing::Fail)?;
    match &args.what {
        TokenCommand::Create { role, log, expires, account, label } => {
            let grant = Grant { role: *role, log: log.clone() };
            if Grant::parse(&grant.to_string()).as_ref() != Some(&grant) {
                return Err(Failure::usage("--log: not a log's name"));
            }
            let (label, end, account) = (label.clone(), expires.clone(), account.clone());
            print_secret(&store.add_key(WantedKey { label, grant, end, account })?)
        }
        TokenCommand::List { account, revoked, json } => {
            let show = if *revoked { KeyFilter::All } else { KeyFilter::Unrevoked };
            let keys = store.keys(account.as_deref(), show)?;
            match json {
                true => say_lines(&keys.iter().map(json_line).collect::<Vec<_>>()),
                false => say_lines(&table(&COLUMNS, keys.iter().map(row))),
            }
        }
        TokenCommand::Revoke { id } => {
            store.revoke_key(id)?;
            eprintln!("Revoked key {id}.");
            Ok(())
        }
        TokenCommand::Rotate { id, overlap, expires } => {
            let key = store.rotate_key(id, *overlap, expires.clone())?;
            print_secret(&key)?;
            match overlap {
                0 => eprintln!("{id} is revoked"),
                _ => eprintln!(
                    "Key {id} keeps working for {}.",
                    counted(*overlap, "second", "seconds")
                ),
            }
            Ok(())
        }
    }
}

/// The secret alone on standard output, ready for a variable; the rest on standard error.
fn print_secret(key: &KeyRow) -> Result<(), Failure> {
    let secret = key.secret.as_ref().ok_or_else(|| {
        let message =
            format!("the answer holds no secret; revoke key {} and create another", key.id);
        Failure::new(Code::Unavailable, message)
    })?;
    say(&secret.0)?;
    let end = match &key.expires_at {
        Some(time) => format!("expires {time}"),
        None => "never expires".to_owned(),
    };
    eprintln!(
        "Created key {}: {} of {}, {end}. The secret above will not be shown again.",
        key.id,
        grant(key),
        key.account
    );
    Ok(())
}

fn grant(key: &KeyRow) -> String {
    match &key.log {
        Some(log) => format!("{}:{log}", key.role),
        None => key.role.clone(),
    }
}

const COLUMNS: [&str; 7] = ["ID", "LABEL", "ACCOUNT", "ROLE", "STATE", "ADDED", "EXPIRES"];

fn row(key: &KeyRow) -> Vec<String> {
    let KeyRow { id, label, account, state, added_at, expires_at, .. } = key;
    let expires = expires_at.as_deref().unwrap_or("never");
    let cells = [id, label, account, &grant(key), state, added_at, expires];
    cells.map(str::to_owned).to_vec()
}

fn json_line(key: &KeyRow) -> String {
    key.to_json().to_string()
}
