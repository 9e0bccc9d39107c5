//! Taking secrets out of messages: by the names of fields, by what keys and tokens look like, and by the values that were
//! met under such names before.

use serde_json::{Map, Value};

/// What stands in a secret's place.
const GONE: &str = "[redacted]";
/// A value this short is nowhere looked for: it would be found in words.
const SHORTEST: usize = 8;
/// So many values are remembered.
const MOST: usize = 256;

/// Fields that hold pairs of names and values, or one object of them: variables, and headers of requests.
const BAGS: &[&str] = &["env", "headers", "httpheaders"];

/// What the names of secrets have in them, in letters alone.
const PARTS: &[&str] = &[
    "accesskey",
    "apikey",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "passphrase",
    "passwd",
    "password",
    "privatekey",
    "secret",
    "sessionkey",
];

/// How well-known tokens begin, and how long the rest of them is at least.
const BEGINNINGS: &[(&str, usize)] = &[
    ("sk-", 16),
    ("sk_live_", 16),
    ("sk_test_", 16),
    ("rk_live_", 16),
    ("ghp_", 20),
    ("gho_", 20),
    ("ghu_", 20),
    ("ghs_", 20),
    ("ghr_", 20),
    ("github_pat_", 20),
    ("glpat-", 16),
    ("npm_", 24),
    ("xoxa-", 10),
    ("xoxb-", 10),
    ("xoxp-", 10),
    ("xoxs-", 10),
    ("AKIA", 16),
    ("ASIA", 16),
    ("AIza", 30),
    ("hf_", 24),
    ("eyJ", 32),
];

/// Takes secrets out of messages.
#[derive(Debug, Default)]
pub(super) struct Redactor {
    /// Values that were under a secret's name, the longest first.
    known: Vec<String>,
}

impl Redactor {
    /// One that knows the secrets in this program's environment, which the CLI inherits.
    pub(super) fn from_environment() -> Self {
        let mut redactor = Self::default();
        for (name, value) in std::env::vars_os() {
            if let (Some(name), Some(value)) = (name.to_str(), value.to_str())
                && is_secret_name(name)
            {
                redactor.learn(value);
            }
        }
        redactor
    }

    fn learn(&mut self, value: &str) {
        let value = value.trim();
        // Paths and addresses of secrets are not secrets.
        let is_plain = value.starts_with('/') || value == GONE;
        if value.len() < SHORTEST || is_plain || self.known.iter().any(|known| known == value) {
            return;
        }
        self.known.push(value.to_owned());
        self.known.sort_by_key(|known| std::cmp::Reverse(known.len()));
        self.known.truncate(MOST);
    }

    pub(super) fn redact(&mut self, value: &mut Value) {
        match value {
            Value::Object(fields) => self.redact_fields(fields),
            Value::Array(items) => self.redact_items(items),
            Value::String(text) => self.redact_text(text),
            _ => {}
        }
    }

    fn redact_fields(&mut self, fields: &mut Map<String, Value>) {
        for (name, value) in fields {
            if is_secret_name(name) {
                self.blot(value, true);
            } else if BAGS.contains(&plain(name).as_str()) {
                self.redact_bag(value);
            } else {
                self.redact(value);
            }
        }
    }

    /// Arguments of programs are lists: what follows `--token` is one.
    fn redact_items(&mut self, items: &mut [Value]) {
        let mut is_secret = false;
        for item in items {
            if std::mem::take(&mut is_secret) && item.is_string() {
                self.blot(item, true);
                continue;
            }
            match item {
                Value::String(flag) if flag.starts_with('-') && is_secret_name(flag) => {
                    match flag.split_once('=') {
                        Some((name, value)) => {
                            self.learn(value);
                            *flag = format!("{name}={GONE}");
                        }
                        None => is_secret = true,
                    }
                }
                item => self.redact(item),
            }
        }
    }

    /// Variables and headers, all of whose values are private; those with a secret's name are remembered.
    fn redact_bag(&mut self, bag: &mut Value) {
        match bag {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.blot(value, is_secret_name(name));
                }
            }
            Value::Array(pairs) => {
                for pair in pairs {
                    let name = pair.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
                    match pair.get_mut("value") {
                        Some(value) => self.blot(value, is_secret_name(&name)),
                        None => self.blot(pair, false),
                    }
                }
            }
            other => self.blot(other, false),
        }
    }

    /// Takes out a value and all that is in it.
    fn blot(&mut self, value: &mut Value, learn: bool) {
        match value {
            Value::Object(fields) => fields.values_mut().for_each(|value| self.blot(value, learn)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.blot(item, learn)),
            Value::String(text) => {
                if learn {
                    // Of `Bearer abc`, the secret is `abc`.
                    self.learn(text.rsplit(' ').next().unwrap_or_default());
                }
                if !text.is_empty() {
                    GONE.clone_into(text);
                }
            }
            Value::Number(_) => *value = GONE.into(),
            Value::Null | Value::Bool(_) => {}
        }
    }

    pub(super) fn redact_text(&self, text: &mut String) {
        for known in &self.known {
            if text.contains(known.as_str()) {
                *text = text.replace(known.as_str(), GONE);
            }
        }
        if let Some(redacted) = without_keys(text) {
            *text = redacted;
        }
    }
}

