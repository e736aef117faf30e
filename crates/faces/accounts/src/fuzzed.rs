//! The parts that fuzz targets reach: the parsers of requests' bodies.

use crate::body::{
    read_account, read_change, read_key, read_login, read_login_form, read_logout, read_password,
    read_rotate, read_rotation,
};

/// Parses a body in every way; tells which succeed.
#[must_use]
pub fn body(body: &[u8]) -> [bool; 9] {
    [
        read_login(body).is_ok(),
        read_login_form(body).is_ok(),
        read_logout(body).is_ok(),
        read_rotate(body).is_ok(),
        read_account(body).is_ok(),
        read_change(body).is_ok(),
        read_password(body).is_ok(),
        read_key(body).is_ok(),
        read_rotation(body).is_ok(),
    ]
}
