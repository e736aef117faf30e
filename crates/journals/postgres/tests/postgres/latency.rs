//! The time until an offer arrives, compared with the statement alone. Not a test: `--ignored
//! --nocapture`.

use crate::reader::Reader;
use crate::rows::led;
use crate::server::own_server;
use std::time::{Duration, Instant};
use wellspring_journal_postgres::{ConnectOptions, EventRows, PostgresNode};
use wellspring_log::shared::Place;

fn p50_p99(mut taken: Vec<Duration>) -> String {
    taken.sort();
    let at = |permille: usize| taken[taken.len() * permille / 1000].as_micros();
    format!("p50 {} µs, p99 {} µs", at(500), at(990))
}

fn raw(url: &str, bytes: usize, times: i64) -> Vec<Duration> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute("INSERT INTO wellspring.ws_end VALUES ('raw', 0) ON CONFLICT (log) DO UPDATE SET place = 0; DELETE FROM wellspring.ws_entry WHERE log = 'raw'").await.unwrap();
        let statement = client
            .prepare(
                "WITH e AS (UPDATE wellspring.ws_end SET place = place + 1 WHERE log = $1 AND place = $2 \
                 RETURNING place) INSERT INTO wellspring.ws_entry SELECT $1, e.place, $3 FROM e",
            )
            .await
            .unwrap();
        let entry = vec![7u8; bytes];
        let mut taken = Vec::new();
        for place in 0..times {
            let begun = Instant::now();
            let placed = client.execute(&statement, &[&"raw", &place, &&entry[..]]).await.unwrap();
            taken.push(begun.elapsed());
            assert_eq!(placed, 1);
        }
        taken
    })
}

#[test]
#[ignore = "a measurement"]
fn an_offer_and_the_statement_alone() {
    let Some(server) = own_server("latency", &[]) else { return };
    for rows in [EventRows::Omit, EventRows::Write] {
        let options = ConnectOptions { event_rows: rows, ..server.options() };
        let node = PostgresNode::connect(options).unwrap();
        for events in [1, 100] {
            let log = format!("l{events}{rows:?}");
            let mut reader = Reader::of(&node, &log);
            let mut hand = led(&mut reader, &log);
            let bytes = hand.batch(events, 8 << 20)[0].len();
            let mut hand = led(&mut Reader::of(&node, &format!("x{log}")), "x");
            println!(
                "{events} events, {bytes} B, the statement alone: {}",
                p50_p99(raw(&server.url, bytes, 2000))
            );
            let mut taken = Vec::new();
            for place in 2..2002 {
                let entry = hand.batch(events, 8 << 20);
                let begun = Instant::now();
                reader.offer(place, &entry[0]);
                reader.read_to(Place(place + 1));
                taken.push(begun.elapsed());
            }
            println!("  offer to arrival, rows {rows:?}: {}", p50_p99(taken));
            let ends = (0..1000).map(|_| {
                let begun = Instant::now();
                reader.end();
                begun.elapsed()
            });
            println!("  the end: {}", p50_p99(ends.collect()));
            let mut follower = Reader::after(&server.node(), &log, Place(2002));
            let mut taken = Vec::new();
            for place in 2002..2102 {
                let entry = hand.batch(events, 8 << 20);
                reader.offer(place, &entry[0]);
                reader.read_to(Place(place + 1));
                let begun = Instant::now();
                follower.read_to(Place(place + 1));
                taken.push(begun.elapsed());
            }
            println!("  another node has it after: {}", p50_p99(taken));
        }
    }
    let counted =
        server.sql("SELECT log, count(*) FROM wellspring.ws_event GROUP BY log ORDER BY log");
    println!("{counted}");
    server.down();
}
