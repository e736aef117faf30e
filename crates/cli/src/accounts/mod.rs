//! `wellspring user` and `wellspring token`: accounts and API keys, of a running server or of a
//! data folder that no server holds.

mod desk;
mod folder;
mod server;
mod token;
mod user;

pub(crate) use token::{TokenArgs, run as run_token};
pub(crate) use user::{UserArgs, run as run_user};
