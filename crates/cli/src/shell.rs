//! Commands in messages, quoted for a POSIX shell.

use std::borrow::Cow;

/// A word quoted for a POSIX shell, if it needs quotes.
pub(crate) fn quoted(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@,+%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Flags with their values, each with a space before it.
pub(crate) fn flags(flags: &[(&str, String)]) -> String {
    // A value that looks like a flag must be joined to its flag.
    let joint = |value: &str| if value.starts_with('-') { '=' } else { ' ' };
    flags.iter().map(|(flag, value)| format!(" {flag}{}{}", joint(value), quoted(value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_back_the_same_words() {
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
