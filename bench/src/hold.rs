//! Load that waits or is dear, for the bounds of the core: idle subscriptions, requests that wait
//! for a lease that is held, and conditions of the largest legal size sent without pause.
//! Everything runs over HTTP/2, so that 20,000 waiters need 80 sockets.

use crate::flags::{Flags, Outcome};
use bytes::Bytes;
use h2::client::SendRequest;
use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    fmt::Write as _,
    io::Write as _,
    rc::Rc,
    time::Duration,
};
use tokio::task::{LocalSet, spawn_local};

/// Streams of one connection: the server's default limit.
const STREAMS: usize = 256;
const MOST: usize = 50_000;
const MOST_SECONDS: u64 = 600;
/// Lives longer than any waiter waits.
const HELD_MS: u64 = 600_000;
const WAIT_MS: u64 = 60_000;

/// What has happened, by name: a status, or why a request got none.
#[derive(Default)]
struct Tally {
    counts: RefCell<BTreeMap<String, u64>>,
    standing: Cell<usize>,
}

impl Tally {
    fn count(&self, what: impl ToString) {
        *self.counts.borrow_mut().entry(what.to_string()).or_default() += 1;
    }
}

/// `wsbench hold`: prints `ready` when all of it stands, holds it until standard input ends or the
/// time is over, then prints what the requests were answered as one line of JSON.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let address: String = flags.required("address")?;
    let what: String = flags.required("what")?;
    let count: usize = flags.required("count")?;
    let seconds: u64 = flags.or("seconds", 60)?;
    let (items, types, tags) =
        (flags.or("items", 1)?, flags.or("types", 1)?, flags.or("tags", 64)?);
    flags.finish()?;
    let ip = address.parse::<std::net::SocketAddr>()?.ip();
    if !ip.is_loopback() || count > MOST || seconds > MOST_SECONDS {
        return Err(format!("loopback only, at most {MOST} for at most {MOST_SECONDS} s").into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let tally = Rc::new(Tally::default());
    let local = LocalSet::new();
    let held = Rc::clone(&tally);
    local.block_on(&runtime, async move {
        let body = condition(items, types, tags);
        if what == "conditions" {
            fill(&address, items, types, tags).await?;
        }
        let running = start(&address, &what, count, &body, &held).await?;
        let begun = tokio::time::Instant::now();
        while held.standing.get() < count {
            if begun.elapsed() > Duration::from_secs(60) {
                let counts = held.counts.borrow();
                return Err(
                    format!("only {} of {count} stand: {counts:?}", held.standing.get()).into()
                );
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        println!("ready");
        std::io::stdout().flush()?;
        let (ended, input) = tokio::sync::oneshot::channel();
        std::thread::spawn(move || {
            let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
            let _ = ended.send(());
        });
        let _ = tokio::time::timeout(Duration::from_secs(seconds), input).await;
        drop(running);
        Outcome::Ok(())
    })?;
    println!("{}", serde_json::to_string(&*tally.counts.borrow())?);
    std::io::stdout().flush()?;
    // The thread that reads standard input may still do so.
    std::process::exit(0);
}

/// Appends events that carry every type and every tag of [`condition`], none of which it matches:
/// for an item all of its tags on two events of another type, and its types on events without tags.
async fn fill(address: &str, items: usize, types: usize, tags: usize) -> Outcome<()> {
    let sender = connect(address).await?;
    let list = |count: usize, of: String| {
        (0..count).map(|n| format!(r#""{of}{n}""#)).collect::<Vec<_>>().join(",")
    };
    for item in 0..items {
        let tags = list(tags, format!("user:{item}."));
        let mut events = vec![format!(r#"{{"type":"Other","tags":[{tags}],"data":{{}}}}"#); 2];
        events.extend(
            (0..types).map(|n| format!(r#"{{"type":"T{item}.{n}","tags":[],"data":{{}}}}"#)),
        );
        let body = Bytes::from(format!(r#"{{"events":[{}]}}"#, events.join(",")));
        let (status, _) = ask(sender.clone(), address, "/v1/append", Some(body), false).await?;
        if status != 200 {
            return Err(format!("the events of item {item} were answered {status}").into());
        }
    }
    Ok(())
}

/// An append whose condition has `items` items of `types` types and `tags` tags each, none twice.
fn condition(items: usize, types: usize, tags: usize) -> Bytes {
    let mut body = String::from(r#"{"events":[{"type":"Dear","tags":["dear:1"],"data":{}}],"#);
    body.push_str(r#""condition":{"failIfEventsMatch":{"items":["#);
    for item in 0..items {
        let comma = if item == 0 { "" } else { "," };
        let list = |count: usize, of: &str| {
            let texts = (0..count).map(|n| format!(r#""{of}{item}.{n}""#));
            texts.collect::<Vec<_>>().join(",")
        };
        let _ = write!(
            body,
            r#"{comma}{{"types":[{}],"tags":[{}]}}"#,
            list(types, "T"),
            list(tags, "user:")
        );
    }
    body.push_str("]}}}");
    Bytes::from(body)
}

async fn start(
    address: &str,
    what: &str,
    count: usize,
    body: &Bytes,
    tally: &Rc<Tally>,
) -> Outcome<Vec<SendRequest<Bytes>>> {
    let per_connection = if what == "conditions" { 1 } else { STREAMS };
    let mut connections = Vec::new();
    let mut lease_taken = false;
    for first in (0..count).step_by(per_connection) {
        let sender = connect(address).await?;
        if what == "lease-waiters" && !lease_taken {
            let body = format!(r#"{{"ttl_ms":{HELD_MS}}}"#);
            let path = &lease_path();
            let (status, _) =
                ask(sender.clone(), address, path, Some(Bytes::from(body)), false).await?;
            if status != 201 {
                return Err(format!("the lease was answered {status}").into());
            }
            lease_taken = true;
        }
        for number in first..count.min(first + per_connection) {
            let (sender, address) = (sender.clone(), address.to_owned());
            let (tally, body) = (Rc::clone(tally), body.clone());
            match what {
                "subscribers" => drop(spawn_local(subscribe(sender, address, number, tally))),
                "lease-waiters" => drop(spawn_local(wait_for_lease(sender, address, tally))),
                "conditions" => drop(spawn_local(judge(sender, address, body, tally))),
                _ => return Err("--what is subscribers, lease-waiters or conditions".into()),
            }
        }
        connections.push(sender);
    }
    Ok(connections)
}

async fn connect(address: &str) -> Outcome<SendRequest<Bytes>> {
    let socket = tokio::net::TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    let (sender, connection) = h2::client::Builder::new()
        .initial_window_size(1 << 16)
        .initial_connection_window_size(1 << 24)
        .handshake::<_, Bytes>(socket)
        .await?;
    spawn_local(connection);
    Ok(sender)
}

/// One request; its status, and its body read to the end unless it is a stream to be followed.
async fn ask(
    sender: SendRequest<Bytes>,
    address: &str,
    path: &str,
    body: Option<Bytes>,
    stream: bool,
) -> Outcome<(u16, h2::RecvStream)> {
    let mut request = http::Request::builder()
        .method(if body.is_some() { "POST" } else { "GET" })
        .uri(format!("http://{address}{path}"));
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    if stream {
        request = request.header("accept", "text/event-stream");
    }
    let mut sender = sender.ready().await?;
    let (answer, mut sending) = sender.send_request(request.body(())?, body.is_none())?;
    if let Some(body) = body {
        sending.send_data(body, true)?;
    }
    let answer = answer.await?;
    let status = answer.status().as_u16();
    let mut body = answer.into_body();
    if !stream {
        while let Some(part) = body.data().await {
            let part = part?;
            body.flow_control().release_capacity(part.len())?;
        }
    }
    Ok((status, body))
}

/// Waits for events with a tag that no one appends.
async fn subscribe(sender: SendRequest<Bytes>, address: String, number: usize, tally: Rc<Tally>) {
    let path = format!("/v1/events?tag=idle:{number}&after=0");
    match ask(sender, &address, &path, None, true).await {
        Ok((status, mut body)) => {
            tally.count(status);
            if status != 200 {
                return;
            }
            tally.standing.set(tally.standing.get() + 1);
            while let Some(Ok(part)) = body.data().await {
                let _ = body.flow_control().release_capacity(part.len());
            }
            tally.count("ended");
        }
        Err(error) => tally.count(error),
    }
}

/// The lease of this process: one of an earlier run may still be held.
fn lease_path() -> String {
    format!("/v1/leases/bench-hold-{}", std::process::id())
}

/// Waits for a lease that another request holds, again and again.
async fn wait_for_lease(sender: SendRequest<Bytes>, address: String, tally: Rc<Tally>) {
    tally.standing.set(tally.standing.get() + 1);
    let body = Bytes::from(format!(r#"{{"ttl_ms":1000,"wait_ms":{WAIT_MS}}}"#));
    let path = lease_path();
    loop {
        let asked = ask(sender.clone(), &address, &path, Some(body.clone()), false);
        match asked.await {
            Ok((status, _)) => {
                tally.count(status);
                // A refusal is not repeated at once: a client of good will waits.
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(error) => return tally.count(error),
        }
    }
}

/// Sends a dear condition, and the next one when it has been answered.
async fn judge(sender: SendRequest<Bytes>, address: String, body: Bytes, tally: Rc<Tally>) {
    tally.standing.set(tally.standing.get() + 1);
    loop {
        match ask(sender.clone(), &address, "/v1/append", Some(body.clone()), false).await {
            Ok((status, _)) => tally.count(status),
            Err(error) => return tally.count(error),
        }
    }
}
