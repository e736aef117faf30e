//! What the general stack reaches: hyper's HTTP/1.1 on tokio's current_thread runtime, answering
//! the same request with the same status, type and body.

use crate::Outcome;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::{
    Request, Response, StatusCode, body::Incoming, header, server::conn::http1, service::service_fn,
};
use hyper_util::rt::TokioIo;
use std::net::TcpListener;

/// Serves until killed.
pub(crate) fn serve(listener: TcpListener) -> Outcome<()> {
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        loop {
            let (socket, _) = listener.accept().await?;
            tokio::spawn(async move {
                // A connection that breaks is its client's business.
                let _ = http1::Builder::new()
                    .serve_connection(TokioIo::new(socket), service_fn(accepted))
                    .await;
            });
        }
    })
}

async fn accepted(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, hyper::Error> {
    request.into_body().collect().await?;
    let mut response = Response::new(Full::new(Bytes::from_static(b"{\"ok\":true}")));
    *response.status_mut() = StatusCode::ACCEPTED;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    Ok(response)
}
