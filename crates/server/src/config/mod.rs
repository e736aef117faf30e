//! All settings: flags first, then `WELLSPRING_*`, then a TOML file, then the default. The host and
//! each face declare their own; here they are combined.

mod defaults;
mod file;
mod printed_limits;

use crate::faces::FaceSettings;
use clap::Args;
pub(crate) use defaults::with_defaults_shown;
use std::path::{Path, PathBuf};
use wellspring_host::config::{FaceTerms, HostConfig};
use wellspring_host::kept_types::KeptTypes;
use wellspring_host::settings::{Origins, Section, sections};
use wellspring_host::setup::SetupError;

/// The arguments of `wellspring serve`.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// TOML file with settings, named as the flags with _ for -
    #[arg(long, env = "WELLSPRING_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Print the effective configuration with every limit, and exit
    #[arg(long)]
    pub(crate) print_config: bool,
    #[command(flatten)]
    settings: SettingArgs,
    #[arg(skip)]
    origins: Origins,
}

impl ServeArgs {
    /// The same, with their origins: for messages about invalid ones.
    pub(crate) fn with_origins(self, origins: Origins) -> ServeArgs {
        ServeArgs { origins, ..self }
    }
}

sections! {
    /// All settings.
    Settings from SettingArgs:
    host: HostConfig,
    faces: FaceSettings,
}

/// The effective configuration.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) settings: Settings,
    /// For faults found later, when files and addresses are opened.
    pub(crate) origins: Origins,
}

impl Config {
    /// Combines flags, environment, file and defaults, and checks them.
    ///
    /// # Errors
    /// A sentence for the operator. Starting again unchanged does not help.
    pub(crate) fn load(args: ServeArgs) -> Result<Config, SetupError> {
        let ServeArgs { config, settings, mut origins, .. } = args;
        let file = match &config {
            Some(path) => file::read(path, &mut origins)?,
            None => SettingArgs::default(),
        };
        let config = Config { settings: Section::merge(settings, file), origins };
        config.check().map_err(|what| config.origins.explain(what.to_string()))?;
        Ok(config)
    }

    /// The default of every setting, over a data folder.
    ///
    /// # Errors
    /// As of [`Config::load`].
    pub(crate) fn with_defaults(data: &Path) -> Result<Config, SetupError> {
        let mut settings = Settings::merge(SettingArgs::default(), SettingArgs::default());
        settings.host.process.data = data.to_owned();
        let config = Config { settings, origins: Origins::default() };
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), SetupError> {
        let Settings { host, faces } = &self.settings;
        host.check(&self.face_terms())?;
        faces.check(host.surroundings())
    }

    /// What the host needs to know of the faces.
    pub(crate) fn face_terms(&self) -> FaceTerms {
        let faces = &self.settings.faces;
        FaceTerms {
            kept: KeptTypes::new(faces.kept_events()),
            own_urls: faces.own_urls().into_iter().map(str::to_owned).collect(),
            ..FaceTerms::default()
        }
    }

    /// The output of `--print-config`.
    pub(crate) fn to_toml(&self) -> String {
        printed_limits::page(self)
    }
}

#[cfg(test)]
impl Config {
    /// The configuration that these flags give.
    pub(crate) fn for_tests(flags: &[&str]) -> Config {
        tests::load(flags).expect("flags that are right")
    }

