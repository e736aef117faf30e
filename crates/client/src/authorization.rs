//! The credentials that a client shows with every request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::fmt;
use zeroize::Zeroizing;

/// What is shown with every request.
#[derive(Clone)]
pub enum Authorization {
    /// A token or an API key.
    Bearer(Zeroizing<String>),
    /// A name and its password.
    Basic(String, Zeroizing<String>),
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Authorization::Bearer(_) => "Bearer …",
            Authorization::Basic(..) => "Basic …",
        })
    }
}

impl Authorization {
    /// The value of the header `Authorization`.
    pub fn header(&self) -> Zeroizing<String> {
        match self {
            Authorization::Bearer(token) => Zeroizing::new(format!("Bearer {}", token.as_str())),
            Authorization::Basic(user, password) => {
                let pair = Zeroizing::new(format!("{user}:{}", password.as_str()));
                let encoded = Zeroizing::new(STANDARD.encode(pair.as_bytes()));
                Zeroizing::new(format!("Basic {}", encoded.as_str()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_holds_name_and_password_and_its_debug_form_does_not() {
        let basic = Authorization::Basic("ann".into(), Zeroizing::new("canary".into()));
        assert_eq!(basic.header().as_str(), "Basic YW5uOmNhbmFyeQ==");
        assert!(!format!("{basic:?}").contains("canary"));
    }
}
