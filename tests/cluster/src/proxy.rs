//! A breakable link between one node and PostgreSQL, or from the other nodes to it.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;
use std::time::Duration;

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Link {
    /// Data passes.
    Whole,
    /// Connections are closed, and new ones immediately.
    Dropped,
    /// Nothing passes in either direction, and nothing is closed.
    Stalled,
    /// What the one that connects sends passes; answers do not.
    AnswersStalled,
}

#[derive(Debug)]
struct State {
    link: Link,
    /// A node whose streams bring it nothing.
    deaf: Option<String>,
    upstream: SocketAddr,
    open: Vec<(TcpStream, TcpStream)>,
}

/// A TCP proxy on its own port.
#[derive(Debug, Clone)]
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<Mutex<State>>,
}

/// How often a stalled link is checked.
const LOOK: Duration = Duration::from_millis(5);

impl Proxy {
    pub(crate) fn new(upstream: SocketAddr) -> io::Result<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let state = State { link: Link::Whole, deaf: None, upstream, open: Vec::new() };
        let proxy = Proxy { address, state: Arc::new(Mutex::new(state)) };
        let accepting = proxy.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // If the server is unreachable, the client's connection is closed.
                let _ = accepting.carry(stream);
            }
        });
        Ok(proxy)
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("the state of a link")
    }

    pub(crate) fn set(&self, link: Link) {
        self.state().link = link;
        if link == Link::Dropped {
            self.reset();
        }
    }

    /// What is sent by the streams that this node has dialed does not arrive.
    pub(crate) fn deafen(&self, node: Option<&str>) {
        self.state().deaf = node.map(str::to_owned);
    }

    /// Closes all connections; new ones are forwarded.
    pub(crate) fn reset(&self) {
        for (node, server) in self.state().open.drain(..) {
            let _ = node.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }
    }

    /// Redirects the link.
    pub(crate) fn lead_to(&self, upstream: SocketAddr) {
        self.state().upstream = upstream;
        self.reset();
    }

    fn carry(&self, node: TcpStream) -> io::Result<()> {
        let (link, upstream) = {
            let state = self.state();
            (state.link, state.upstream)
        };
        if link == Link::Dropped {
            return Ok(());
        }
        let server = TcpStream::connect_timeout(&upstream, Duration::from_secs(2))?;
        node.set_nodelay(true)?;
        server.set_nodelay(true)?;
        self.state().open.push((node.try_clone()?, server.try_clone()?));
        let (from_node, from_server) = (node.try_clone()?, server.try_clone()?);
        let dialer = Arc::new(OnceLock::new());
        let (there, known) = (self.clone(), Arc::clone(&dialer));
        thread::spawn(move || {
            let is_held = |state: &State, piece: &[u8]| {
                if let Some(name) = dialer_of(piece) {
                    let _ = known.set(name);
                }
                state.link == Link::Stalled
            };
            there.copy(from_node, server, is_held);
        });
        let back = self.clone();
        thread::spawn(move || {
            let is_held = |state: &State, _: &[u8]| {
                let is_deaf = state.deaf.is_some() && state.deaf.as_ref() == dialer.get();
                is_deaf || [Link::Stalled, Link::AnswersStalled].contains(&state.link)
            };
            back.copy(from_server, node, is_held);
        });
        Ok(())
    }

    /// Copies until either side ends, and pauses while what was read is held.
    fn copy(
        &self,
        mut from: TcpStream,
        mut to: TcpStream,
        is_held: impl Fn(&State, &[u8]) -> bool,
    ) {
        let mut piece = [0; 32 * 1024];
        while let Ok(count) = from.read(&mut piece) {
            while is_held(&self.state(), &piece[..count]) {
                thread::sleep(LOOK);
            }
            if count == 0 || to.write_all(&piece[..count]).is_err() {
                break;
            }
        }
        let _ = from.shutdown(Shutdown::Both);
        let _ = to.shutdown(Shutdown::Both);
    }
}

/// The name of the node that begins a stream with these bytes.
fn dialer_of(begun: &[u8]) -> Option<String> {
    const NAME_AT: usize = 75;
    let is_stream = begun.starts_with(b"WS\x01RAFT");
    let (length, name) = begun.get(NAME_AT..).filter(|_| is_stream)?.split_first()?;
    let name = name.get(..usize::from(*length))?;
    std::str::from_utf8(name).ok().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that echoes its input.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || io::copy(&mut stream.try_clone().unwrap(), &mut stream));
            }
        });
        address
    }

    fn heard(stream: &mut TcpStream, wait_ms: u64) -> io::Result<u8> {
        stream.set_read_timeout(Some(Duration::from_millis(wait_ms))).unwrap();
        let mut byte = [0];
        stream.read_exact(&mut byte).map(|()| byte[0])
    }

    #[test]
    fn a_link_is_whole_stalled_and_dropped() {
        let proxy = Proxy::new(echo()).unwrap();
        let mut stream = TcpStream::connect(proxy.address).unwrap();
        stream.write_all(b"a").unwrap();
        assert_eq!(heard(&mut stream, 5000).unwrap(), b'a');
        for link in [Link::Stalled, Link::AnswersStalled] {
            proxy.set(link);
            stream.write_all(b"b").unwrap();
            let nothing = heard(&mut stream, 100).unwrap_err();
            assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
            proxy.set(Link::Whole);
            assert_eq!(heard(&mut stream, 5000).unwrap(), b'b');
        }
        let mut begun = [0; 80];
        begun[..7].copy_from_slice(b"WS\x01RAFT");
        begun[75..78].copy_from_slice(b"\x02n1");
        let mut dialed = TcpStream::connect(proxy.address).unwrap();
        dialed.write_all(&begun).unwrap();
        begun.iter().for_each(|byte| assert_eq!(heard(&mut dialed, 5000).unwrap(), *byte));
        for (deaf, hears) in [(None, true), (Some("n2"), true), (Some("n1"), false)] {
            proxy.deafen(deaf);
            dialed.write_all(b"d").unwrap();
            assert_eq!(
                heard(&mut dialed, if hears { 5000 } else { 100 }).is_ok(),
                hears,
                "{deaf:?}"
            );
        }
        proxy.set(Link::Dropped);
        assert_eq!(heard(&mut stream, 5000).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let mut refused = TcpStream::connect(proxy.address).unwrap();
        assert!(heard(&mut refused, 5000).is_err());
        proxy.set(Link::Whole);
        let mut again = TcpStream::connect(proxy.address).unwrap();
        again.write_all(b"c").unwrap();
        assert_eq!(heard(&mut again, 5000).unwrap(), b'c');
    }
}
