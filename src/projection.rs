//! The projection's methods of `ContextManager`, and their shapes.

use context_engine::{Call, CollapsedCall, Edit, Incoming, Received, TextEdit};
use context_model::chat::{Receipt, RollReason};
use context_model::id::SessionId;
use context_model::time::Timestamp;
use context_projection::{Binding, PriceStep as Step, PriceSteps, Prices};
use napi::Result;
use napi::bindgen_prelude::{Env, PromiseRaw};
use napi_derive::napi;

use crate::convert::{self, list, texts};
use crate::error::{Coded, Outcome};
use crate::json;
use crate::manager::ContextManager;
use crate::types as js;

/// What to show when a tool result enters the transcript.
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
    /// How many content blocks the provider looks back for a cached prefix: 20 for Anthropic's API; absent for
    /// providers that reuse any common prefix.
    pub lookback_blocks: Option<u32>,
    /// How many earlier endings of a user's message or a group of outputs the provider looks back for a cached prefix: 20 for
    /// OpenAI's models from GPT-5.6 on; absent for other providers.
    pub lookback_endings: Option<u32>,
    /// What the provider does with the model's reasoning once something before it has changed: `none` (it does not check),
    /// `keeps` (it checks, but the model still reads it), `drops` (it drops that reasoning and all later reasoning) or
    /// `refuses` (it refuses the request). Default `none`.
    #[napi(ts_type = "'none' | 'keeps' | 'drops' | 'refuses'")]
    pub binding: Option<String>,
    /// True if text between the calls of an answer is part of the model's reasoning, which must stay as it is or leave
    /// as a whole. Default false.
    pub text_is_reasoning: Option<bool>,
    /// The context window in tokens; 0 when unknown.
    pub context_window: f64,
    /// How long the provider keeps a prefix, in milliseconds.
    pub cache_ttl_ms: f64,
    /// The harness's clock, in milliseconds since the epoch.
    pub now_ms: f64,
    /// For `resync`: when an earlier process sent the messages last, in milliseconds since the epoch, if it sent them in the
    /// form that the record gives them. The provider then has them cached, until that is too long ago.
    pub sent_ms: Option<f64>,
    /// Estimated tokens of the system prompt and the tool declarations.
    pub system_tokens: f64,
    /// Roll only at the start of a user's turn, for models whose reasoning depends on an unchanged prefix.
    pub only_at_user_turn: bool,
    /// True if the next call starts a user's turn.
    pub at_user_turn: bool,
    /// True if a roll may happen now.
    pub rolls: bool,
    /// True if the harness can shorten texts in messages and leave out whole messages: edits with `texts`, and edits of
    /// the kind `gone`. Default false: then only outputs and arguments collapse.
    pub shortens: Option<bool>,
}

/// What to do before the next model call.
#[napi(object)]
pub struct Plan {
    /// Messages to replace in what the model sees.
    #[napi(ts_type = "Edit[]")]
    pub edits: Vec<js::Edit>,
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
    /// What this process's model calls have cost so far, in fresh input tokens, without the answers.
    pub spent: f64,
    /// The current result of `point`; set only by `advance`.
    pub point: Option<i64>,
    /// The current result of `pointTimes`; set only by `advance`.
    #[napi(ts_type = "[string, string]")]
    pub point_times: Option<Vec<String>>,
}

/// What a roll removed, what it cost, and when it pays for itself. For people; it never enters the chat.
#[napi(object)]
pub struct RollReceipt {
    /// How many items were replaced by references.
    pub items: u32,
    /// Blocks of reasoning that were not stale but depended on what changed: they left too, or the provider drops them. Absent
    /// for none.
    pub reasoning_lost: Option<u32>,
    /// Those of them that belonged to the turn in which the roll happened.
    pub reasoning_lost_running: Option<u32>,
    /// Tokens removed from the request.
    pub removed_tokens: f64,
    /// What it cost once, in fresh input tokens, rounded.
    pub cost: f64,
    /// What each later call saves, in fresh input tokens, rounded.
    pub gain: f64,
    /// Model calls until it has paid for itself; absent if it never does.
    pub pays_back_after_calls: Option<u32>,
    /// Why it happened.
    #[napi(ts_type = "'free' | 'pays' | 'pressure' | 'hard' | 'asked'")]
    pub reason: String,
}

