//! A command line cut into words as a POSIX shell does, with Bash's `$'…'`.
//! Nothing is expanded: no variables, no commands, no wildcards.

use crate::invalid::Invalid;

/// One command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<String>,
    /// Things a shell would have done that are not done here.
    pub(super) notes: Vec<String>,
}

/// Cuts a text into commands: they end at line ends, `;`, `&` and `|` outside quotes.
pub(super) fn split(text: &str) -> Result<Vec<Command>, Invalid> {
    let mut reader = Reader {
        left: text.chars().peekable(),
        word: None,
        command: Command::default(),
        commands: Vec::new(),
    };
    reader.read()?;
    Ok(reader.commands)
}

struct Reader<'t> {
    left: std::iter::Peekable<std::str::Chars<'t>>,
    word: Option<String>,
    command: Command,
    commands: Vec<Command>,
}

impl Reader<'_> {
    fn read(&mut self) -> Result<(), Invalid> {
        while let Some(c) = self.left.next() {
            match c {
                ' ' | '\t' | '\r' => self.end_word(),
                '\n' | ';' | '|' => self.end_command(),
                '&' => {
                    if self.left.peek() != Some(&'&') && self.word.is_some() {
                        self.note(
                            "The command ends at an \"&\" that is not in quotes, as in a shell.",
                        );
                    }
                    self.end_command();
                }
                '#' if self.word.is_none() => while self.left.next_if(|c| *c != '\n').is_some() {},
                '\\' => match self.left.next() {
                    Some('\r') => {
                        self.left.next_if_eq(&'\n');
                    }
                    Some('\n') => {}
                    Some(c) => self.push(c),
                    None => {}
                },
                '\'' => self.single()?,
                '"' => self.double()?,
                '$' if self.left.peek() == Some(&'\'') => {
                    self.left.next();
                    self.ansi()?;
                }
                '$' if self.left.peek() == Some(&'"') => {}
                c => {
                    self.expansion(c);
                    self.push(c);
                }
            }
        }
        self.end_command();
        Ok(())
    }

    fn push(&mut self, c: char) {
        self.word.get_or_insert_with(String::new).push(c);
    }

    fn note(&mut self, text: &str) {
        if !self.command.notes.iter().any(|there| there == text) {
            self.command.notes.push(text.to_owned());
        }
    }

    /// Tells of what a shell would have expanded.
    fn expansion(&mut self, c: char) {
        let named = |next: Option<&char>| {
            next.is_some_and(|c| c.is_ascii_alphabetic() || "_{(".contains(*c))
        };
        if c == '`' || c == '$' && named(self.left.peek()) {
            self.note("The shell's variables and commands ($NAME, `…`) are left as they are; put their values in [vars].");
        }
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take() {
            self.command.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let command = std::mem::take(&mut self.command);
        if !command.words.is_empty() {
            self.commands.push(command);
        }
    }

    fn single(&mut self) -> Result<(), Invalid> {
        let word = self.word.get_or_insert_with(String::new);
        for c in self.left.by_ref() {
            if c == '\'' {
                return Ok(());
            }
            word.push(c);
        }
        Err("a single quotation mark (') is never closed".into())
    }

    fn double(&mut self) -> Result<(), Invalid> {
        self.word.get_or_insert_with(String::new);
        while let Some(c) = self.left.next() {
            match c {
                '"' => return Ok(()),
                '\\' => match self.left.next() {
                    Some('\n') => {}
                    Some(c) if "\"\\$`".contains(c) => self.push(c),
                    Some(c) => {
                        self.push('\\');
                        self.push(c);
                    }
                    None => break,
                },
                c => {
                    self.expansion(c);
                    self.push(c);
                }
            }
        }
        Err("a double quotation mark (\") is never closed".into())
    }

    /// `$'…'`: escapes as in C. Bytes given by number are put together as UTF-8.
    fn ansi(&mut self) -> Result<(), Invalid> {
        let mut bytes: Vec<u8> = Vec::new();
        let mut high: Option<u32> = None; // the first half of a pair of UTF-16
        loop {
            let c = self.left.next().ok_or("a quotation $'…' is never closed")?;
            let c = match c {
                '\'' => break,
                '\\' => match self.left.next().ok_or("a quotation $'…' is never closed")? {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'a' => '\u{7}',
                    'b' => '\u{8}',
                    'e' | 'E' => '\u{1b}',
                    'f' => '\u{c}',
                    'v' => '\u{b}',
                    'x' => {
                        let byte = self.number(16, 2).unwrap_or(u32::from(b'x'));
                        bytes.push(byte as u8);
                        continue;
                    }
                    'u' => match self.unicode(4, &mut high) {
                        Some(c) => c,
                        None => continue,
                    },
                    'U' => match self.unicode(8, &mut high) {
                        Some(c) => c,
                        None => continue,
                    },
                    c @ '0'..='7' => {
                        let first = c.to_digit(8).unwrap_or(0);
                        let rest = self.number_with(8, 2, first);
                        bytes.push(rest as u8);
                        continue;
                    }
                    c => c,
                },
                c => c,
            };
            let mut utf8 = [0; 4];
            bytes.extend_from_slice(c.encode_utf8(&mut utf8).as_bytes());
        }
        let text = String::from_utf8(bytes).unwrap_or_else(|error| {
            self.note("Bytes that are not UTF-8 were replaced.");
            String::from_utf8_lossy(error.as_bytes()).into_owned()
        });
        self.word.get_or_insert_with(String::new).push_str(&text);
        Ok(())
    }

    fn unicode(&mut self, digits: u32, high: &mut Option<u32>) -> Option<char> {
        let code = self.number(16, digits)?;
        match (high.take(), code) {
            (_, 0xD800..=0xDBFF) => {
                *high = Some(code);
                None
            }
            (Some(high), 0xDC00..=0xDFFF) => {
                char::from_u32(0x10000 + ((high - 0xD800) << 10) + (code - 0xDC00))
            }
            _ => Some(char::from_u32(code).unwrap_or('\u{FFFD}')),
        }
    }

    fn number(&mut self, radix: u32, most: u32) -> Option<u32> {
        let first = self.left.next_if(|c| c.is_digit(radix))?.to_digit(radix)?;
        Some(self.number_with(radix, most - 1, first))
    }

    fn number_with(&mut self, radix: u32, most: u32, first: u32) -> u32 {
        let mut value = first;
        for _ in 0..most {
            let Some(digit) = self.left.next_if(|c| c.is_digit(radix)) else { break };
            value = value.wrapping_mul(radix).wrapping_add(digit.to_digit(radix).unwrap_or(0));
        }
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str) -> Vec<String> {
        split(text).unwrap().into_iter().flat_map(|command| command.words).collect()
    }

    #[test]
    fn quotes_mean_what_they_mean_in_a_shell() {
        assert_eq!(words(r#"curl 'a b' "c \"d\" \n" e\ f"#), ["curl", "a b", "c \"d\" \\n", "e f"]);
        assert_eq!(words("a \\\n  b\\\r\n c"), ["a", "b", "c"]);
        assert_eq!(words("a''b '' \"\""), ["ab", "", ""]);
        assert_eq!(
            words(r"$'a\n\t\'\\\x41\u00e9\101\ud83d\ude00\xc3\xa9'"),
            ["a\n\t'\\Aé\u{41}😀é"]
        );
        assert_eq!(words("a # comment\nb"), ["a", "b"]);
        assert!(split("a 'b").unwrap_err().to_string().contains("never closed"));
        assert!(split("a \"b").unwrap_err().to_string().contains("never closed"));
        assert!(split("$'b").unwrap_err().to_string().contains("never closed"));
    }

    #[test]
    fn commands_end_where_a_shell_ends_them() {
        let commands = split("curl a && curl b; echo x | wc\ncurl 'c&d;e'").unwrap();
        let first: Vec<_> = commands.iter().map(|c| c.words.join(" ")).collect();
        assert_eq!(first, ["curl a", "curl b", "echo x", "wc", "curl c&d;e"]);
        let cut = split("curl http://h/?a=1&b=2").unwrap();
        assert!(cut[0].notes[0].contains("ends at an \"&\""));
        assert!(split("curl \"$TOKEN\"").unwrap()[0].notes[0].contains("[vars]"));
        assert!(split("curl '$TOKEN'").unwrap()[0].notes.is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".*") {
            let _ = split(&text);
        }

        #[test]
        fn any_single_quoted_text_comes_back(text in "[^']*") {
            prop_assert_eq!(words(&format!("'{text}'")), [text]);
        }

        #[test]
        fn any_escapes_are_survived(text in "([\\\\xuU0-9a-fD8'n]){0,24}") {
            let _ = split(&format!("$'{text}'"));
        }
    }
}
