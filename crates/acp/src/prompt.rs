//! A prompt's content, as the CLI takes it.

use oarlock_agent::stream::Content;
use oarlock_proto::acp::ContentBlock;
use oarlock_proto::jsonrpc::ErrorObject;

/// What the CLI is sent for a prompt.
pub(crate) fn content(prompt: Vec<ContentBlock>) -> Result<Content, ErrorObject> {
    let text = prompt.into_iter().filter_map(|block| match block {
        ContentBlock::Text(text) => Some(text.text),
        _ => None,
    });
    Ok(Content::Text(text.collect::<Vec<_>>().join("\n")))
}
