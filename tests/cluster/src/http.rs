//! A small HTTP/1.1 client that knows whether a request can have had an effect.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A completely read response.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is not JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The last part of a problem's type: `not-leading`.
    pub(crate) fn problem(&self) -> String {
        let json = self.json();
        let address = json["type"].as_str().unwrap_or_default();
        address.rsplit('/').next().unwrap_or_default().to_owned()
    }
}

/// Why there is no response.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// No connection: the request was not sent.
    NotSent(String),
    /// The request was sent, at least in part.
    NoAnswer(String),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::NotSent(why) => write!(f, "not sent: {why}"),
            Failure::NoAnswer(why) => write!(f, "no answer: {why}"),
        }
    }
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
    pub(crate) body: Vec<u8>,
    /// Timeout of the whole request.
    pub(crate) wait: Duration,
}

impl<'a> Request<'a> {
    pub(crate) fn get(target: &'a str) -> Request<'a> {
        Request { method: "GET", target, headers: Vec::new(), body: Vec::new(), wait: PATIENCE }
    }

    pub(crate) fn post(target: &'a str, json: &serde_json::Value) -> Request<'a> {
        let headers = vec![("Content-Type", "application/json".to_owned())];
        Request {
            method: "POST",
            target,
            headers,
            body: json.to_string().into_bytes(),
            wait: PATIENCE,
        }
    }

    pub(crate) fn header(mut self, name: &'a str, value: String) -> Request<'a> {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn wait(mut self, wait: Duration) -> Request<'a> {
        self.wait = wait;
        self
    }
}

/// The default timeout.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// Connections of one client, kept open, one per address.
#[derive(Debug, Default)]
pub(crate) struct Client {
    connections: HashMap<SocketAddr, BufReader<TcpStream>>,
}

impl Client {
    /// Sends a request and follows 307 redirects.
    pub(crate) fn ask(
        &mut self,
        address: SocketAddr,
        request: &Request<'_>,
    ) -> Result<Answer, Failure> {
        let mut at = address;
        let mut target = request.target.to_owned();
        for _ in 0..4 {
            let answer = self.ask_one(at, &target, request)?;
            if answer.status != 307 {
                return Ok(answer);
            }
            let location = answer.header("Location").unwrap_or_default();
            let Some((host, path)) = location
                .strip_prefix("http://")
                .and_then(|url| url.find('/').map(|slash| url.split_at(slash)))
            else {
                return Ok(answer);
            };
            at = host.parse().map_err(|_| Failure::NotSent(format!("307 to {location}")))?;
            target = path.to_owned();
        }
        Err(Failure::NotSent("307 again and again".into()))
    }

    fn ask_one(
        &mut self,
        at: SocketAddr,
        target: &str,
        request: &Request<'_>,
    ) -> Result<Answer, Failure> {
        let mut connection = match self.connections.remove(&at) {
            Some(connection) => connection,
            None => connect(at).map_err(|error| Failure::NotSent(error.to_string()))?,
        };
        let deadline = Instant::now() + request.wait;
        let answer = exchange(&mut connection, at, target, request, deadline);
        let answer = answer.map_err(|error| Failure::NoAnswer(error.to_string()))?;
        if answer.header("Connection") != Some("close") {
            self.connections.insert(at, connection);
        }
        Ok(answer)
    }

    /// Whether there is a connection that is open as far as this side knows.
    pub(crate) fn is_connected(&self, at: SocketAddr) -> bool {
        self.connections.contains_key(&at)
    }
}

fn connect(at: SocketAddr) -> io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect_timeout(&at, Duration::from_secs(2))?;
    stream.set_nodelay(true)?;
    Ok(BufReader::new(stream))
}

fn exchange(
    connection: &mut BufReader<TcpStream>,
    at: SocketAddr,
    target: &str,
    request: &Request<'_>,
    deadline: Instant,
) -> io::Result<Answer> {
    let mut head = format!("{} {target} HTTP/1.1\r\nHost: {at}\r\n", request.method);
    for (name, value) in &request.headers {
        head += &format!("{name}: {value}\r\n");
    }
    if request.method != "GET" {
        head += &format!("Content-Length: {}\r\n", request.body.len());
    }
    let mut bytes = (head + "\r\n").into_bytes();
    bytes.extend_from_slice(&request.body);
    connection.get_ref().set_write_timeout(Some(request.wait))?;
    connection.get_mut().write_all(&bytes)?;
    let status_line = line(connection, deadline)?;
    let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::other(format!("not HTTP: {status_line:?}")))?;
    let mut headers = Vec::new();
    loop {
        let line = line(connection, deadline)?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.push((name.to_owned(), value.trim().to_owned()));
    }
    let mut answer = Answer { status, headers, body: Vec::new() };
    if answer.header("Transfer-Encoding").is_some() {
        loop {
            let size = line(connection, deadline)?;
            let size = usize::from_str_radix(&size, 16).map_err(io::Error::other)?;
            take(connection, size, &mut answer.body, deadline)?;
            line(connection, deadline)?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = answer.header("Content-Length").and_then(|l| l.parse().ok()) {
        take(connection, length, &mut answer.body, deadline)?;
    }
    Ok(answer)
}

/// Limits the next read to the deadline.
fn bound(connection: &BufReader<TcpStream>, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"));
    }
    connection.get_ref().set_read_timeout(Some(left))
}

fn line(connection: &mut BufReader<TcpStream>, deadline: Instant) -> io::Result<String> {
    bound(connection, deadline)?;
    let mut line = String::new();
    connection.read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the connection was closed"));
    }
    Ok(line.trim_end().to_owned())
}

fn take(
    connection: &mut BufReader<TcpStream>,
    mut length: usize,
    into: &mut Vec<u8>,
    deadline: Instant,
) -> io::Result<()> {
    let mut piece = [0; 16 * 1024];
    while length > 0 {
        bound(connection, deadline)?;
        let most = length.min(piece.len());
        let count = connection.read(&mut piece[..most])?;
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the answer was cut off"));
        }
        into.extend_from_slice(&piece[..count]);
        length -= count;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A server that sends one of these answers per connection and closes it.
    fn server(answers: Vec<&'static str>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let mut head = [0; 4096];
                let _ = stream.read(&mut head).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        });
        at
    }

    #[test]
    fn answers_are_read_in_both_forms_and_no_short_one_is_taken() {
        let at = server(vec![
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\nab\r\n1\r\nc\r\n0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
        ]);
        let mut client = Client::default();
        assert_eq!(client.ask(at, &Request::get("/")).unwrap().body, b"{}");
        assert_eq!(client.ask(at, &Request::get("/")).unwrap().body, b"abc");
        for _ in 0..2 {
            let failure = client.ask(at, &Request::get("/")).unwrap_err();
            assert!(matches!(failure, Failure::NoAnswer(_)), "{failure}");
        }
        // A port that no program is given as a free one.
        let nobody = ([127, 0, 0, 1], 1).into();
        let failure = client.ask(nobody, &Request::get("/")).unwrap_err();
        assert!(matches!(failure, Failure::NotSent(_)), "{failure}");
    }
}
