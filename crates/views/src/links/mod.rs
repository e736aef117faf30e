//! Links: the first view. What is pure about a link shortener: codes and the
//! order they are given in, which targets a link may have, which hosts are
//! welcome, and what a click's headers say of its visitor.

pub mod agent;
pub mod code;
pub mod digest;
pub mod hostname;
pub mod hosts;
pub mod permutation;
pub mod referrer;
pub mod url;

pub use agent::Agent;
pub use code::{Code, CodeFault, CodeText, MAX_CODE_CHARS};
pub use hosts::{HostList, HostListFault, HostVerdict, Policy};
pub use permutation::Permutation;
pub use referrer::ReferrerHost;
pub use url::{MAX_URL_CHARS, Target, UrlFault};
