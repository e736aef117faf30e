//! Floor (b): io_uring, one thread, one `io_uring_enter` for a whole round of requests. Multishot
//! accept into the ring's own file table, multishot receive into provided buffers, sends that
//! report only failure, completions run on this thread when it waits (`DEFER_TASKRUN`), the ring's
//! descriptor registered.

use crate::{ANSWER, MOST_ANSWERS, Outcome, answers, requests::Requests};
use io_uring::{IoUring, SubmissionQueue, Submitter, cqueue, opcode, squeue, types};
use std::{
    io,
    net::TcpListener,
    os::fd::AsRawFd as _,
    sync::atomic::{AtomicU16, Ordering},
};

/// Submissions between two system calls.
const SUBMISSIONS: u32 = 1024;
/// Completions; as many as connections, since each has at most one request under way.
const COMPLETIONS: u32 = 8192;
/// Slots of the file table: most connections at once.
const FILES: u32 = 4096;
/// Provided buffers, a power of two. A request of ours fills an eighth of one; longer ones come in
/// pieces.
const BUFFERS: u16 = 512;
/// Bytes of each.
const BUFFER_BYTES: usize = 512;
/// The buffers' group.
const GROUP: u16 = 0;

/// What a completion belongs to: the kind above, the connection's slot below.
const ACCEPT: u64 = 1 << 32;
const RECEIVE: u64 = 2 << 32;
const SEND: u64 = 3 << 32;
const CLOSE: u64 = 4 << 32;
const SLOT: u64 = u32::MAX as u64;

/// Serves until killed.
pub(crate) fn serve(listener: &TcpListener) -> Outcome<()> {
    let mut ring: IoUring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_submit_all()
        .setup_no_sqarray()
        .setup_cqsize(COMPLETIONS)
        .build(SUBMISSIONS)
        .map_err(|error| format!("io_uring: {error}; see /proc/sys/kernel/io_uring_disabled"))?;
    let (mut submitter, queue, mut completions) = ring.split();
    submitter.register_ring_fd()?;
    submitter.register_files_sparse(FILES)?;
    let buffers = Buffers::register(&submitter)?;
    let mut floor = Floor {
        queue,
        submitter: &submitter,
        listener: types::Fd(listener.as_raw_fd()),
        buffers,
        begun: vec![Vec::new(); FILES as usize],
        requests: Requests::new(),
        answers: answers(),
    };
    floor.accept()?;
    loop {
        floor.queue.sync();
        match submitter.submit_and_wait(1) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Completions are full: take them first.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
            Err(error) => return Err(error.into()),
        }
        completions.sync();
        for completion in &mut completions {
            floor.complete(&completion)?;
        }
        // Tells the kernel that they are taken; it would not wait otherwise.
        completions.sync();
        floor.buffers.publish();
    }
}

struct Floor<'a> {
    queue: SubmissionQueue<'a>,
    submitter: &'a Submitter<'a>,
    listener: types::Fd,
    buffers: Buffers,
    /// By slot: the beginning of a request whose end has not come; nearly always empty.
    begun: Vec<Vec<u8>>,
    requests: Requests,
    answers: Vec<u8>,
}

