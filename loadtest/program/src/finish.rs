//! From the first run to the last file: the session of one `bench` command.

use crate::called;
use crate::exit::{Code, Failure};
use crate::interrupt::stop_flag;
use crate::options::{ConnectionOptions, ContextOptions, LengthOptions, RequestOptions};
use crate::outcome::{self, Outcome, Trusted};
use crate::watch::Watch;
use std::io::{IsTerminal as _, Write as _};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wellspring_load::check::{self, Threshold};
use wellspring_load::driver::{Driver, Options, PlannedStep};
use wellspring_load::engine::{Clock, RunError};
use wellspring_load::machine::describe;
use wellspring_load::numbers;
use wellspring_load::plan::Plan;
use wellspring_load::report::{self, TerminalOptions};
use wellspring_load::result::{FORMAT, Report, Run, SearchOutcome, Step};

/// What becomes of the figures.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Report")]
pub(crate) struct FinishOptions {
    /// Fails with exit code 99 if this is true, e.g. 'p99>5ms' or 'failure_rate>0.1%'; repeats.
    #[arg(long = "fail-if", value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Exits with 1 unless the verdict is TRUSTED.
    #[arg(long)]
    strict: bool,
    /// Writes the result file; - for standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes a page with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes Markdown.
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// How the report on standard output looks.
    #[arg(long, value_enum, default_value_t = Style::Plain)]
    style: Style,
    /// Lists the checks that passed, too.
    #[arg(long)]
    all_checks: bool,
    /// Shows no progress, and on standard output one line of figures for each step and the verdict.
    #[arg(short = 'q', long)]
    quiet: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Style {
    /// For people.
    Plain,
    /// The block that ApacheBench prints, for scripts that read it.
    Ab,
}

impl FinishOptions {
    /// The thresholds. Read before anything is measured, as are the names of the files
    /// to be written: a slip must not cost a run.
    pub(crate) fn thresholds(&self) -> Result<Vec<Threshold>, Failure> {
        for path in [&self.json, &self.html, &self.md].into_iter().flatten() {
            can_be_written(path)?;
        }
        self.fail_if
            .iter()
            .map(|text| {
                Threshold::parse(text).map_err(|why| Failure::usage(format!("--fail-if: {why}")))
            })
            .collect()
    }

    /// For commands that write something else than a report.
    pub(crate) fn silent(quiet: bool) -> Self {
        FinishOptions {
            fail_if: Vec::new(),
            strict: false,
            json: None,
            html: None,
            md: None,
            style: Style::Plain,
            all_checks: false,
            quiet,
        }
    }
}

/// What every command takes that sends one request again and again.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Shared {
    #[command(flatten)]
    pub(crate) request: RequestOptions,
    #[command(flatten)]
    pub(crate) connection: ConnectionOptions,
    #[command(flatten)]
    pub(crate) length: LengthOptions,
    #[command(flatten)]
    pub(crate) context: ContextOptions,
    #[command(flatten)]
    pub(crate) finish: FinishOptions,
}

/// One command's measuring.
pub(crate) struct Session {
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) watch: Watch,
    options: Options,
    report: Report,
    plan: Plan,
    order: u32,
}

impl Shared {
    /// A session of these options; the report is called after the URL.
    pub(crate) fn begin(&self, plan: &Plan) -> Result<Session, Failure> {
        let measuring = (&self.connection, &self.context);
        Session::begin(plan, &plan.settings.url, measuring, &self.finish)
    }
}

impl Session {
    /// `title` is what the report is called unless the user gave a name.
    pub(crate) fn begin(
        plan: &Plan,
        title: &str,
        (connection, context): (&ConnectionOptions, &ContextOptions),
        finish: &FinishOptions,
    ) -> Result<Self, Failure> {
        let options = context.driver_options(connection)?;
        let version = concat!("wellspring-bench ", env!("CARGO_PKG_VERSION"));
        let mut environment = describe(version, &plan.target.authority(), plan.target.is_local());
        environment.notes.clone_from(&context.notes);
        let command: Vec<String> = std::env::args().collect();
        let report = Report {
            format: FORMAT.to_owned(),
            tool: version.to_owned(),
            title: context.title.as_deref().unwrap_or(title).to_owned(),
            started_unix_us: Clock::unix_us(),
            command: report::redact_command(&command),
            environment,
            steps: Vec::new(),
            findings: Vec::new(),
            thresholds: Vec::new(),
            verdict: None,
            search: None,
        };
        let watch = Watch::new(finish.quiet);
        let stop = stop_flag();
        Ok(Session { stop, watch, options, report, plan: plan.clone(), order: 0 })
    }

