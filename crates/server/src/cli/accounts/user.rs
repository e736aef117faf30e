//! `wellspring user`: who there is and what each may.

use super::desk::{Enabled, Own, Place};
use crate::access::offline::IfMissing;
use crate::cli::exit::{Failure, say};
use crate::cli::secret;
use std::path::PathBuf;
use wellspring_views::access::{AccountName, Grant, Grants, NameFault};

/// What `wellspring user` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Roles: reader, writer, operator, admin, each with all that those before it may; writer is on every log,
writer:orders on one. The first account has to be an admin of everything; from then on the server asks
everybody for credentials. docs/access.md tells the whole story.

Exit codes: 0 done, 1 refused, 64 or 2 usage, 65 a password that may not be one, 66 no such file or folder,
69 server not reachable, or a folder in use.

Examples:
  wellspring user add ann --role admin                     asks for a password, of the server at --url
  wellspring user add ann --role admin --data ./data       before the first start
  wellspring user add ci --role writer:orders --no-password
  wellspring user passwd ann --password-file ./new")]
pub(crate) struct UserArgs {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Makes an account.
    Add {
        /// 1 to 64 of a-z, 0-9, '.', '_', '@' and '-'.
        #[arg(value_parser = name)]
        name: AccountName,
        /// What it may do: writer, or writer:orders; repeats.
        #[arg(long = "role", value_name = "ROLE[:LOG]", value_parser = grant)]
        roles: Vec<Grant>,
        /// A file with the password; - is standard input. Otherwise it is asked for.
        #[arg(long, value_name = "FILE", conflicts_with = "no_password")]
        password_file: Option<PathBuf>,
        /// An account that is used with API keys only.
        #[arg(long)]
        no_password: bool,
    },
    /// Sets a password; all tokens of the account end.
    Passwd {
        /// Whose.
        #[arg(value_parser = name)]
        name: AccountName,
        /// A file with the new password; - is standard input. Otherwise it is asked for.
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        /// A file with the password there is, to change one's own. Otherwise it is asked for.
        #[arg(long, value_name = "FILE")]
        current_password_file: Option<PathBuf>,
    },
    /// Lists accounts.
    List {
        /// A JSON object a line.
        #[arg(long)]
        json: bool,
    },
    /// Lets an account do nothing any more; its tokens end, its keys wait.
    Disable {
        /// Which.
        #[arg(value_parser = name)]
        name: AccountName,
    },
    /// Lets an account do again what it may.
    Enable {
        /// Which.
        #[arg(value_parser = name)]
        name: AccountName,
    },
    /// Sets an account's roles, all of them.
    Roles {
        /// Whose.
        #[arg(value_parser = name)]
        name: AccountName,
        /// What it may do: writer, or writer:orders; repeats.
        #[arg(long = "role", value_name = "ROLE[:LOG]", value_parser = grant, required_unless_present = "none")]
        roles: Vec<Grant>,
        /// Nothing.
        #[arg(long, conflicts_with = "roles")]
        none: bool,
    },
}

/// Reads an account's name.
pub(super) fn name(text: &str) -> Result<AccountName, NameFault> {
    AccountName::parse(text)
}

fn grant(text: &str) -> Result<Grant, String> {
    Grant::parse(text).ok_or_else(|| {
        "must be reader, writer, operator or admin, for one log with its name behind it: writer:orders"
            .to_owned()
    })
}

/// Does it.
pub(crate) fn run(args: &UserArgs) -> Result<(), Failure> {
    let desk = |if_missing| args.place.desk(if_missing);
    match &args.what {
        What::Add { name, roles, password_file, no_password } => {
            let roles = grants(roles)?;
            let mut desk = desk(IfMissing::Begin)?;
            let password = match no_password {
                true => None,
                false => Some(secret::new_password(password_file.as_deref(), name.as_str())?),
            };
            desk.add(name, password, &roles)?;
            eprintln!("{name} is there");
        }
        What::Passwd { name, password_file, current_password_file } => {
            let mut desk = desk(IfMissing::Fail)?;
            let current = match (desk.is_own(name)?, current_password_file) {
                (Own::No, _) => None,
                (Own::Shown(password), _) => Some(password),
                (Own::Unknown, Some(path)) => {
                    Some(secret::of_file("--current-password-file", path)?)
                }
                (Own::Unknown, None) => {
                    Some(secret::ask(&format!("Password of {name} that there is: "))?)
                }
            };
            let password = secret::new_password(password_file.as_deref(), name.as_str())?;
            desk.set_password(name, password, current)?;
            eprintln!("the password of {name} is set; its tokens have ended");
        }
        What::List { json } => return list(args, *json),
        What::Disable { name } => {
            desk(IfMissing::Fail)?.set_enabled(name, Enabled::No)?;
            eprintln!("{name} is disabled");
        }
        What::Enable { name } => {
            desk(IfMissing::Fail)?.set_enabled(name, Enabled::Yes)?;
            eprintln!("{name} is enabled");
        }
        What::Roles { name, roles, none: _ } => {
            let roles = grants(roles)?;
            desk(IfMissing::Fail)?.set_roles(name, &roles)?;
            eprintln!("{name} is {}", words(roles.iter().map(Grant::to_string)));
        }
    }
    Ok(())
}

fn grants(roles: &[Grant]) -> Result<Grants, Failure> {
    Grants::new(roles.to_vec()).map_err(|fault| Failure::usage(format!("--role: {fault}")))
}

fn words(roles: impl Iterator<Item = String>) -> String {
    let roles: Vec<String> = roles.collect();
    if roles.is_empty() { "-".to_owned() } else { roles.join(",") }
}

fn list(args: &UserArgs, json: bool) -> Result<(), Failure> {
    let accounts = args.place.desk(IfMissing::Fail)?.accounts()?;
    let mut lines = Vec::with_capacity(accounts.len() + 1);
    if !json {
        lines.push("account\troles\tstate\tpassword\tadded".to_owned());
    }
    for account in accounts {
        lines.push(if json {
            serde_json::json!({
                "name": account.name,
                "roles": account.roles,
                "enabled": account.enabled,
                "has_password": account.has_password,
                "added_at": account.added_at,
            })
            .to_string()
        } else {
            let state = if account.enabled { "enabled" } else { "disabled" };
            let password = if account.has_password { "yes" } else { "no" };
            let roles = words(account.roles.into_iter());
            format!("{}\t{roles}\t{state}\t{password}\t{}", account.name, account.added_at)
        });
    }
    if lines.is_empty() { Ok(()) } else { say(&lines.join("\n")) }
}
