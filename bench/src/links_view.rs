//! How far the server's view of links is: everything stored must be folded before a figure counts.

use crate::{flags::Outcome, http1::HttpConnection};
use std::time::{Duration, Instant};

/// One line of `GET /v1/views`.
pub(crate) struct LinksView {
    /// Everything up to here is folded.
    pub(crate) position: u64,
    /// The log's head at the same moment.
    pub(crate) head: u64,
    /// Whether it answers.
    pub(crate) live: bool,
    /// Position of the newest snapshot, 0 if there is none.
    pub(crate) snapshot: u64,
}

impl LinksView {
    /// Asks for it.
    pub(crate) fn read(connection: &mut HttpConnection) -> Outcome<Self> {
        let mut answer = Vec::new();
        let status =
            connection.call("GET", "/v1/views", "", None, |part| answer.extend_from_slice(part))?;
        if status != 200 {
            return Err(format!("/v1/views answered {status}").into());
        }
        let answer: serde_json::Value = serde_json::from_slice(&answer)?;
        let found = answer["views"]
            .as_array()
            .and_then(|views| views.iter().find(|view| view["view"] == "links"))
            .ok_or_else(|| format!("there is no view of links: {answer}"))?;
        let number = |name: &str| {
            found[name].as_u64().ok_or_else(|| format!("the view has no {name}: {found}"))
        };
        Ok(Self {
            position: number("position")?,
            head: number("head")?,
            live: found["state"] == "live",
            snapshot: number("snapshot")?,
        })
    }

    /// Waits until it has folded everything.
    pub(crate) fn folded(address: &str, within: Duration) -> Outcome<Self> {
        let mut connection = HttpConnection::open(address)?;
        let until = Instant::now() + within;
        loop {
            let view = Self::read(&mut connection)?;
            if view.live && view.position == view.head {
                return Ok(view);
            }
            if Instant::now() > until {
                let (position, head) = (view.position, view.head);
                return Err(format!("after {within:?} only {position} of {head} is folded").into());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}
