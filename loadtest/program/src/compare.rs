//! `wellspring bench compare`: two result files, or two URLs measured in turns.

use crate::called;
use crate::exit::{Code, Failure};
use crate::finish::{can_be_written, write_file};
use crate::options::{ConnectionOptions, ContextOptions, LengthOptions, RequestOptions, rate};
use crate::quantity::{crowd, pair, think_us};
use crate::turns;
use crate::typed::Typed;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use wellspring_load::compare::{
    Color, Comparison, MismatchPolicy, Options, compare_reports, render_markdown, render_text,
};
use wellspring_load::invalid::Invalid;
use wellspring_load::report::comparison_html;
use wellspring_load::result::{Report, Verdict as Trust};

#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Two files: runs of both are compared; a file with a single run gives no interval. Two URLs: both are measured \
in turns (A B B A …), which is the only way to tell a small difference from a machine that drifts. With \
--scenario both servers run a scenario in turns, and each of its steps is compared by itself.

  wellspring bench compare before.json after.json
  wellspring bench compare http://127.0.0.1:4000/a http://127.0.0.1:4001/a
  wellspring bench compare --scenario a.toml http://127.0.0.1:4000 http://127.0.0.1:4001

Exits with 1 if B is slower under --fail-if-slower, with 65 if the two cannot be compared.")]
pub(crate) struct CompareArgs {
    /// The baseline: a result file or a URL.
    pub(crate) a: String,
    /// What is compared with it.
    pub(crate) b: String,
    /// URLs: runs this scenario on both instead of sending one request.
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: Option<PathBuf>,
    /// Sets a variable of the scenario; repeats.
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = pair, requires = "scenario")]
    pub(crate) vars: Vec<(String, String)>,
    /// How long the scenario's users think; the file's own time otherwise.
    #[arg(long, value_name = "TIME..TIME", value_parser = think_us, requires = "scenario", conflicts_with = "rate")]
    pub(crate) think: Option<(u64, u64)>,
    /// URLs: how many pairs of runs.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) pairs: u32,
    /// URLs: connections; of a scenario, its users.
    #[arg(short = 'c', long, visible_alias = "users", visible_short_alias = 'u', value_name = "N", value_parser = crowd)]
    pub(crate) connections: Option<u32>,
    /// URLs: requests a second (open loop).
    #[arg(short = 'r', long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<f64>,
    /// Compares even where settings differ; the report says so.
    #[arg(long)]
    force: bool,
    /// Exits with 1 if B is slower in any metric, or fails more; with =5%, if it is by more than
    /// that.
    #[arg(
        long,
        value_name = "TOLERANCE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "0%",
        value_parser = tolerance
    )]
    fail_if_slower: Option<f64>,
    #[command(flatten)]
    pub(crate) request: RequestOptions,
    #[command(flatten)]
    pub(crate) connection: ConnectionOptions,
    #[command(flatten)]
    pub(crate) length: LengthOptions,
    #[command(flatten)]
    pub(crate) context: ContextOptions,
    /// Writes the comparison as JSON; - for standard output.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Writes the comparison as a page with plots.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Writes the comparison as Markdown.
    #[arg(long, value_name = "FILE")]
    md: Option<PathBuf>,
    /// Two URLs: writes A's result file here.
    #[arg(long, value_name = "FILE")]
    save_a: Option<PathBuf>,
    /// Two URLs: writes B's result file here.
    #[arg(long, value_name = "FILE")]
    save_b: Option<PathBuf>,
    /// Shows no progress.
    #[arg(short = 'q', long)]
    pub(crate) quiet: bool,
}

/// Flags that say something about two files, long names. The others are about measuring.
const OF_FILES: [&str; 7] = ["force", "fail-if-slower", "seed", "json", "html", "md", "quiet"];
/// Flags that make the one request, which a scenario has of its own, long names.
const OF_ONE_REQUEST: [&str; 5] = ["method", "data", "content-type", "expect", "template"];

/// Refuses flags that would change nothing: a user who types one believes that it does.
fn refuse_unused(typed: &Typed<CompareArgs>, is_live: bool) -> Result<(), Failure> {
    if is_live {
        if typed.flags.iter().any(|flag| flag == "repeat") {
            return Err(Failure::usage(
                "--repeat is not used when two URLs are compared: they take turns, and --pairs says how \
                 often; give --pairs, or leave --repeat out",
            ));
        }
        let of_request = typed.flags.iter().filter(|flag| OF_ONE_REQUEST.contains(&flag.as_str()));
        let unused: Vec<String> = of_request.map(|flag| format!("--{flag}")).collect();
        if typed.args.scenario.is_some() && !unused.is_empty() {
            let why = "the file says which requests are sent. Leave it out, or change the file";
            return Err(not_used(&unused, "with --scenario", why));
        }
        return Ok(());
    }
    match typed.others(&OF_FILES) {
        unused if unused.is_empty() => Ok(()),
        unused => {
            let why = "what they hold was measured before. Leave it out, or compare two URLs";
            Err(not_used(&unused, "when two files are compared", why))
        }
    }
}

