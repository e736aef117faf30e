//! More load than can be stored: full partitions, a slow disk, a full disk. Clients get 429 or 503,
//! or are read more slowly; memory stays bounded; every 202 is stored.

use crate::account::{Account, Amount, count_of, metric};
use crate::client::{Answer, Client};
use crate::disk::SmallDisk;
use crate::done::StopSignal;
use crate::server::BOTH_LOOPS;
use crate::server::Server;
use serde_json::Value;
use std::fs::{self};
use std::path::Path;
use std::time::{Duration, Instant};
use wellspring_patience::PATIENCE;

/// The smallest partition possible, in bytes.
const PARTITION: u64 = 4 << 20;
/// Length of the large bodies, in bytes.
const BODY: usize = 500_000;

/// A large body that identifies its connection and its number.
fn body(connection: usize, n: usize) -> Vec<u8> {
    let mut body = format!("\"{connection:02} {n:06} ").into_bytes();
    body.resize(BODY - 1, b'x');
    body.push(b'"');
    body
}

fn push(client: &mut Client, path: &str, body: &[u8]) -> Answer {
    client.call("POST", path, &[], body).unwrap()
}

/// Checks that this is the 429 of a full partition, with `Retry-After`.
fn refused_for_now(answer: &Answer) {
    let problem = answer.problem(429);
    assert_eq!(problem["type"], "/problems/ingest-full");
    let seconds: u64 = answer.header("retry-after").expect("when to come again").parse().unwrap();
    assert!((1..=60).contains(&seconds) && problem["retry"] == seconds, "{problem}");
}

/// A server that flushes only on request, so that a partition fills.
fn hesitant(dir: &Path, lean: &[&str]) -> Server {
    let flags = [
        "--threads=1",
        "--ingest-overflow=shed",
        "--ingest-partition-bytes=4194304",
        "--ingest-flush-bytes=1073741824",
        "--ingest-flush-ms=60000",
    ];
    Server::start_in(dir, &[&flags[..], lean].concat())
}

#[test]
fn a_full_partition_is_429_until_it_is_stored_and_sigterm_stores_it() {
    for lean in BOTH_LOOPS {
        let dir = tempfile::tempdir().unwrap();
        let mut server = hesitant(dir.path(), &lean);
        let mut client = server.client();
        let record = (32 + "Ingested".len() + BODY) as u64;
        let fit = PARTITION / record;
        let mut fill = |from: usize| -> u64 {
            let answers = (from..from + 20).map(|n| push(&mut client, "/e", &body(0, n)));
            let refused: Vec<Answer> = answers.filter(|answer| answer.status != 202).collect();
            refused.iter().for_each(refused_for_now);
            20 - refused.len() as u64
        };
        let first = fill(0);
        // The very first may be flushed immediately, because nothing was waiting.
        assert!((fit - 1..=fit + 1).contains(&first), "{first}: {fit} fit");
        let (account, _) = Account::ask(&mut server.client(), "main");
        let amount = |events| Amount { events, bytes: events * record };
        assert_eq!((account.accepted, account.shed), (amount(first), amount(20 - first)));
        // A request that waits for durability makes the rest durable too.
        push(&mut server.client(), "/e?ack=durable&type=Small", b"1").expect(202);
        let account = Account::at_rest(&server, "main");
        assert_eq!(account.stored.events, first + 1);
        let second = fill(20);
        // A requested flush may still happen in between.
        assert!((fit - 1..=fit + 3).contains(&second), "{second}: there is room again");
        let (account, _) = Account::ask(&mut server.client(), "main");
        assert!(account.lost_possible.events >= fit - 1, "{account:?}");
        assert!(server.terminate().success());
        let again = hesitant(dir.path(), &lean);
        assert_eq!(count_of(&again, "main", "Ingested"), first + second, "SIGTERM stored them");
    }
}

fn resident_bytes(client: &mut Client) -> u64 {
    metric(&client.get("/metrics").unwrap().text(), "process_resident_memory_bytes")
}

/// The numbers of each connection's stored bodies, in the order of the log.
fn stored_numbers(server: &Server, connections: usize) -> Vec<Vec<usize>> {
    let mut numbers = vec![Vec::new(); connections];
    let mut client = server.client();
    let mut after = 0;
    loop {
        // A page is limited to 16 MiB of JSON.
        let path = format!("/v1/events?type=Ingested&after={after}&limit=1000");
        let page = client.get(&path).unwrap().expect(200);
        let events = page["events"].as_array().unwrap();
        let Some(last) = events.last() else { return numbers };
        after = last["position"].as_u64().unwrap();
        for event in events {
            let text = event["data"].as_str().unwrap();
            assert_eq!(text.len(), BODY - 2);
            let (connection, n) =
                (text[..2].parse::<usize>().unwrap(), text[3..9].parse().unwrap());
            numbers[connection].push(n);
        }
    }
}

/// The result of pushing large bodies over several connections.
struct Pushed {
    /// Numbers answered with 202, by connection.
    taken: Vec<Vec<usize>>,
    refused: u64,
    most_resident: u64,
}

fn push_from_many(server: &Server, connections: usize, each: usize) -> Pushed {
    let done = StopSignal::default();
    std::thread::scope(|scope| {
        let enough = done.at_the_end();
        let pushers: Vec<_> = (0..connections)
            .map(|connection| {
                scope.spawn(move || {
                    let mut client = server.client();
                    let mut taken = Vec::new();
                    for n in 0..each {
                        let answer = push(&mut client, "/e", &body(connection, n));
                        match answer.status {
                            202 => taken.push(n),
                            _ => refused_for_now(&answer),
                        }
                    }
                    taken
                })
            })
            .collect();
        let watch = scope.spawn(|| {
            let (mut client, mut most) = (server.client(), 0);
            while !done.is_set() {
                most = most.max(resident_bytes(&mut client));
                std::thread::sleep(Duration::from_millis(5));
            }
            most
        });
        let taken: Vec<Vec<usize>> = pushers.into_iter().map(|p| p.join().unwrap()).collect();
        drop(enough);
        let refused = (connections * each - taken.iter().map(Vec::len).sum::<usize>()) as u64;
        Pushed { taken, refused, most_resident: watch.join().unwrap() }
    })
}

