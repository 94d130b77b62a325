//! The arguments and results of the projection: messages, the circumstances of a model call, and plans.

use napi_derive::napi;

/// The handle and the header to show when a tool result enters the transcript.
#[napi(object)]
pub struct ReceivedResult {
    /// The object's ID.
    pub id: String,
    /// Its short name, used in the projection.
    pub handle: String,
    /// The line to put before the output; absent where a reference would not be shorter than the output.
    pub header: Option<String>,
}

/// A message of the harness that the engine has not seen yet.
#[napi(object)]
pub struct IncomingMessage {
    /// The harness's own name for the message, used again in the plan.
    pub key: String,
    /// The message in the shape of pi-ai: `{ role, content, … }`.
    #[napi(ts_type = "object")]
    pub message: String,
}

/// Prices per million tokens, as a model catalogue lists them; only their ratios matter. Zero means unknown.
#[napi(object)]
pub struct ModelPrices {
    /// Fresh input.
    pub input: f64,
    /// Cached input.
    pub cache_read: f64,
    /// Writing to the cache.
    pub cache_write: f64,
    /// `false` for a model that caches nothing.
    pub caches: Option<bool>,
    /// Sizes from which on the whole request costs more, as `cost.tiers` in Pi's model catalogue. Default: none.
    pub tiers: Option<Vec<PriceStep>>,
}

/// A step in a model's price. A request with more input tokens than this, cached ones included, costs `factor` times as much,
/// on all of its tokens.
#[napi(object)]
pub struct PriceStep {
    /// Input tokens that a request may have at the lower price.
    pub input_tokens_above: f64,
    /// The price above, as a multiple of the price below the first step; more than 1.
    pub factor: f64,
}

/// The circumstances of the next model call.
#[napi(object)]
pub struct ModelCall {
    /// The model's name. A change of model means a cold cache.
    pub model: String,
    /// The model's prices.
    pub prices: ModelPrices,
    /// Number of content blocks that the provider looks back for a cached prefix: 20 for Anthropic's API; absent for
    /// providers that reuse any common prefix.
    pub lookback_blocks: Option<u32>,
    /// Number of earlier endings of a user's message or a group of outputs that the provider looks back for a cached
    /// prefix: 20 for OpenAI's models from GPT-5.6 on; absent for other providers.
    pub lookback_endings: Option<u32>,
    /// The provider's treatment of the model's reasoning once something before it has changed: `none` (it does not
    /// check), `keeps` (it checks, but the model still reads it), `drops` (it drops that reasoning and all later
    /// reasoning) or `refuses` (it refuses the request). Default `none`.
    #[napi(ts_type = "'none' | 'keeps' | 'drops' | 'refuses'")]
    pub binding: Option<String>,
    /// True if text between the calls of an answer is part of the model's reasoning, which must stay as it is or leave
    /// as a whole. Default false.
    pub text_is_reasoning: Option<bool>,
    /// The context window in tokens; 0 when unknown.
    pub context_window: f64,
    /// Time that the provider keeps a prefix, in milliseconds.
    pub cache_ttl_ms: f64,
    /// The likelihood that the provider still has the last request in its cache, from 0 (it is known to be gone, because the harness has
    /// changed the tools or the system prompt, so that everything stale leaves now) to 1. Default 1. A cut of the request is
    /// priced with it. Lifetime and model are checked apart from it.
    pub cache_kept: Option<f64>,
    /// The harness's clock, in milliseconds since the epoch.
    pub now_ms: f64,
    /// When the last request was sent, in milliseconds since the epoch, where the engine does not know: an earlier process sent it, in
    /// the form that the record gives it, or the harness has sent it again. The provider then has it cached, for the time that it
    /// keeps a prefix.
    pub sent_ms: Option<f64>,
    /// The number of the first messages passed to `resync` that this request had as they are now: the harness has changed something
    /// behind them since, and the provider has nothing of that cached. Default: all.
    pub sent_messages: Option<u32>,
    /// Estimated tokens of the system prompt and the tool declarations.
    pub system_tokens: f64,
    /// Roll only at the start of a user's turn, for models whose reasoning depends on an unchanged prefix.
    pub only_at_user_turn: bool,
    /// True if the next call starts a user's turn.
    pub at_user_turn: bool,
    /// True if a roll may happen now.
    pub rolls: bool,
    /// True if what has left in earlier rolls stays out where no roll may happen now, once the conversation was read again. Default:
    /// as `rolls`.
    pub repeats: Option<bool>,
    /// The harness's name for the end of its conversation, for `advance`: it is recorded with the notices that come there, so that
    /// a later process finds their place.
    pub place: Option<String>,
    /// True if nothing may be added at that end. The notices wait for a call where it may: then each file that has changed since the
    /// model saw it gets one line. Default false.
    pub closed: Option<bool>,
    /// True if the harness can shorten texts in messages and leave out whole messages: edits with `texts`, and edits of
    /// the kind `gone`. Default false: then only outputs and arguments collapse.
    pub shortens: Option<bool>,
}

