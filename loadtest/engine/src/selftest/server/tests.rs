use super::*;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};

fn serve(script: Script) -> (Server, TcpStream) {
    let server = Server::on(Ipv4Addr::LOCALHOST.into(), Clock::start(), script).unwrap();
    let BoundAddress::Tcp(address) = server.at().clone() else { panic!("TCP") };
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    (server, stream)
}

fn ask(stream: &mut TcpStream, tag: u64) {
    stream.write_all(format!("GET /{tag} HTTP/1.1\r\nHost: h\r\n\r\n").as_bytes()).unwrap();
}

#[test]
fn what_it_writes_down_is_what_it_did() {
    let (server, mut stream) =
        serve(Box::new(|asked| Reaction::answer(asked).after(3_000_000).in_parts(500_000, || 20)));
    ask(&mut stream, 17);
    let mut buffer = [0; 64];
    let mut answer = Vec::new();
    while !answer.ends_with(b"17") {
        let count = stream.read(&mut buffer).unwrap();
        answer.extend_from_slice(&buffer[..count]);
    }
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    let log = server.finish().unwrap();
    assert_eq!((log.served.len(), log.served[0].tag, log.accepted), (1, 17, 1));
    assert_eq!(log.bytes_written, answer.len() as u64);
    let took_ns = log.served[0].answered_ns.unwrap() - log.served[0].received_ns;
    let gaps = answer.len().div_ceil(20) as u64 - 1;
    assert!(took_ns >= 3_000_000 + gaps * 500_000, "{took_ns}");
}

#[test]
fn what_is_no_whole_answer_is_not_called_one() {
    let (server, mut stream) = serve(Box::new(|asked| match asked.number {
        0 => Reaction::answer(asked),
        1 => Reaction::bytes("HTTP/1.1 200 OK\r\n"),
        _ => Reaction::nothing().close(),
    }));
    let mut buffer = [0; 256];
    for tag in 0..3 {
        ask(&mut stream, tag);
        let count = stream.read(&mut buffer).unwrap();
        assert_eq!(count == 0, tag == 2);
    }
    let log = server.finish().unwrap();
    let whole: Vec<bool> = log.served.iter().map(|one| one.answered_ns.is_some()).collect();
    assert_eq!(whole, [true, false, false]);
}

#[test]
fn a_server_that_has_vanished_comes_back_at_the_same_address() {
    let (server, mut stream) = serve(Box::new(|asked| match asked.number {
        0 => Reaction::vanish(20_000_000),
        _ => Reaction::answer(asked),
    }));
    ask(&mut stream, 1);
    let mut buffer = [0; 64];
    assert!(matches!(stream.read(&mut buffer), Ok(0) | Err(_)));
    let BoundAddress::Tcp(address) = server.at().clone() else { panic!("TCP") };
    let mut refused = 0;
    let mut again = loop {
        match TcpStream::connect(address) {
            Ok(stream) => break stream,
            Err(_) => refused += 1,
        }
        assert!(refused < 10_000, "it does not come back");
        std::thread::sleep(Duration::from_millis(1));
    };
    assert!(refused > 0);
    ask(&mut again, 2);
    assert!(again.read(&mut buffer).unwrap() > 0);
    let log = server.finish().unwrap();
    assert_eq!((log.served.len(), log.pauses.len()), (2, 1));
    assert!(log.pauses[0].1 - log.pauses[0].0 >= 20_000_000);
}
