//! The settings file: each value with its line, and unknown names with the closest known one.

use super::{SettingArgs, Settings};
use std::path::Path;
use toml::de::DeTable;
use wellspring_host::settings::{Origins, Section as _};
use wellspring_host::setup::SetupError;
use wellspring_readable::nearest::nearest;

/// The settings of a file; their lines go into `origins`.
///
/// # Errors
/// A sentence that names the file, with line and column for its content.
pub(super) fn read(path: &Path, origins: &mut Origins) -> Result<SettingArgs, SetupError> {
    let text = std::fs::read_to_string(path)
        .map_err(|e| origins.explain(format!("cannot read --config {}: {e}", path.display())))?;
    of_text(path, &text, origins)
        .map_err(|what| SetupError::new(format!("{}: {what}", path.display())))
}

fn of_text(path: &Path, text: &str, origins: &mut Origins) -> Result<SettingArgs, SetupError> {
    // The output of --print-config is accepted as input.
    let table = DeTable::parse(text).map_err(|error| toml_error(&error))?;
    let known = Settings::names();
    for key in table.get_ref().keys() {
        let name: &str = key.get_ref();
        let (line, column) = place(text, key.span().start);
        let wrong =
            |what: &str| Err(SetupError::new(format!("line {line}, column {column}: {what}")));
        if name == "limits" {
            return wrong("the limits in [limits] cannot be set; remove the table");
        }
        if !known.contains(&name) {
            let known = known.iter().copied();
            return wrong(&match nearest(&name.replace('-', "_"), known) {
                Some(near) => format!("there is no setting {name:?}; did you mean {near}?"),
                None => format!(
                    "there is no setting {name:?}; `wellspring serve --help` lists them, as flags"
                ),
            });
        }
        origins.add(name, path, line);
    }
    Settings::read(text).map_err(|error| toml_error(&error))
}

/// The message of the toml crate, a drawing of several lines, without the last line end.
fn toml_error(error: &toml::de::Error) -> SetupError {
    SetupError::new(error.to_string().trim_end())
}

/// Line and column of a byte of the text, from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or_default();
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        of_text(Path::new("w.toml"), text, &mut Origins::default()).unwrap_err().to_string()
    }

    #[test]
    fn what_is_wrong_is_told_with_line_and_column() {
        let broken = refused("threads = 3\nsync = \n");
        assert!(broken.contains("line 2, column 8"), "{broken}");
        let kind = refused("# all\nthreads = \"many\"\n");
        assert!(kind.contains("line 2, column 11") && kind.contains("\"many\""), "{kind}");
        assert!(!kind.ends_with('\n'), "{kind:?}");
        let twice = refused("threads = 3\nthreads = 4\n");
        assert!(twice.contains("line 2, column 1"), "{twice}");
        let limits = refused("[limits]\nmax_tags = 65\n");
        assert!(limits.starts_with("line 1, column 2: the limits in [limits]"), "{limits}");
    }

    #[test]
    fn a_mistyped_name_is_told_with_the_right_one() {
        let near = refused("threads = 3\n  thread = 3\n");
        assert_eq!(near, "line 2, column 3: there is no setting \"thread\"; did you mean threads?");
        let dashes = refused("max-connections = 3\n");
        assert!(dashes.ends_with("did you mean max_connections?"), "{dashes}");
        let far = refused("something_else_altogether = 3\n");
        assert!(far.contains("serve --help"), "{far}");
    }
}
