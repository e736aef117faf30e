//! `GET /`: the console, or where the clients of each API begin.

use crate::{ConsoleFace, assets};
use serde_json::{Map, Value};
use std::sync::Arc;
use wellspring_host::http::face::Discovered;
use wellspring_host::http::{Answer, HTML, Request, Response, TEXT};

/// What crawlers may follow. Everything else is an API or for its operators.
const ROBOTS: &str = "User-agent: *\n\
                      Disallow: /api/\n\
                      Disallow: /auth/\n\
                      Disallow: /console/\n\
                      Disallow: /db/\n\
                      Disallow: /metrics\n\
                      Disallow: /v1/\n";

/// `GET /`.
pub(crate) async fn home(face: Arc<ConsoleFace>, request: Box<Request>) -> Answer {
    if request.wants == HTML && face.is_on {
        return Ok(assets::page(&request));
    }
    let base = face.host.base_url(&request);
    let mut members = Map::new();
    for (name, discovered) in face.host.routes.discovery() {
        let text = match discovered {
            Discovered::Text(text) => (*text).to_owned(),
            Discovered::Path(path) => format!("{base}{path}"),
        };
        members.insert((*name).to_owned(), Value::String(text));
    }
    if face.is_on {
        members.insert("console".to_owned(), format!("{base}/").into());
    }
    Ok(Response::of(200, &members).with("vary", "Accept".to_owned()))
}

/// `GET /robots.txt`.
pub(crate) async fn robots(_face: Arc<ConsoleFace>, _request: Box<Request>) -> Answer {
    Ok(Response::text(TEXT, ROBOTS))
}
