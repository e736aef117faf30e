//! The bytes of answers.

use super::head::Persistence;
use crate::fast::{Form, FormContent, Misfit, Varying};
use crate::wire::json::push_u64;
use crate::wire::problem::Problem;
use hyper::StatusCode;

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

/// Appends a problem as an answer.
pub(crate) fn push_problem(out: &mut Vec<u8>, problem: &Problem, after: Persistence) {
    problem.push_answer(
        out,
        match after {
            Persistence::Keep => "keep-alive",
            Persistence::Close => "close",
        },
    );
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
