//! Time from starting a server's process until its view of links answers, with its snapshot or
//! without, and the memory that it then holds.

use crate::{
    flags::{Flags, Outcome},
    http1::HttpConnection,
    links_view::LinksView,
    machine,
    open_time::{Started, start},
    row::Sink,
    store::Dialect,
};
use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    time::{Duration, Instant, SystemTime},
};

/// How long it may take.
const WITHIN: Duration = Duration::from_secs(600);

/// `wsbench links-open`: starts the binary on a data folder, and stops it again.
pub(crate) fn run(mut flags: Flags) -> Outcome<()> {
    let sink = Sink::from_flags("links-open", "wellspring", &mut flags)?;
    let binary: String = flags.required("binary")?;
    let data: String = flags.required("data")?;
    let case: String = flags.required("case")?;
    let rebuild = flags.or("rebuild", false)?;
    flags.finish()?;
    let data_path = Path::new(&data);
    if rebuild {
        snapshots(data_path)?.into_iter().try_for_each(fs::remove_file)?;
    }
    let written = || -> Outcome<Vec<SystemTime>> {
        let times = snapshots(data_path)?.into_iter().map(|path| fs::metadata(path)?.modified());
        Ok(times.collect::<Result<_, _>>()?)
    };
    let before = written()?;
    if !rebuild && before.is_empty() {
        return Err("there is no snapshot to begin with".into());
    }
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let started = Instant::now();
    let mut server = Started::new(start(Dialect::Wellspring, &binary, &data, &address)?);
    let view = loop {
        if let Some(status) = server.0.try_wait()? {
            return Err(format!("the server ended with {status}").into());
        }
        let known = HttpConnection::open(&address)
            .and_then(|mut connection| wait(&mut connection, started));
        match known {
            Ok(view) => break view,
            Err(error) if started.elapsed() > WITHIN => return Err(error),
            Err(_) => std::thread::sleep(Duration::from_micros(500)),
        }
    };
    let took = started.elapsed();
    // One that is not used is written anew as soon as a million events are folded, or never shown.
    if !rebuild && (view.snapshot == 0 || written()? != before) {
        return Err("the snapshot was not used".into());
    }
    let memory = machine::anonymous_bytes(server.0.id()).ok_or("the server is gone")?;
    let how = if rebuild { "rebuilt" } else { "from its snapshot" };
    let events = view.head;
    let mut figures = vec![
        ("start to live", took.as_secs_f64() * 1000.0, "ms"),
        ("memory, not of files", memory as f64 / 1_048_576.0, "MiB"),
    ];
    if rebuild && events > 0 {
        figures.push(("folded", events as f64 / took.as_secs_f64(), "events/s"));
    }
    for (what, value, unit) in figures {
        let mut row = sink.row(&format!("{case}, {how}: {what}"), value, unit);
        (row.size, row.samples) = (events, 1);
        sink.put(&row)?;
    }
    // The server stops by itself, and writes its snapshot for the next.
    server.may_take(Duration::from_secs(120));
    Ok(())
}

/// Waits until the view answers.
fn wait(connection: &mut HttpConnection, started: Instant) -> Outcome<LinksView> {
    loop {
        let view = LinksView::read(connection)?;
        if view.live && view.position == view.head {
            return Ok(view);
        }
        if started.elapsed() > WITHIN {
            return Err("the view is not there in time".into());
        }
        std::thread::sleep(Duration::from_micros(500));
    }
}

/// The snapshots of links below a folder.
fn snapshots(dir: &Path) -> Outcome<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            found.extend(snapshots(&path)?);
        } else if path.file_name().is_some_and(|name| name == "links.snapshot") {
            found.push(path);
        }
    }
    Ok(found)
}
