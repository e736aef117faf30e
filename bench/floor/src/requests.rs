//! Where a request ends: the blank line, and as many bytes more as Content-Length says. No more of
//! HTTP than that: a floor must be right for our client, and as cheap as it can be.

use memchr::memmem::Finder;

/// Largest request; more is not one of ours.
const MOST_BYTES: usize = 1 << 20;

/// Counts complete requests, and remembers the last head: a client that sends the same again costs
/// one comparison instead of a search.
pub(crate) struct Requests {
    blank_line: Finder<'static>,
    head: Vec<u8>,
    body_bytes: usize,
}

/// Not a request of our client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Broken;

impl Requests {
    pub(crate) fn new() -> Self {
        Self { blank_line: Finder::new(b"\r\n\r\n"), head: Vec::new(), body_bytes: 0 }
    }

    /// How many complete requests `input` begins with, and the bytes they take.
    pub(crate) fn take(&mut self, input: &[u8]) -> Result<(usize, usize), Broken> {
        let (mut count, mut used) = (0, 0);
        while let Some(length) = self.extent(&input[used..])? {
            if used + length > input.len() {
                break;
            }
            count += 1;
            used += length;
        }
        if input.len() - used > MOST_BYTES { Err(Broken) } else { Ok((count, used)) }
    }

    /// Bytes of the first request, head and body; `None` until its head is complete.
    fn extent(&mut self, input: &[u8]) -> Result<Option<usize>, Broken> {
        // A head ends in its only blank line, so equal bytes are the same head.
        if self.head.is_empty() || !input.starts_with(&self.head) {
            let Some(end) = self.blank_line.find(input) else { return Ok(None) };
            let head = &input[..end + 4];
            self.body_bytes = content_length(head)?;
            self.head.clear();
            self.head.extend_from_slice(head);
        }
        Ok(Some(self.head.len() + self.body_bytes))
    }
}

/// What Content-Length says; 0 without one.
fn content_length(head: &[u8]) -> Result<usize, Broken> {
    const NAME: &[u8] = b"content-length:";
    for line in head.split(|&byte| byte == b'\n') {
        if line.len() > NAME.len() && line[..NAME.len()].eq_ignore_ascii_case(NAME) {
            let text = std::str::from_utf8(&line[NAME.len()..]).map_err(|_| Broken)?;
            let length = text.trim().parse().map_err(|_| Broken)?;
            return if length <= MOST_BYTES { Ok(length) } else { Err(Broken) };
        }
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = b"POST /e HTTP/1.1\r\nHost: l\r\nContent-Length: 7\r\n\r\n{\"e\":1}";

    #[test]
    fn every_cut_of_three_requests_ends_where_it_must() {
        let other = b"POST /e HTTP/1.1\r\ncontent-length: 3\r\nHost: other\r\n\r\nabc";
        let input = [REQUEST, other, REQUEST].concat();
        let ends = [REQUEST.len(), REQUEST.len() + other.len(), input.len()];
        for cut in 0..=input.len() {
            let mut requests = Requests::new();
            let expected = ends.iter().filter(|&&end| end <= cut).count();
            let used = if expected == 0 { 0 } else { ends[expected - 1] };
            assert_eq!(requests.take(&input[..cut]), Ok((expected, used)), "cut at {cut}");
            assert_eq!(requests.take(&input[used..]), Ok((3 - expected, input.len() - used)));
        }
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let mut requests = Requests::new();
        assert_eq!(requests.take(b"POST /e HTTP/1.1\r\nContent-Length: x\r\n\r\n"), Err(Broken));
        assert_eq!(requests.take(&vec![b'x'; MOST_BYTES + 1]), Err(Broken));
    }
}
