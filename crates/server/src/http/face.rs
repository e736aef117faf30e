//! A face: one family of clients, in its own words. `dispatch` and the router know faces, never links
//! or accounts by name; `faces` lists them.

use super::routes::Route;
use crate::wire::problem::Problem;

/// What one family of clients is served.
pub(crate) struct Face {
    /// Its name, by which the OpenAPI document tells parameters of one name apart.
    pub(crate) name: &'static str,
    /// Its routes, in the order in which they are looked through.
    pub(crate) routes: &'static [Route],
    /// Puts an error into the words of its clients. Status and `type` stay.
    pub(crate) render: fn(Box<Problem>) -> Box<Problem>,
}
