//! Tokens and money.

use serde_json::Number;

use super::Json;
use super::macros::record;

record! {
    /// Tokens of one API message, or of one turn.
    pub struct Usage {
        input_tokens: Option<u64>,
        output_tokens: Option<u64>,
        cache_creation_input_tokens: Option<u64>,
        cache_read_input_tokens: Option<u64>,
        cache_creation: Option<CacheCreation>,
        server_tool_use: Option<ServerToolUsage>,
        output_tokens_details: Option<OutputTokensDetails>,
        service_tier: Option<String>,
        inference_geo: Option<String>,
        /// The API calls that make up the sum.
        iterations: Option<Json>,
        speed: Option<String>,
        fallback_credit: Option<Json>,
    }

    /// Tokens put into the cache, by how long they stay.
    pub struct CacheCreation {
        ephemeral_5m_input_tokens: Option<u64>,
        ephemeral_1h_input_tokens: Option<u64>,
    }

    /// Calls of tools that the API runs.
    pub struct ServerToolUsage {
        web_search_requests: Option<u64>,
        web_fetch_requests: Option<u64>,
    }

    /// What the output tokens were spent on.
    pub struct OutputTokensDetails {
        thinking_tokens: Option<u64>,
    }

    /// Tokens and money of one model. Sums over the process, unless a field says otherwise.
    pub struct ModelUsage {
        input_tokens = "inputTokens": u64,
        output_tokens = "outputTokens": u64,
        thinking_tokens = "thinkingTokens": Option<u64>,
        cache_read_input_tokens = "cacheReadInputTokens": u64,
        cache_creation_input_tokens = "cacheCreationInputTokens": u64,
        cache_creation_ephemeral_5m_input_tokens = "cacheCreationEphemeral5mInputTokens": Option<u64>,
        cache_creation_ephemeral_1h_input_tokens = "cacheCreationEphemeral1hInputTokens": Option<u64>,
        web_search_requests = "webSearchRequests": u64,
        cost_usd = "costUSD": Option<Number>,
        context_window = "contextWindow": Option<u64>,
        max_output_tokens = "maxOutputTokens": Option<u64>,
        canonical_model = "canonicalModel": Option<String>,
        provider: Option<String>,
        /// How the cost was reckoned.
        cost_basis = "costBasis": Option<String>,
    }

    /// What a task has used so far.
    pub struct TaskUsage {
        total_tokens: u64,
        tool_uses: u64,
        duration_ms: u64,
    }
}
