//! The built-in tools: what goes in, what comes out.
//!
//! On the wire an input is a JSON object and an output any value; the tool's name says what they are. [`ToolInput::of`]
//! and [`ToolOutput::of`] read them when somebody asks.

mod input;
mod output;

pub use input::*;
pub use output::*;

/// An enum of tools, told apart by their names.
macro_rules! tools {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $( $(#[$variant_meta:meta])* $($tool:literal)|+ => $variant:ident($ty:ty) ),* $(,)? }
        { $( $(#[$more_meta:meta])* $more:ident $more_body:tt ),* $(,)? }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$variant_meta])* #[doc = concat!("(", $("`", $tool, "` ",)+ ")")] $variant($ty), )*
            $( $(#[$more_meta])* $more $more_body, )*
            /// A tool that is not known, or a value of another shape.
            Other {
                /// The tool.
                tool: String,
                /// The value.
                value: $crate::stream::Json,
            },
        }

        impl $name {
            /// The names of all tools that are known, older names too.
            pub const TOOLS: &'static [&'static str] = &[$( $($tool,)+ )*];

            /// `None` when the tool is not known, or a field has the wrong type or is missing.
            fn known(tool: &str, value: &$crate::stream::Json) -> Option<Self> {
                match tool {
                    $( $($tool)|+ => value.read::<$ty>().ok().filter(|it| it.is_complete()).map(Self::$variant), )*
                    _ => None,
                }
            }
        }
    };
}

use tools;

/// The server and the tool of an MCP tool's name.
///
/// ```
/// use oarlock_proto::stream::mcp_tool_name;
///
/// assert_eq!(mcp_tool_name("mcp__calc__add"), Some(("calc", "add")));
/// assert_eq!(mcp_tool_name("Bash"), None);
/// ```
#[must_use]
pub fn mcp_tool_name(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("mcp__")?.split_once("__")
}
