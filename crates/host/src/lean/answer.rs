//! The bytes of answers.

use super::head::Persistence;
use crate::fast::{Form, FormContent, Misfit, Varying, WholeAnswer};
use crate::http::{Content, Response};
use crate::wire::json::push_u64;
use crate::wire::problem::Problem;
use bytes::Bytes;
use hyper::StatusCode;
use std::any::Any;
use std::fmt::Display;
use std::io::Write as _;

/// The interim answer to a client that expects permission before it sends its body.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The prepared answers of one [`Form`]: their constant parts are only copied.
pub(crate) struct EncodedForm {
    /// Their common status.
    pub(crate) status: u16,
    /// Answers made in the same turn of the loop in which their requests arrived, to be counted.
    pub(crate) prompt: u32,
    /// The constant part before the value of each varying header.
    leads: Vec<Vec<u8>>,
    /// As [`Form::framed_content`].
    content: Option<FormContent>,
    /// The constant part after these, up to the length of varying content; empty if the content
    /// does not vary.
    before_length: Vec<u8>,
    /// The rest of the head if the connection is kept open.
    keep: Vec<u8>,
    /// The same if it is closed.
    close: Vec<u8>,
}

impl EncodedForm {
    /// The answers of this form.
    pub(crate) fn of(form: &Form) -> EncodedForm {
        let content = form.framed_content();
        let (mut text, mut leads) = (status_line(form.status), Vec::new());
        for name in form.varying_headers {
            text.push_str(&format!("{}: ", cased(name)));
            leads.push(std::mem::replace(&mut text, "\r\n".to_owned()).into_bytes());
        }
        if !form.content_type.is_empty() {
            text.push_str(&format!("Content-Type: {}\r\n", form.content_type));
        }
        for (name, value) in &form.headers {
            text.push_str(&format!("{}: {value}\r\n", cased(name)));
        }
        let end = |connection| format!("Connection: {connection}\r\n\r\n");
        let ends = ["keep-alive", "close"].map(end);
        let (before_length, [keep, close]) = match content {
            Some(FormContent::Varying) => {
                text.push_str("Content-Length: ");
                (text.into_bytes(), ends.map(|end| format!("\r\n{end}").into_bytes()))
            }
            Some(FormContent::Fixed(content)) => {
                text.push_str(&format!("Content-Length: {}\r\n", content.len()));
                let whole = |end: String| [text.as_bytes(), end.as_bytes(), content].concat();
                (Vec::new(), ends.map(whole))
            }
            None => (Vec::new(), ends.map(|end| (text.clone() + &end).into_bytes())),
        };
        EncodedForm { status: form.status, prompt: 0, leads, content, before_length, keep, close }
    }

    /// Appends an answer with these varying parts.
    ///
    /// # Errors
    /// [`Misfit`]: they do not fit the form. Nothing was appended.
    #[inline]
    pub(crate) fn push(
        &self,
        out: &mut Vec<u8>,
        varying: &Varying,
        after: Persistence,
    ) -> Result<(), Misfit> {
        varying.fit(self.leads.len(), self.content)?;
        for (lead, value) in self.leads.iter().zip(varying.headers()) {
            out.extend_from_slice(lead);
            out.extend_from_slice(value);
        }
        let end = match after {
            Persistence::Keep => &self.keep,
            Persistence::Close => &self.close,
        };
        if self.content == Some(FormContent::Varying) {
            let content = varying.written_content();
            out.extend_from_slice(&self.before_length);
            push_u64(out, content.len() as u64);
            out.extend_from_slice(end);
            out.extend_from_slice(content);
        } else {
            out.extend_from_slice(end);
        }
        Ok(())
    }
}

/// The first line of an answer.
fn status_line(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
    format!("HTTP/1.1 {status} {}\r\n", reason.unwrap_or_default())
}

/// The usual spelling of a header's name: `content-type` is `Content-Type`.
fn cased(name: &str) -> String {
    if name == "etag" {
        return "ETag".to_owned();
    }
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect::<Vec<_>>().join("-")
}

/// What is kept for an answer until that is sent.
pub(crate) type HeldMemory = (Bytes, Box<dyn Any + Send>);

/// The answer of a handler; `None` if it is a stream.
pub(crate) fn whole(response: Response) -> Option<WholeAnswer> {
    let Content::Full(content) = response.content else { return None };
    let mut head = status_line(response.status).into_bytes();
    let mut header = |name: &str, value: &dyn Display| {
        let _ = write!(head, "{name}: {value}\r\n");
    };
    if !response.content_type.is_empty() {
        header("content-type", &response.content_type);
    }
    if let Some(position) = response.position {
        header("wellspring-position", &position);
    }
    for (at, (name, value)) in response.headers.iter().enumerate() {
        // As hyper does: of two of a name the last is sent, and none with a control character.
        let is_sound = !value.bytes().any(|byte| byte.is_ascii_control());
        debug_assert!(is_sound, "{name}: {value:?}");
        let is_last = response.headers[at + 1..].iter().all(|(later, _)| later != name);
        if is_sound && is_last {
            header(name, value);
        }
    }
    let content = match response.status {
        204 | 304 => Bytes::new(),
        _ => {
            header("content-length", &content.len());
            content
        }
    };
    Some(WholeAnswer { head, content, held: Box::new(response.held) })
}

