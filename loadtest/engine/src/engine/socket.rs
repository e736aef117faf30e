//! One connection's socket: non-blocking, over TCP or a Unix socket.

use crate::target::Target;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, recv,
    send, socket_with, sockopt,
};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A socket that is connecting or connected.
#[derive(Debug)]
pub(crate) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// Begins to connect; writability tells the end of it.
    pub(crate) fn open(target: &Target, attempt: usize) -> Result<Self, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (fd, begun) = if let Some(path) = &target.unix_socket {
            let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            let begun = connect(&fd, &SocketAddrUnix::new(path)?);
            (fd, begun)
        } else {
            let address = target.addresses[attempt % target.addresses.len()];
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let fd = socket_with(family, SocketType::STREAM, flags, None)?;
            sockopt::set_tcp_nodelay(&fd, true)?;
            let begun = connect(&fd, &address);
            (fd, begun)
        };
        match begun {
            // A Unix socket whose backlog is full says AGAIN; there is nothing to wait for then.
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Socket { fd }),
            Err(error) => Err(error),
        }
    }

    /// After writability: whether connecting succeeded.
    pub(crate) fn connected(&self) -> Result<(), Errno> {
        sockopt::socket_error(&self.fd)?
    }

    /// Reads what is there; `Ok(0)` means that the peer has closed.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<usize, Errno> {
        recv(&self.fd, buffer, RecvFlags::empty()).map(|(_, count)| count)
    }

    /// Writes what there is room for.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        send(&self.fd, bytes, SendFlags::NOSIGNAL)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
