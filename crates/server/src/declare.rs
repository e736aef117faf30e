//! How a face declares its routes, here and in other programs.

pub use crate::access::Needs;
pub use crate::http::face::Served;
pub use crate::http::routes::{Route, Scope};
pub use crate::wellspring_routes as routes;
pub use wellspring_views::access::Role;

/// Declares the routes of a face, in the order in which they are looked through. The first line tells
/// what handlers are given of the face besides the request: `|face| face;` or a part of it.
/// `METHOD "path" Scope Needs handler: "what it does" ? ["query parameter"…] "body" => "answer";`
#[macro_export]
#[doc(hidden)]
macro_rules! wellspring_routes {
    (@needs Public) => {
        $crate::declare::Needs::Public
    };
    (@needs Account) => {
        $crate::declare::Needs::Account
    };
    (@needs $role:ident) => {
        $crate::declare::Needs::Role($crate::declare::Role::$role)
    };
    (|$face:ident| $given:expr; $($method:ident $path:literal $scope:ident $needs:ident $handler:path: $what:literal
        ? [$($param:literal),*] $takes:literal => $gives:literal;)*) => {
        &[$($crate::declare::Served {
            route: $crate::declare::Route {
                method: stringify!($method),
                path: $path,
                scope: $crate::declare::Scope::$scope,
                needs: $crate::declare::routes!(@needs $needs),
                what: $what,
                params: &[$($param),*],
                takes: $takes,
                gives: $gives,
            },
            handler: |$face, request| Box::pin($handler($given, request)),
        },)*]
    };
}
