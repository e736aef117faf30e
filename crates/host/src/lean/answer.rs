//! The bytes of answers.

use super::head::After;
use crate::fast::{Form, Varies};
use crate::wire::json::push_u64;
use crate::wire::problem::Problem;
use hyper::StatusCode;

/// What a client that asks before it sends is told.
pub(crate) const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// The answers of one [`Form`], written down once: what is the same in all of them is only copied.
pub(crate) struct Sheet {
    /// The status of all of them.
    pub(crate) status: u16,
    /// Those made in the same turn of the loop in which their requests came, to be counted.
    pub(crate) prompt: u32,
    /// Up to what varies; empty if nothing does.
    before: Vec<u8>,
    varies: Varies,
    /// From there on, if the connection goes on.
    keep: Vec<u8>,
    /// The same, if it ends.
    close: Vec<u8>,
}

impl Sheet {
    /// The answers of this form.
    pub(crate) fn of(form: &Form) -> Sheet {
        let Form { status, content_type, headers, varies } = form;
        let reason = StatusCode::from_u16(*status).ok().and_then(|s| s.canonical_reason());
        let first = format!("HTTP/1.1 {status} {}\r\n", reason.unwrap_or_default());
        let mut lines = String::new();
        if !content_type.is_empty() {
            lines = format!("Content-Type: {content_type}\r\n");
        }
        for (name, value) in headers {
            lines.push_str(&format!("{}: {value}\r\n", cased(name)));
        }
        let end = |connection| format!("\r\nConnection: {connection}\r\n\r\n");
        let [keep, close] = ["keep-alive", "close"].map(end);
        let sheet = |before: String, [keep, close]: [String; 2]| Sheet {
            status: *status,
            prompt: 0,
            before: before.into(),
            varies: *varies,
            keep: keep.into(),
            close: close.into(),
        };
        match varies {
            Varies::Nothing(content) => {
                let all = |end| format!("{first}{lines}Content-Length: {}{end}", content.len());
                let mut sheet = sheet(String::new(), [keep, close].map(all));
                sheet.keep.extend_from_slice(content);
                sheet.close.extend_from_slice(content);
                sheet
            }
            Varies::Header(name) => {
                let behind = |end| format!("\r\n{lines}Content-Length: 0{end}");
                sheet(format!("{first}{}: ", cased(name)), [keep, close].map(behind))
            }
            Varies::Content => sheet(format!("{first}{lines}Content-Length: "), [keep, close]),
        }
    }

    /// Appends the answer in which `varying` is what varies.
    pub(crate) fn push(&self, out: &mut Vec<u8>, varying: &[u8], after: After) {
        let end = match after {
            After::Keep => &self.keep,
            After::Close => &self.close,
        };
        match self.varies {
            Varies::Nothing(_) => out.extend_from_slice(end),
            Varies::Header(_) => {
                out.extend_from_slice(&self.before);
                out.extend_from_slice(varying);
                out.extend_from_slice(end);
            }
            Varies::Content => {
                out.extend_from_slice(&self.before);
                push_u64(out, varying.len() as u64);
                out.extend_from_slice(end);
                out.extend_from_slice(varying);
            }
        }
    }
}

/// The name of a header as it is usually written: `content-type` is `Content-Type`.
fn cased(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(word.len().min(1));
        first.to_ascii_uppercase() + rest
    });
    words.collect::<Vec<_>>().join("-")
}

/// Appends a problem as an answer.
pub(crate) fn push_problem(out: &mut Vec<u8>, problem: &Problem, after: After) {
    problem.push_answer(
        out,
        match after {
            After::Keep => "keep-alive",
            After::Close => "close",
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(varies: Varies, varying: &str, after: After) -> String {
        let headers = vec![("x-frame-options", "DENY".to_owned())];
        let content_type = if matches!(varies, Varies::Header(_)) { "" } else { "text/plain" };
        let mut out = b"before".to_vec();
        let form = Form { status: 201, content_type, headers, varies };
        Sheet::of(&form).push(&mut out, varying.as_bytes(), after);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn every_kind_of_form_is_framed() {
        assert_eq!(
            written(Varies::Nothing(b"abc"), "", After::Keep),
            "beforeHTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nX-Frame-Options: DENY\r\n\
             Content-Length: 3\r\nConnection: keep-alive\r\n\r\nabc"
        );
        assert_eq!(
            written(Varies::Header("location"), "/a", After::Close),
            "beforeHTTP/1.1 201 Created\r\nLocation: /a\r\nX-Frame-Options: DENY\r\n\
             Content-Length: 0\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(
            written(Varies::Content, "twelve bytes", After::Keep),
            "beforeHTTP/1.1 201 Created\r\nContent-Type: text/plain\r\nX-Frame-Options: DENY\r\n\
             Content-Length: 12\r\nConnection: keep-alive\r\n\r\ntwelve bytes"
        );
    }
}
