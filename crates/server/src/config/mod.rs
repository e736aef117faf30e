//! What can be set: flags first, then `WELLSPRING_*`, then a TOML file, then the default. Each room
//! declares its own section; here they are put together.

mod file;
mod printed_limits;

use crate::access::config::AccessConfig;
use crate::access::jwks_source::ForeignSettings;
use crate::access::origins::Cors;
use crate::access::page::Pages;
use crate::audit::AuditConfig;
use crate::faces::FaceSettings;
use crate::http::config::HttpConfig;
use crate::http::face::Surroundings;
use crate::ingest::IngestConfig;
use crate::kept_types::KeptTypes;
use crate::limits::LimitConfig;
use crate::log_lines;
use crate::node::StorageConfig;
use crate::otlp::{Otlp, OtlpConfig};
use crate::settings::{Origins, ProcessConfig, Section};
use crate::tls::{Files, TlsConfig};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// What `wellspring serve` takes.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// A TOML file with any of the settings, names as the flags with `_` for `-`.
    #[arg(long, env = "WELLSPRING_CONFIG")]
    config: Option<PathBuf>,
    /// Prints the effective configuration with every limit, and stops.
    #[arg(long)]
    pub(crate) print_config: bool,
    #[command(flatten)]
    settings: ConfigArgs,
    #[arg(skip)]
    origins: Origins,
}

impl ServeArgs {
    /// The same, knowing which of them came from where: for what is said when one is wrong.
    pub(crate) fn with_origins(self, origins: Origins) -> ServeArgs {
        ServeArgs { origins, ..self }
    }
}

