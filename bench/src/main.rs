//! Wellspring's measurements. Each subcommand takes one kind of measurement against one running server and
//! writes rows; the `run-*.sh` drivers start servers, take turns, and have `report` make the tables.

mod append_latency;
mod append_throughput;
mod closed_loop;
mod condition_growth;
mod epoll;
mod fill;
mod flags;
mod grpc;
mod h2_client;
mod http1;
mod http2;
mod machine;
mod null_server;
mod open_time;
mod proto;
mod reads;
mod report;
mod row;
mod sample;
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
  null-server        --address A                       answers and stores nothing: the client's ceiling
  report             --file F                          Markdown tables from rows
  environment                                          the machine, as Markdown
S is wellspring or umadb. Common flags: --out FILE --round N --pin CORE --pinning LABEL --server-name NAME.";

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
        "null-server" => {
            let address: String = flags.required("address")?;
            flags.finish()?;
            null_server::serve(&address)
        }
        "report" => report::run(flags),
        "environment" => {
            flags.finish()?;
            print!("{}", machine::environment());
            Ok(())
        }
        _ => Err(USAGE.into()),
    }
}
