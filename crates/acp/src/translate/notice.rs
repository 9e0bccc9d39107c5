//! What the user should know: retries, limits, failures. It is told live only.

use oarlock_agent::reduce::{Notice, NoticeLevel};
use oarlock_agent::stream::{ApiRetry, RateLimitInfo, RateLimitStatus, System};
use oarlock_proto::acp::{
    self, ClientCapabilities, ContentBlock, ContentChunk, Meta, SessionInfoUpdate, SessionUpdate,
};
use serde_json::json;

use super::Screen;

/// A notice, or a line of text for clients that do not show notices.
pub(super) fn update(
    client: &ClientCapabilities,
    level: NoticeLevel,
    title: &str,
    description: Option<&str>,
) -> SessionUpdate {
    let description = description.map(str::trim).filter(|description| !description.is_empty());
    if client.shows_notices() {
        let severity = match level {
            NoticeLevel::Info => "info",
            NoticeLevel::Warning => "warning",
            NoticeLevel::Error => "error",
        };
        let description = description.map(str::to_owned);
        return SessionUpdate::Notice(acp::Notice { severity, title: title.to_owned(), description });
    }
    let mark = if level == NoticeLevel::Info { "*" } else { "**" };
    let mut text = format!("\n\n{mark}{}{mark}", one_line(title));
    if let Some(description) = description {
        text += &format!(": {}", one_line(description));
    }
    text += "\n\n";
    SessionUpdate::AgentMessageChunk(ContentChunk {
        content: ContentBlock::text(text),
        message_id: None,
        meta: None,
    })
}

/// Emphasis does not go beyond a paragraph.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Screen {
    /// The CLI tries again by itself, up to ten times: the first tries and the long waits are worth a word.
    pub(super) fn retry(&mut self, retry: &ApiRetry) {
        if !retry.attempt.is_power_of_two() {
            return;
        }
        let status = retry.error_status.map(|status| status.to_string());
        let why = match (&retry.error, status) {
            (Some(error), Some(status)) => format!("{status}, {}", error.as_str().replace('_', " ")),
            (Some(error), None) => error.as_str().replace('_', " "),
            (None, Some(status)) => status,
            (None, None) => "no answer".to_owned(),
        };
        let title = format!("The API failed ({why}); Claude Code tries again");
        let wait =
            retry.retry_delay_ms.as_ref().and_then(serde_json::Number::as_f64).unwrap_or_default() / 1000.0;
        let description = format!("Attempt {} of {}, in {wait:.1} s", retry.attempt, retry.max_retries);
        self.notice(NoticeLevel::Warning, &title, Some(&description));
    }

    pub(super) fn noticed(&mut self, notice: &Notice) {
        if notice.text.trim().is_empty() {
            return;
        }
        match &notice.system {
            // A server that fails and comes back and fails is told of once.
            None if !self.told.insert(notice.text.clone()) => {}
            // These are hints for the CLI's own screen.
            Some(System::Notification(_)) if notice.level == NoticeLevel::Info => {}
            _ => self.notice(notice.level, &capitalised(&notice.text), None),
        }
    }

    /// How much of a limit is used, for clients that show it.
    fn limit(&mut self, limit: &RateLimitInfo) {
        let told = json!({
            "status": limit.status, "rateLimitType": limit.rate_limit_type, "resetsAt": limit.resets_at,
            "utilization": limit.utilization, "isUsingOverage": limit.is_using_overage,
        });
        let mut told = told.as_object().cloned().unwrap_or_default();
        told.retain(|_, value| !value.is_null());
        if self.limits.insert(limit.rate_limit_type.clone(), told.clone()).as_ref() != Some(&told) {
            let meta = Meta::from_iter([("_claude/rateLimit".to_owned(), told.into())]);
            let info = SessionInfoUpdate { title: None, updated_at: None, meta: Some(meta) };
            self.queue.push(SessionUpdate::SessionInfoUpdate(info));
        }
    }

    /// Limits that are near or reached, once for each kind until there is room again.
    pub(super) fn rate_limit(&mut self, limit: &RateLimitInfo) {
        self.limit(limit);
        let kind = limit.rate_limit_type.as_deref().unwrap_or("usage").replace('_', " ");
        let (level, words) = match limit.status {
            RateLimitStatus::Rejected => (NoticeLevel::Error, "is used up"),
            RateLimitStatus::AllowedWarning => (NoticeLevel::Warning, "is nearly used up"),
            _ => {
                let end = format!(" {kind} limit");
                self.told.retain(|told| !told.ends_with(&end));
                return;
            }
        };
        if self.told.insert(format!("{} {kind} limit", limit.status.as_str())) {
            let reset = limit.resets_at.as_ref().and_then(serde_json::Number::as_i64).and_then(clock);
            let description = reset.map(|reset| format!("There is room again at {reset}"));
            self.notice(level, &format!("Your {kind} limit {words}"), description.as_deref());
        }
    }
}

/// A time of the day, where the user is.
fn clock(seconds: i64) -> Option<String> {
    let time = jiff::Timestamp::from_second(seconds).ok()?.to_zoned(jiff::tz::TimeZone::system());
    Some(time.strftime("%H:%M on %Y-%m-%d").to_string())
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map(|first| first.to_uppercase().chain(rest).collect()).unwrap_or_default()
}
