//! A server without sockets, to try faces on.

use super::EmbeddedFace;
use crate::config::Config;
use crate::faces;
use crate::start;
use bytes::Bytes;
use hyper::{HeaderMap, Method, Uri, Version};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use wellspring_host::http::contract::NO_ROUTE;
use wellspring_host::http::dispatch::dispatch;
use wellspring_host::http::server::Server;
use wellspring_host::http::{Body, Content, Host, Request, Source};
use wellspring_host::limits::Payer;
use wellspring_host::view::State;
use wellspring_host::wire::params::Params;

/// A server over a data folder, reached by calls instead of connections. Everything else is as in
/// `wellspring serve`: access, limits, logs, views.
pub struct InProcess {
    server: Arc<Server>,
    runtime: Runtime,
    /// While it is there the server does not stop.
    _stop: watch::Sender<bool>,
}

impl InProcess {
    /// A server over a data folder with these faces besides those here, and with default settings, once
    /// its views answer. All servers of a process have the faces of the first.
    ///
    /// # Errors
    /// A sentence about what does not open.
    pub fn open(data: &Path, faces: Vec<EmbeddedFace>) -> Result<InProcess, String> {
        faces::embed(faces);
        let opened = start::open(Config::with_defaults(data)?)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
        let host = Arc::clone(&opened.server.host);
        runtime.block_on(async {
            let waits = |state| state == State::Rebuilding;
            while host.node.views().iter().any(|(.., progress)| waits(progress.state)) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
        Ok(InProcess { server: opened.server, runtime, _stop: opened.stop })
    }

    /// What all faces use.
    #[must_use]
    pub fn host(&self) -> &Arc<Host> {
        &self.server.host
    }

    /// The status and the content of the answer to a request with this content, as JSON.
    ///
    /// # Panics
    /// For a method or target that can be none, and for an answer that streams.
    #[must_use]
    pub fn ask(&self, method: &str, target: &str, content: &str) -> (u16, String) {
        let host = self.host();
        let mut headers = HeaderMap::new();
        let fields = [("host", "localhost"), ("content-type", "application/json")];
        for (name, value) in fields {
            headers.insert(name, hyper::header::HeaderValue::from_static(value));
        }
        let content = Bytes::from(content.to_owned());
        let request = Request {
            method: Method::from_bytes(method.as_bytes()).expect("a method"),
            uri: target.parse::<Uri>().expect("a target"),
            version: Version::HTTP_11,
            headers,
            client: None,
            principal: host.access.nobody(),
            connection: None,
            payer: Payer::default(),
            body: Body::new(Source::Full(content), host, Version::HTTP_11),
            contract: &NO_ROUTE,
            query: Params::default(),
            wants: "",
            param: String::new(),
            log_name: String::new(),
            log: None,
        };
        let answering = dispatch(Arc::clone(&self.server), Box::new(request));
        let response = self.runtime.block_on(answering);
        match response.content {
            Content::Full(bytes) => (response.status, String::from_utf8_lossy(&bytes).into_owned()),
            Content::Stream(_) => panic!("the answer streams"),
        }
    }
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.server.host.node.close();
    }
}
