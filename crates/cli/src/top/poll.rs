//! Requests the figures of a server.

use super::sample::Sample;
use crate::cluster::status::PATH;
use crate::credentials::hint;
use crate::exit::{Code, Failure, InputKind};
use crate::problem::Problem;
use std::time::Duration;
use wellspring_client::{Answer, Client, Request};
use wellspring_log::{Clock as _, SystemClock};

/// A server that is silent for longer counts as unreachable, and is shown as that.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest pause that a server can ask for.
const LONGEST_REST: Duration = Duration::from_secs(3_600);

/// Monotonic time, in ns.
pub(super) fn now_ns() -> u64 {
    SystemClock.monotonic_us() * 1000
}

/// One server, sampled again and again over one connection.
#[derive(Debug)]
pub(super) struct Poll {
    client: Client,
    /// The pause that the server asked for.
    rest: Option<Duration>,
}

impl Poll {
    /// Nothing is sent yet.
    pub(super) fn new(client: Client) -> Poll {
        Poll { client: client.with_patience(PATIENCE), rest: None }
    }

    /// Time until the next sample: the interval, or the pause that the server asked for.
    pub(super) fn pause(&mut self, interval: Duration) -> Duration {
        self.rest.take().map_or(interval, |rest| rest.min(LONGEST_REST).max(interval))
    }

    /// Takes one sample.
    ///
    /// # Errors
    /// There is no answer; a refusal; an answer that is not a Wellspring server's figures.
    pub(super) fn sample(&mut self) -> Result<Sample, Failure> {
        let (views, ingest) = (self.document("/v1/views")?, self.document("/v1/ingest")?);
        let answer = self.client.call(&Request::get("/metrics", &[]))?;
        let at_ns = now_ns();
        if answer.head.status != 200 {
            return Err(self.refused("/metrics", &answer));
        }
        let text = String::from_utf8_lossy(&answer.body);
        let sample = Sample::read(at_ns, &text)
            .map_err(|what| Failure::new(Code::Unavailable, format!("GET /metrics: {what}")))?;
        let sample = sample.with_words(views.as_deref(), ingest.as_deref());
        if !sample.is_of_cluster() {
            return Ok(sample);
        }
        let cluster = self.document(PATH)?;
        Ok(sample.with_cluster(cluster.as_deref()))
    }

    /// A document that not every server has, and that not every client may read.
    fn document(&mut self, path: &str) -> Result<Option<Vec<u8>>, Failure> {
        let answer = self.client.call(&Request::get(path, &[]))?;
        if answer.head.status == 429 {
            return Err(self.refused(path, &answer));
        }
        Ok((answer.head.status == 200).then_some(answer.body))
    }

    fn refused(&mut self, path: &str, answer: &Answer) -> Failure {
        let (status, problem) = (answer.head.status, Problem::of(answer));
        let why = match (hint(status, ""), status) {
            (_, 429) => {
                self.rest = problem.retry_after_s.map(Duration::from_secs);
                problem.sentence()
            }
            ("", _) => "is it a Wellspring server? (--url)".to_owned(),
            (hint, _) => hint.trim_start_matches("; ").to_owned(),
        };
        Failure::new(
            problem.code(InputKind::Arguments),
            format!("GET {path} was answered with {status}: {why}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_client::test_server::{Reply, TestServer};

    fn look(metrics: Reply) -> Result<Sample, Failure> {
        let server = TestServer::start(move |request, _| match request.path.as_str() {
            "/metrics" => metrics.clone(),
            "/v1/ingest" => Reply::json(200, r#"{"overflow":"shed","partition_bytes":1}"#),
            _ => Reply::json(403, "{}"),
        });
        Poll::new(server.client()).sample()
    }

    #[test]
    fn figures_are_sampled_and_words_where_there_are_any() {
        // The clock begins at 0 with its first reading.
        let begun_ns = now_ns();
        let sample = look(Reply::typed(200, "text/plain", include_str!("metrics.txt"))).unwrap();
        assert_eq!(sample.logs["main"].head, 6);
        assert_eq!(sample.intake.unwrap().overflow, "shed");
        assert!(sample.views.values().all(|view| view.state.is_none()));
        assert!(sample.at_ns > begun_ns);
    }

    #[test]
    fn a_rate_limited_poll_pauses_as_long_as_the_server_asks() {
        let busy = "HTTP/1.1 429 X\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n";
        let server = TestServer::start(|_, _| Reply::raw(busy));
        let mut poll = Poll::new(server.client());
        let failure = poll.sample().unwrap_err();
        assert!(failure.message.contains("429") && failure.message.contains("again in 30 s"));
        let second = Duration::from_secs(1);
        assert_eq!([poll.pause(second), poll.pause(second)], [Duration::from_secs(30), second]);
    }

    #[test]
    fn other_answers_are_told_apart() {
        for (reply, code, word) in [
            (Reply::json(404, "{}"), Code::Usage, "404"),
            (Reply::json(401, "{}"), Code::Denied, "401: set WELLSPRING_TOKEN"),
            (Reply::json(200, "{}"), Code::Unavailable, "Prometheus"),
            (Reply::typed(200, "text/plain", "up 1\n"), Code::Unavailable, "another version"),
            (Reply::raw("rubbish\r\n\r\n").then_hang_up(), Code::Unavailable, ""),
        ] {
            let failure = look(reply).unwrap_err();
            assert_eq!(failure.code, code, "{failure:?}");
            assert!(failure.message.contains(word), "{failure:?}");
        }
    }
}
