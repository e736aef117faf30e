//! What stands around a body: the query of the URL, `Accept`, `Content-Type`,
//! and how fresh an answer must be.

use super::problem::{self, Problem};
use super::{JSON, MAX_WAIT_MS, Request};
use hyper::header::{CONTENT_TYPE, ORIGIN};
use std::time::Duration;
use wellspring_log::{Log, TooManyWaiters};
use wellspring_types::Position;

/// Wait for a position if the client does not say how long, in ms.
const DEFAULT_WAIT_MS: u64 = 1_000;
/// Parameters that every read knows.
const FRESHNESS: [&str; 2] = ["consistency", "wait_ms"];

/// The parameters of a URL, decoded, in order.
#[derive(Debug, Default)]
pub(crate) struct Params(Vec<(String, String)>);

impl Params {
    /// Decodes the query of a URL. A name that is neither in `known` nor about freshness is a mistake.
    pub(crate) fn of(request: &Request, known: &[&str]) -> Result<Params, Box<Problem>> {
        let Some(query) = request.uri.query() else { return Ok(Params::default()) };
        let known: Vec<&str> = known.iter().chain(&FRESHNESS).copied().collect();
        Params::parse_known(query, &known)
    }

    /// Decodes a query in which only these names may stand.
    pub(crate) fn parse_known(query: &str, known: &[&str]) -> Result<Params, Box<Problem>> {
        let params = Params::parse(query)?;
        match params.0.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(problem::INVALID
                .because(format!(
                    "{name} is not a known parameter; known here: {}",
                    known.join(", ")
                ))
                .field(name.as_str())),
            None => Ok(params),
        }
    }

    fn parse(query: &str) -> Result<Params, Box<Problem>> {
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Ok((percent_decode(name, true)?, percent_decode(value, true)?))
        });
        pairs.collect::<Result<_, Box<Problem>>>().map(Params)
    }

    /// Every value of a parameter.
    pub(crate) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that may be given once.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Box<Problem>> {
        let mut values = self.all(name);
        let first = values.next();
        match values.next() {
            None => Ok(first),
            Some(_) => Err(problem::INVALID
                .because(format!("{name} stands twice; give it once"))
                .field(name)),
        }
    }

    /// The value of a parameter that is a number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Box<Problem>> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match text.parse() {
            Ok(number) if digits => Ok(Some(number)),
            _ => Err(problem::INVALID
                .because(format!("{name} must be an integer of 0 or more, not {text:?}"))
                .field(name)),
        }
    }

    /// What a parameter chooses of at least two `(word, meaning)`; `None` if it is not given.
    pub(crate) fn choice<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Box<Problem>> {
        let Some(text) = self.one(name)? else { return Ok(None) };
        if let Some((_, meaning)) = choices.iter().find(|(word, _)| *word == text) {
            return Ok(Some(*meaning));
        }
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        let (last, others) = words.split_last().expect("there is a choice");
        let others = others.join(", ");
        Err(problem::INVALID
            .because(format!("{name} must be {others} or {last}, not {text:?}"))
            .field(name))
    }

    /// How long the client is ready to wait.
    pub(crate) fn wait(&self) -> Result<Duration, Box<Problem>> {
        self.wait_or(DEFAULT_WAIT_MS)
    }

    /// How long the client is ready to wait, `default_ms` if it does not say.
    pub(crate) fn wait_or(&self, default_ms: u64) -> Result<Duration, Box<Problem>> {
        let wait_ms = self.number("wait_ms")?.unwrap_or(default_ms);
        within(wait_ms, MAX_WAIT_MS, "wait_ms").map(Duration::from_millis)
    }
}

/// A number that has an upper limit.
pub(crate) fn within(number: u64, limit: u64, field: &str) -> Result<u64, Box<Problem>> {
    if number <= limit {
        return Ok(number);
    }
    Err(problem::INVALID
        .because(format!("{field} is {number}; the limit is {limit}"))
        .field(field)
        .limit(limit))
}