const CONNECTIONS: usize = 6;

/// Maximum memory for partitions, data on its way to the disk and bodies being received: two
/// partitions per thread; the batch being gathered, the one being written and two spare buffers;
/// for each connection its body, a second copy while it grows, and a read buffer.
fn most_growth() -> u64 {
    const THREADS: u64 = 2;
    let partitions = 2 * THREADS * PARTITION;
    let batches = 4 * (8 << 20);
    let bodies = CONNECTIONS as u64 * (2 * (1 << 20) + (64 << 10));
    partitions + batches + bodies
}

#[test]
fn over_its_memory_shed_refuses_and_block_waits_and_every_202_is_stored() {
    // In one, partitions are flushed only under pressure; in the other the disk is slow: each flush
    // takes only the first piece, and the next begins a millisecond later.
    let rare = "--ingest-flush-ms=60000 --ingest-flush-bytes=1073741824 --ingest-overflow=shed";
    let slow = "--staged-bytes=1 --ingest-overflow=block";
    for (lean, (flags, each)) in
        BOTH_LOOPS.iter().flat_map(|lean| [(lean, (rare, 50)), (lean, (slow, 30))])
    {
        let mut all: Vec<&str> = flags.split(' ').collect();
        all.extend(["--threads=2", "--ingest-partition-bytes=4194304"]);
        all.extend(lean);
        let server = Server::start_with(&all);
        let before = resident_bytes(&mut server.client());
        let pushed = push_from_many(&server, CONNECTIONS, each);
        let grown = pushed.most_resident.saturating_sub(before);
        let offered = (CONNECTIONS * each * BODY) as u64;
        println!(
            "{lean:?} {flags}: {offered} bytes offered, memory grew by {grown}, {} refused",
            pushed.refused
        );
        assert!(grown <= most_growth(), "{grown} bytes; {} are possible", most_growth());
        assert!(offered > most_growth(), "else it would prove nothing");
        if flags == rare {
            assert!(pushed.refused > 0);
            push(&mut server.client(), "/e?ack=durable&type=Small", b"1").expect(202);
        } else {
            assert_eq!(pushed.refused, 0, "block refuses nobody");
        }
        let mut account = Account::at_rest(&server, "main");
        if flags == rare {
            // A request that waits for one partition has all others stored too.
            account.accepted.events -= 1;
            account.stored.events -= 1;
        }
        let taken: usize = pushed.taken.iter().map(Vec::len).sum();
        assert_eq!(account.accepted.events, taken as u64);
        assert_eq!((account.stored.events, account.shed.events), (taken as u64, pushed.refused));
        assert_eq!(stored_numbers(&server, CONNECTIONS), pushed.taken, "once and in order");
    }
}

#[test]
fn a_full_disk_is_503_and_what_was_accepted_is_stored_when_there_is_room() {
    for lean in BOTH_LOOPS {
        let dir = tempfile::tempdir().unwrap();
        let Some(mut disk) = SmallDisk::start(dir.path(), &lean) else {
            println!("not tested: this system lets nobody mount a small disk");
            return;
        };
        let mut client = disk.server.client();
        let data = |n: u64| format!("\"{n:08} {}\"", "x".repeat(3000)).into_bytes();
        let mut accepted = 0;
        let mut push_until = |status: u16| {
            let deadline = Instant::now() + PATIENCE;
            loop {
                let answer = push(&mut client, "/e", &data(accepted));
                assert!([202, 503].contains(&answer.status), "{answer:?}");
                accepted += u64::from(answer.status == 202);
                if answer.status == status {
                    return (answer, accepted);
                }
                assert!(Instant::now() < deadline, "no {status}");
            }
        };
        for _ in 0..2 {
            push_until(202);
            disk.fill();
            let (answer, taken) = push_until(503);
            assert_eq!(answer.problem(503)["type"], "/problems/storage-full");
            assert!(answer.header("retry-after").is_some());
            let (account, _) = Account::ask(&mut disk.server.client(), "main");
            assert_eq!(account.accepted.events, taken);
            assert!(account.lost_possible.events > 0, "some wait for room: {account:?}");
            let head = disk.server.client().get("/v1/head").unwrap().expect(200);
            assert_eq!(head["head"], account.stored.events, "reads go on");
            fs::remove_file(disk.filler()).unwrap();
            push_until(202);
        }
        let (_, accepted) = push_until(202);
        let account = Account::at_rest(&disk.server, "main");
        assert_eq!((account.accepted.events, account.stored.events), (accepted, accepted));
        assert_eq!((account.dropped, account.shed), Default::default());
        let headers = [("Accept", "application/x-ndjson")];
        let all = disk.server.client().call("GET", "/v1/events", &headers, b"").unwrap().text();
        for (n, line) in (0..).zip(all.lines()) {
            let event: Value = serde_json::from_str(line).unwrap();
            assert!(
                event["data"].as_str().unwrap().starts_with(&format!("{n:08} ")),
                "{n}: {line}"
            );
        }
        assert_eq!(all.lines().count() as u64, accepted);
        assert!(disk.server.terminate().success());
    }
}
