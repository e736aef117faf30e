//! An HTTP/2 server in clear that does as it is told, request by request.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_load::engine::spawn;

const PREFACE_BYTES: usize = 24;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const GOAWAY: u8 = 7;

/// What to do about a request: bytes to send, and whether the connection goes on.
pub(crate) enum Reply {
    Send(Vec<u8>),
    SendAndClose(Vec<u8>),
}

/// A server on loopback for the rest of the test process.
pub(crate) struct Scripted {
    pub(crate) address: SocketAddr,
    /// RST_STREAM frames that clients sent.
    pub(crate) resets: Arc<AtomicU64>,
}

/// A frame.
pub(crate) fn framed(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![length[1], length[2], length[3], kind, flags];
    frame.extend_from_slice(&stream.to_be_bytes());
    frame.extend_from_slice(payload);
    frame
}

/// An answer without content: `:status 200`.
pub(crate) fn ok(stream: u32) -> Vec<u8> {
    framed(HEADERS, 5, stream, &[0x88])
}

/// Serves `reply(number of the request on its connection, from 1; stream)`; `settings` is the
/// payload of SETTINGS.
pub(crate) fn serve(
    settings: &'static [u8],
    reply: impl Fn(u64, u32) -> Reply + Send + Sync + 'static,
) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let resets = Arc::new(AtomicU64::new(0));
    let (reply, counted) = (Arc::new(reply), Arc::clone(&resets));
    spawn("scripted", move || {
        for socket in listener.incoming().flatten() {
            let (reply, counted) = (Arc::clone(&reply), Arc::clone(&counted));
            // A connection that ends ends its thread; whatever the reason, the client tells.
            let _ = spawn("scripted-peer", move || {
                let _ = converse(socket, settings, &*reply, &counted);
            });
        }
    })
    .unwrap();
    Scripted { address, resets }
}

fn converse(
    mut socket: TcpStream,
    settings: &[u8],
    reply: &dyn Fn(u64, u32) -> Reply,
    resets: &AtomicU64,
) -> std::io::Result<()> {
    socket.set_nodelay(true)?;
    socket.write_all(&framed(4, 0, 0, settings))?;
    socket.read_exact(&mut [0; PREFACE_BYTES])?;
    let mut number = 0;
    loop {
        let mut head = [0; 9];
        socket.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        std::io::copy(&mut (&socket).take(u64::from(length)), &mut std::io::sink())?;
        match head[3] {
            HEADERS => {
                number += 1;
                match reply(number, stream) {
                    Reply::Send(bytes) => socket.write_all(&bytes)?,
                    Reply::SendAndClose(bytes) => return socket.write_all(&bytes),
                }
            }
            RST_STREAM => _ = resets.fetch_add(1, Ordering::Relaxed),
            _ => {}
        }
    }
}
