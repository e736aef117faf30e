//! `wellspring user`: accounts and their roles.

use super::store::{AccountRow, CurrentPassword, Enabled, KeyFilter, KeyRow, StoreArgs};
use crate::argument_error::ArgumentError;
use crate::confirmation;
use crate::exit::{Failure, say, say_lines};
use crate::secret;
use crate::table::{aligned, table};
use std::path::{Path, PathBuf};
use wellspring_host::access::offline::IfMissing;
use wellspring_host::identity::{AccountName, Grant, Grants, NameFault};

/// What `wellspring user` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Roles: reader, writer, operator, admin. Each includes the ones before it. writer applies to every log, \
writer:orders to the log orders. The first account must be an admin of everything; from then on the \
server requires credentials. See docs/access.md.

Examples:
  wellspring user add ann --role admin                  on the server at --url
  wellspring user add ann --role admin --data ./data    before the first start
  wellspring user add ci --role writer:orders --no-password
  wellspring user passwd ann --password-file ./new
  wellspring user show ci
  wellspring user delete ci")]
pub struct UserArgs {
    #[command(flatten)]
    store: StoreArgs,
    #[command(subcommand)]
    what: UserCommand,
}

#[derive(Debug, clap::Subcommand)]
enum UserCommand {
    /// Create an account
    Add {
        /// 1 to 64 of a-z, 0-9, '.', '_', '@' and '-'
        #[arg(value_parser = name)]
        name: AccountName,
        /// reader, writer, operator or admin; writer:orders for one log; repeatable
        #[arg(long = "role", value_name = "ROLE[:LOG]", value_parser = grant)]
        roles: Vec<Grant>,
        /// File with the password; - is standard input [default: ask]
        #[arg(long, value_name = "FILE", conflicts_with = "no_password")]
        password_file: Option<PathBuf>,
        /// Create an account without a password, for use with API keys only
        #[arg(long)]
        no_password: bool,
    },
    /// Set a password; revokes all tokens of the account
    Passwd {
        /// Name of the account
        #[arg(value_parser = name)]
        name: AccountName,
        /// File with the new password; - is standard input [default: ask]
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        /// File with the current password, needed to change your own [default: ask]
        #[arg(long, value_name = "FILE")]
        current_password_file: Option<PathBuf>,
    },
    /// List accounts
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show an account and how many keys it has
    Show {
        /// Name of the account
        #[arg(value_parser = name)]
        name: AccountName,
        /// Print one JSON object, keys included
        #[arg(long)]
        json: bool,
    },
    /// Delete an account, its tokens and its keys, permanently
    ///
    /// `disable` keeps the account for later.
    Delete {
        /// Name of the account
        #[arg(value_parser = name)]
        name: AccountName,
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Disable an account: revokes its tokens, suspends its keys
    Disable {
        /// Name of the account
        #[arg(value_parser = name)]
        name: AccountName,
    },
    /// Enable a disabled account; its keys work again
    Enable {
        /// Name of the account
        #[arg(value_parser = name)]
        name: AccountName,
    },
    /// Replace the roles of an account
    Roles {
        /// Name of the account
        #[arg(value_parser = name)]
        name: AccountName,
        /// reader, writer, operator or admin; writer:orders for one log; repeatable
        #[arg(long = "role", value_name = "ROLE[:LOG]", value_parser = grant, required_unless_present = "none")]
        roles: Vec<Grant>,
        /// Remove all roles
        #[arg(long, conflicts_with = "roles")]
        none: bool,
    },
}

/// Reads an account's name.
pub(super) fn name(text: &str) -> Result<AccountName, NameFault> {
    AccountName::parse(text)
}

fn grant(text: &str) -> Result<Grant, ArgumentError> {
    Grant::parse(text).ok_or_else(|| {
        ArgumentError::new(
            "must be reader, writer, operator or admin, or a role for one log: writer:orders",
        )
    })
}

/// Runs the command.
pub(crate) fn run(args: &UserArgs) -> Result<(), Failure> {
    args.store.keeping_owner(|| execute(args))
}

fn execute(args: &UserArgs) -> Result<(), Failure> {
    let store = |if_missing| args.store.store(if_missing);
    match &args.what {
        UserCommand::Add { name, roles, password_file, no_password } => {
            if roles.is_empty() {
                return Err(no_role(name));
            }
            let roles = grants(roles)?;
            let mut store = store(IfMissing::Begin)?;
            let password = match no_password {
                true => None,
                false => Some(secret::new_password(password_file.as_deref(), name.as_str())?),
            };
            store.add(name, password, &roles)?;
            eprintln!("Created account {name} ({}).", words(roles.iter().map(Grant::to_string)));
        }
        UserCommand::Passwd { name, password_file, current_password_file } => {
            passwd(args, name, password_file.as_deref(), current_password_file.as_deref())?;
        }
        UserCommand::List { json } => return list(args, *json),
        UserCommand::Show { name, json } => return show(args, name, *json),
        UserCommand::Delete { name, yes } => return delete(args, name, *yes),
        UserCommand::Disable { name } => {
            store(IfMissing::Fail)?.set_enabled(name, Enabled::No)?;
            eprintln!("Disabled account {name}.");
        }
        UserCommand::Enable { name } => {
            store(IfMissing::Fail)?.set_enabled(name, Enabled::Yes)?;
            eprintln!("Enabled account {name}.");
        }
        UserCommand::Roles { name, roles, none: _ } => {
            let roles = grants(roles)?;
            store(IfMissing::Fail)?.set_roles(name, &roles)?;
            eprintln!("Roles of {name}: {}.", words(roles.iter().map(Grant::to_string)));
        }
    }
    Ok(())
}

/// The refusal of an account without roles.
fn no_role(name: &AccountName) -> Failure {
    Failure::usage(format!(
        "--role is missing; without a role {name} could do nothing. Roles are reader, writer, operator and \
         admin; each includes the ones before it. The first account must be an admin. For example:\n  \
         wellspring user add {name} --role writer           on every log\n  \
         wellspring user add {name} --role writer:orders    on the log orders only"
    ))
}

fn grants(roles: &[Grant]) -> Result<Grants, Failure> {
    Grants::new(roles.to_vec()).map_err(|fault| Failure::usage(format!("--role: {fault}")))
}

fn words(roles: impl Iterator<Item = String>) -> String {
    let roles: Vec<String> = roles.collect();
    if roles.is_empty() { "-".to_owned() } else { roles.join(",") }
}

fn show(args: &UserArgs, name: &AccountName, json: bool) -> Result<(), Failure> {
    let mut store = args.store.store(IfMissing::Fail)?;
    let account = store.account(name)?;
    let keys = store.keys(Some(name.as_str()), KeyFilter::Unrevoked)?;
    if json {
        let keys: Vec<_> = keys.iter().map(KeyRow::to_json).collect();
        let mut document = account.to_json();
        document["keys"] = keys.into();
        return say(&document.to_string());
    }
    let live = keys.iter().filter(|key| key.state == "live").count();
    let cells = row(&account).into_iter().chain([live.to_string()]);
    let rows = COLUMNS.into_iter().chain(["LIVE KEYS"]).zip(cells);
    let rows: Vec<Vec<String>> = rows.map(|(name, cell)| vec![name.to_lowercase(), cell]).collect();
    say_lines(&aligned(&rows))
}

fn passwd(
    args: &UserArgs,
    name: &AccountName,
    password_file: Option<&Path>,
    current_password_file: Option<&Path>,
) -> Result<(), Failure> {
    // With --user the password that authenticates is the current one: one file gives both.
    let lent = current_password_file.and_then(|file| args.store.with_password_of(name, file));
    let current_password_file = current_password_file.filter(|_| lent.is_none());
    let mut store = lent.as_ref().unwrap_or(&args.store).store(IfMissing::Fail)?;
    let current = match (store.current_password(name)?, current_password_file) {
        (CurrentPassword::NotNeeded, Some(_)) => {
            return Err(Failure::usage(format!(
                "--current-password-file is for your own password; an admin, or --data, sets that of \
                 {name} without it"
            )));
        }
        (CurrentPassword::NotNeeded, None) => None,
        (_, Some(file)) => Some(secret::of_file("--current-password-file", file)?),
        (CurrentPassword::Known(password), None) => Some(password),
        (CurrentPassword::Needed, None) => {
            let prompt = format!("Current password of {name}: ");
            Some(secret::ask(&prompt, "--current-password-file")?)
        }
    };
    let password = secret::new_password(password_file, name.as_str())?;
    store.set_password(name, password, current)?;
    eprintln!("Set the password of {name} and revoked its tokens.");
    Ok(())
}

fn delete(args: &UserArgs, name: &AccountName, yes: bool) -> Result<(), Failure> {
    let mut store = args.store.store(IfMissing::Fail)?;
    if !yes {
        // An account that does not exist needs no confirmation.
        store.account(name)?;
        confirmation::ask_for(
            &format!("This deletes account {name}, its tokens and its keys, permanently."),
            name.as_str(),
        )?;
    }
    store.delete(name)?;
    eprintln!("Deleted account {name}, its tokens and its keys.");
    Ok(())
}

fn list(args: &UserArgs, json: bool) -> Result<(), Failure> {
    let accounts = args.store.store(IfMissing::Fail)?.accounts()?;
    if accounts.is_empty() {
        eprintln!(
            "There are no accounts: every client that reaches the server has full access. Create the \
             first account with `wellspring user add NAME --role admin`."
        );
    }
    if json {
        let lines = accounts.iter().map(|account| account.to_json().to_string());
        return say_lines(&lines.collect::<Vec<_>>());
    }
    say_lines(&table(&COLUMNS, accounts.iter().map(row)))
}

const COLUMNS: [&str; 5] = ["ACCOUNT", "ROLES", "STATE", "PASSWORD", "ADDED"];

fn row(account: &AccountRow) -> Vec<String> {
    let AccountRow { name, roles, enabled, has_password, added_at } = account;
    let state = if *enabled { "enabled" } else { "disabled" };
    let password = if *has_password { "yes" } else { "no" };
    let roles = words(roles.iter().cloned());
    [name, &roles, state, password, added_at].map(str::to_owned).to_vec()
}
