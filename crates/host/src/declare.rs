//! How a face declares its routes, here and in other programs.

pub use crate::access::Needs;
pub use crate::http::contract::{AnswerContract, Contract};
pub use crate::http::face::ServedRoute;
pub use crate::http::routes::{Route, Scope};
pub use crate::identity::Role;
pub use crate::wellspring_routes as routes;

/// Declares the routes of a face, in matching order. The first line gives the handlers' argument
/// apart from the request: `|face| face;` or a part of it.
///
/// ```text
/// METHOD "path" Scope Needs handler: "what it does"
///     .parts of its Contract => [status MEDIA "Schema" … + HEADER …, …];
/// ```
/// `~LIST` in place of the media types names a constant with all of them.
///
/// A part is a method of [`Contract`] with its one argument in parentheses, or
/// with the elements of its list in brackets.
#[macro_export]
#[doc(hidden)]
macro_rules! wellspring_routes {
    (@needs Public) => {
        $crate::declare::Needs::Public
    };
    (@needs Account) => {
        $crate::declare::Needs::Account
    };
    (@needs Node) => {
        $crate::declare::Needs::Node
    };
    (@needs $role:ident) => {
        $crate::declare::Needs::Role($crate::declare::Role::$role)
    };
    // In a block of their own constants may hold references to statics.
    (@part ($part:expr)) => {
        const { $part }
    };
    (@part [$($element:expr),*]) => {
        const { &[$($element),*] }
    };
    (@media ~ $list:ident) => {
        $list
    };
    (@media $($media:ident $schema:literal)*) => {
        &[$(($media, $schema)),*]
    };
    (|$face:ident| $given:expr; $($method:ident $path:literal $scope:ident $needs:ident $handler:path: $what:literal
        $(.$with:ident $part:tt)*
        => [$($status:literal $(~ $list:ident)? $($media:ident $schema:literal)* $(+ $header:ident)*),+];)*) => {
        &[$($crate::declare::ServedRoute {
            route: $crate::declare::Route {
                method: stringify!($method),
                path: $path,
                scope: $crate::declare::Scope::$scope,
                needs: $crate::declare::routes!(@needs $needs),
                what: $what,
                contract: $crate::declare::Contract::new(const { &[$(
                    $crate::declare::AnswerContract {
                        status: $status,
                        media: $crate::declare::routes!(@media $(~ $list)? $($media $schema)*),
                        headers: &[$(&$header),*],
                    }
                ),+] })$(.$with($crate::declare::routes!(@part $part)))*,
            },
            handler: |$face, request| Box::pin($handler($given, request)),
        },)*]
    };
}
