//! Errors that hold a sentence for a person and that no code reads.

/// Declares such an error: made of a text, shown as that text.
#[macro_export]
macro_rules! sentence_error {
    ($(#[$doc:meta])* $visible:vis $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $visible struct $name(String);

        impl $name {
            /// With a sentence that names the part at fault and says what it must be.
            $visible fn new(sentence: impl Into<String>) -> Self {
                Self(sentence.into())
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl ::std::error::Error for $name {}

        impl From<String> for $name {
            fn from(sentence: String) -> Self {
                Self(sentence)
            }
        }

        impl From<&str> for $name {
            fn from(sentence: &str) -> Self {
                Self(sentence.to_owned())
            }
        }

        impl From<$name> for String {
            fn from(error: $name) -> Self {
                error.0
            }
        }
    };
}