fn not_used(unused: &[String], when: &str, why: &str) -> Failure {
    let flags = match unused {
        [one] => format!("{one} is"),
        several => format!("{} are", several.join(", ")),
    };
    Failure::usage(format!("{flags} not used {when}: {why}"))
}

pub(crate) fn run(typed: &Typed<CompareArgs>) -> Result<ExitCode, Failure> {
    let args = &typed.args;
    let is_url = |text: &str| text.contains("://");
    // A slip must not cost the measuring.
    for path in [&args.json, &args.html, &args.md, &args.save_a, &args.save_b].into_iter().flatten()
    {
        can_be_written(path)?;
    }
    let comparison = match (is_url(&args.a), is_url(&args.b)) {
        (true, true) => {
            refuse_unused(typed, true)?;
            live(args)?
        }
        (false, false) => {
            refuse_unused(typed, false)?;
            let (a, b) = (read_report(Path::new(&args.a))?, read_report(Path::new(&args.b))?);
            let (mut a, mut b) = (a, b);
            if a.title == b.title {
                // Two files of one target are told apart by their names.
                a.title.clone_from(&args.a);
                b.title.clone_from(&args.b);
            }
            compare_reports(&a, &b, &options(args))
        }
        _ => {
            return Err(Failure::usage(
                "compare takes two result files or two URLs, not one of each",
            ));
        }
    };
    conclude(args, &comparison)
}

fn options(args: &CompareArgs) -> Options {
    let mismatch_policy = if args.force { MismatchPolicy::Compare } else { MismatchPolicy::Refuse };
    Options { seed: args.length.seed, mismatch_policy, ..Options::default() }
}

/// `5%`, as a share.
fn tolerance(text: &str) -> Result<f64, Invalid> {
    let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=1_000.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("{text:?} is no tolerance; write it like 5%").into()),
    }
}

/// Reads one result file.
pub(crate) fn read_report(path: &Path) -> Result<Report, Failure> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Failure::new(Code::NoInput, format!("{}: {error}", path.display())))?;
    Report::from_json(&text).map_err(|error| Failure::data(format!("{}: {error}", path.display())))
}

/// Measures both sides in turns.
fn live(args: &CompareArgs) -> Result<Comparison, Failure> {
    let reports = turns::measure(args)?;
    for (path, report) in [&args.save_a, &args.save_b].into_iter().zip(&reports) {
        if let Some(path) = path {
            write_file(path, &report.to_json())?;
        }
    }
    // Two URLs on one command line, with everything else the same: that they ask for
    // different things is what the user wants to know about.
    let options = Options { mismatch_policy: MismatchPolicy::Compare, ..options(args) };
    Ok(compare_reports(&reports[0], &reports[1], &options))
}

fn conclude(args: &CompareArgs, comparison: &Comparison) -> Result<ExitCode, Failure> {
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(comparison)
            .map_err(|error| Failure::data(error.to_string()))?;
        write_file(path, &(text + "\n"))?;
    }
    if let Some(path) = &args.html {
        write_file(path, &comparison_html(comparison))?;
    }
    if let Some(path) = &args.md {
        write_file(path, &render_markdown(comparison))?;
    }
    let dash = |path: &Option<PathBuf>| path.as_ref().is_some_and(|path| path.as_os_str() == "-");
    if ![&args.json, &args.html, &args.md].into_iter().any(dash) {
        let coloured = crate::colour::on_standard_output();
        let color = if coloured { Color::Ansi } else { Color::Plain };
        write_file(Path::new("-"), &render_text(comparison, color))?;
    }
    if let Trust::NotMeasurable(_) = comparison.trust {
        let code = not_measurable(comparison);
        let why = match code {
            Code::Unsettled => {
                "nothing was concluded: the machine or the client was too busy while a side was measured. \
                 Measure again when nothing else runs"
            }
            _ => "nothing was concluded: the two cannot be compared",
        };
        called::complain(why);
        return Ok(ExitCode::from(code as u8));
    }
    let Some(tolerance) = args.fail_if_slower else { return Ok(ExitCode::SUCCESS) };
    let worse: Vec<String> =
        comparison.steps.iter().flat_map(|step| step.worsenings(tolerance)).collect();
    if worse.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    called::complain(&format!("B is slower: {}", worse.join(" ")));
    Ok(ExitCode::from(Code::Refused as u8))
}

