//! A token or an API key in a file: other users of the machine can read a command line.

use crate::exit::{Code, Failure};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use zeroize::Zeroizing;

/// Longest token that is read, in bytes.
const MAX_BYTES: u64 = 8_192;

/// The token or API key in the file of `--token-file`.
///
/// # Errors
/// It cannot be read, or holds something else.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<String>, Failure> {
    let from = format!("--token-file {}", path.display());
    let failed = |error| Failure::new(Code::NoInput, format!("{from}: {error}"));
    let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES as usize + 1));
    File::open(path)
        .and_then(|file| file.take(MAX_BYTES + 1).read_to_string(&mut text))
        .map_err(failed)?;
    let token = text.trim();
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    if text.len() as u64 > MAX_BYTES || !is_token {
        return Err(Failure::usage(format!(
            "{from} does not hold a token or an API key: one word of visible ASCII characters"
        )));
    }
    Ok(Zeroizing::new(token.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_visible_word() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let read_text = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read(&path).map(|token| token.to_string())
        };
        assert_eq!(read_text("\n wsk_canary\n"), Ok("wsk_canary".to_owned()));
        for bad in ["", "\n", "two words", "ä", &"x".repeat(9_000)] {
            assert_eq!(read_text(bad).unwrap_err().code, Code::Usage, "{bad}");
        }
        assert_eq!(read(Path::new("/does/not/exist")).unwrap_err().code, Code::NoInput);
    }
}
