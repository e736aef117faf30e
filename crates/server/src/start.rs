//! `wellspring serve`: settings, faces, and the host that serves them.

use crate::config::{Config, ServeArgs, Settings};
use crate::faces;
use crate::journal;
use std::process::ExitCode;
use wellspring_host::config::FaceTerms;
use wellspring_host::log_lines;
use wellspring_host::serve;
use wellspring_host::serve::open::{OpenServer, open as open_host};
use wellspring_host::setup::SetupError;

/// Runs the server until a signal ends it. `warnings` are about how it was started.
pub(crate) fn run(args: ServeArgs, warnings: &[String]) -> ExitCode {
    let print = args.print_config;
    let config = match Config::load(args) {
        Ok(config) => config,
        Err(error) => return refuse(&error.to_string()),
    };
    if print {
        warnings.iter().for_each(|warning| eprintln!("wellspring: {warning}"));
        return match wellspring_cli::say(config.to_toml().trim_end()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(failure) => failure.report(),
        };
    }
    if let Err(error) = log_lines::begin(&config.settings.host.process) {
        return refuse(&error.to_string());
    }
    warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
    let (origins, sync) = (config.origins.clone(), config.settings.host.storage.sync.clone());
    match open(config).map_err(Into::into).and_then(|opened| serve::serve(opened, &sync)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refuse(&origins.explain(error.to_string())),
    }
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("wellspring: {message}");
    ExitCode::FAILURE
}

/// Opens everything that a configuration names: the host, and every face on it.
///
/// # Errors
/// A sentence about what cannot be opened.
pub(crate) fn open(config: Config) -> Result<OpenServer, SetupError> {
    let terms = FaceTerms { settings: config.to_toml(), ..config.face_terms() };
    let Settings { host, faces } = config.settings;
    let routes = faces::routes(host.http.dev_endpoints);
    let engine = journal::engine(&host)?;
    let host = open_host(host, engine, terms, routes)?;
    let bound = faces::open(faces, &host.host)?;
    Ok(host.with(bound))
}

/// An open server over this data folder and with these flags, without listeners. It never stops.
#[cfg(test)]
pub(crate) fn for_tests(
    data: &std::path::Path,
    flags: &[&str],
) -> std::sync::Arc<wellspring_host::http::server::Server> {
    let flags = [&["--data", data.to_str().expect("a path"), "--threads", "1"], flags].concat();
    let OpenServer { server, stop, .. } =
        open(Config::for_tests(&flags)).expect("a server that opens");
    // Without its sender the receivers would see the server stop.
    std::mem::forget(stop);
    server
}
