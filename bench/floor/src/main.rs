//! The floors of ingest: servers that answer `POST /e` with the 202 of WIRE §2 and store nothing.
//! What no server on this machine can beat (`epoll`, `uring`), and what the general stack reaches
//! (`hyper`).

mod epoll;
mod general;
mod requests;
mod uring;

use std::net::TcpListener;

/// The answer, byte for byte.
const ANSWER: &[u8] =
    b"HTTP/1.1 202 Accepted\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\
    Connection: keep-alive\r\n\r\n{\"ok\":true}";

/// Most answers given in one send: a client that pipelines more gets them in several.
const MOST_ANSWERS: usize = 64;

/// [`MOST_ANSWERS`] answers one after the other, so that pipelined requests are answered in one
/// send.
fn answers() -> Vec<u8> {
    ANSWER.repeat(MOST_ANSWERS)
}

const USAGE: &str = "floor epoll|uring|hyper ADDRESS [CORE]";

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> std::process::ExitCode {
    match run() {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("floor: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(kind), Some(address)) = (arguments.next(), arguments.next()) else {
        return Err(USAGE.into());
    };
    if let Some(core) = arguments.next() {
        let number = core.parse().map_err(|_| format!("{core:?} is not a core; {USAGE}"))?;
        pin_to(number).map_err(|error| format!("core {core}: {error}"))?;
    }
    let listener = TcpListener::bind(&address).map_err(|error| format!("{address}: {error}"))?;
    set_nodelay(&listener)?;
    match kind.as_str() {
        "epoll" => epoll::serve(&listener),
        "uring" => uring::serve(&listener),
        "hyper" => general::serve(listener),
        _ => Err(USAGE.into()),
    }
}

/// Connections inherit it, which spares a call on each.
fn set_nodelay(listener: &TcpListener) -> std::io::Result<()> {
    use std::os::fd::AsRawFd as _;
    let on: libc::c_int = 1;
    // SAFETY: the option's value is an int, valid for the call.
    let failed = unsafe {
        libc::setsockopt(
            listener.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_NODELAY,
            (&raw const on).cast(),
            size_of_val(&on) as libc::socklen_t,
        )
    };
    if failed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Pins the calling thread, the only one.
fn pin_to(core: usize) -> std::io::Result<()> {
    if core >= libc::CPU_SETSIZE as usize {
        return Err(std::io::Error::other(format!("there is no core {core}")));
    }
    // SAFETY: an all-zero cpu_set_t is a valid empty set, the core is within it, the pointer is
    // valid for the size told.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set)
    };
    if failed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}