impl Floor<'_> {
    fn complete(&mut self, completion: &cqueue::Entry) -> Outcome<()> {
        let (kind, slot) = (completion.user_data() & !SLOT, completion.user_data() & SLOT);
        let more = cqueue::more(completion.flags());
        match kind {
            ACCEPT => {
                if let Ok(slot) = u32::try_from(completion.result()) {
                    self.begun[slot as usize].clear();
                    self.receive(slot)?;
                }
                if !more {
                    self.accept()?;
                }
                Ok(())
            }
            RECEIVE => {
                let slot = slot as u32;
                let buffer = cqueue::buffer_select(completion.flags());
                let read = completion.result();
                let over = match buffer {
                    Some(buffer) if read > 0 => {
                        let over = self.answer(slot, buffer, read as usize)?;
                        self.buffers.give_back(buffer);
                        over
                    }
                    Some(buffer) => {
                        self.buffers.give_back(buffer);
                        true
                    }
                    // All buffers were taken: those of this round are free for the next.
                    None => read != -libc::ENOBUFS,
                };
                match (over, more) {
                    (true, false) => self.close(slot),
                    // The receive still holds the socket: it ends with the shutdown, and closes
                    // then.
                    (true, true) => self.shut_down(slot),
                    (false, false) => self.receive(slot),
                    (false, true) => Ok(()),
                }
            }
            // A send that failed: the receive on the same socket says so, too, and closes it.
            _ => Ok(()),
        }
    }

    /// Answers what is complete; whether the connection is to be closed.
    fn answer(&mut self, slot: u32, buffer: u16, read: usize) -> Outcome<bool> {
        let begun = &mut self.begun[slot as usize];
        let fresh = self.buffers.filled(buffer, read);
        let taken = if begun.is_empty() {
            self.requests.take(fresh).inspect(|&(_, used)| begun.extend_from_slice(&fresh[used..]))
        } else {
            begun.extend_from_slice(fresh);
            self.requests.take(begun).inspect(|&(_, used)| drop(begun.drain(..used)))
        };
        let Ok((mut owed, _)) = taken else { return Ok(true) };
        while owed > 0 {
            let now = owed.min(MOST_ANSWERS);
            let bytes = &self.answers[..now * ANSWER.len()];
            let send = opcode::Send::new(types::Fixed(slot), bytes.as_ptr(), bytes.len() as u32)
                .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
                .build()
                .flags(squeue::Flags::SKIP_SUCCESS)
                .user_data(SEND | u64::from(slot));
            self.push(&send)?;
            owed -= now;
        }
        Ok(false)
    }

    fn accept(&mut self) -> Outcome<()> {
        let accept = opcode::AcceptMulti::new(self.listener).allocate_file_index(true).build();
        self.push(&accept.user_data(ACCEPT))
    }

    fn receive(&mut self, slot: u32) -> Outcome<()> {
        let receive = opcode::RecvMulti::new(types::Fixed(slot), GROUP).build();
        self.push(&receive.user_data(RECEIVE | u64::from(slot)))
    }

    fn close(&mut self, slot: u32) -> Outcome<()> {
        let close = opcode::Close::new(types::Fixed(slot)).build();
        self.push(&close.flags(squeue::Flags::SKIP_SUCCESS).user_data(CLOSE | u64::from(slot)))
    }

    fn shut_down(&mut self, slot: u32) -> Outcome<()> {
        let shut = opcode::Shutdown::new(types::Fixed(slot), libc::SHUT_RDWR).build();
        self.push(&shut.flags(squeue::Flags::SKIP_SUCCESS).user_data(CLOSE | u64::from(slot)))
    }

    fn push(&mut self, entry: &squeue::Entry) -> Outcome<()> {
        loop {
            // SAFETY: what an entry points to, the answers, lives as long as the floor and is never
            // changed.
            if unsafe { self.queue.push(entry) }.is_ok() {
                return Ok(());
            }
            self.queue.sync();
            self.submitter.submit()?;
            self.queue.sync();
        }
    }
}

/// A ring of buffers that the kernel receives into and we give back.
struct Buffers {
    entries: *mut types::BufRingEntry,
    /// Never freed: the kernel may write to it as long as the ring lives.
    bytes: *mut u8,
    tail: u16,
}

impl Buffers {
    fn register(submitter: &Submitter<'_>) -> Outcome<Self> {
        let length = usize::from(BUFFERS) * size_of::<types::BufRingEntry>();
        // SAFETY: an anonymous mapping of our own; it is page-aligned, as the kernel wants it, and
        // never unmapped: it lives as long as the program.
        let entries = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
                -1,
                0,
            )
        };
        if entries == libc::MAP_FAILED {
            return Err(io::Error::last_os_error().into());
        }
        // SAFETY: the mapping holds that many entries and outlives the ring.
        unsafe {
            submitter.register_buf_ring_with_flags(entries as u64, BUFFERS, GROUP, 0)?;
        }
        let bytes = vec![0; usize::from(BUFFERS) * BUFFER_BYTES].leak().as_mut_ptr();
        let mut buffers = Self { entries: entries.cast(), bytes, tail: 0 };
        for buffer in 0..BUFFERS {
            buffers.give_back(buffer);
        }
        buffers.publish();
        Ok(buffers)
    }

    /// What the kernel wrote into a buffer that is ours until it is given back.
    fn filled(&self, buffer: u16, length: usize) -> &[u8] {
        assert!(buffer < BUFFERS && length <= BUFFER_BYTES, "the kernel fills what it was given");
        // SAFETY: within the allocation, by the assertion; the kernel leaves a buffer alone until
        // it is given back, which needs `&mut self`.
        unsafe {
            std::slice::from_raw_parts(self.bytes.add(usize::from(buffer) * BUFFER_BYTES), length)
        }
    }

    /// Makes the buffer free; the kernel sees it after [`Buffers::publish`].
    fn give_back(&mut self, buffer: u16) {
        let index = usize::from(self.tail & (BUFFERS - 1));
        let address = self.bytes.wrapping_add(usize::from(buffer) * BUFFER_BYTES) as u64;
        // SAFETY: the index is within the ring, and the kernel does not read beyond the published
        // tail.
        let entry = unsafe { &mut *self.entries.add(index) };
        entry.set_addr(address);
        entry.set_len(BUFFER_BYTES as u32);
        entry.set_bid(buffer);
        self.tail = self.tail.wrapping_add(1);
    }

    fn publish(&self) {
        // SAFETY: the tail lies within the mapping and is aligned; the kernel reads it with
        // acquire.
        unsafe {
            let tail = types::BufRingEntry::tail(self.entries).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}
