//! Open sets of words.

/// An enum of the words that are known, and `Other` for those that a newer CLI may know.
macro_rules! word {
    ($(
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $variant:ident = $text:literal ),* $(,)? }
    )*) => { $(
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$variant_meta])* #[doc = concat!("(`", $text, "`)")] $variant, )*
            /// A word that this version does not know. The CLI says so when it does not either.
            Other(String),
        }

        impl $name {
            /// The word.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $text, )*
                    Self::Other(word) => word,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                match word {
                    $( $text => Self::$variant, )*
                    _ => Self::Other(word.to_owned()),
                }
            }
        }

        impl From<String> for $name {
            fn from(word: String) -> Self {
                word.as_str().into()
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )* };
}

pub(super) use word;
