//! `wellspring user`: who there is and what each may.

use super::desk::{Enabled, KeyRow, Own, Place, Show};
use crate::confirmation;
use crate::exit::{Failure, say};
use crate::secret;
use std::path::{Path, PathBuf};
use wellspring_host::access::offline::IfMissing;
use wellspring_views::access::{AccountName, Grant, Grants, NameFault};

/// What `wellspring user` takes.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Roles: reader, writer, operator, admin, each with all that those before it may; writer is on every log,
writer:orders on one. The first account has to be an admin of everything; from then on the server asks
everybody for credentials. docs/access.md tells the whole story.

Exit codes: 0 done, 1 refused or no such account, 64 or 2 usage, 65 a password that may not be one, 66 no such file
or folder, 69 server not reachable, or a folder in use, 77 credentials missing or not enough.

Examples:
  wellspring user add ann --role admin                     asks for a password, of the server at --url
  wellspring user add ann --role admin --data ./data       before the first start
  wellspring user add ci --role writer:orders --no-password
  wellspring user passwd ann --password-file ./new
  wellspring user show ci
  wellspring user delete ci                                asks; --yes does not")]
pub struct UserArgs {
    #[command(flatten)]
    place: Place,
    #[command(subcommand)]
    what: UserCommand,
}

#[derive(Debug, clap::Subcommand)]
enum UserCommand {
    /// Makes an account.
    Add {
        /// 1 to 64 of a-z, 0-9, '.', '_', '@' and '-'.
        #[arg(value_parser = name)]
        name: AccountName,
        /// What it may do: reader, writer, operator or admin, on every log, or writer:orders;
        /// repeats.
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
    /// Shows an account and how many keys it has.
    Show {
        /// Which.
        #[arg(value_parser = name)]
        name: AccountName,
        /// One JSON object, with the keys.
        #[arg(long)]
        json: bool,
    },
    /// Deletes an account; its tokens and keys end for ever. To keep it for later: disable.
    Delete {
        /// Which.
        #[arg(value_parser = name)]
        name: AccountName,
        /// Without asking on the terminal.
        #[arg(long)]
        yes: bool,
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
        UserCommand::Add { name, roles, password_file, no_password } => {
            if roles.is_empty() {
                return Err(no_role(name));
            }
            let roles = grants(roles)?;
            let mut desk = desk(IfMissing::Begin)?;
            let password = match no_password {
                true => None,
                false => Some(secret::new_password(password_file.as_deref(), name.as_str())?),
            };
            desk.add(name, password, &roles)?;
            eprintln!("{name} is there");
        }
        UserCommand::Passwd { name, password_file, current_password_file } => {
            passwd(args, name, password_file.as_deref(), current_password_file.as_deref())?;
        }
        UserCommand::List { json } => return list(args, *json),
        UserCommand::Show { name, json } => return show(args, name, *json),
        UserCommand::Delete { name, yes } => return delete(args, name, *yes),
        UserCommand::Disable { name } => {
            desk(IfMissing::Fail)?.set_enabled(name, Enabled::No)?;
            eprintln!("{name} is disabled");
        }
        UserCommand::Enable { name } => {
            desk(IfMissing::Fail)?.set_enabled(name, Enabled::Yes)?;
            eprintln!("{name} is enabled");
        }
        UserCommand::Roles { name, roles, none: _ } => {
            let roles = grants(roles)?;
            desk(IfMissing::Fail)?.set_roles(name, &roles)?;
            eprintln!("{name} is {}", words(roles.iter().map(Grant::to_string)));
        }
    }
    Ok(())
}

/// What is said to whoever makes an account that could do nothing.
fn no_role(name: &AccountName) -> Failure {
    Failure::usage(format!(
        "--role is missing: without one {name} could do nothing. Roles are reader, writer, operator and \
         admin, each with all that those before it may; the first account has to be an admin. For example:\n  \
         wellspring user add {name} --role writer           on every log\n  \
         wellspring user add {name} --role writer:orders    on the log orders alone"
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
    let mut desk = args.place.desk(IfMissing::Fail)?;
    let account = desk.account(name)?;
    let keys = desk.keys(Some(name.as_str()), Show::Unrevoked)?;
    if json {
        let keys: Vec<_> = keys.iter().map(KeyRow::to_json).collect();
        let mut document = account.to_json();
        document["keys"] = keys.into();
        return say(&document.to_string());
    }
    let live = keys.iter().filter(|key| key.state == "live").count();
    let state = if account.enabled { "enabled" } else { "disabled" };
    let password = if account.has_password { "yes" } else { "no" };
    let roles = words(account.roles.into_iter());
    say(&format!(
        "account\t{name}\nroles\t{roles}\nstate\t{state}\npassword\t{password}\nadded\t{}\nlive keys\t{live}",
        account.added_at
    ))
}

fn passwd(
    args: &UserArgs,
    name: &AccountName,
    password_file: Option<&Path>,
    current_password_file: Option<&Path>,
) -> Result<(), Failure> {
    // One's own password, shown by --user, is the one there is: one file says both.
    let lent = current_password_file.and_then(|file| args.place.with_password_of(name, file));
    let current_password_file = current_password_file.filter(|_| lent.is_none());
    let mut desk = lent.as_ref().unwrap_or(&args.place).desk(IfMissing::Fail)?;
    let current = match (desk.is_own(name)?, current_password_file) {
        (Own::No, Some(_)) => {
            return Err(Failure::usage(format!(
                "--current-password-file is for one's own password; that of {name} is set without it by \
                 an admin, and with --data"
            )));
        }
        (Own::No, None) => None,
        (_, Some(file)) => Some(secret::of_file("--current-password-file", file)?),
        (Own::Shown(password), None) => Some(password),
        (Own::Unknown, None) => {
            let prompt = format!("Password of {name} that there is: ");
            Some(secret::ask(&prompt, "--current-password-file")?)
        }
    };
    let password = secret::new_password(password_file, name.as_str())?;
    desk.set_password(name, password, current)?;
    eprintln!("the password of {name} is set; its tokens have ended");
    Ok(())
}

fn delete(args: &UserArgs, name: &AccountName, yes: bool) -> Result<(), Failure> {
    let mut desk = args.place.desk(IfMissing::Fail)?;
    if !yes {
        // An account that is not there needs no confirmation.
        desk.account(name)?;
        confirmation::ask_for(
            &format!("{name}, its tokens and its keys end for ever."),
            name.as_str(),
        )?;
    }
    desk.delete(name)?;
    eprintln!("{name} is deleted, and its tokens and keys have ended");
    Ok(())
}

fn list(args: &UserArgs, json: bool) -> Result<(), Failure> {
    let accounts = args.place.desk(IfMissing::Fail)?.accounts()?;
    if accounts.is_empty() {
        eprintln!(
            "there are no accounts: whoever reaches the server may do everything; \
             `wellspring user add NAME --role admin` makes the first"
        );
    }
    let mut lines = Vec::with_capacity(accounts.len() + 1);
    if !json {
        lines.push("account\troles\tstate\tpassword\tadded".to_owned());
    }
    for account in accounts {
        lines.push(if json {
            account.to_json().to_string()
        } else {
            let state = if account.enabled { "enabled" } else { "disabled" };
            let password = if account.has_password { "yes" } else { "no" };
            let roles = words(account.roles.into_iter());
            format!("{}\t{roles}\t{state}\t{password}\t{}", account.name, account.added_at)
        });
    }
    if lines.is_empty() { Ok(()) } else { say(&lines.join("\n")) }
}
