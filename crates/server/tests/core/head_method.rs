//! `HEAD` over HTTP/2: the headers of `GET` without content, on a connection that stays usable.
//! hyper omits content only for HTTP/1, and a client resets a stream whose answer to `HEAD` has
//! content.

use crate::server::Server;
use h2::client::{self, SendRequest};
use http::{HeaderMap, Method};

async fn ask(
    sender: &mut SendRequest<bytes::Bytes>,
    (method, path): (Method, &str),
) -> Result<(u16, HeaderMap, usize), h2::Error> {
    let accept = if path.contains("sse") { "text/event-stream" } else { "*/*" };
    let request = http::Request::builder().method(method).uri(format!("http://localhost{path}"));
    let request = request.header("accept", accept).body(()).unwrap();
    *sender = sender.clone().ready().await?;
    let answer = sender.send_request(request, true)?.0.await?;
    let (parts, mut body) = answer.into_parts();
    let mut bytes = 0;
    while let Some(data) = body.data().await {
        let data = data?;
        body.flow_control().release_capacity(data.len())?;
        bytes += data.len();
    }
    Ok((parts.status.as_u16(), parts.headers, bytes))
}

#[test]
fn head_over_http_2_has_the_headers_of_get_and_no_content() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for lean in ["true", "false"] {
        let server = Server::start_with(&["--lean-loop", lean]);
        runtime.block_on(async {
            let socket = tokio::net::TcpStream::connect(server.address).await.unwrap();
            let (mut sender, connection) = client::handshake(socket).await.unwrap();
            tokio::spawn(connection);
            for path in ["/health", "/problems", "/v1/head", "/no/such/route", "/v1/events"] {
                let (status, headers, bytes) = ask(&mut sender, (Method::GET, path)).await.unwrap();
                let head = ask(&mut sender, (Method::HEAD, path)).await.unwrap();
                assert_eq!((head.0, head.2), (status, 0), "{path}");
                assert_eq!(head.1.get("content-type"), headers.get("content-type"), "{path}");
                let length: usize = head.1["content-length"].to_str().unwrap().parse().unwrap();
                assert!(bytes > 0 && length == bytes, "{path}: {length} of {bytes}");
            }
            // An endless answer ends with its headers.
            let stream = ask(&mut sender, (Method::HEAD, "/v1/events?tag=sse:1")).await.unwrap();
            assert_eq!((stream.0, stream.2, stream.1.get("content-length")), (200, 0, None));
            assert_eq!(stream.1["content-type"], "text/event-stream");
        });
    }
}
