//! The help of `serve`: the default of every setting, and which settings its short form has.

use super::{SettingArgs, Settings};
use clap::Command;
use toml::Value;
use wellspring_cli::help::in_short;
use wellspring_host::settings::Section as _;

/// What most servers set: the rest is in the long help alone.
const ESSENTIAL: [&str; 12] = [
    "config",
    "print_config",
    "data",
    "listen",
    "insecure",
    "log_level",
    "sync",
    "journal",
    "node",
    "cluster_key",
    "tls_cert",
    "tls_key",
];

/// The command with the default of each setting in its help, and its variable in the long one. Clap
/// knows no defaults: a setting that is not given may still be in the file.
pub(crate) fn with_defaults_shown(command: Command) -> Command {
    let defaults = Settings::merge(SettingArgs::default(), SettingArgs::default());
    let defaults = toml::Table::try_from(&defaults).unwrap_or_default();
    in_short(command, &ESSENTIAL).mut_args(|argument| {
        let name = argument.get_id().to_string();
        let mut help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        if let Some(default) = defaults.get(&name) {
            help.push_str(&format!(" [default: {}]", shown(default)));
        }
        let variable = argument.get_env().map(|variable| variable.to_string_lossy().into_owned());
        let variable = variable.map(|variable| format!(" [env: {variable}]")).unwrap_or_default();
        let argument = argument.long_help(format!("{help}{variable}")).help(help).hide_env(true);
        if argument.get_action().takes_values() {
            let is_switch = argument.get_possible_values().iter().any(|v| v.matches("true", false));
            argument.value_name(value_name(&name)).hide_possible_values(is_switch)
        } else {
            argument
        }
    })
}

/// What stands for the value of a setting, by what the setting's name ends with.
fn value_name(setting: &str) -> &'static str {
    const NAMES: [(&str, &str); 21] = [
        ("_bytes", "BYTES"),
        ("_ms", "MS"),
        ("_bytes_per_s", "BYTES"),
        ("_s", "SECONDS"),
        ("_hosts", "HOSTS"),
        ("_origins", "ORIGINS"),
        ("proxies", "ADDRESSES"),
        ("data", "DIR"),
        ("secrets", "DIR"),
        ("listen", "ADDRESS:PORT"),
        ("config", "FILE"),
        ("_file", "FILE"),
        ("_cert", "FILE"),
        ("_key", "FILE"),
        ("_ca", "FILE"),
        ("_cacert", "FILE"),
        ("journal", "URL"),
        ("advertise", "URL"),
        ("_endpoint", "URL"),
        ("_url", "URL"),
        ("node", "NAME"),
    ];
    let is_count = ["max_", "per_second", "per_minute", "threads", "transactions"];
    NAMES.iter().find(|(end, _)| setting.ends_with(end)).map_or_else(
        || if is_count.iter().any(|part| setting.contains(part)) { "N" } else { "VALUE" },
        |(_, name)| name,
    )
}

/// A value as it is typed; `none` if it is empty.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) if text.is_empty() => "none".to_owned(),
        Value::Array(values) if values.is_empty() => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(shown).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Args as _;

    fn serve() -> Command {
        with_defaults_shown(super::super::ServeArgs::augment_args(Command::new("serve")))
    }

    #[test]
    fn every_setting_shows_its_default() {
        let defaults = Settings::merge(SettingArgs::default(), SettingArgs::default());
        let unset: Vec<&str> = defaults.unset().iter().map(|(name, _)| *name).collect();
        let serve = serve();
        let mut shown = 0;
        for name in Settings::names() {
            let argument = serve.get_arguments().find(|argument| argument.get_id() == name);
            let help = argument.expect(name).get_help().expect(name).to_string();
            if unset.contains(&name) {
                continue;
            }
            assert!(help.contains("[default: "), "{name}: {help}");
            let long = argument.expect(name).get_long_help().expect(name).to_string();
            let variable = format!("[env: WELLSPRING_{}]", name.to_uppercase());
            assert!(long.contains(&variable), "{name}: {long}");
            shown += 1;
        }
        assert!(shown > 50, "{shown}");
        let help = |name: &str| {
            let argument = serve.get_arguments().find(|argument| argument.get_id() == name);
            argument.unwrap().get_help().unwrap().to_string()
        };
        assert!(help("listen").ends_with("[default: 127.0.0.1:4000]"), "{}", help("listen"));
    }

    #[test]
    fn the_short_help_has_settings_that_are_there() {
        let serve = serve();
        for name in ESSENTIAL {
            assert!(serve.get_arguments().any(|argument| argument.get_id() == name), "{name}");
        }
    }
}