/// The letters and digits of a name, in small letters.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|letter| letter.to_ascii_lowercase()).collect()
}

/// Is this what somebody calls a secret? Numbers of tokens are none.
fn is_secret_name(name: &str) -> bool {
    let name = name.split('=').next().unwrap_or_default();
    let name = plain(name);
    PARTS.iter().any(|part| name.contains(part))
        || name.ends_with("token")
        || ["pwd", "pass", "auth", "pat"].contains(&name.as_str())
}

/// The text without what looks like a key; `None` when there is nothing of the kind.
fn without_keys(text: &str) -> Option<String> {
    let mut redacted = String::new();
    let mut copied = 0;
    for (start, end) in secrets(text) {
        // They are in order; one may lie in another.
        if start >= copied {
            redacted.push_str(&text[copied..start]);
            redacted.push_str(GONE);
        }
        copied = copied.max(end);
    }
    if copied == 0 {
        return None;
    }
    redacted.push_str(&text[copied..]);
    Some(redacted)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'+' | b'~')
}

/// Where secrets are in a text, by what they look like.
fn secrets(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    // The name before `=` or `:`, or the word `Bearer`: what follows is a secret.
    let mut is_announced = false;
    while at < bytes.len() {
        if !is_word(bytes[at]) {
            // Only a little may be between the name and its value.
            is_announced &= matches!(bytes[at], b'=' | b':' | b' ' | b'"' | b'\'' | b'\\');
            at += 1;
            continue;
        }
        let start = at;
        while at < bytes.len() && is_word(bytes[at]) {
            at += 1;
        }
        let word = &text[start..at];
        if let Some(end) = private_key(text, start) {
            found.push((start, end));
            at = end;
            is_announced = false;
        } else if std::mem::take(&mut is_announced) && is_value(word) || is_token(word) {
            // Values may go on with characters that words do not have.
            while at < bytes.len() && (is_word(bytes[at]) || matches!(bytes[at], b'/' | b'=')) {
                at += 1;
            }
            found.push((start, at));
        } else if let Some(end) = password_in_address(text, start, at).or_else(|| query(text, start, at)) {
            found.push((at + 1, end));
            at = end;
        } else {
            is_announced = announces(word, bytes.get(at).copied());
        }
    }
    found
}

/// Does this word say that a secret follows: `Bearer …`, `API_KEY=…`? In prose and in programs the names of secrets are
/// followed by other things.
fn announces(word: &str, next: Option<u8>) -> bool {
    match next {
        Some(b' ') => ["bearer", "basic"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme)),
        Some(b'=') => word == word.to_uppercase() && (is_secret_name(word) || word.ends_with("_KEY")),
        _ => false,
    }
}

/// Is it long and mixed enough to be a secret, once something says that it is one?
fn is_value(word: &str) -> bool {
    word.len() >= SHORTEST && word.bytes().any(|byte| byte.is_ascii_digit())
        || word.len() >= 2 * SHORTEST && !word.contains('.')
}

/// Does it look like the key or the token of a well-known service?
fn is_token(word: &str) -> bool {
    BEGINNINGS.iter().any(|(beginning, length)| {
        word.strip_prefix(beginning)
            .is_some_and(|rest| rest.len() >= *length && rest.bytes().any(|byte| byte.is_ascii_digit()))
    })
}

/// The end of a private key that begins here.
fn private_key(text: &str, start: usize) -> Option<usize> {
    let rest = text[start..].strip_prefix("-----BEGIN ")?;
    let (kind, _) = rest.split_once("-----")?;
    if kind.len() > 40 || !kind.ends_with("PRIVATE KEY") {
        return None;
    }
    let end = format!("-----END {kind}-----");
    Some(text[start..].find(&end).map_or(text.len(), |at| start + at + end.len()))
}

/// The end of the password in `scheme://user:password@host`; `start..end` is the word that may be the user.
fn password_in_address(text: &str, start: usize, end: usize) -> Option<usize> {
    if !text[..start].ends_with("://") || text.as_bytes().get(end) != Some(&b':') {
        return None;
    }
    let rest = &text[end + 1..];
    let length = rest.find(|letter: char| letter == '@' || letter == '/' || letter.is_whitespace())?;
    (length > 0 && rest[length..].starts_with('@')).then_some(end + 1 + length)
}