#[napi]
impl ContextManager {
    #[napi]
    pub fn receive<'e>(&self, env: &'e Env, call: js::Toolcall) -> Result<PromiseRaw<'e, ReceivedResult>> {
        self.life.call(env, |open| async move {
            let Received { id, handle, header } = open.engine.receive(convert::toolcall(call)?).await?;
            Ok(ReceivedResult { id: id.to_string(), handle, header })
        })
    }

    #[napi]
    pub fn advance<'e>(
        &self,
        env: &'e Env,
        messages: Vec<IncomingMessage>,
        call: ModelCall,
    ) -> Result<PromiseRaw<'e, Plan>> {
        self.life.call(env, |open| async move {
            plan(open.engine.advance(incoming(messages)?, &circumstances(call)?).await?)
        })
    }

    #[napi]
    pub fn look<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, |open| async move { Ok(open.engine.look().await?) })
    }

    #[napi]
    pub fn settle<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, |open| async move { Ok(open.engine.settle().await?) })
    }

    #[napi]
    pub fn resync<'e>(
        &self,
        env: &'e Env,
        messages: Vec<IncomingMessage>,
        recorded: u32,
        call: ModelCall,
    ) -> Result<PromiseRaw<'e, Plan>> {
        self.life.call(env, move |open| async move {
            let call = circumstances(call)?;
            plan(open.engine.resync(incoming(messages)?, recorded as usize, &call).await?)
        })
    }

    #[napi]
    pub fn answer_read<'e>(
        &self,
        env: &'e Env,
        path: String,
        offset: Option<u32>,
        limit: Option<u32>,
        call_id: Option<String>,
    ) -> Result<PromiseRaw<'e, Option<String>>> {
        self.life.call(env, move |open| async move {
            let (offset, limit) = (offset.map(|n| n as usize), limit.map(|n| n as usize));
            let answer = open.engine.answer_read(&path, offset, limit, call_id.as_deref()).await?;
            Ok(answer.map(|answer| answer.text))
        })
    }

    #[napi]
    pub fn check_edit<'e>(&self, env: &'e Env, path: String) -> Result<PromiseRaw<'e, Option<String>>> {
        self.life.call(env, |open| async move { Ok(open.engine.check_edit(&path).await?) })
    }

    #[napi]
    pub fn guard_edit<'e>(
        &self,
        env: &'e Env,
        path: String,
        old_texts: Option<Vec<String>>,
        call_id: Option<String>,
    ) -> Result<PromiseRaw<'e, js::EditGuard>> {
        self.life.call(env, |open| async move {
            Ok(open.engine.guard_edit(&path, old_texts.as_deref(), call_id.as_deref()).await?.into())
        })
    }

    #[napi(ts_args_type = "args: object")]
    pub fn check_arguments<'e>(&self, env: &'e Env, args: String) -> Result<PromiseRaw<'e, Option<String>>> {
        let args = json::object(args, "args").unwrap_or_default();
        self.life.call_promptly(env, |open| async move { Ok(open.engine.check_arguments(&args).await?) })
    }

    #[napi]
    pub fn stale_notices<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<String>>> {
        self.life.call(env, |open| async move { Ok(open.engine.stale_notices().await?) })
    }

    #[napi]
    pub fn roll_now<'e>(&self, env: &'e Env, call: ModelCall) -> Result<PromiseRaw<'e, Plan>> {
        self.life.call(env, |open| async move { plan(open.engine.roll_now(&circumstances(call)?).await?) })
    }

    #[napi]
    pub fn preview_roll<'e>(
        &self,
        env: &'e Env,
        call: ModelCall,
    ) -> Result<PromiseRaw<'e, Option<RollReceipt>>> {
        self.life.call(env, |open| async move {
            Ok(open.engine.preview_roll(&circumstances(call)?).await?.map(RollReceipt::from))
        })
    }

    #[napi]
    pub fn undo_roll<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Plan>> {
        self.life.call(env, |open| async move { plan(open.engine.undo_roll().await?) })
    }

    #[napi]
    pub fn receipts<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<RollReceipt>>> {
        self.life.call(env, |open| async move { Ok(list(open.engine.receipts().await?)) })
    }

    #[napi]
    pub fn restore<'e>(
        &self,
        env: &'e Env,
        session_id: String,
        tx: f64,
        times: Option<Vec<String>>,
    ) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, move |open| async move {
            let times = times.map(point_times).transpose()?;
            Ok(open.engine.restore(&SessionId::new(session_id)?, convert::tx(tx)?, times).await?)
        })
    }

    #[napi]
    pub fn go_back<'e>(&self, env: &'e Env, tx: f64) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, move |open| async move { Ok(open.engine.go_back(convert::tx(tx)?).await?) })
    }

    #[napi]
    pub fn point<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, i64>> {
        self.life.call(env, |open| async move { Ok(convert::number(open.engine.point().await?)) })
    }

    #[napi(ts_return_type = "Promise<[string, string]>")]
    pub fn point_times<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<String>>> {
        self.life.call(env, |open| async move { Ok(texts(&open.engine.point_times().await?)) })
    }
}

fn point_times(times: Vec<String>) -> Outcome<[Timestamp; 2]> {
    let [session, chat] = &times[..] else {
        return Err(Coded::invalid("the times of a point are two: of the session, and of its chat"));
    };
    Ok([session.parse()?, chat.parse()?])
}

fn incoming(messages: Vec<IncomingMessage>) -> Outcome<Vec<Incoming>> {
    messages.into_iter().map(|m| Ok(Incoming { key: m.key, message: json::value(m.message)? })).collect()
}

