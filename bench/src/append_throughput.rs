//! Appends per second of a closed loop of many clients, one event each.

use crate::{
    closed_loop::{self, Plan},
    flags::{Flags, Outcome},
    h2_client, machine,
    row::Sink,
    store::{Dialect, Store},
    workload::{Mode, Orders},
};
use std::time::{Duration, Instant, SystemTime};

/// `wsbench append-throughput`.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let dialect: Dialect = flags.required("server")?;
    let mode: Mode = flags.or("mode", Mode::Plain)?;
    let client = flags.or("client", "epoll".to_owned())?;
    let plan = Plan {
        dialect,
        address: flags.required("address")?,
        connections: flags.or("connections", 64)?,
        streams: flags.or("streams", 1)?,
        warmup: Duration::from_secs_f64(flags.or("warmup", 1.0)?),
        duration: Duration::from_secs_f64(flags.or("seconds", 5.0)?),
    };
    // Variants of the peer's client get their own names; the report compares with the fastest.
    let mut name = dialect.name().to_owned();
    if plan.streams > 1 {
        name += &format!("-{}x{}", plan.connections, plan.streams);
    }
    if client != "epoll" {
        name += &format!("-{client}");
    }
    let sink = Sink::from_flags("append-throughput", &name, &mut flags)?;
    let payload = flags.or("payload", 200)?;
    let server_pid: Option<u32> = flags.optional("server-pid")?;
    let core: Option<usize> = flags.optional("pin")?;
    flags.finish()?;
    if dialect == Dialect::Wellspring && (plan.streams != 1 || client != "epoll") {
        return Err(
            "over HTTP/1.1 there is one request per connection, from the epoll client".into()
        );
    }
    if let Some(core) = core {
        machine::pin_to(core)?;
    }

    let mut store = Store::open(dialect, &plan.address)?;
    let before = store.head()?;
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_micros() as u64;
    let mut orders = Orders::new(since_epoch, payload, mode, before);
    let server_cpu = |pid: Option<u32>| pid.and_then(machine::cpu_of);
    let (started, cpu) = (Instant::now(), server_cpu(server_pid));
    let mut result = match client.as_str() {
        "epoll" => closed_loop::run(&plan, &mut orders, before)?,
        "h2" => h2_client::run(&plan, orders, before)?,
        _ => return Err("--client is epoll or h2".into()),
    };
    let wall = started.elapsed();
    let server_busy = server_cpu(server_pid)
        .zip(cpu)
        .map(|(after, before)| (after.saturating_sub(before)).as_secs_f64() / wall.as_secs_f64());
    let grown = store.head()? - before;
    if grown != result.acknowledged || result.conflicts + result.failures > 0 {
        return Err(format!(
            "not trusted: the head grew by {grown}, {} appends were acknowledged, {} conflicts, {} failures",
            result.acknowledged, result.conflicts, result.failures
        )
        .into());
    }
    let mode = match mode {
        Mode::Plain => "plain",
        Mode::Conditional => "conditional",
        Mode::ConditionalFixed => "conditional, fixed tag",
    };
    let case = format!("{mode}, {} clients", plan.connections * plan.streams);
    let mut row =
        sink.row(&case, result.measured as f64 / result.elapsed.as_secs_f64(), "appends/s");
    row.p50_us = result.samples.quantile_us(0.5);
    row.p99_us = result.samples.quantile_us(0.99);
    row.client_busy = Some(result.client_busy);
    row.server_busy = server_busy;
    row.samples = result.measured;
    row.size = before;
    sink.put(&row)
}
