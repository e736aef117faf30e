//! Server-sent events, as the HTML standard defines their stream.

use std::io::{self, BufRead, Read};

/// Largest message, in bytes: an event of the largest payload, escaped, fits.
const MAX_MESSAGE_BYTES: usize = 16 << 20;

/// One message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// The last `id:` seen on the stream, as of this message.
    pub(crate) id: String,
    /// Its `event:`; empty means `message`.
    pub(crate) event: String,
    /// Its `data:` lines, joined by line ends.
    pub(crate) data: String,
}

/// Reads messages from a stream.
#[derive(Debug)]
pub(crate) struct Messages<R> {
    source: R,
    id: String,
    at_start: bool,
}

impl<R: BufRead> Messages<R> {
    /// Messages of a stream from its beginning.
    pub(crate) fn new(source: R) -> Messages<R> {
        Messages { source, id: String::new(), at_start: true }
    }

    /// The next message; `None` when the stream ends. A message that the end cuts off is dropped.
    ///
    /// # Errors
    /// An error of the source; `InvalidData` if a message is too large or not UTF-8.
    pub(crate) fn next(&mut self) -> io::Result<Option<Message>> {
        let mut event = String::new();
        let mut data: Option<String> = None;
        loop {
            let Some(line) = self.line()? else { return Ok(None) };
            if line.is_empty() {
                match data.take() {
                    Some(data) => return Ok(Some(Message { id: self.id.clone(), event, data })),
                    None => event.clear(),
                }
                continue;
            }
            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "id" if !value.contains('\0') => self.id = value.to_owned(),
                "event" => event = value.to_owned(),
                "data" => match &mut data {
                    None => data = Some(value.to_owned()),
                    Some(data) if data.len() + value.len() < MAX_MESSAGE_BYTES => {
                        data.push('\n');
                        data.push_str(value);
                    }
                    Some(_) => return Err(invalid("a message is too large")),
                },
                // Comments (a line that begins with a colon) are the heartbeats.
                _ => {}
            }
        }
    }

    fn line(&mut self) -> io::Result<Option<String>> {
        let mut line = Vec::new();
        let mut limited = self.source.by_ref().take(MAX_MESSAGE_BYTES as u64);
        limited.read_until(b'\n', &mut line)?;
        if line.last() != Some(&b'\n') {
            if line.len() == MAX_MESSAGE_BYTES {
                return Err(invalid("a message is too large"));
            }
            return Ok(None);
        }
        line.pop();
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        let line = String::from_utf8(line).map_err(|_| invalid("a message is not UTF-8"))?;
        if std::mem::take(&mut self.at_start) {
            return Ok(Some(line.trim_start_matches('\u{feff}').to_owned()));
        }
        Ok(Some(line))
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &str) -> Vec<(String, String, String)> {
        let mut messages = Messages::new(stream.as_bytes());
        let mut all = Vec::new();
        while let Some(m) = messages.next().unwrap() {
            all.push((m.id, m.event, m.data));
        }
        all
    }

    fn message(id: &str, event: &str, data: &str) -> (String, String, String) {
        (id.to_owned(), event.to_owned(), data.to_owned())
    }

    #[test]
    fn fields_comments_and_line_ends() {
        let stream = "\u{feff}: hello\n\nid: 1\ndata: a\n\n: beat\nevent:x\r\ndata:b\r\ndata\r\ndata: c\r\n\r\nid:3\n\nretry: 5\ndata: \n\n";
        assert_eq!(
            read(stream),
            [message("1", "", "a"), message("1", "x", "b\n\nc"), message("3", "", "")]
        );
    }

    #[test]
    fn a_message_without_its_end_is_not_delivered() {
        let whole = "id: 1\ndata: a\n\nid: 2\ndata: b\n\n";
        for end in 0..whole.len() {
            let expected = usize::from(end >= 15);
            assert_eq!(read(&whole[..end]).len(), expected, "{end}");
        }
        assert_eq!(read(whole).len(), 2);
    }

    #[test]
    fn rubbish_is_an_error_and_not_a_crash() {
        assert!(Messages::new(&b"data: \xff\n\n"[..]).next().is_err());
        let long = format!("data: {}\n\n", "x".repeat(MAX_MESSAGE_BYTES));
        assert!(Messages::new(long.as_bytes()).next().is_err());
    }
}