/// The end of a secret among the parameters of an address, as in `?token=…`; `start..end` is the word that may be its name.
fn query(text: &str, start: usize, end: usize) -> Option<usize> {
    let is_parameter = text[..start].ends_with(['?', '&']) && text[end..].starts_with('=');
    let name = &text[start..end];
    if !is_parameter || !(is_secret_name(name) || ["key", "sig", "code"].contains(&name)) {
        return None;
    }
    let rest = &text[end + 1..];
    let is_end = |letter: char| matches!(letter, '&' | '#' | '"' | '\'' | ')') || letter.is_whitespace();
    let length = rest.find(is_end).unwrap_or(rest.len());
    (length > 0).then_some(end + 1 + length)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn redacted(mut value: Value) -> Value {
        Redactor::default().redact(&mut value);
        value
    }

    fn text(text: &str) -> String {
        let mut text = text.to_owned();
        Redactor::default().redact_text(&mut text);
        text
    }

    #[test]
    fn acp_sec_01_variables_and_headers_of_servers_are_not_recorded() {
        let new = json!({ "method": "session/new", "params": { "cwd": "/work", "mcpServers": [
            { "name": "db", "command": "/bin/db", "args": ["--token", "planted-1", "--api-key=planted-2", "-v"],
              "env": [{ "name": "DB_HOST", "value": "planted-3" }, { "name": "PGPASSWORD", "value": "planted-4" }] },
            { "type": "http", "name": "web", "url": "https://me:planted-5@example.com/mcp?access_token=planted-6",
              "headers": [{ "name": "Authorization", "value": "Bearer planted-7" }] }],
            "_meta": { "claudeCode": { "options": { "env": { "ANTHROPIC_API_KEY": "planted-8", "X": "planted-9" },
                "apiKey": "planted-10", "settings": { "apiKeyHelper": ["planted-11"] } } } } } });
        let shown = redacted(new).to_string();
        assert!(!shown.contains("planted"), "{shown}");
        for kept in ["session/new", "/work", "/bin/db", "DB_HOST", "Authorization", "example.com", "\"-v\""] {
            assert!(shown.contains(kept), "{kept}: {shown}");
        }
    }

    #[test]
    fn acp_sec_01_what_was_secret_once_is_secret_everywhere() {
        let mut redactor = Redactor::default();
        redactor.redact(&mut json!({ "headers": { "Authorization": "Bearer hunter-two" } }));
        redactor.redact(&mut json!({ "env": [{ "name": "HOME", "value": "/w/somebody" }] }));
        let mut output = json!({ "content": [{ "text": "it is hunter-two, in /w/somebody" }] });
        redactor.redact(&mut output);
        assert_eq!(output["content"][0]["text"], "it is [redacted], in /w/somebody");
    }

    #[test]
    fn acp_sec_01_keys_are_known_by_their_looks() {
        for secret in [
            "sk-ant-api03-abcDEF123456_7890-xyz",
            "sk-proj-1234567890abcdefABCD",
            "ghp_abcdefghij0123456789ABCD",
            "github_pat_11ABCDEFG0123456789_abcdef",
            "glpat-abcdefgh12345678",
            "xoxb-123456789012-abcdef",
            "AKIAIOSFODNN7EXAMPLE",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9P",
        ] {
            for around in [format!("key: {secret}."), format!("a\n\"{secret}\" b"), secret.to_owned()] {
                let shown = text(&around);
                assert!(shown.contains(GONE) && !shown.contains(&secret[4..16]), "{around} -> {shown}");
            }
        }
        assert_eq!(
            text("Authorization: Bearer abc123def456/xyz== next"),
            "Authorization: Bearer [redacted] next"
        );
        assert_eq!(text("export MY_API_KEY=abcd1234efgh && ls"), "export MY_API_KEY=[redacted] && ls");
        assert_eq!(text("DB_PASSWORD=\"correct0horse\""), "DB_PASSWORD=\"[redacted]\"");
        let pem = "x -----BEGIN RSA PRIVATE KEY-----\nMIIE\nabc\n-----END RSA PRIVATE KEY----- y";
        assert_eq!(text(pem), "x [redacted] y");
        assert_eq!(
            text("git clone https://me:pass@example.com/x"),
            "git clone https://me:[redacted]@example.com/x"
        );
    }

    #[test]
    fn what_is_no_secret_stays() {
        for words in [
            "the sk-learn-and-other-libraries package",
            "let token = parser.next_token();",
            "if (token=readToken()) {}",
            "Bearer of bad news",
            "https://example.com:8080/path",
            "MAX_TOKENS=4096",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "toolu_01A09q90qw90lq917835lq9",
            "00000000-0000-4000-8000-000000000001",
            "größer 日本 🦀",
        ] {
            assert_eq!(text(words), words);
        }
        let usage =
            json!({ "usage": { "inputTokens": 5, "totalTokens": 7 }, "token_count": { "x": 1 }, "id": 1 });
        assert_eq!(redacted(usage.clone()), usage);
        assert_eq!(
            redacted(json!({ "token": null, "password": "", "hasToken": true }))["token"],
            json!(null)
        );
    }

    proptest! {
        #[test]
        fn any_text_is_survived(words in "\\PC*") {
            let _ = text(&words);
        }

        #[test]
        fn a_key_is_found_between_any_words(before in "[^A-Za-z0-9_.+~-]{0,8}", after in "[^A-Za-z0-9_.+~=/-]\\PC{0,8}") {
            let shown = text(&format!("{before}sk-ant-api03-abcDEF1234567890{after}"));
            prop_assert!(!shown.contains("abcDEF"));
        }
    }
}