/// Appends the answer of a handler.
pub(crate) fn push_whole(out: &mut Vec<u8>, answer: WholeAnswer, after: Persistence) -> HeldMemory {
    let WholeAnswer { head, content, held } = answer;
    let connection = connection(after).as_bytes();
    for part in [&head[..], b"connection: ", connection, b"\r\n\r\n", &content] {
        out.extend_from_slice(part);
    }
    (content, held)
}

/// The value of `Connection`.
fn connection(after: Persistence) -> &'static str {
    match after {
        Persistence::Keep => "keep-alive",
        Persistence::Close => "close",
    }
}

/// Appends a problem as an answer.
pub(crate) fn push_problem(out: &mut Vec<u8>, problem: &Problem, after: Persistence) {
    problem.push_answer(out, connection(after));
}

#[cfg(test)]
mod tests {
    use super::*;

    const ETAG: &[&str] = &["etag", "wellspring-position"];

    fn form(
        status: u16,
        content_type: &'static str,
        varying_headers: &'static [&'static str],
        content: FormContent,
    ) -> Form {
        let headers = vec![("x-frame-options", "DENY".to_owned())];
        Form { status, content_type, headers, varying_headers, content }
    }

    fn written(form: &Form, headers: &[&str], content: &str, after: Persistence) -> String {
        let mut varying = Varying::new();
        for value in headers {
            varying.header(|out| out.extend_from_slice(value.as_bytes()));
        }
        if !content.is_empty() {
            varying.content().extend_from_slice(content.as_bytes());
        }
        let mut out = b"before".to_vec();
        EncodedForm::of(form).push(&mut out, &varying, after).expect("what the form leaves open");
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_of_form_is_framed() {
        let fixed = form(201, "text/plain", &[], FormContent::Fixed(b"abc"));
        assert_eq!(
            written(&fixed, &[], "", Persistence::Keep),
            "beforeHTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nX-Frame-Options: DENY\r\n\
             Content-Length: 3\r\nConnection: keep-alive\r\n\r\nabc"
        );
        let header = form(201, "", &["location"], FormContent::Fixed(b""));
        assert_eq!(
            written(&header, &["/a"], "", Persistence::Close),
            "beforeHTTP/1.1 201 Created\r\nLocation: /a\r\nX-Frame-Options: DENY\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        let content = form(201, "text/plain", &[], FormContent::Varying);
        assert_eq!(
            written(&content, &[], "twelve bytes", Persistence::Keep),
            "beforeHTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nX-Frame-Options: DENY\r\n\
             Content-Length: 12\r\nConnection: keep-alive\r\n\r\ntwelve bytes"
        );
        let both = form(200, "text/plain", ETAG, FormContent::Varying);
        assert_eq!(
            written(&both, &["\"1\"", "17"], "abc", Persistence::Close),
            "beforeHTTP/1.1 200 OK\r\nETag: \"1\"\r\nWellspring-Position: 17\r\n\
             Content-Type: text/plain\r\nX-Frame-Options: DENY\r\n\
             Content-Length: 3\r\nConnection: close\r\n\r\nabc"
        );
        assert_eq!(
            written(&both, &["", "17"], "", Persistence::Keep),
            "beforeHTTP/1.1 200 OK\r\nETag: \r\nWellspring-Position: 17\r\n\
             Content-Type: text/plain\r\nX-Frame-Options: DENY\r\n\
             Content-Length: 0\r\nConnection: keep-alive\r\n\r\n"
        );
    }

    #[test]
    fn the_answer_of_a_handler_is_framed_as_hyper_frames_it() {
        let said = |response: Response| {
            let mut out = Vec::new();
            push_whole(&mut out, whole(response).expect("no stream"), Persistence::Keep);
            String::from_utf8(out).unwrap()
        };
        let twice = Response::text("text/plain", &b"abc"[..]).at(7);
        let twice = twice.with("vary", "accept".to_owned()).with("vary", "origin".to_owned());
        assert_eq!(
            said(twice),
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nwellspring-position: 7\r\n\
             vary: origin\r\ncontent-length: 3\r\nconnection: keep-alive\r\n\r\nabc"
        );
        for status in [204, 304] {
            let answer = said(Response::empty(status).with_content(&b"abc"[..]));
            assert!(answer.ends_with("connection: keep-alive\r\n\r\n"), "{answer}");
            assert!(!answer.contains("length"), "{answer}");
        }
    }

    #[test]
    fn what_has_no_content_says_nothing_of_its_length() {
        let unchanged = form(304, "", ETAG, FormContent::Fixed(b""));
        assert_eq!(
            written(&unchanged, &["\"1\"", "17"], "", Persistence::Keep),
            "beforeHTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nWellspring-Position: 17\r\n\
             X-Frame-Options: DENY\r\nConnection: keep-alive\r\n\r\n"
        );
        let done = form(204, "", &[], FormContent::Fixed(b""));
        assert_eq!(
            written(&done, &[], "", Persistence::Close),
            "beforeHTTP/1.1 204 No Content\r\nX-Frame-Options: DENY\r\nConnection: close\r\n\r\n"
        );
    }

    #[test]
    fn nothing_is_appended_of_what_does_not_fit() {
        let mut out = b"before".to_vec();
        let form = EncodedForm::of(&form(200, "text/plain", ETAG, FormContent::Varying));
        let mut varying = Varying::new();
        varying.header(|out| out.push(b'1'));
        varying.content().extend_from_slice(b"abc");
        assert_eq!(form.push(&mut out, &varying, Persistence::Keep), Err(Misfit));
        assert_eq!(out, b"before");
    }
}
