//! The prompt: from the command line, from stdin, with pictures.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use oarlock_agent::Prompt;
use oarlock_agent::stream::{Base64Source, ContentBlock, ImageBlock, Source, TextBlock};
use tokio::io::AsyncReadExt as _;

use crate::exit::Failure;
use crate::output::{note, warn};

/// How long stdin may be silent when there is a prompt already: it may be a pipe that nobody writes to.
const SILENCE: Duration = Duration::from_secs(3);
/// More than any model reads.
const MAX_STDIN: u64 = 64 << 20;
const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The prompt that the command line and stdin make together; none when there is neither.
pub(super) async fn read(given: Option<&str>, images: &[PathBuf]) -> anyhow::Result<Option<Prompt>> {
    let given = given.filter(|given| *given != "-");
    let piped = if std::io::stdin().is_terminal() { String::new() } else { stdin(given.is_some()).await? };
    let text = match (given, piped.trim_end()) {
        (Some(given), "") => given.to_owned(),
        (Some(given), piped) => format!("{given}\n\n{piped}"),
        (None, piped) => piped.to_owned(),
    };
    if text.trim().is_empty() {
        return Ok(None);
    }
    if images.is_empty() {
        return Ok(Some(text.into()));
    }
    let mut blocks = images.iter().map(|path| image(path)).collect::<anyhow::Result<Vec<_>>>()?;
    blocks.push(ContentBlock::Text(TextBlock { text, ..Default::default() }));
    Ok(Some(blocks.into()))
}

async fn stdin(may_be_silent: bool) -> anyhow::Result<String> {
    let mut stdin = tokio::io::stdin().take(MAX_STDIN);
    let mut bytes = Vec::new();
    if may_be_silent {
        match tokio::time::timeout(SILENCE, stdin.read_buf(&mut bytes)).await {
            Ok(read) => drop(read?),
            Err(_) => {
                note("nothing comes from stdin, so it is not waited for (`< /dev/null` says so at once)");
                return Ok(String::new());
            }
        }
    }
    stdin.read_to_end(&mut bytes).await?;
    if bytes.len() as u64 == MAX_STDIN {
        return Err(Failure::usage("stdin is larger than 64 MiB, which no model reads"));
    }
    String::from_utf8(bytes).or_else(|error| {
        warn("stdin is not UTF-8; bytes that are not are replaced");
        Ok(String::from_utf8_lossy(error.as_bytes()).into_owned())
    })
}

fn image(path: &Path) -> anyhow::Result<ContentBlock> {
    let bytes = std::fs::read(path)
        .map_err(|error| Failure::usage(format!("--image: failed to read {}: {error}", path.display())))?;
    let Some(media_type) = media_type(&bytes) else {
        let path = path.display();
        return Err(Failure::usage(format!("--image: {path} is no PNG, JPEG, GIF or WebP picture")));
    };
    let data = base64(&bytes);
    let source = Source::Base64(Base64Source { media_type: media_type.into(), data, ..Default::default() });
    Ok(ContentBlock::Image(ImageBlock { source, ..Default::default() }))
}

/// By what is in it: a name may say anything.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0x89, b'P', b'N', b'G', ..] => Some("image/png"),
        [0xff, 0xd8, 0xff, ..] => Some("image/jpeg"),
        [b'G', b'I', b'F', b'8', ..] => Some("image/gif"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some("image/webp"),
        _ => None,
    }
}

fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let (first, second, third) =
            (group[0], group.get(1).copied().unwrap_or(0), group.get(2).copied().unwrap_or(0));
        let bits = u32::from(first) << 16 | u32::from(second) << 8 | u32::from(third);
        for place in 0..4 {
            let index = (bits >> (18 - 6 * place)) & 0x3f;
            let padding = place > group.len();
            text.push(if padding { '=' } else { char::from(ALPHABET[index as usize]) });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_rfc() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xfb, 0xff, 0xfe]), "+//+");
    }

    #[test]
    fn a_picture_is_told_by_what_is_in_it() {
        assert_eq!(media_type(b"\x89PNG\r\n"), Some("image/png"));
        assert_eq!(media_type(b"RIFF1234WEBPVP8"), Some("image/webp"));
        assert_eq!(media_type(b"GIF89a"), Some("image/gif"));
        assert_eq!(media_type(b"\xff\xd8\xff\xe0"), Some("image/jpeg"));
        assert_eq!(media_type(b"RIFF"), None);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        std::fs::write(&path, "text").unwrap();
        assert!(image(&path).unwrap_err().to_string().contains("is no PNG"));
    }
}
