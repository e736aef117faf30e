//! `wellspring user` and `wellspring token`: accounts and API keys, on a running server or in the
//! data folder of a stopped one.

mod folder;
mod server;
mod store;
mod token;
mod user;

pub(crate) use token::{TokenArgs, run as run_token};
pub(crate) use user::{UserArgs, run as run_user};
