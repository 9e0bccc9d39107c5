//! What the CLI says in the benchmark: JSON lines shaped like a captured stream, the same bytes on every machine.
//!
//! A turn is `message_start`, the start of a block, 200 text deltas of some 268 bytes each, the end of the block. In
//! the mixed traffic an assistant message with the whole text and a tool call follows, and a user message with the tool's
//! result, which the CLI writes twice (as content and as `tool_use_result`).

use std::fmt;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

/// Which of the two streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Traffic {
    /// 200 MB of everything.
    Mixed,
    /// 100 MB of deltas.
    Deltas,
}

impl Traffic {
    pub(crate) const ALL: [Traffic; 2] = [Traffic::Mixed, Traffic::Deltas];

    fn size(self) -> u64 {
        match self {
            Self::Mixed => 200_000_000,
            Self::Deltas => 100_000_000,
        }
    }
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mixed => "mixed",
            Self::Deltas => "deltas",
        })
    }
}

/// A stream on disk.
#[derive(Clone, Debug)]
pub(crate) struct Recording {
    pub(crate) traffic: Traffic,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) messages: u64,
}

impl Recording {
    /// Finds the stream in `folder`, or writes it there.
    pub(crate) fn obtain(folder: &Path, traffic: Traffic) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let path = folder.join(format!("{traffic}-1.jsonl"));
        if !path.exists() {
            // Beside its place first: a run that is broken off leaves no short file behind.
            let draft = folder.join(format!("{traffic}.draft"));
            let mut out = BufWriter::with_capacity(1 << 20, File::create(&draft)?);
            write(&mut out, traffic).with_context(|| format!("failed to write {}", draft.display()))?;
            out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
            fs::rename(&draft, &path)?;
        }
        let text = fs::read(&path)?;
        let messages = memchr::memchr_iter(b'\n', &text).count() as u64;
        Ok(Self { traffic, path, bytes: text.len() as u64, messages })
    }
}

fn write(out: &mut impl Write, traffic: Traffic) -> Result<()> {
    let mut author = Author { dice: Dice(0x0a51_0c6b), written: 0, out };
    author.line(&init())?;
    let mut turns = 0;
    while author.written < traffic.size() {
        let text = author.speak()?;
        if traffic == Traffic::Mixed {
            author.call_tool(&text)?;
        }
        turns += 1;
    }
    author.line(&result(turns))
}

const SESSION: &str = "e2b0d9e6-34fb-42f4-b783-ec6885874d2c";
const DELTAS: usize = 200;

struct Author<'a, W> {
    dice: Dice,
    written: u64,
    out: &'a mut W,
}

impl<W: Write> Author<'_, W> {
    /// Fields go out in the order of the text, as the CLI has them; a JSON tree would sort them.
    fn line(&mut self, text: &str) -> Result<()> {
        self.written += text.len() as u64 + 1;
        self.out.write_all(text.as_bytes())?;
        Ok(self.out.write_all(b"\n")?)
    }

    fn event(&mut self, event: &str, more: &str) -> Result<()> {
        let uuid = self.dice.uuid();
        self.line(&format!(
            r#"{{"type":"stream_event","event":{event},"session_id":"{SESSION}","parent_tool_use_id":null,"uuid":"{uuid}"{more}}}"#
        ))
    }

    /// A block, piece by piece. Returns its whole text.
    fn speak(&mut self) -> Result<String> {
        let id = self.dice.hex(20);
        self.event(
            &format!(r#"{{"type":"message_start","message":{{"id":"msg_{id}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{USAGE}}}}}"#),
            r#","ttft_ms":712"#,
        )?;
        self.event(
            r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
            "",
        )?;
        let mut whole = String::new();
        for _ in 0..DELTAS {
            let words = 2 + self.dice.below(8);
            let text = self.dice.prose(words);
            self.event(
                &format!(
                    r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":{}}}}}"#,
                    json!(text)
                ),
                "",
            )?;
            whole.push_str(&text);
        }
        self.event(r#"{"type":"content_block_stop","index":0}"#, "")?;
        Ok(whole)
    }

    /// The whole message with a tool call, and the tool's result.
    fn call_tool(&mut self, text: &str) -> Result<()> {
        let (id, call) = (self.dice.hex(20), self.dice.hex(20));
        let command = self.dice.prose(12);
        let uuid = self.dice.uuid();
        self.line(&format!(
            r#"{{"type":"assistant","message":{{"id":"msg_{id}","type":"message","role":"assistant","model":"claude-opus-5-5","content":[{{"type":"text","text":{}}},{{"type":"tool_use","id":"toolu_{call}","name":"Bash","input":{{"command":{},"description":"Look around"}}}}],"stop_reason":null,"stop_sequence":null,"usage":{USAGE},"context_management":null}},"parent_tool_use_id":null,"session_id":"{SESSION}","uuid":"{uuid}"}}"#,
            json!(text),
            json!(command),
        ))?;
        // From 1 to 100 kB, small ones more often.
        let size = 1e3 * 100f64.powf(self.dice.unit().powf(0.72));
        let output = json!(self.dice.listing(size as usize)).to_string();
        let uuid = self.dice.uuid();
        self.line(&format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{{"tool_use_id":"toolu_{call}","type":"tool_result","content":{output},"is_error":false}}]}},"parent_tool_use_id":null,"session_id":"{SESSION}","uuid":"{uuid}","timestamp":"2026-11-15T01:59:25.238Z","tool_use_result":{{"stdout":{output},"stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false}}}}"#
        ))
    }
}