fn circumstances(call: ModelCall) -> Outcome<Call> {
    let prices = call.prices;
    if call.lookback_blocks.is_some() && call.lookback_endings.is_some() {
        return Err(Coded::invalid("a model call has lookbackBlocks or lookbackEndings, not both"));
    }
    for (price, name) in
        [(prices.input, "input"), (prices.cache_read, "cacheRead"), (prices.cache_write, "cacheWrite")]
    {
        amount(price, &format!("call.prices.{name}"))?;
    }
    let step = |step: PriceStep| {
        let input_tokens_above = amount(step.input_tokens_above, "call.prices.tiers.inputTokensAbove")?;
        Ok(Step { input_tokens_above, factor: step.factor })
    };
    let steps = prices.tiers.into_iter().flatten().map(step).collect::<Outcome<Vec<_>>>()?;
    Ok(Call {
        model: call.model,
        prices: Prices::from_catalogue(prices.input, prices.cache_read, prices.cache_write, prices.caches),
        price_steps: PriceSteps::new(steps),
        binding: call.binding.map_or(Ok(Binding::None), |name| binding(&name))?,
        text_is_reasoning: call.text_is_reasoning.unwrap_or(false),
        lookback_blocks: call.lookback_blocks,
        lookback_endings: call.lookback_endings,
        context_window: amount(call.context_window, "call.contextWindow")?,
        cache_ttl_ms: amount(call.cache_ttl_ms, "call.cacheTtlMs")? as i64,
        now_ms: amount(call.now_ms, "call.nowMs")? as i64,
        system_tokens: amount(call.system_tokens, "call.systemTokens")?,
        only_at_user_turn: call.only_at_user_turn,
        at_user_turn: call.at_user_turn,
        rolls: call.rolls,
        shortens: call.shortens.unwrap_or(false),
        sent_ms: call.sent_ms.map(|ms| amount(ms, "call.sentMs")).transpose()?.map(|ms| ms as i64),
    })
}

fn binding(name: &str) -> Outcome<Binding> {
    Binding::named(name).ok_or_else(|| {
        Coded::invalid(format!("binding is 'none', 'keeps', 'drops' or 'refuses', not {name:?}"))
    })
}

/// An estimate from JavaScript, without its fraction. `what` begins the sentence.
fn amount(number: f64, what: &str) -> Outcome<u64> {
    if number >= 0.0 {
        Ok(number as u64)
    } else {
        Err(Coded::invalid(format!("{what} is a number of 0 or more, not {number}")))
    }
}

fn plan(plan: context_engine::Plan) -> Outcome<Plan> {
    Ok(Plan {
        edits: plan.edits.into_iter().map(edit).collect::<Outcome<_>>()?,
        notices: plan.notices,
        receipt: plan.receipt.map(RollReceipt::from),
        context_tokens: plan.context_tokens as f64,
        stale_tokens: plan.stale_tokens as f64,
        rewrite_cost: plan.rewrite_cost,
        spent: plan.spent,
        point: plan.point.map(|(tx, _)| convert::number(tx)),
        point_times: plan.point.map(|(_, times)| texts(&times)),
    })
}

fn edit(edit: Edit) -> Outcome<js::Edit> {
    Ok(match edit {
        Edit::Result { key, object, text } => js::Edit::Result { key, object: object.to_string(), text },
        Edit::Message { key, calls, texts } => js::Edit::Message {
            key,
            calls: calls.into_iter().map(collapsed).collect::<Outcome<_>>()?,
            texts: texts.into_iter().map(text_edit).collect(),
        },
        Edit::Gone { key } => js::Edit::Gone { key },
    })
}

fn collapsed(call: CollapsedCall) -> Outcome<js::CollapsedCall> {
    Ok(js::CollapsedCall {
        call_id: call.call_id,
        position: convert::count(call.position),
        args: json::text(&call.args)?,
    })
}

fn text_edit(TextEdit { block, text }: TextEdit) -> js::TextEdit {
    js::TextEdit { block: convert::count(block), text }
}

impl From<Receipt> for RollReceipt {
    fn from(receipt: Receipt) -> Self {
        let some = |lost: usize| (lost > 0).then(|| convert::count(lost));
        Self {
            items: convert::count(receipt.items),
            reasoning_lost: some(receipt.reasoning_lost),
            reasoning_lost_running: some(receipt.reasoning_lost_running),
            removed_tokens: receipt.removed_tokens as f64,
            cost: receipt.cost.round(),
            gain: receipt.gain.round(),
            pays_back_after_calls: receipt.pays_back_after_calls,
            reason: match receipt.reason {
                RollReason::Free => "free",
                RollReason::Pays => "pays",
                RollReason::Pressure => "pressure",
                RollReason::Hard => "hard",
                RollReason::Asked => "asked",
            }
            .to_owned(),
        }
    }
}
