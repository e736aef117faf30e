//! Settings: each room declares its own in a [`section!`], and [`sections!`] combines them. A
//! program reads all of them from flags, `WELLSPRING_*` and a TOML file.

mod origins;
mod process;

pub use origins::Origins;
pub use process::{LogFormat, ProcessConfig};

/// The settings of a part without any.
#[derive(Debug, Clone, Default, clap::Args, serde::Serialize)]
#[group(skip)] // several parts have none, and a group has one name
pub struct NoSettings {}

impl Section for NoSettings {
    type Args = NoSettings;

    fn names() -> Vec<&'static str> {
        Vec::new()
    }

    fn read(_: &str) -> Result<NoSettings, toml::de::Error> {
        Ok(NoSettings {})
    }

    fn merge(_: NoSettings, _: NoSettings) -> NoSettings {
        NoSettings {}
    }

    fn unset(&self) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }
}

/// One room's part of the configuration.
pub trait Section: Sized {
    /// The section as given in one place: flags and environment, or the file.
    type Args: clap::Args + Default;
    /// The names of its settings, as the file has them.
    fn names() -> Vec<&'static str>;
    /// Parses its settings in the text of a file, which also contains those of other sections.
    ///
    /// # Errors
    /// A value of the wrong type, with its place.
    fn read(text: &str) -> Result<Self::Args, toml::de::Error>;
    /// The values of `first`, otherwise those of `second`, otherwise the defaults.
    fn merge(first: Self::Args, second: Self::Args) -> Self;
    /// The settings without a default that are not set, each with its description.
    fn unset(&self) -> Vec<(&'static str, &'static str)>;
}

/// Declares a section: its name, that of its settings as given, and the settings with their text
/// for `--help`, environment variable and default. `under` is their heading in `--help`. Those
/// behind `optional` have no default: that they are not set means something of its own.
#[macro_export]
macro_rules! section {
    ($(#[doc = $about:literal])+ $section:ident from $args:ident $(under $heading:literal)?:
     $($(#[doc = $doc:literal])+ $([$($flag:tt)*])? $name:ident: $type:ty = $env:literal, $default:expr;)*
     $(optional $(#[doc = $maybe_doc:literal])+ $maybe:ident: $maybe_type:ty = $maybe_env:literal;)*) => {
        /// The section as given in one place.
        #[derive(Debug, Default, clap::Args, serde::Deserialize)]
        #[serde(default)] // a file holds those of other sections, too
        $(#[command(next_help_heading = $heading)])?
        pub struct $args {
            $($(#[doc = $doc])+ #[arg(long, env = $env, $($($flag)*)?)] $name: Option<$type>,)*
            $($(#[doc = $maybe_doc])+ #[arg(long, env = $maybe_env)] $maybe: Option<$maybe_type>,)*
        }

        $(#[doc = $about])+
        #[derive(Debug, Clone, serde::Serialize)]
        pub struct $section {
            $($(#[doc = $doc])+ pub $name: $type,)*
            $(
                $(#[doc = $maybe_doc])+
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $maybe: Option<$maybe_type>,
            )*
        }

        impl $crate::settings::Section for $section {
            type Args = $args;

            fn names() -> Vec<&'static str> {
                vec![$(stringify!($name),)* $(stringify!($maybe),)*]
            }

            fn read(text: &str) -> Result<$args, toml::de::Error> {
                toml::from_str(text)
            }

            fn merge(first: $args, second: $args) -> $section {
                $section {
                    $($name: first.$name.or(second.$name).unwrap_or_else(|| $default),)*
                    $($maybe: first.$maybe.or(second.$maybe),)*
                }
            }

            fn unset(&self) -> Vec<(&'static str, &'static str)> {
                let all: &[(&'static str, &'static str, bool)] = &[
                    $((stringify!($maybe), concat!($($maybe_doc),+), self.$maybe.is_some()),)*
                ];
                let unset = all.iter().filter(|(.., is_set)| !is_set);
                unset.map(|&(name, description, _)| (name, description)).collect()
            }
        }
    };
}
pub use crate::section;

/// Declares a section made of others.
#[macro_export]
macro_rules! sections {
    ($(#[doc = $about:literal])+ $whole:ident from $args:ident: $($name:ident: $section:ty,)*) => {
        /// The sections as given in one place.
        #[derive(Debug, Default, clap::Args)]
        #[group(skip)]
        pub struct $args {
            $(#[command(flatten)] $name: <$section as $crate::settings::Section>::Args,)*
        }

        $(#[doc = $about])+
        #[derive(Debug, Clone, serde::Serialize)]
        pub struct $whole {
            $(
                /// One section.
                #[serde(flatten)]
                pub $name: $section,
            )*
        }

        impl $crate::settings::Section for $whole {
            type Args = $args;

            fn names() -> Vec<&'static str> {
                [$(<$section as $crate::settings::Section>::names()),*].concat()
            }

            fn read(text: &str) -> Result<$args, toml::de::Error> {
                Ok($args { $($name: <$section as $crate::settings::Section>::read(text)?,)* })
            }

            fn merge(first: $args, second: $args) -> $whole {
                $whole { $($name: $crate::settings::Section::merge(first.$name, second.$name),)* }
            }

            fn unset(&self) -> Vec<(&'static str, &'static str)> {
                [$($crate::settings::Section::unset(&self.$name)),*].concat()
            }
        }
    };
}
pub use crate::sections;
