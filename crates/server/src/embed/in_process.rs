//! A server without sockets, for testing faces.

use super::EmbeddedFace;
use crate::config::Config;
use crate::faces;
use crate::start;
use bytes::Bytes;
use hyper::header::HeaderName;
use hyper::{HeaderMap, Method};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use wellspring_host::http::dispatch::dispatch;
use wellspring_host::http::server::Server;
use wellspring_host::http::{Content, Host, Request, Response};
use wellspring_host::setup::SetupError;
use wellspring_host::view::State;

/// A server over a data folder, reached by calls instead of connections. Everything else is as in
/// `wellspring serve`: access, limits, logs, views.
pub struct InProcess {
    server: Arc<Server>,
    runtime: Runtime,
    /// Keeps the server from stopping.
    _stop: watch::Sender<bool>,
}

impl InProcess {
    /// A server over a data folder with these faces in addition to the built-in ones, and with
    /// default settings, once its views are ready. All servers of a process have the faces of the
    /// first.
    ///
    /// # Errors
    /// A sentence about what cannot be opened.
    pub fn open(data: &Path, faces: Vec<EmbeddedFace>) -> Result<InProcess, SetupError> {
        faces::embed(faces);
        let opened = start::open(Config::with_defaults(data)?)?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
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
    /// As of [`InProcess::send`].
    #[must_use]
    pub fn ask(&self, method: &str, target: &str, content: &str) -> (u16, String) {
        let answer = self.send(method, target, &[("content-type", "application/json")], content);
        (answer.status, answer.content)
    }

    /// The answer to a request with these headers, in addition to `Host`, and this content.
    ///
    /// # Panics
    /// For an invalid method, target or header, and for an answer that streams or is not UTF-8.
    #[must_use]
    pub fn send(
        &self,
        method: &str,
        target: &str,
        headers: &[(&str, &str)],
        content: &str,
    ) -> InProcessAnswer {
        let mut fields = HeaderMap::new();
        for (name, value) in [("host", "localhost")].iter().chain(headers) {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("a header's name");
            fields.append(name, value.parse().expect("a header's value"));
        }
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let uri = target.parse().expect("a target");
        let content = Bytes::from(content.to_owned());
        let request = Request::in_process(self.host(), method, uri, fields, content);
        let answering = dispatch(Arc::clone(&self.server), request);
        let Response { status, content_type, headers, content, .. } =
            self.runtime.block_on(answering);
        let Content::Full(content) = content else { panic!("the answer streams") };
        InProcessAnswer {
            status,
            content_type,
            headers,
            content: String::from_utf8(content.to_vec()).expect("UTF-8"),
        }
    }
}

/// An answer of [`InProcess`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InProcessAnswer {
    /// Its status.
    pub status: u16,
    /// Its media type; empty without content.
    pub content_type: &'static str,
    /// Its other headers, with lower-case names.
    pub headers: Vec<(&'static str, String)>,
    /// Its content.
    pub content: String,
}

impl Drop for InProcess {
    fn drop(&mut self) {
        self.server.close();
        self.server.host.node.close();
    }
}
