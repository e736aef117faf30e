//! The events of an answer, one per line, and where the next request continues.

use crate::exit::{Code, Failure, InputKind};
use crate::lines::{LineEnd, LineReader};
use crate::problem::{Problem, Retrial};
use crate::target::Target;
use crate::wire::RecordedEvent;
use std::io::{BufRead, Read};
use wellspring_client::message::Head;
use wellspring_client::{Client, Request, Stream};
use wellspring_host::http::history::{self, ResumePoint};

/// Before the first event of a log, whichever history it has.
pub(crate) const BEGINNING: ResumePoint = ResumePoint { position: 0, history: None };

/// Asks for events as NDJSON. `after` is where `path` has them start.
pub(crate) fn events_after(
    target: &Target,
    client: &mut Client,
    path: &str,
    after: ResumePoint,
) -> Result<Result<EventLines<Stream>, Refusal>, Failure> {
    let named = after.history.map(|history| history.to_string());
    let mut headers = vec![("Accept", "application/x-ndjson")];
    headers.extend(named.iter().map(|history| (history::HEADER, history.as_str())));
    let (head, body) = client.open(&Request::get(path, &headers))?;
    if head.status == 200 && head.is_type("application/x-ndjson") {
        let mut lines = EventLines::new(body, within_history(after, &head));
        lines.head = head.header("wellspring-position").and_then(|head| head.parse().ok());
        return Ok(Ok(lines));
    }
    Ok(Err(refused(target, &head, body)))
}

/// The same position, in the history of the log that gave the answer with this head, if that names
/// it.
pub(crate) fn within_history(point: ResumePoint, head: &Head) -> ResumePoint {
    let named = head.header(history::HEADER).and_then(|history| history.parse().ok());
    ResumePoint { history: named.or(point.history), ..point }
}

/// A refusal that came instead of events.
pub(crate) struct Refusal {
    pub(crate) failure: Failure,
    pub(crate) status: u16,
    pub(crate) retrial: Retrial,
    /// Where the log begins, if what was asked for was removed.
    pub(super) first: Option<u64>,
}

/// The refusal that an answer is.
pub(crate) fn refused(target: &Target, head: &Head, body: impl Read) -> Refusal {
    let mut bytes = Vec::new();
    // A problem that is cut off still has its status.
    let _ = body.take(1 << 20).read_to_end(&mut bytes);
    let problem = Problem::of_head(head, &bytes);
    let failure = target.refusal(&problem, InputKind::Arguments);
    Refusal { failure, status: head.status, retrial: problem.retrial(), first: problem.first }
}

/// Events of an NDJSON answer, each a line; checks that they are whole and in order.
pub(crate) struct EventLines<R> {
    lines: LineReader<R>,
    line: Vec<u8>,
    /// The last event, or where the events start.
    pub(super) last: ResumePoint,
    /// The head of the log that the answer reflects, if it names that.
    pub(super) head: Option<u64>,
}

impl<R: BufRead> EventLines<R> {
    /// Events of an answer's body, after a point.
    pub(crate) fn new(source: R, after: ResumePoint) -> EventLines<R> {
        let lines = LineReader::new(source);
        EventLines { lines, line: Vec::new(), last: after, head: None }
    }

    /// The next event, as it came and as read.
    pub(crate) fn next(&mut self) -> Result<Option<(&str, RecordedEvent<'_>)>, Failure> {
        self.line.clear();
        let read = self.lines.read_into(&mut self.line);
        let last = self.last;
        let cut = |why: &str| {
            let message = format!(
                "the stream broke off after position {}: {why}; continue from there with --after {last}",
                last.position
            );
            Failure::new(Code::Unavailable, message)
        };
        match read.map_err(|broken| cut(&broken.what))? {
            None => return Ok(None),
            Some(LineEnd::Cut) => return Err(cut("the last line is incomplete")),
            Some(LineEnd::Whole) => drop(self.line.pop()),
        }
        let line = std::str::from_utf8(&self.line).map_err(|_| cut("a line is not UTF-8"))?;
        let event = RecordedEvent::parse(line).map_err(|what| cut(&what))?;
        if event.position <= last.position {
            return Err(cut(&format!("position {} came after it", event.position)));
        }
        self.last.position = event.position;
        Ok(Some((line, event)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_stream_out_of_order_or_without_its_end_is_refused() {
        let event = |n: u64| format!("{{\"position\":{n},\"type\":\"T\",\"data\":1}}");
        let read = |text: String| {
            let after = "0@00000000000000ff".parse().unwrap();
            let mut lines = EventLines::new(io::Cursor::new(text), after);
            while lines.next()?.is_some() {}
            Ok::<_, Failure>(lines.last.to_string())
        };
        let last = "5@00000000000000ff".to_owned();
        assert_eq!(read(format!("{}\n{}\n", event(2), event(5))), Ok(last));
        let cut = read(format!("{}\n{}", event(2), event(5))).unwrap_err();
        assert!(cut.message.contains("--after 2@00000000000000ff"), "{}", cut.message);
        assert!(read(format!("{}\n{}\n", event(2), event(2))).is_err());
        assert!(read("oops\n".to_owned()).is_err());
    }
}
