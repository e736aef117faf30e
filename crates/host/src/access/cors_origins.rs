//! The origins whose pages may use this server from a browser (CORS, WHATWG Fetch). None by
//! default.

use crate::setup::SetupError;
use crate::wire::authority::is_authority;

/// The origins whose pages may use this server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cors {
    /// Any.
    Any,
    /// These, written as browsers write them.
    These(Vec<String>),
}

impl Cors {
    /// Reads the setting `cors_origins`; `None` if it is off.
    ///
    /// # Errors
    /// A sentence about the first invalid entry.
    pub(crate) fn of(origins: &[String]) -> Result<Option<Cors>, SetupError> {
        let origins = origins.iter().map(|origin| origin.trim());
        let origins: Vec<&str> = origins.filter(|origin| !origin.is_empty()).collect();
        match origins[..] {
            [] => Ok(None),
            ["*"] => Ok(Some(Cors::Any)),
            _ => {
                if let Some(wrong) = origins.iter().find(|origin| !is_origin(origin)) {
                    return Err(format!(
                        "cors_origins must be *, or origins of scheme and host as a browser \
                         sends them, e.g. https://app.example.com or http://localhost:5173, \
                         not {wrong:?}"
                    )
                    .into());
                }
                Ok(Some(Cors::These(origins.into_iter().map(str::to_owned).collect())))
            }
        }
    }

    /// Whether pages of an origin may use this server.
    pub(crate) fn allows(&self, origin: &str) -> bool {
        match self {
            Cors::Any => true,
            Cors::These(origins) => origins.iter().any(|known| known == origin),
        }
    }
}

/// Whether a text is an origin as browsers write it (RFC 6454, 6.2): lower case, without a path,
/// and without the scheme's default port. `null` is not one: every sandboxed page and every file
/// has it.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else { return false };
    let is_scheme = scheme.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
        && scheme.bytes().all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte)
        });
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => "/",
    };
    let is_small = !authority.bytes().any(|byte| byte.is_ascii_uppercase());
    is_scheme && is_small && is_authority(authority) && !authority.ends_with(default_port)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::HostConfig;

    fn cors(origins: &str) -> Cors {
        let origins: Vec<String> = origins.split(',').map(str::to_owned).collect();
        Cors::of(&origins).unwrap().unwrap()
    }

    #[test]
    fn it_is_off_unless_origins_are_given() {
        assert_eq!(Cors::of(&[]), Ok(None));
        assert_eq!(Cors::of(&[String::new()]), Ok(None));
        assert_eq!(cors("*"), Cors::Any);
        let two = ["https://a.example", "http://localhost:5173"].map(str::to_owned).to_vec();
        assert_eq!(cors("https://a.example, http://localhost:5173"), Cors::These(two));
    }

    #[test]
    fn origins_are_written_as_browsers_write_them() {
        for origin in [
            "https://a.example",
            "https://a.example:8443",
            "http://127.0.0.1:8080",
            "http://[::1]:3000",
            "http://a.example:443",
            "tauri://localhost",
            "chrome-extension://abcdefgh",
        ] {
            assert!(HostConfig::loaded(&["--cors-origins", origin]).is_ok(), "{origin}");
        }
        for wrong in [
            "a.example",
            "https://",
            "https://a.example/",
            "https://a.example/x",
            "https://A.example",
            "HTTPS://a.example",
            "https://a.example:443",
            "http://a.example:80",
            "https://a.example:0",
            "https://u@a.example",
            "https://*.example",
            "null",
            "*,https://a.example",
            "https://a.example,*",
            "https://a b",
        ] {
            let message = HostConfig::loaded(&["--cors-origins", wrong]).unwrap_err();
            assert!(message.to_string().contains("cors_origins"), "{wrong}: {message}");
        }
    }
}
