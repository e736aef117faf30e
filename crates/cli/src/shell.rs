//! Commands that a message advises, written so that a shell takes them as they are meant.

use std::borrow::Cow;

/// A word as a POSIX shell reads it back: as it stands if nothing in it means anything there.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Flags with their values, each with a space before it.
pub(crate) fn flags(flags: &[(&str, String)]) -> String {
    // A value that looks like a flag has to be joined to its own.
    let joint = |value: &str| if value.starts_with('-') { '=' } else { ' ' };
    flags.iter().map(|(flag, value)| format!(" {flag}{}{}", joint(value), quoted(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_what_was_meant() {
        for word in
            ["plain", "a:b=c", "", "two words", "it's", "$HOME", "`x`", "\"", "ä", "a\nb", "*"]
        {
            let script = format!("printf %s {}", quoted(word));
            let output = std::process::Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
        }
        assert_eq!(quoted("user:7"), "user:7");
        let given = [("--type", "A B".to_owned()), ("--tag", "-x".to_owned())];
        assert_eq!(flags(&given), " --type 'A B' --tag=-x");
    }
}