/// How much a page may hold: what the client asks for, from 1 to `most`.
pub(crate) fn page_limit(asked: Option<u64>, default: u64, most: u64) -> Result<u64, Box<Problem>> {
    match within(asked.unwrap_or(default), most, "limit")? {
        0 => Err(problem::INVALID.because("limit must be at least 1").field("limit")),
        limit => Ok(limit),
    }
}

/// Resolves `%XX`, and `+` as a space where that is its meaning.
pub(crate) fn percent_decode(text: &str, plus_is_space: bool) -> Result<String, Box<Problem>> {
    let wrong = || {
        problem::BAD_REQUEST.because(format!("the URL holds {text:?}, which is not encoded UTF-8"))
    };
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || (bytes.next()? as char).to_digit(16);
                let (Some(high), Some(low)) = (digit(), digit()) else { return Err(wrong()) };
                out.push((high << 4 | low) as u8);
            }
            b'+' if plus_is_space => out.push(b' '),
            byte => out.push(byte),
        }
    }
    String::from_utf8(out).map_err(|_| wrong())
}

/// The representation of `offered` that the client likes best; the first if it does not care.
pub(crate) fn negotiate(
    request: &Request,
    offered: &[&'static str],
) -> Result<&'static str, Box<Problem>> {
    let Some(accept) = request.header("accept") else { return Ok(offered[0]) };
    match best(accept, offered) {
        Some(chosen) => Ok(chosen),
        None => Err(problem::NOT_ACCEPTABLE
            .because(format!("{accept:?} accepts none of: {}", offered.join(", ")))),
    }
}

