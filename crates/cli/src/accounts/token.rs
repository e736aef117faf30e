//! `wellspring token`: API keys, which are tokens that live until somebody ends them.

use super::desk::{KeyRow, Place, Show, WantedKey};
use super::user::name;
use crate::exit::{Code, Failure, say};
use crate::span::{self, End};
use wellspring_host::access::offline::IfMissing;
use wellspring_views::access::{AccountName, Grant, KeyId, Label, NameFault, Role};

/// What `wellspring token` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A token made here is an API key: it is sent as `Authorization: Bearer` or as `X-API-Key`, is listed, and lives
until it expires or is revoked. Its secret is shown once. Tokens that live for an hour come from POST /auth/token.
docs/access.md tells the whole story.

Exit codes: 0 done, 1 refused or no such key, 64 or 2 usage, 65 bad data, 66 no such file or folder, 69 server not
reachable, or a folder in use, 77 credentials missing or not enough.

Examples:
  export WELLSPRING_TOKEN=$(wellspring token create --user ann --role writer --log orders --expires 90d)
  wellspring token list
  wellspring token rotate 1f0c… --overlap 1h
  wellspring token revoke 1f0c…")]
pub struct TokenArgs {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    what: TokenCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TokenCommand {
    /// Makes one and prints its secret, alone, on standard output.
    Create {
        /// What it may do: reader, writer, operator or admin.
        #[arg(long, value_parser = role)]
        role: Role,
        /// On which log; on all otherwise.
        #[arg(long)]
        log: Option<String>,
        /// When it ends: 90d, 12h, a date or a moment; never otherwise.
        #[arg(long, value_name = "WHEN", value_parser = span::end)]
        expires: Option<End>,
        /// Whose it is to be; one's own otherwise.
        #[arg(long, value_name = "NAME", value_parser = name)]
        account: Option<AccountName>,
        /// What it is called.
        #[arg(long, value_name = "TEXT", value_parser = label)]
        label: Option<Label>,
    },
    /// Lists one's own, or for an admin all.
    List {
        /// Those of this account.
        #[arg(long, value_name = "NAME")]
        account: Option<String>,
        /// Those that were revoked, too.
        #[arg(long)]
        revoked: bool,
        /// A JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Ends one for ever.
    Revoke {
        /// Its id, as `list` shows it.
        #[arg(value_parser = key_id)]
        id: KeyId,
    },
    /// Makes one for the same in place of another, and prints its secret.
    Rotate {
        /// The other's id, as `list` shows it.
        #[arg(value_parser = key_id)]
        id: KeyId,
        /// How long both count, up to 30d.
        #[arg(long, value_name = "TIME", default_value = "0s", value_parser = span::seconds)]
        overlap: u64,
        /// When the new one ends; after a life as long as the other's otherwise.
        #[arg(long, value_name = "WHEN", value_parser = span::end)]
        expires: Option<End>,
    },
}

fn role(text: &str) -> Result<Role, String> {
    Role::parse(text).ok_or_else(|| {
        "must be reader, writer, operator or admin; the log is named with --log".to_owned()
    })
}

fn label(text: &str) -> Result<Label, NameFault> {
    Label::parse(text)
}

fn key_id(text: &str) -> Result<KeyId, String> {
    // Whoever gives the secret instead shall not read it in an error.
    KeyId::parse(text).map_err(|fault| format!("{fault}; it is the id that `token list` shows"))
}

/// Does it.
pub(crate) fn run(args: &TokenArgs) -> Result<(), Failure> {
    let mut desk = args.place.desk(IfMissing::Fail)?;
    match &args.what {
        TokenCommand::Create { role, log, expires, account, label } => {
            let grant = Grant { role: *role, log: log.clone() };
            if Grant::parse(&grant.to_string()).as_ref() != Some(&grant) {
                return Err(Failure::usage("--log: not a log's name"));
            }
            let (label, end, account) = (label.clone(), expires.clone(), account.clone());
            print_secret(&desk.add_key(WantedKey { label, grant, end, account })?)
        }
        TokenCommand::List { account, revoked, json } => {
            let show = if *revoked { Show::All } else { Show::Unrevoked };
            let keys = desk.keys(account.as_deref(), show)?;
            let head = "id\tlabel\taccount\trole\tstate\tadded\texpires".to_owned();
            let lines = keys.iter().map(|key| if *json { json_line(key) } else { line(key) });
            let head = (!json).then_some(head).into_iter();
            let lines: Vec<String> = head.chain(lines).collect();
            if lines.is_empty() { Ok(()) } else { say(&lines.join("\n")) }
        }
        TokenCommand::Revoke { id } => {
            desk.revoke_key(id)?;
            eprintln!("{id} is revoked");
            Ok(())
        }
        TokenCommand::Rotate { id, overlap, expires } => {
            let key = desk.rotate_key(id, *overlap, expires.clone())?;
            print_secret(&key)?;
            match overlap {
                0 => eprintln!("{id} is revoked"),
                _ => eprintln!("{id} still counts for {overlap} s"),
            }
            Ok(())
        }
    }
}

/// The secret alone on standard output, so that it can be put into a variable; the rest beside it.
fn print_secret(key: &KeyRow) -> Result<(), Failure> {
    let secret = key.secret.as_ref().ok_or_else(|| {
        let message = format!("the answer holds no secret; revoke {} and make another", key.id);
        Failure::new(Code::Unavailable, message)
    })?;
    say(&secret.0)?;
    let end = key.expires_at.as_deref().unwrap_or("never");
    eprintln!(
        "id {}, {} of {}, expires {end}; it is not shown again",
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

fn line(key: &KeyRow) -> String {
    let KeyRow { id, label, account, state, added_at, expires_at, .. } = key;
    let expires = expires_at.as_deref().unwrap_or("never");
    format!("{id}\t{label}\t{account}\t{}\t{state}\t{added_at}\t{expires}", grant(key))
}

fn json_line(key: &KeyRow) -> String {
    key.to_json().to_string()
}
