//! Durable append latency at one client beside the two things no durable server can avoid: one
//! `fdatasync` of the same bytes and one loopback round trip of the same sizes. All in one run, in
//! turns.

use crate::{
    flags::{Flags, Outcome},
    machine,
    proto::AppendRequest,
    row::{Row, Sink},
    sample::Samples,
    store::{Dialect, Store},
    workload::{Mode, Orders},
};
use std::{
    fs::File,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::FileExt as _,
    path::Path,
    time::Instant,
};

/// Where the raw writes go, beside the server's data.
const FLOOR_FILE: &str = "wsbench-floor.tmp";

/// `wsbench append-latency`.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let dialect: Dialect = flags.required("server")?;
    let sink = Sink::from_flags("append-latency", dialect.name(), &mut flags)?;
    let address: String = flags.required("address")?;
    let folder: String = flags.required("dir")?;
    let rounds: u32 = flags.or("rounds", 8)?;
    let count: usize = flags.or("count", 500)?;
    let payload = flags.or("payload", 200)?;
    let client_core: Option<usize> = flags.optional("pin")?;
    let server_core: Option<usize> = flags.optional("server-core")?;
    flags.finish()?;

    let mut store = Store::open(dialect, &address)?;
    let mut server = Appender::new(&mut store, payload)?;
    // The echo thread and the raw writes run where the server runs; everything else where the
    // client does.
    if let Some(core) = client_core {
        machine::pin_to(core)?;
    }
    server.measure(200)?;
    let sizes = server.store.last_sizes();
    let record = server.record_bytes();
    let mut floor =
        Floor::new(Path::new(&folder), record, sizes, server_core, rounds as usize * count)?;
    eprintln!("record {record} bytes, request {} bytes, answer {} bytes", sizes.0, sizes.1);
    for round in 0..rounds {
        // A B, then B A: drift of the machine falls on both.
        let (mut appended, written, echoed) = if round % 2 == 0 {
            let appended = server.measure(count)?;
            (appended, floor.writes(count)?, floor.echoes(count)?)
        } else {
            let (written, echoed) = (floor.writes(count)?, floor.echoes(count)?);
            (server.measure(count)?, written, echoed)
        };
        let put = |case: &str, name: &str, samples: &mut Samples| -> Outcome<f64> {
            let p50 = samples.quantile_us(0.5).unwrap_or(0.0);
            let base = sink.row(case, p50, "µs p50");
            let server = if name.is_empty() { base.server.clone() } else { name.into() };
            let p99_us = samples.quantile_us(0.99);
            sink.put(&Row { server, round, p99_us, samples: samples.len() as u64, ..base })?;
            Ok(p50)
        };
        put("durable append", "", &mut appended)?;
        let (mut written, mut echoed) = (written, echoed);
        let sum = put("fdatasync", "part", &mut written)?
            + put("loopback ping-pong", "part", &mut echoed)?;
        let row =
            Row { server: "floor".into(), round, ..sink.row("durable append", sum, "µs p50") };
        sink.put(&row)?;
    }
    Ok(())
}

/// Appends one event after another.
struct Appender<'a> {
    store: &'a mut Store,
    orders: Orders,
    request: AppendRequest,
    scratch: Vec<u8>,
    head: u64,
}

impl<'a> Appender<'a> {
    fn new(store: &'a mut Store, payload: usize) -> Outcome<Self> {
        let run =
            std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_micros() as u64;
        let head = store.head()?;
        let orders = Orders::new(run, payload, Mode::Plain, 0);
        Ok(Self { store, orders, request: AppendRequest::default(), scratch: Vec::new(), head })
    }

    fn measure(&mut self, count: usize) -> Outcome<Samples> {
        let mut samples = Samples::with_capacity(count);
        for _ in 0..count {
            self.orders.write_next(&mut self.request, self.head);
            let sent = Instant::now();
            let position = self.store.append(&self.request, &mut self.scratch)?;
            samples.add(sent.elapsed());
            if position != self.head + 1 {
                return Err(format!("position {position} after {}", self.head).into());
            }
            self.head = position;
        }
        Ok(samples)
    }

    /// What a store must at least make durable: the event itself.
    fn record_bytes(&self) -> usize {
        prost::Message::encoded_len(&self.request)
    }
}

/// The raw write and the raw round trip.
struct Floor {
    file: File,
    path: std::path::PathBuf,
    offset: u64,
    record: Vec<u8>,
    core: Option<usize>,
    client_core_mask: libc::cpu_set_t,
    socket: TcpStream,
    sizes: (usize, usize),
}

impl Floor {
    fn new(
        folder: &Path,
        record: usize,
        sizes: (usize, usize),
        core: Option<usize>,
        writes: usize,
    ) -> Outcome<Self> {
        let path = folder.join(FLOOR_FILE);
        let mut file =
            File::options().create(true).truncate(true).read(true).write(true).open(&path)?;
        let blocks = vec![0; 1 << 20];
        for _ in 0..=(writes * record) >> 20 {
            file.write_all(&blocks)?;
        }
        file.sync_all()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let socket = TcpStream::connect(listener.local_addr()?)?;
        socket.set_nodelay(true)?;
        let (mut other, _) = listener.accept()?;
        other.set_nodelay(true)?;
        std::thread::spawn(move || {
            if let Some(core) = core {
                let _ = machine::pin_to(core);
            }
            let (mut request, answer) = (vec![0; sizes.0], vec![1; sizes.1]);
            while other.read_exact(&mut request).is_ok() && other.write_all(&answer).is_ok() {}
        });
        let record = vec![0x5a; record];
        let client_core_mask = machine::affinity()?;
        Ok(Self { file, path, offset: 0, record, core, client_core_mask, socket, sizes })
    }

    fn writes(&mut self, count: usize) -> Outcome<Samples> {
        if let Some(core) = self.core {
            machine::pin_to(core)?;
        }
        let mut samples = Samples::with_capacity(count);
        for _ in 0..count {
            let started = Instant::now();
            self.file.write_all_at(&self.record, self.offset)?;
            self.file.sync_data()?;
            samples.add(started.elapsed());
            self.offset += self.record.len() as u64;
        }
        machine::set_affinity(&self.client_core_mask)?;
        Ok(samples)
    }

    fn echoes(&mut self, count: usize) -> Outcome<Samples> {
        let (request, mut answer) = (vec![2; self.sizes.0], vec![0; self.sizes.1]);
        let mut samples = Samples::with_capacity(count);
        for _ in 0..count {
            let started = Instant::now();
            self.socket.write_all(&request)?;
            self.socket.read_exact(&mut answer)?;
            samples.add(started.elapsed());
        }
        Ok(samples)
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        // A temporary file of ours; a failure leaves only litter in a temporary folder.
        let _ = std::fs::remove_file(&self.path);
    }
}