/// What a comparison from which nothing follows exits with: steps that do not belong together stay
/// so; a side whose own report says that it could not be measured may do better another time.
fn not_measurable(comparison: &Comparison) -> Code {
    let compared = !comparison.steps.is_empty();
    if compared && comparison.steps.iter().all(|step| step.refused.is_none()) {
        Code::Unsettled
    } else {
        Code::Data
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        typed: Typed<CompareArgs>,
    }

    fn refused(words: &[&str]) -> Option<String> {
        let line = Line::try_parse_from([&["x"], words].concat()).unwrap();
        match run(&line.typed) {
            Err(failure) if failure.code == Code::Usage => Some(failure.message),
            _ => None,
        }
    }

    #[test]
    fn a_flag_that_would_change_nothing_is_refused() {
        let urls = ["http://127.0.0.1:1/a", "http://127.0.0.1:1/b"];
        let repeat = refused(&[&urls[..], &["--repeat", "3"]].concat()).unwrap();
        assert!(repeat.contains("give --pairs"), "{repeat}");
        // Refused already by the first connection, not by its flags.
        assert_eq!(refused(&[&urls[..], &["-z", "1s", "--seed", "3", "-q"]].concat()), None);
        let files = ["/none/a.json", "/none/b.json"];
        let pairs = refused(&[&files[..], &["--pairs", "3"]].concat()).unwrap();
        assert!(pairs.starts_with("--pairs is not used when two files"), "{pairs}");
        let several = refused(&[&files[..], &["--repeat", "3", "-c", "4"]].concat()).unwrap();
        assert!(several.contains("--connections") && several.contains("are not used"), "{several}");
        let fine = ["--force", "--fail-if-slower", "--seed", "3", "--md", "-", "--html", "-", "-q"];
        assert_eq!(refused(&[&files[..], &fine].concat()), None);
        let scenario = refused(&[&files[..], &["--scenario", "s.toml"]].concat()).unwrap();
        assert!(scenario.starts_with("--scenario is not used when two files"), "{scenario}");
        let of_request = [&urls[..], &["--scenario", "s.toml", "-d", "x", "-H", "a: b"]].concat();
        let of_request = refused(&of_request).unwrap();
        assert!(of_request.starts_with("--data is not used with --scenario"), "{of_request}");
        assert!(Line::try_parse_from([&["x"], &urls[..], &["--var", "a=b"]].concat()).is_err());
    }

    #[test]
    fn a_tolerance_is_a_percentage() {
        let given = |words: &[&str]| {
            Line::try_parse_from([&["x", "a", "b"], words].concat())
                .map(|line| line.typed.args.fail_if_slower)
        };
        assert_eq!(given(&[]).unwrap(), None);
        assert_eq!(given(&["--fail-if-slower"]).unwrap(), Some(0.0));
        assert_eq!(given(&["--fail-if-slower=5%"]).unwrap(), Some(0.05));
        for wrong in ["--fail-if-slower=5", "--fail-if-slower=-1%", "--fail-if-slower=x%"] {
            assert!(given(&[wrong]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_may_do_better_another_time_is_told_from_what_cannot_be_compared() {
        let sample = || wellspring_load::compare::Comparison {
            format: String::new(),
            a: String::new(),
            b: String::new(),
            confidence: 0.95,
            seed: 1,
            steps: Vec::new(),
            only_in_a: Vec::new(),
            only_in_b: Vec::new(),
            mismatches: Vec::new(),
            findings: Vec::new(),
            trust: Trust::NotMeasurable(Vec::new()),
        };
        let step = |refused: Option<&str>| wellspring_load::compare::StepComparison {
            step: "c=1".to_owned(),
            design: wellspring_load::compare::Design::Paired,
            runs_a: 2,
            runs_b: 2,
            left_out: 0,
            open_loop: false,
            metrics: Vec::new(),
            endpoints: Vec::new(),
            refused: refused.map(str::to_owned),
        };
        assert_eq!(not_measurable(&sample()), Code::Data);
        let differs = Comparison { steps: vec![step(Some("the settings differ"))], ..sample() };
        assert_eq!(not_measurable(&differs), Code::Data);
        let noisy = Comparison { steps: vec![step(None)], ..sample() };
        assert_eq!(not_measurable(&noisy), Code::Unsettled);
    }
}
