//! The three system calls of level-triggered epoll.

use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
};

/// An epoll instance.
pub(crate) struct Epoll {
    descriptor: OwnedFd,
    tokens: std::cell::RefCell<std::collections::HashMap<RawFd, usize>>,
}

impl Epoll {
    /// A new one.
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked before it is owned.
        let raw = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nobody else owns it.
        Ok(Self { descriptor: unsafe { OwnedFd::from_raw_fd(raw) }, tokens: Default::default() })
    }

    /// Watches a socket for reading; `token` comes back from [`Epoll::wait`].
    pub(crate) fn add(&self, socket: RawFd, token: usize) -> io::Result<()> {
        self.tokens.borrow_mut().insert(socket, token);
        self.control(libc::EPOLL_CTL_ADD, socket, libc::EPOLLIN, token)
    }

    /// Also watches it for writing, or no longer.
    pub(crate) fn watch_writes(&self, socket: RawFd, watch: bool) -> io::Result<()> {
        let token = self.tokens.borrow().get(&socket).copied().unwrap_or_default();
        let interest = if watch { libc::EPOLLIN | libc::EPOLLOUT } else { libc::EPOLLIN };
        self.control(libc::EPOLL_CTL_MOD, socket, interest, token)
    }

    /// Waits and returns the tokens of the sockets that are ready.
    pub(crate) fn wait(&self, timeout_ms: i32) -> io::Result<impl Iterator<Item = usize> + use<>> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 128];
        // SAFETY: the array is valid for its whole length during the call.
        let count = unsafe {
            libc::epoll_wait(
                self.descriptor.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as i32,
                timeout_ms,
            )
        };
        let count = match count {
            0.. => count as usize,
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => 0,
            _ => return Err(io::Error::last_os_error()),
        };
        Ok(events.into_iter().take(count).map(|event| event.u64 as usize))
    }

    fn control(
        &self,
        operation: i32,
        socket: RawFd,
        interest: i32,
        token: usize,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest as u32, u64: token as u64 };
        // SAFETY: the event is valid for the call; the kernel checks the descriptors.
        let failed =
            unsafe { libc::epoll_ctl(self.descriptor.as_raw_fd(), operation, socket, &mut event) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// Whether an error only says "not now".
pub(crate) fn would_block(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}