macro_rules! sections {
    ($($name:ident: $section:ty,)*) => {
        /// Settings as given in one place: flags and environment, or the file.
        #[derive(Debug, Default, Args)]
        struct ConfigArgs {
            $(#[command(flatten)] $name: <$section as Section>::Args,)*
        }

        /// The effective configuration.
        #[derive(Debug, Clone, Serialize)]
        pub(crate) struct Config {
            $(#[serde(flatten)] pub(crate) $name: $section,)*
            /// For what is found to be wrong later, when files and addresses are opened.
            #[serde(skip)]
            pub(crate) origins: Origins,
        }

        impl Config {
            /// The settings without a default that are not set, each with its description.
            fn unset(&self) -> Vec<(&'static str, &'static str)> {
                [$(self.$name.unset()),*].concat()
            }
        }

        impl ConfigArgs {
            /// The names of all settings, section by section.
            fn names() -> Vec<&'static str> {
                [$(<$section as Section>::names()),*].concat()
            }

            /// Those of a file's text. Names that are none of ours are passed over.
            fn of_text(text: &str) -> Result<ConfigArgs, toml::de::Error> {
                Ok(ConfigArgs { $($name: <$section as Section>::read(text)?,)* })
            }

            /// These, and where they are silent `other`, and where both are the default.
            fn over(self, other: ConfigArgs, origins: Origins) -> Config {
                Config { $($name: Section::merge(self.$name, other.$name),)* origins }
            }
        }
    };
}

sections! {
    process: ProcessConfig,
    storage: StorageConfig,
    http: HttpConfig,
    tls: TlsConfig,
    access: AccessConfig,
    audit: AuditConfig,
    limits: LimitConfig,
    ingest: IngestConfig,
    faces: FaceSettings,
    otlp: OtlpConfig,
}

impl Config {
    /// Puts flags, environment, file and defaults together and checks them.
    ///
    /// # Errors
    /// A sentence for the person who set them. Starting again unchanged does not help.
    pub(crate) fn load(args: ServeArgs) -> Result<Config, String> {
        let ServeArgs { config, settings, mut origins, .. } = args;
        let file = match &config {
            Some(path) => file::read(path, &mut origins)?,
            None => ConfigArgs::default(),
        };
        let config = settings.over(file, origins);
        config.check().map_err(|what| config.origins.explain(what))?;
        Ok(config)
    }

    /// The default of every setting, over a data folder.
    ///
    /// # Errors
    /// As of [`Config::load`].
    pub(crate) fn with_defaults(data: &Path) -> Result<Config, String> {
        let none = ConfigArgs::default();
        let mut config = none.over(ConfigArgs::default(), Origins::default());
        config.process.data = data.to_owned();
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), String> {
        let Config { process, storage, http, tls, access, ingest, faces, otlp, .. } = self;
        storage.check()?;
        let address = process.address()?;
        let files = Files::of(tls)?;
        if !address.ip().is_loopback() && files.is_none() && !process.insecure {
            return Err(format!(
                "--listen {address} can be reached from other machines, and without TLS others could \
                 read and change what goes to and fro; give --tls-cert and --tls-key (and make an \
                 account: `wellspring user add NAME --role admin --data {}`), or listen on 127.0.0.1, \
                 or say --insecure if the network is private",
                process.data.display()
            ));
        }
        process.check()?;
        log_lines::level(&process.log_level)?;
        http.check()?;
        ingest.check(&KeptTypes::new(faces.kept_events()))?;
        access.check()?;
        faces.check(Surroundings { process, has_tls: tls.is_on() })?;
        otlp.check()?;
        Otlp::open(otlp)?;
        ForeignSettings::of(access)?;
        self.pages()?;
        Ok(())
    }

    /// The pages that count as the server's own.
    ///
    /// # Errors
    /// A sentence about `cors_origins` or `own_hosts`.
    pub(crate) fn pages(&self) -> Result<Pages, String> {
        let cors = Cors::of(&self.access.cors_origins)?;
        Pages::of(&self.process.own_hosts, &self.faces.own_urls(), cors)
    }

    /// The output of `--print-config`.
    pub(crate) fn to_toml(&self) -> String {
        printed_limits::page(self)
    }
}

#[cfg(test)]
use {crate::access::Gate, crate::node::Node, std::sync::Arc, wellspring_log::Clock};

#[cfg(test)]
impl Config {
    /// The configuration that these flags give.
    pub(crate) fn for_tests(flags: &[&str]) -> Config {
        tests::load(flags).expect("flags that are right")
    }

    /// Its logs.
    pub(crate) fn node(&self, clock: Arc<dyn Clock>) -> Node {
        Node::open(&self.process.data, &self.storage, self.ingest.batcher(), clock)
            .expect("logs that open")
    }

    /// Its gate.
    pub(crate) fn gate(&self, clock: Arc<dyn Clock>, node: &Node) -> Gate {
        let pages = self.pages().expect("right settings");
        let accounts = crate::access::attach(node).expect("accounts");
        Gate::open(&self.process, &self.access, pages, clock, accounts).expect("a gate")
    }

    /// The configuration that these flags give, or what is wrong with them.
    pub(crate) fn loaded(flags: &[&str]) -> Result<Config, String> {
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

    pub(super) fn load(flags: &[&str]) -> Result<Config, String> {
        let line = ["x"].iter().chain(flags);
        let matches = Line::command().try_get_matches_from(line).map_err(|e| e.to_string())?;
        let line = Line::from_arg_matches(&matches).map_err(|e| e.to_string())?;
        Config::load(line.serve.with_origins(Origins::of(&Line::command(), &matches)))
    }

    #[test]
    fn defaults_are_safe() {
        let config = load(&[]).unwrap();
        assert_eq!(config.process.listen, "127.0.0.1:4000");
        assert!(config.process.address().unwrap().ip().is_loopback());
        assert!(!config.http.dev_endpoints);
        assert_eq!(config.storage.sync(), Ok(wellspring_log::Sync::Always));
    }

    #[test]
    fn a_public_address_must_be_meant() {
        assert!(load(&["--listen", "0.0.0.0:4000"]).unwrap_err().contains("--insecure"));
        assert!(load(&["--listen", "0.0.0.0:4000"]).unwrap_err().contains("--tls-cert"));
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
        assert_eq!((config.process.threads, config.storage.sync.as_str()), (5, "interval=20"));
        std::fs::write(&path, "thread = 3\n").unwrap();
        let refused = load(&["--config", file]).unwrap_err();
        assert!(refused.contains("w.toml: line 1, column 1: "), "{refused}");
        assert!(refused.contains("did you mean threads?"), "{refused}");
        std::fs::write(&path, "\nthreads = 100000\n").unwrap();
        let refused = load(&["--config", file]).unwrap_err();
        assert!(refused.ends_with(&format!("(threads is set in {file}, line 2)")), "{refused}");
        std::fs::write(&path, "threads = 3\n[limits]\nmax_tags = 65\n").unwrap();
        let refused = load(&["--config", file]).unwrap_err();
        assert!(refused.contains("[limits]") && refused.contains("w.toml"), "{refused}");
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
            assert!(refused.starts_with(&name) && refused.contains(value), "{refused}");
        }
    }

    #[test]
    fn events_without_a_type_get_none_that_links_keep() {
        for kept in ["LinkClicked", "LinkCreated"] {
            let refused = load(&["--ingest-type", kept]).unwrap_err();
            assert!(refused.starts_with("ingest_type") && refused.contains(kept), "{refused}");
            assert!(refused.contains("--link-accept-events"), "{refused}");
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
