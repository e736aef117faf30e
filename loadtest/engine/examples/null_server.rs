//! Serves the null server on the address given, until killed: a floor to measure clients against.

use std::net::TcpListener;
use wellspring_load::null_server::NullServer;

fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:4999".to_owned());
    let cpu = std::env::args().nth(2).and_then(|cpu| cpu.parse().ok());
    let server = NullServer::serve(TcpListener::bind(&address)?, cpu)?;
    println!("answering every request on {}", server.address());
    server.wait();
    Ok(())
}