/// The steps to take before the next model call.
#[napi(object)]
pub struct Plan {
    /// Messages to replace in what the model sees.
    #[napi(ts_type = "Edit[]")]
    pub edits: Vec<Edit>,
    /// Lines to add at the end of what the model sees.
    pub notices: Vec<String>,
    /// The receipt of the roll among the edits, if there was one.
    pub receipt: Option<RollReceipt>,
    /// Estimated tokens of the next request.
    pub context_tokens: f64,
    /// Estimated tokens of what could be rolled.
    pub stale_tokens: f64,
    /// The cost of changing the very start of the next request, in fresh input tokens: its cached part, written
    /// again. 0 if the cache is cold. Set only by `advance`, like `spent`.
    pub rewrite_cost: f64,
    /// The cost of this process's model calls so far, in fresh input tokens, without the answers.
    pub spent: f64,
    /// The current result of `point`; set only by `advance`.
    pub point: Option<i64>,
    /// The current result of `pointTimes`; set only by `advance`.
    #[napi(ts_type = "[string, string]")]
    pub point_times: Option<Vec<String>>,
}

/// The effect of a roll.
#[napi(object)]
pub struct RollPreview {
    /// The receipt that it would have.
    pub receipt: RollReceipt,
    /// The IDs of the calls whose outputs it would collapse.
    pub outputs: Vec<String>,
}

/// Text that could leave the request and is held back. For people; it never enters the chat.
#[napi(object)]
pub struct HeldBack {
    /// Estimated tokens that would leave.
    pub tokens: f64,
    /// Why they stay: rolls may not happen now (`off`); they leave with the next call (`due`); most of it is still likely to be
    /// needed (`young`); the model has to see it first (`unseen`); it leaves only where a user's turn starts (`turn`); reasoning
    /// of the running turn depends on it (`bound`); reasoning of earlier turns would be lost and is worth more (`reasoning`);
    /// writing the cache again costs more than keeping it has cost (`dear`); rolls have cost as much as they may (`debt`).
    #[napi(
        ts_type = "'off' | 'due' | 'young' | 'unseen' | 'turn' | 'bound' | 'reasoning' | 'dear' | 'debt'"
    )]
    pub because: String,
    /// When they may leave: with the next call, when the user speaks next (`prompt`), in about `calls` calls, or when the user
    /// speaks after a `pause` of `pauseMs`. Absent if that can't be told.
    #[napi(ts_type = "'call' | 'prompt' | 'calls' | 'pause'")]
    pub chance: Option<String>,
    /// For `calls`: in about how many.
    pub calls: Option<u32>,
    /// For `pause`: how long, in milliseconds.
    pub pause_ms: Option<f64>,
}

/// The receipt of a roll: what it removed and cost, and when it pays for itself. For people; it never enters the chat.
#[napi(object)]
pub struct RollReceipt {
    /// Number of items that were replaced by references.
    pub items: u32,
    /// Blocks of reasoning that were not stale but depended on what changed: they left too, or the provider drops them. Absent
    /// for none.
    pub reasoning_lost: Option<u32>,
    /// Those of them that belonged to the turn in which the roll happened.
    pub reasoning_lost_running: Option<u32>,
    /// Tokens removed from the request.
    pub removed_tokens: f64,
    /// The one-time cost, in fresh input tokens, rounded.
    pub cost: f64,
    /// The saving of each later call, in fresh input tokens, rounded.
    pub gain: f64,
    /// Model calls until it has paid for itself; absent if it never does.
    pub pays_back_after_calls: Option<u32>,
    /// Why it happened.
    #[napi(ts_type = "'free' | 'pays' | 'pressure' | 'hard' | 'asked'")]
    pub reason: String,
}

/// One message to replace in what the model sees.
#[napi(discriminant = "kind", discriminant_case = "lowercase")]
pub enum Edit {
    /// A tool result's text.
    Result {
        /// The message.
        key: String,
        /// The object behind it.
        object: String,
        /// Its new text; if absent, restore the message as the harness has it.
        text: Option<String>,
    },
    /// Parts of an answer, or of a user's message. Without any put back the message as the harness has it. An edit has
    /// all that differs from the message as it was handed over.
    Message {
        /// The message.
        key: String,
        /// The calls whose arguments to replace.
        calls: Vec<CollapsedCall>,
        /// The blocks to shorten or leave out; none if the call did not set `shortens`.
        texts: Vec<TextEdit>,
    },
    /// The message is left out; a line in another one names its calls. Only where the call said `shortens`.
    Gone {
        /// The message.
        key: String,
        /// For a tool result: the reference that stood, or would have stood, in its place.
        reference: Option<String>,
    },
}

/// A block of a message that is shortened or left out.
#[napi(object)]
pub struct TextEdit {
    /// The block, counted from 0 among those of the message as it was handed over; 0 for a content that is one text.
    pub block: u32,
    /// Its new text; absent: leave the block out.
    pub text: Option<String>,
}

/// Arguments that replace the full ones of a call.
#[napi(object)]
pub struct CollapsedCall {
    /// The harness's call ID.
    pub call_id: String,
    /// The position among the tool calls of the message, counted from 0.
    pub position: u32,
    /// The arguments to show.
    #[napi(ts_type = "object")]
    pub args: String,
}
