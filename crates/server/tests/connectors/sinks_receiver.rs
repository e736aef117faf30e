//! A webhook receiver controlled by a test.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use wellspring_patience::Patience;

/// A received request.
#[derive(Debug, Clone)]
pub struct Hook {
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Hook {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }

    pub fn position(&self) -> u64 {
        self.header("wellspring-position").parse().expect("a position")
    }
}

/// The answer to a request: status and text.
type Script = Arc<dyn Fn(&Hook) -> (u16, String) + Send + Sync>;

/// A receiver. Stopped when dropped.
pub struct Receiver {
    pub address: SocketAddr,
    /// Requests answered with 2xx, in order.
    accepted: Arc<Mutex<Vec<Hook>>>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Receiver {
    /// A receiver that accepts everything.
    pub fn start() -> Receiver {
        Receiver::scripted(|_| (200, String::new()))
    }

    pub fn scripted(script: impl Fn(&Hook) -> (u16, String) + Send + Sync + 'static) -> Receiver {
        Receiver::at(SocketAddr::from(([127, 0, 0, 1], 0)), script)
    }

    /// At the address of an earlier receiver.
    pub fn at(
        address: SocketAddr,
        script: impl Fn(&Hook) -> (u16, String) + Send + Sync + 'static,
    ) -> Receiver {
        let listener = TcpListener::bind(address).expect("an address of its own");
        let address = listener.local_addr().unwrap();
        let accepted = Arc::default();
        let stopping = Arc::new(AtomicBool::new(false));
        let script: Script = Arc::new(script);
        let shared = (Arc::clone(&accepted), Arc::clone(&stopping));
        let thread = std::thread::spawn(move || {
            let (accepted, stopping) = shared;
            for stream in listener.incoming() {
                if stopping.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let shared = (Arc::clone(&accepted), Arc::clone(&stopping), Arc::clone(&script));
                std::thread::spawn(move || serve(stream, shared));
            }
        });
        Receiver { address, accepted, stopping, thread: Some(thread) }
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub fn accepted(&self) -> Vec<Hook> {
        self.accepted.lock().unwrap().clone()
    }

    pub fn positions(&self) -> Vec<u64> {
        self.accepted().iter().map(Hook::position).collect()
    }

    /// Waits until this many requests were accepted.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<u64> {
        let mut patience = Patience::new();
        loop {
            let positions = self.positions();
            if positions.len() >= count {
                return positions;
            }
            patience.pause(format_args!("{} of {count} came: {positions:?}", positions.len()));
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

type Shared = (Arc<Mutex<Vec<Hook>>>, Arc<AtomicBool>, Script);

fn serve(stream: TcpStream, (accepted, stopping, script): Shared) {
    let _ = stream.set_read_timeout(Some(Duration::from_secs(60)));
    let mut reader = BufReader::new(stream);
    while let Some(hook) = read(&mut reader) {
        if stopping.load(Ordering::SeqCst) {
            return;
        }
        let (status, text) = script(&hook);
        if (200..300).contains(&status) {
            accepted.lock().unwrap().push(hook);
        }
        let answer = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n{text}", text.len());
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> Option<Hook> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
    let (mut headers, mut length) = (Vec::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0)?;
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').expect("a header");
        let (name, value) = (name.to_ascii_lowercase(), value.trim().to_owned());
        if name == "content-length" {
            length = value.parse().expect("a length");
        }
        headers.push((name, value));
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Hook { headers, body: String::from_utf8_lossy(&body).into_owned() })
}
