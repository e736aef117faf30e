//! The forms of `bench` that send nothing to a server of yours: report, import, self-test, audit.

use crate::exit::{Code, Failure};
use crate::finish::{terminal_options, write_file};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wellspring_load::invalid::Invalid;
use wellspring_load::micro::{self, MicroReport};
use wellspring_load::report;
use wellspring_load::result::Report;
use wellspring_load::selftest::{self, Extent};
use wellspring_load::table::Color;
use wellspring_load::{audit, curl};

fn color() -> Color {
    if crate::colour::on_standard_output() { Color::Ansi } else { Color::Plain }
}

fn standard_output(text: &str) -> Result<(), Failure> {
    write_file(Path::new("-"), text)
}

fn read_text(path: &Path) -> Result<String, Failure> {
    if path.as_os_str() == "-" {
        return std::io::read_to_string(std::io::stdin())
            .map_err(|error| Failure::new(Code::Io, format!("standard input: {error}")));
    }
    std::fs::read_to_string(path)
        .map_err(|error| Failure::new(Code::NoInput, format!("{}: {error}", path.display())))
}

/// How a report is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ReportForm {
    /// For people at a terminal.
    Text,
    /// Markdown.
    Md,
    /// One page with plots.
    Html,
    /// ApacheBench's block.
    Ab,
    /// The result file itself.
    Json,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
The five forms: 1 metrics and spreads, two levels side by side · 2 ladder by users, several builds, best marked · \
3 phases, throughput by connections, sweeps, variance · 4 ab-style block per endpoint · 5 environment, library \
micro-benchmarks, thresholds, ranking. They take one or several result files.")]
pub(crate) struct ReportArgs {
    /// Result files (and, for form 5, files made by `bench import`).
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// One of the five report forms, as Markdown.
    #[arg(long, value_name = "1..5", conflicts_with = "format", value_parser = clap::value_parser!(u8).range(1..=5))]
    form: Option<u8>,
    /// How it is written.
    #[arg(long = "as", value_enum, default_value_t = ReportForm::Text)]
    format: ReportForm,
    /// Lists the checks that passed, too.
    #[arg(long)]
    all_checks: bool,
    /// Writes a page with plots, in addition to the report; - for standard output instead of it.
    #[arg(long, value_name = "FILE", conflicts_with = "form")]
    html: Option<PathBuf>,
    /// Writes here instead of standard output.
    #[arg(short = 'o', long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

pub(crate) fn report(args: &ReportArgs) -> Result<ExitCode, Failure> {
    let mut reports: Vec<Report> = Vec::new();
    let mut micro_rows: Vec<report::MicroRow> = Vec::new();
    for path in &args.files {
        let text = read_text(path)?;
        match MicroReport::from_json(&text) {
            Ok(imported) => micro_rows.extend(imported.benchmarks.iter().filter_map(micro_row)),
            Err(_) => reports.push(
                Report::from_json(&text)
                    .map_err(|error| Failure::data(format!("{}: {error}", path.display())))?,
            ),
        }
    }
    let text = if let Some(form) = args.form {
        report::form(form, &reports, &micro_rows)
            .map_err(|error| Failure::data(error.to_string()))?
    } else {
        if !micro_rows.is_empty() {
            return Err(Failure::usage("imported micro-benchmarks are part of --form 5"));
        }
        let render = |report: &Report| match args.format {
            ReportForm::Text => report::terminal(report, &terminal_options(args.all_checks)),
            ReportForm::Md => report::markdown(report),
            ReportForm::Html => report::html(report),
            ReportForm::Ab => report::ab(report),
            ReportForm::Json => report.to_json(),
        };
        if (args.format == ReportForm::Html || args.html.is_some()) && reports.len() > 1 {
            return Err(Failure::usage("a page shows one result file; run it once for each"));
        }
        if let (Some(path), [report]) = (&args.html, reports.as_slice()) {
            write_file(path, &report::html(report))?;
            if path.as_os_str() == "-" {
                return Ok(ExitCode::SUCCESS);
            }
        }
        reports.iter().map(render).collect::<Vec<_>>().join("\n")
    };
    write_file(&args.output, &text)?;
    Ok(ExitCode::SUCCESS)
}

/// A row of form 5; `None` for benchmarks that report no time, which cannot be ranked.
fn micro_row(benchmark: &micro::MicroBenchmark) -> Option<report::MicroRow> {
    let time_ns = benchmark.time_ns?;
    let ops_per_s = benchmark.ops_per_s.unwrap_or(1e9 / time_ns);
    Some(report::MicroRow {
        name: benchmark.full_name(),
        ops_per_s,
        time_ns,
        bytes: benchmark.bytes_per_op,
        allocs: benchmark.allocs_per_op,
    })
}

/// What `bench import` reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum ImportFormat {
    /// Output of `go test -bench`.
    GoBench,
    /// Criterion's folder, target/criterion.
    Criterion,
    /// A curl command line, as browsers copy it: becomes a scenario.
    Curl,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
  wellspring bench import curl \"curl 'http://127.0.0.1:4000/health' -H 'Accept: */*'\" -o health.toml
  wellspring bench import go-bench bench.txt -o micro.json")]
pub(crate) struct ImportArgs {
    /// What it is.
    #[arg(value_enum)]
    from: ImportFormat,
    /// The file or folder, - for standard input; for curl the command line itself, or a file with
    /// it.
    input: String,
    /// Writes here instead of standard output.
    #[arg(short = 'o', long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Micro-benchmarks: shows a table instead of the file that `bench report --form 5` reads.
    #[arg(long)]
    table: bool,
}

fn read_bytes(path: &str) -> Result<Vec<u8>, Invalid> {
    std::fs::read(path).map_err(|error| Invalid::new(error.to_string()))
}

pub(crate) fn import(args: &ImportArgs) -> Result<ExitCode, Failure> {
    let path = Path::new(&args.input);
    let named = |error: String| Failure::data(format!("{}: {error}", args.input));
    let shown = |read: MicroReport| {
        if args.table { micro::render_text(&read, color()) } else { read.to_json() }
    };
    let text = match args.from {
        ImportFormat::GoBench if args.input == "-" => {
            shown(micro::parse_go_bench(&read_text(path)?).map_err(|e| named(e.to_string()))?)
        }
        ImportFormat::GoBench => {
            shown(micro::read_go_bench(path).map_err(|e| named(e.to_string()))?)
        }
        ImportFormat::Criterion => {
            shown(micro::read_criterion(path).map_err(|e| named(e.to_string()))?)
        }
        ImportFormat::Curl => {
            let line = if args.input == "-" || path.is_file() {
                read_text(path)?
            } else {
                args.input.clone()
            };
            curl::scenario(&line, &read_bytes).map_err(|error| Failure::data(error.to_string()))?
        }
    };
    write_file(&args.output, &text)?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Debug, clap::Args)]
