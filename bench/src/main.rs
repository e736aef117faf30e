//! Wellspring's measurements. Each subcommand takes one kind of measurement against one running
//! server and writes rows; the `run-*.sh` drivers start servers, take turns, and have figures.py make
//! the tables.

mod append_latency;
mod append_throughput;
mod batcher;
mod closed_loop;
mod condition_growth;
mod epoll;
mod fill;
mod flags;
mod grpc;
mod h2_client;
mod hold;
mod http1;
mod http2;
mod ingest;
mod ingest_account;
mod ingest_fill;
mod lag;
mod links;
mod links_fill;
mod links_open;
mod links_view;
mod load_tester;
mod machine;
mod null_server;
mod open_time;
mod proto;
mod read_counter;
mod reads;
mod row;
mod sample;
mod sql;
mod store;
mod workload;

use flags::{Flags, Outcome};

/// Printed when the subcommand is not known.
const USAGE: &str = "\
wsbench SUBCOMMAND --flag value …
  append-latency     --server S --address A --dir D    one client against fdatasync + ping-pong
  append-throughput  --server S --address A            closed loop of 64 clients
  condition-growth   --server S --address A --size N   conditional appends of every shape
  reads              --server S --address A --size N --customers C
  open               --server S --binary B --data D    start time and memory
  fill               --server S --address A --events N the standing data set
  head               --server S --address A            prints the head; fails until the server answers
  free-address                                         a loopback address nobody listens on
  ingest             --server I --address A --bench B --server-pid P --connections N   POST /e, every 202 counted
  read-counter       --server I --address A --connections N   every read is an answer, as the original counts
  batcher                                              64-byte messages, delivered and verified; and memcpy
  ingest-fill        --address A --events N            makes the log long, by NDJSON through POST /e
  links              --what W --address A --bench B --server-pid P --connections N   W: events, redirect, many,
                     create, append; everything answered is counted in the log, and folded
  links-fill         --address A [--links N] [--clicked N --each N [--one true]]   makes links, and clicks on the oldest
  links-open         --binary B --data D --case NAME [--rebuild true]   until the view of links answers; memory
  hold               --address A --what W --count N [--seconds S] [--items I --types Y --tags G]   W: subscribers,
                     lease-waiters, conditions (the largest legal by default); held until standard input ends
  lag                --leader A --follower B [--seconds S]   how far a follower is behind while something appends
  sql                --url U --what W [--bytes N]      W: cas, end, batches, transactions; PostgreSQL alone
  null-server        --address A [--lose N]            answers and stores nothing: the client's ceiling
  environment                                          the machine, as Markdown
S is wellspring or umadb, I is wellspring or floor. Common flags: --out FILE --round N --pin CORE --pinning LABEL --server-name NAME.";

fn main() -> std::process::ExitCode {
    let mut arguments = std::env::args().skip(1);
    let subcommand = arguments.next().unwrap_or_default();
    match Flags::parse(arguments).and_then(|flags| dispatch(&subcommand, flags)) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wsbench {subcommand}: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn dispatch(subcommand: &str, mut flags: Flags) -> Outcome<()> {
    match subcommand {
        "append-latency" => append_latency::run(flags),
        "append-throughput" => append_throughput::run(flags),
        "condition-growth" => condition_growth::run(flags),
        "reads" => reads::run(flags),
        "open" => open_time::run(flags),
        "fill" => fill::run(flags),
        "head" => {
            let mut store = store::Store::open(
                flags.required("server")?,
                &flags.required::<String>("address")?,
            )?;
            flags.finish()?;
            println!("{}", store.head()?);
            Ok(())
        }
        "free-address" => {
            flags.finish()?;
            println!("{}", std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?);
            Ok(())
        }
        "batcher" => batcher::run(flags),
        "ingest" => ingest::run(flags),
        "read-counter" => read_counter::run(flags),
        "ingest-fill" => ingest_fill::run(flags),
        "links" => links::run(flags),
        "links-fill" => links_fill::run(flags),
        "links-open" => links_open::run(flags),
        "hold" => hold::run(flags),
        "lag" => lag::run(flags),
        "sql" => sql::run(flags),
        "null-server" => {
            let address: String = flags.required("address")?;
            let lose = flags.optional("lose")?;
            flags.finish()?;
            null_server::serve(&address, lose)
        }
        "environment" => {
            flags.finish()?;
            print!("{}", machine::environment());
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