const USAGE: &str = r#"{"input_tokens":10,"cache_creation_input_tokens":0,"cache_read_input_tokens":21034,"output_tokens":1,"service_tier":"standard"}"#;

fn init() -> String {
    format!(
        r#"{{"type":"system","subtype":"init","cwd":"/w","session_id":"{SESSION}","tools":["Bash","Edit","Read","Write"],"mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"default","slash_commands":["compact","context"],"apiKeySource":"ANTHROPIC_API_KEY","claude_code_version":"2.1.325","output_style":"default","agents":["general-purpose"],"skills":[],"plugins":[],"uuid":"0b5c7916-d479-4d8d-b7c3-a38aafe0d746"}}"#
    )
}

fn result(turns: u64) -> String {
    format!(
        r#"{{"type":"result","subtype":"success","is_error":false,"duration_ms":100,"duration_api_ms":90,"num_turns":{turns},"result":"Done.","stop_reason":"end_turn","session_id":"{SESSION}","total_cost_usd":0.5,"usage":{USAGE},"modelUsage":{{}},"permission_denials":[],"uuid":"fb59c8a2-b4c2-4045-8c84-f51cea5cf786"}}"#
    )
}

/// Pseudo-random choices from a fixed seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn unit(&mut self) -> f64 {
        self.next() as f64 / u64::MAX as f64
    }

    fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(b"0123456789abcdef"[self.below(16)])).collect()
    }

    fn uuid(&mut self) -> String {
        format!("{}-{}-4{}-8{}-{}", self.hex(8), self.hex(4), self.hex(3), self.hex(3), self.hex(12))
    }

    /// What a model writes: plain words, now and then another script or something that JSON must escape.
    fn prose(&mut self, words: usize) -> String {
        let mut text = String::new();
        for _ in 0..words {
            let pool: &[&str] = match self.below(40) {
                0 => &["naïve", "café", "übrigens", "à propos", "señor"],
                1 => &["漢字", "世界", "コード", "简单"],
                2 => &["🚀", "✅", "👩‍💻"],
                3 => &["\n", "\n\n", "\n- "],
                4 => &["\"quoted\"", "`a\\b`", "\tlet"],
                _ => &WORDS,
            };
            text.push(' ');
            text.push_str(pool[self.below(pool.len())]);
        }
        text
    }

    /// What a tool prints: lines of code and paths.
    fn listing(&mut self, size: usize) -> String {
        let mut text = String::with_capacity(size + 100);
        while text.len() < size {
            let words = 4 + self.below(8);
            text.push_str(&format!("{:>6}\tsrc/{}.rs:", self.below(2000), WORDS[self.below(WORDS.len())]));
            text.push_str(&self.prose(words));
            text.push('\n');
        }
        text
    }
}

const WORDS: [&str; 32] = [
    "the", "a", "to", "of", "and", "is", "in", "it", "that", "function", "returns", "error", "test", "file",
    "line", "value", "when", "with", "this", "build", "fails", "because", "type", "does", "not", "match",
    "first", "then", "run", "again", "should", "pass",
];