pub(crate) struct SelfTestArgs {
    /// The long form: the full stall test of 20 s, more requests.
    #[arg(long)]
    long: bool,
    /// Only cases whose name contains this.
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

pub(crate) fn self_test(args: &SelfTestArgs) -> Result<ExitCode, Failure> {
    let extent = if args.long { Extent::Long } else { Extent::Short };
    let only = args.only.clone().unwrap_or_default();
    if !selftest::list().iter().any(|(name, _)| name.contains(&only)) {
        let names: Vec<&str> = selftest::list().iter().map(|(name, _)| *name).collect();
        return Err(Failure::usage(format!(
            "no case has {only:?} in its name; there are: {}",
            names.join(", ")
        )));
    }
    let options = selftest::Options { extent, seed: args.seed, only };
    let outcomes = selftest::run_all(&options, &mut |outcome| {
        eprintln!("{}: {} ms", outcome.name, outcome.took_ms);
    });
    standard_output(&selftest::render_text(&outcomes))?;
    Ok(ExitCode::from(selftest::Verdict::of(&outcomes).exit_code()))
}

#[derive(Debug, clap::Args)]
pub(crate) struct AuditArgs {
    /// The tables (TOML), see docs/bench/published.md.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Writes Markdown.
    #[arg(long)]
    md: bool,
}

pub(crate) fn audit(args: &AuditArgs) -> Result<ExitCode, Failure> {
    let mut texts = Vec::new();
    for file in &args.files {
        let published = audit::Published::parse(&read_text(file)?)
            .map_err(|error| Failure::data(format!("{}: {error}", file.display())))?;
        let report = audit::audit(published);
        texts.push(if args.md {
            audit::render_markdown(&report)
        } else {
            audit::render_text(&report)
        });
    }
    let text = texts.join("\n");
    standard_output(&text)?;
    Ok(ExitCode::SUCCESS)
}