    /// The configuration that these flags give, or what is wrong with them.
    pub(crate) fn loaded(flags: &[&str]) -> Result<Config, SetupError> {
        tests::load(flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        serve: ServeArgs,
    }

    pub(super) fn load(flags: &[&str]) -> Result<Config, SetupError> {
        let line = ["x"].iter().chain(flags);
        let matches = Line::command().try_get_matches_from(line).map_err(|e| e.to_string())?;
        let line = Line::from_arg_matches(&matches).map_err(|e| e.to_string())?;
        Config::load(line.serve.with_origins(Origins::of(&Line::command(), &matches)))
    }

    #[test]
    fn defaults_are_safe() {
        let config = load(&[]).unwrap();
        assert_eq!(config.settings.host.process.listen, "127.0.0.1:4000");
        assert!(config.settings.host.process.address().unwrap().ip().is_loopback());
        assert!(!config.settings.host.http.dev_endpoints);
        assert_eq!(config.settings.host.storage.sync(), Ok(wellspring_log::Sync::Always));
    }

    #[test]
    fn a_public_address_must_be_meant() {
        assert!(
            load(&["--listen", "0.0.0.0:4000"]).unwrap_err().to_string().contains("--insecure")
        );
        assert!(
            load(&["--listen", "0.0.0.0:4000"]).unwrap_err().to_string().contains("--tls-cert")
        );
        assert!(load(&["--listen", "0.0.0.0:4000", "--insecure"]).is_ok());
        let pair = ["--tls-cert", "c", "--tls-key", "k"];
        assert!(load(&[&pair[..], &["--listen", "0.0.0.0:4000"]].concat()).is_ok());
    }

    #[test]
    fn flags_win_over_the_file_and_unknown_settings_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.toml");
        std::fs::write(&path, "threads = 3\nsync = \"interval=20\"\n").unwrap();
        let file = path.to_str().unwrap();
        let config = load(&["--config", file, "--threads", "5"]).unwrap();
        assert_eq!(
            (config.settings.host.process.threads, config.settings.host.storage.sync.as_str()),
            (5, "interval=20")
        );
        std::fs::write(&path, "thread = 3\n").unwrap();
        let refused = load(&["--config", file]).unwrap_err();
        assert!(refused.to_string().contains("w.toml: line 1, column 1: "), "{refused}");
        assert!(refused.to_string().contains("did you mean threads?"), "{refused}");
        std::fs::write(&path, "\nthreads = 100000\n").unwrap();
        let refused = load(&["--config", file]).unwrap_err();
        assert!(
            refused.to_string().ends_with(&format!("(threads is set in {file}, line 2)")),
            "{refused}"
        );
        std::fs::write(&path, "threads = 3\n[limits]\nmax_tags = 65\n").unwrap();
        let refused = load(&["--config", file]).unwrap_err();
        assert!(
            refused.to_string().contains("[limits]") && refused.to_string().contains("w.toml"),
            "{refused}"
        );
    }

    #[test]
    fn settings_under_which_nothing_would_be_answered_are_refused_by_name() {
        for (flag, value) in [
            ("--idle-timeout-ms", "0"),
            ("--body-timeout-ms", "0"),
            ("--max-url-bytes", "0"),
            ("--max-headers", "3"),
            ("--otlp-sample", "7"),
            ("--threads", "100000"),
        ] {
            let refused = load(&[flag, value]).unwrap_err();
            let name = flag.trim_start_matches('-').replace('-', "_");
            assert!(
                refused.to_string().starts_with(&name) && refused.to_string().contains(value),
                "{refused}"
            );
        }
    }

    #[test]
    fn lists_come_from_flags_with_commas_and_from_arrays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("w.toml");
        let text = "trusted_proxies = [\"::1\", \"10.0.0.0/8\"]\nlink_creates_per_minute = 7\n";
        std::fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap();
        let config = load(&["--config", file, "--link-deny-hosts", "a.example, *.b.example"]);
        let Settings { host, faces } = config.unwrap().settings;
        assert_eq!(host.process.trusted_proxies, ["::1", "10.0.0.0/8"]);
        assert_eq!(faces.links.link_creates_per_minute, Some(7));
        assert_eq!(faces.links.link_deny_hosts, ["a.example", " *.b.example"]);
    }

    #[test]
    fn events_without_a_type_get_none_that_links_keep() {
        for kept in ["LinkClicked", "LinkCreated"] {
            let refused = load(&["--ingest-type", kept]).unwrap_err();
            assert!(
                refused.to_string().starts_with("ingest_type")
                    && refused.to_string().contains(kept),
                "{refused}"
            );
            assert!(refused.to_string().contains("--link-accept-events"), "{refused}");
            assert!(load(&["--ingest-type", kept, "--link-accept-events"]).is_ok());
        }
        assert!(load(&["--ingest-type", "LinkClickedTwice"]).is_ok());
    }

    #[test]
    fn sync_modes_are_checked() {
        for bad in ["sometimes", "interval=", "interval=0", "interval=x", "interval=60001"] {
            assert!(load(&["--sync", bad]).is_err(), "{bad}");
        }
    }
}