    /// Measures steps in turns, once for each of the repeats.
    pub(crate) fn steps(
        &mut self,
        planned: &[PlannedStep],
        repeats: RangeInclusive<u32>,
    ) -> Result<Vec<Step>, Failure> {
        let (options, stop) = (self.options.clone(), Arc::clone(&self.stop));
        let mut driver = Driver::new(options, stop, &mut self.watch, self.order);
        let measured = driver.steps(planned, repeats);
        self.order = driver.order();
        driver.complete(&mut self.report.environment, &self.plan);
        if measured.is_err() {
            self.watch.close();
        }
        measured.map_err(|error| failure(&error))
    }

    /// The judged report, with nothing written.
    pub(crate) fn into_report(mut self, steps: Vec<Step>) -> Report {
        self.watch.close();
        self.report.steps = steps;
        check::apply(&mut self.report, &[]);
        self.report
    }

    /// Judges, writes what was asked for, and says how it went.
    pub(crate) fn end(
        mut self,
        steps: Vec<Step>,
        search: Option<SearchOutcome>,
        finish: &FinishOptions,
        thresholds: &[Threshold],
    ) -> Result<ExitCode, Failure> {
        self.watch.close();
        self.report.steps = steps;
        self.report.search = search;
        check::apply(&mut self.report, thresholds);
        let stopped = self.stop.load(Ordering::Relaxed);
        let shown = show(&self.report, finish);
        write_files(&self.report, finish)?;
        shown?;
        let trusted = if finish.strict { Trusted::Needed } else { Trusted::NotNeeded };
        let Outcome { code, why } = outcome::of(&self.report, trusted, stopped);
        if let Some(why) = why {
            called::complain(&why);
        }
        Ok(ExitCode::from(code))
    }
}

/// What a run that could not be made means for the command.
pub(crate) fn failure(error: &RunError) -> Failure {
    let code = match error {
        RunError::Connect { .. } | RunError::System(_) => Code::Unavailable,
        RunError::Settings(_) => Code::Usage,
    };
    Failure::new(code, error.to_string())
}

fn write_files(report: &Report, finish: &FinishOptions) -> Result<(), Failure> {
    type Render = fn(&Report) -> String;
    let wanted: [(&Option<PathBuf>, Render); 3] = [
        (&finish.json, Report::to_json),
        (&finish.html, report::html),
        (&finish.md, report::markdown),
    ];
    for (path, render) in wanted {
        if let Some(path) = path {
            write_file(path, &render(report))?;
        }
    }
    Ok(())
}

/// Whether a file can be written, without changing it if it is there.
pub(crate) fn can_be_written(path: &std::path::Path) -> Result<(), Failure> {
    if path.as_os_str() == "-" {
        return Ok(());
    }
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    opened
        .map(|_| ())
        .map_err(|error| Failure::output(&format!("{} (not measured yet)", path.display()), &error))
}

/// Writes a file, or standard output if it is called `-`.
pub(crate) fn write_file(path: &std::path::Path, text: &str) -> Result<(), Failure> {
    let written = if path.as_os_str() == "-" {
        let mut out = std::io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush())
    } else {
        std::fs::write(path, text)
    };
    written.map_err(|error| Failure::output(&path.display().to_string(), &error))
}

fn show(report: &Report, finish: &FinishOptions) -> Result<(), Failure> {
    let dash = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str() == "-");
    // Standard output belongs to the file that was sent there.
    if [&finish.json, &finish.html, &finish.md].into_iter().any(dash) {
        return Ok(());
    }
    let text = match finish.style {
        Style::Ab => report::ab(report),
        Style::Plain => {
            let text = report::terminal(report, &terminal_options(finish.all_checks));
            match text.trim_end().rsplit_once('\n') {
                Some((_, last)) if finish.quiet => format!("{}{last}\n", brief(report)),
                _ => text,
            }
        }
    };
    write_file(std::path::Path::new("-"), &text)
}

/// A line of figures for each step.
fn brief(report: &Report) -> String {
    let several = report.steps.len() > 1;
    let line = |step: &Step| {
        let total = step.total()?;
        let runs = match step.runs.len() {
            1 => String::new(),
            runs => format!(" (geometric mean of {runs} runs)"),
        };
        let failures: u64 = step.runs.iter().map(Run::failures).sum();
        let name = if several { format!("{}: ", step.name) } else { String::new() };
        Some(format!(
            "{name}throughput {}{runs}, p50 {}, p99 {}, {} of {} failed\n",
            numbers::rate(step.throughput_per_s()),
            numbers::short_quantile(total.latency(), 0.5),
            numbers::short_quantile(total.latency(), 0.99),
            numbers::count(failures),
            numbers::count(total.counters.sent),
        ))
    };
    report.steps.iter().filter_map(line).collect()
}

/// How the terminal is: its width, and whether it shows colours.
pub(crate) fn terminal_options(all_checks: bool) -> TerminalOptions {
    let terminal = std::io::stdout().is_terminal();
    let width = ratatui::crossterm::terminal::size().map_or(100, |(columns, _)| columns.into());
    let colour = crate::colour::on_standard_output();
    TerminalOptions { width: if terminal { width } else { 100 }, colour, all_checks }
}