fn best(accept: &str, offered: &[&'static str]) -> Option<&'static str> {
    if accept == "*/*" {
        return Some(offered[0]);
    }
    // The most specific range that covers an offer decides its quality.
    let quality_of = |offer: &str| {
        let ranges = accept.split(',').filter_map(|range| {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next()?.to_ascii_lowercase();
            let quality =
                parts.find_map(|p| p.strip_prefix("q=")).map_or(Some(1.0), |q| q.parse().ok())?;
            let specific = match media.strip_suffix("/*") {
                Some("*") => 1,
                Some(major) if offer.split('/').next() == Some(major) => 2,
                None if media == offer => 3,
                _ => return None,
            };
            Some((specific, quality))
        });
        ranges.max_by_key(|&(specific, _)| specific).map_or(0.0, |(_, quality): (_, f32)| quality)
    };
    let mut chosen = None;
    let mut highest = 0.0;
    for &offer in offered {
        let quality = quality_of(offer);
        if quality > highest {
            (chosen, highest) = (Some(offer), quality);
        }
    }
    chosen
}

/// The media type of the body, lower case, without parameters; JSON if none is given.
pub(crate) fn content_type(request: &Request) -> String {
    let Some(value) = request.headers.get(CONTENT_TYPE) else { return JSON.to_owned() };
    // What is no text is none of those that are known here.
    value
        .to_str()
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// The body must be JSON and not encoded further. A page in a browser (`Origin`) has to say so: then
/// the browser asks first whether the page may (CORS). What has no type it sends for any page, to a
/// server that needs no credentials, or with a password that its user once typed.
pub(crate) fn expect_json(request: &Request) -> Result<(), Box<Problem>> {
    if request.headers.contains_key(ORIGIN) && !request.headers.contains_key(CONTENT_TYPE) {
        return Err(problem::UNSUPPORTED_MEDIA.because(format!(
            "a page has to say what it sends: send the header Content-Type: {JSON}"
        )));
    }
    let media = content_type(request);
    if media != JSON && !(media.starts_with("application/") && media.ends_with("+json")) {
        return Err(problem::UNSUPPORTED_MEDIA.because(format!(
            "the body is {media:?}; this takes JSON: send the header Content-Type: {JSON}"
        )));
    }
    expect_identity(request)
}

/// As [`expect_json`] of a page in a browser; of others anything, or nothing.
pub(crate) fn expect_json_of_pages(request: &Request) -> Result<(), Box<Problem>> {
    if request.headers.contains_key(ORIGIN) { expect_json(request) } else { Ok(()) }
}

/// The body must not be compressed.
pub(crate) fn expect_identity(request: &Request) -> Result<(), Box<Problem>> {
    match request.header("content-encoding") {
        None | Some("identity") => Ok(()),
        Some(coding) => Err(problem::UNSUPPORTED_MEDIA
            .because(format!("the body is encoded as {coding:?}; send it as it is"))),
    }
}

/// Makes sure that the log is as fresh as the client asks, waiting for it if need be.
pub(crate) async fn freshen(
    request: &Request,
    params: &Params,
    log: &Log,
) -> Result<(), Box<Problem>> {
    // One node decides alone, so its own state is the linearizable one.
    params.choice("consistency", &[("local", ()), ("linearizable", ())])?;
    reach(request, log, params.wait()?).await?;
    Ok(())
}

/// Waits until the log has reached the position that the client has seen elsewhere; gives it.
pub(crate) async fn reach(
    request: &Request,
    log: &Log,
    wait: Duration,
) -> Result<Option<Position>, Box<Problem>> {
    let Some(text) = request.header("wellspring-min-position") else { return Ok(None) };
    let wanted: Position = text.trim().parse().map_err(|_| {
        problem::BAD_REQUEST
            .because(format!("Wellspring-Min-Position must be a position, not {text:?}"))
            .field("Wellspring-Min-Position")
    })?;
    if wanted <= log.head() || past(log, wanted - 1, wait).await? >= wanted {
        request.still_may()?;
        return Ok(Some(wanted));
    }
    Err(problem::NOT_YET.because(format!(
        "position {wanted} was not reached within {} ms; the head is {}",
        wait.as_millis(),
        log.head()
    )))
}

/// Waits until the head is past a position, at most so long; gives the head.
///
/// # Errors
/// [`TooManyWaiters`]. A retry helps when others have stopped waiting.
pub(crate) async fn past(
    log: &Log,
    position: Position,
    wait: Duration,
) -> Result<Position, TooManyWaiters> {
    let moved = log.feed().past(position);
    tokio::time::timeout(wait, moved).await.unwrap_or_else(|_| Ok(log.head()))
}

#[cfg(test)]
mod tests {
    use super::super::{NDJSON, SSE};
    use super::*;

    #[test]
    fn parameters_are_decoded() {
        let params = Params::parse("tag=a%3A1&tag=b+c&limit=5&x").unwrap();
        assert_eq!(params.all("tag").collect::<Vec<_>>(), ["a:1", "b c"]);
        assert_eq!(params.number("limit").unwrap(), Some(5));
        assert_eq!(params.one("x").unwrap(), Some(""));
        assert!(params.one("tag").is_err());
        for bad in ["a=%", "a=%2", "a=%zz", "a=%ff"] {
            assert_eq!(Params::parse(bad).unwrap_err().kind.status, 400, "{bad}");
        }
        for bad in ["n=", "n=-1", "n=+1", "n=1.0", "n=99999999999999999999"] {
            assert!(Params::parse(bad).unwrap().number("n").is_err(), "{bad}");
        }
    }

    #[test]
    fn the_best_representation_is_chosen() {
        let offered = [JSON, NDJSON, SSE];
        assert_eq!(best("*/*", &offered), Some(JSON));
        assert_eq!(best("text/event-stream", &offered), Some(SSE));
        assert_eq!(best("text/html, application/*;q=0.5", &offered), Some(JSON));
        assert_eq!(best("application/json;q=0.2, application/x-ndjson", &offered), Some(NDJSON));
        assert_eq!(best("application/json;q=0, */*;q=0.1", &offered), Some(NDJSON));
        assert_eq!(best("image/png", &offered), None);
        assert_eq!(best("", &offered), None);
    }
}
