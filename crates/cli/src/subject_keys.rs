//! `wellspring keys`: the keys that seal personal data.

use crate::confirmation;
use crate::exit::{Code, Failure};
use crate::server::Server;
use crate::subject::{ask, print};
use std::path::PathBuf;
use wellspring_log::storage::replace_private_file;

/// What `wellspring keys` takes.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Each data subject has a key (docs/privacy.md). Keys are wrapped under a root, which is in a file or \
comes from a command and is in no backup: without it everything sealed is lost, so keep a second copy \
of it. API keys are something else: wellspring token.

Examples:
  wellspring keys status
  wellspring keys rotate            destroys the old root, and with it earlier copies of the keys
  wellspring keys backup keys.wsk   to restore: stop the server, copy it to DATA/keys/store")]
pub struct KeysArgs {
    #[command(flatten)]
    server: Server,
    #[command(subcommand)]
    what: KeysCommand,
}

#[derive(Debug, clap::Subcommand)]
enum KeysCommand {
    /// Show how many keys there are, under which roots, and where the root is
    Status,
    /// Wrap all keys under a new root and destroy the old one
    Rotate {
        /// Skip the confirmation
        #[arg(long)]
        yes: bool,
    },
    /// Copy the store of keys to a file, which replaces one of that name
    Backup {
        /// The file
        file: PathBuf,
    },
}

/// Runs the command.
pub(crate) fn run(args: &KeysArgs) -> Result<(), Failure> {
    let mut client = args.server.client()?;
    match &args.what {
        KeysCommand::Status => print(&ask(&mut client, "GET", "/v1/subject-keys")?),
        KeysCommand::Rotate { yes } => {
            let what =
                "This destroys the root of the keys, and with it every earlier copy of them.";
            confirmation::ask_unless(*yes, what, "rotate")?;
            print(&ask(&mut client, "POST", "/v1/subject-keys/rotate")?)
        }
        KeysCommand::Backup { file } => {
            let store = ask(&mut client, "GET", "/v1/subject-keys/store")?;
            let temporary = file.with_added_extension("tmp");
            replace_private_file(file, &temporary, &store.body).map_err(|error| {
                Failure::new(Code::Io, format!("writing {}: {error}", file.display()))
            })?;
            eprintln!("Wrote the keys to {}; the root is not in it.", file.display());
            Ok(())
        }
    }
}
