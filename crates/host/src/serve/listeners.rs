//! The listeners of the serving threads: one for each, on one port that no other server shares.

use crate::setup::SetupError;
use std::io;
use std::net::{SocketAddr, TcpListener};
use tokio::net::TcpSocket;

/// Backlog of connections waiting to be accepted.
const BACKLOG: u32 = 4_096;

/// Binds `count` listeners to this address, within a runtime; with port 0, to a free port. The
/// kernel spreads connections among them.
///
/// `SO_REUSEPORT` would also let a second server of the same user share the port and answer some
/// clients from other data. Therefore the first listener is bound without it, which fails while any
/// other listens. It opens the port to its siblings only when it listens itself, so of two servers
/// that start at once at most one gets the port.
///
/// # Errors
/// A sentence: another program uses the port, or the system refuses.
pub(super) fn bind(
    address: SocketAddr,
    count: usize,
) -> Result<(SocketAddr, Vec<TcpListener>), SetupError> {
    bind_to(None, address, count)
}

/// The same with a first listener that is bound already.
///
/// # Errors
/// As [`bind`].
pub(super) fn bind_to(
    first: Option<TcpListener>,
    address: SocketAddr,
    count: usize,
) -> Result<(SocketAddr, Vec<TcpListener>), SetupError> {
    let failed = |error: io::Error| {
        if error.kind() == io::ErrorKind::AddrInUse {
            return format!(
                "{address} is in use by another program; stop it, or choose another port with \
                 --listen"
            );
        }
        format!("cannot listen on {address}: {error}")
    };
    let first = first.map_or_else(|| listener(address, Sharing::Alone), Ok).map_err(failed)?;
    // Port 0 became a real one; the others must use the same.
    let address = first.local_addr().map_err(failed)?;
    let mut listeners = vec![first];
    if count > 1 {
        rustix::net::sockopt::set_socket_reuseport(&listeners[0], true)
            .map_err(|error| failed(error.into()))?;
    }
    for _ in 1..count {
        listeners.push(listener(address, Sharing::WithSiblings).map_err(failed)?);
    }
    Ok((address, listeners))
}

#[derive(PartialEq, Clone, Copy)]
enum Sharing {
    /// Nothing else may listen on the port yet.
    Alone,
    /// Those that listen on the port have opened it.
    WithSiblings,
}

fn listener(address: SocketAddr, sharing: Sharing) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    if sharing == Sharing::WithSiblings {
        socket.set_reuseport(true)?;
    }
    socket.bind(address)?;
    socket.listen(BACKLOG)?.into_std()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::Barrier;

    const ANY: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

    /// Within a runtime, as the server does.
    fn bound(
        address: SocketAddr,
        count: usize,
    ) -> Result<(SocketAddr, Vec<TcpListener>), SetupError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let _entered = runtime.enter();
        bind(address, count)
    }

    #[test]
    fn of_servers_that_start_at_once_on_one_port_at_most_one_listens() {
        for _ in 0..200 {
            let (address, listeners) = bound(ANY.into(), 1).unwrap();
            drop(listeners);
            let (start, end) = (Barrier::new(4), Barrier::new(4));
            let one = || {
                start.wait();
                let listens = bound(address, 3);
                // Until all have tried.
                end.wait();
                listens.map(drop)
            };
            let ends: Vec<_> = std::thread::scope(|scope| {
                let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
                all.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let listening = ends.iter().filter(|end| end.is_ok()).count();
            assert!(listening <= 1, "{listening} listen on {address}");
            for refused in ends.iter().filter_map(|end| end.as_ref().err()) {
                assert!(refused.to_string().contains("is in use by another program"), "{refused}");
            }
        }
    }

    #[test]
    fn each_listener_gets_connections_and_the_port_is_refused_to_others() {
        let (address, listeners) = bound(ANY.into(), 3).unwrap();
        assert!(bound(address, 3).is_err() && bound(address, 1).is_err());
        for listener in &listeners {
            listener.set_nonblocking(true).unwrap();
        }
        let mut accepted = [0; 3];
        for _ in 0..300 {
            let mut stream = TcpStream::connect(address).unwrap();
            let mut came = None;
            while came.is_none() {
                came = listeners.iter().position(|listener| match listener.accept() {
                    Ok((mut stream, _)) => stream.write_all(b"x").is_ok(),
                    Err(_) => false,
                });
            }
            accepted[came.expect("it came")] += 1;
            stream.read_exact(&mut [0]).unwrap();
        }
        assert!(accepted.iter().all(|&count| count > 20), "{accepted:?}");
    }

    #[test]
    fn a_port_is_free_again_when_its_server_has_ended_with_connections_open() {
        let (address, listeners) = bound(ANY.into(), 2).unwrap();
        let streams: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        drop(listeners);
        drop(streams);
        bound(address, 2).unwrap();
    }
}
