//! The same closed loop over the `h2` crate and tokio: the cross-check that the hand-made HTTP/2
//! client does UmaDB no injustice.

use crate::{
    closed_loop::{Plan, Result},
    flags::Outcome,
    machine,
    proto::{AppendRequest, AppendResponse, write_grpc},
    sample::Samples,
    workload::Orders,
};
use bytes::Bytes;
use prost::Message as _;
use std::{
    cell::{Cell, RefCell},
    rc::Rc,
    time::{Duration, Instant},
};

struct Shared {
    orders: RefCell<Orders>,
    request: RefCell<AppendRequest>,
    samples: RefCell<Samples>,
    seen_head: Cell<u64>,
    acknowledged: Cell<u64>,
    conflicts: Cell<u64>,
    cpu_from: Cell<Option<(Instant, Duration)>>,
    cpu_until: Cell<Option<(Instant, Duration)>>,
    from: Instant,
    until: Instant,
}

/// Runs the plan on one thread.
pub(crate) fn run(plan: &Plan, orders: Orders, seen_head: u64) -> Outcome<Result> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    let from = Instant::now() + plan.warmup;
    let shared = Rc::new(Shared {
        orders: orders.into(),
        request: RefCell::default(),
        samples: Samples::with_capacity(1 << 20).into(),
        seen_head: seen_head.into(),
        acknowledged: 0.into(),
        conflicts: 0.into(),
        cpu_from: None.into(),
        cpu_until: None.into(),
        from,
        until: from + plan.duration,
    });
    local.block_on(&runtime, drive(plan, &shared))?;
    let shared = Rc::into_inner(shared).ok_or("a task outlived its run")?;
    let client_busy = match (shared.cpu_from.get(), shared.cpu_until.get()) {
        (Some((from, before)), Some((until, after))) => {
            (after - before).as_secs_f64() / (until - from).as_secs_f64()
        }
        _ => 0.0,
    };
    let samples = shared.samples.into_inner();
    Ok(Result {
        acknowledged: shared.acknowledged.get(),
        measured: samples.len() as u64,
        elapsed: plan.duration,
        conflicts: shared.conflicts.get(),
        failures: 0,
        samples,
        client_busy,
    })
}

async fn drive(plan: &Plan, shared: &Rc<Shared>) -> Outcome<()> {
    let mut tasks = Vec::new();
    for _ in 0..plan.connections {
        let socket = tokio::net::TcpStream::connect(&plan.address).await?;
        socket.set_nodelay(true)?;
        let (sender, connection) = h2::client::Builder::new()
            .initial_window_size(1 << 20)
            .initial_connection_window_size(1 << 24)
            .handshake::<_, Bytes>(socket)
            .await?;
        tokio::task::spawn_local(connection);
        for _ in 0..plan.streams {
            let (sender, shared) = (sender.clone(), Rc::clone(shared));
            let uri =
                format!("http://{}/umadb.v1.DCB/Append", plan.address).parse::<http::Uri>()?;
            tasks.push(tokio::task::spawn_local(async move {
                one_client(sender, &shared, uri).await.map_err(|error| error.to_string())
            }));
        }
    }
    for task in tasks {
        task.await??;
    }
    Ok(())
}

async fn one_client(
    mut sender: h2::client::SendRequest<Bytes>,
    shared: &Shared,
    uri: http::Uri,
) -> Outcome<()> {
    loop {
        let mut body = Vec::with_capacity(512);
        {
            let mut request = shared.request.borrow_mut();
            shared.orders.borrow_mut().write_next(&mut request, shared.seen_head.get());
            write_grpc(&*request, &mut body);
        }
        let request = http::Request::post(uri.clone())
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .body(())?;
        sender = sender.ready().await?;
        let sent = Instant::now();
        let (answer, mut stream) = sender.send_request(request, false)?;
        stream.send_data(body.into(), true)?;
        let mut answer = answer.await?.into_body();
        let mut message = Vec::new();
        while let Some(part) = answer.data().await {
            let part = part?;
            answer.flow_control().release_capacity(part.len())?;
            message.extend_from_slice(&part);
        }
        answer.trailers().await?;
        let now = Instant::now();
        if message.len() >= 5 {
            let position = AppendResponse::decode(&message[5..])?.position;
            shared.seen_head.set(shared.seen_head.get().max(position));
            shared.acknowledged.set(shared.acknowledged.get() + 1);
            if now >= shared.from && now < shared.until {
                shared.samples.borrow_mut().add(now - sent);
            }
        } else {
            shared.conflicts.set(shared.conflicts.get() + 1);
        }
        if now >= shared.from && shared.cpu_from.get().is_none() {
            shared.cpu_from.set(Some((now, machine::own_cpu())));
        }
        if now >= shared.until {
            if shared.cpu_until.get().is_none() {
                shared.cpu_until.set(Some((now, machine::own_cpu())));
            }
            return Ok(());
        }
    }
}
