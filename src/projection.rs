//! The projection's methods of `ContextManager`, and the conversion of their arguments and results.

use context_engine::{
    Because, Call, Chance, CollapsedCall, Edit, HeldBack, IncomingMessage, Received, RollPreview, TextEdit,
};
use context_model::chat::{RollReason, RollReceipt};
use context_model::id::SessionId;
use context_model::time::Timestamp;
use context_projection::{Binding, PriceStep, PriceSteps, Prices};
use napi::Result;
use napi::bindgen_prelude::{Env, PromiseRaw};
use napi_derive::napi;

use crate::convert::{self, list, texts};
use crate::error::{Coded, Outcome};
use crate::json;
use crate::manager::ContextManager;
use crate::types as js;

#[napi]
impl ContextManager {
    #[napi]
    pub fn receive<'e>(
        &self,
        env: &'e Env,
        call: js::Toolcall,
    ) -> Result<PromiseRaw<'e, js::ReceivedResult>> {
        self.life.call(env, |open| async move {
            let Received { id, handle, header } = open.engine.receive(convert::toolcall(call)?).await?;
            Ok(js::ReceivedResult { id: id.to_string(), handle, header })
        })
    }

    #[napi]
    pub fn advance<'e>(
        &self,
        env: &'e Env,
        messages: Vec<js::IncomingMessage>,
        call: js::ModelCall,
    ) -> Result<PromiseRaw<'e, js::Plan>> {
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
        messages: Vec<js::IncomingMessage>,
        recorded: u32,
        call: js::ModelCall,
    ) -> Result<PromiseRaw<'e, js::Plan>> {
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
    pub fn roll_now<'e>(&self, env: &'e Env, call: js::ModelCall) -> Result<PromiseRaw<'e, js::Plan>> {
        self.life.call(env, |open| async move { plan(open.engine.roll_now(&circumstances(call)?).await?) })
    }

    #[napi]
    pub fn preview_roll<'e>(
        &self,
        env: &'e Env,
        call: js::ModelCall,
    ) -> Result<PromiseRaw<'e, Option<js::RollPreview>>> {
        self.life.call(env, |open| async move {
            let preview = open.engine.preview_roll(&circumstances(call)?).await?;
            Ok(preview.map(|RollPreview { receipt, outputs }| js::RollPreview {
                receipt: receipt.into(),
                outputs: texts(&outputs),
            }))
        })
    }

    #[napi]
    pub fn held_back<'e>(
        &self,
        env: &'e Env,
        call: js::ModelCall,
    ) -> Result<PromiseRaw<'e, Option<js::HeldBack>>> {
        self.life.call(env, |open| async move {
            let call = circumstances(call)?;
            Ok(open.engine.held_back(&call).await?.map(|held| held_back(held, &call)))
        })
    }

    #[napi]
    pub fn undo_roll<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, js::Plan>> {
        self.life.call(env, |open| async move { plan(open.engine.undo_roll().await?) })
    }

    #[napi]
    pub fn receipts<'e>(&self, env: &'e Env) -> Result<PromiseRaw<'e, Vec<js::RollReceipt>>> {
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
    pub fn keep_beginning<'e>(&self, env: &'e Env, messages: f64) -> Result<PromiseRaw<'e, ()>> {
        self.life.call(env, move |open| async move {
            Ok(open.engine.keep_beginning(convert::whole(messages, "messages")?).await?)
        })
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

fn incoming(messages: Vec<js::IncomingMessage>) -> Outcome<Vec<IncomingMessage>> {
    messages
        .into_iter()
        .map(|m| Ok(IncomingMessage { key: m.key, message: json::value(m.message)? }))
        .collect()
}

fn circumstances(call: js::ModelCall) -> Outcome<Call> {
    let prices = call.prices;
    if call.lookback_blocks.is_some() && call.lookback_endings.is_some() {
        return Err(Coded::invalid("a model call has lookbackBlocks or lookbackEndings, not both"));
    }
    for (price, name) in
        [(prices.input, "input"), (prices.cache_read, "cacheRead"), (prices.cache_write, "cacheWrite")]
    {
        amount(price, &format!("call.prices.{name}"))?;
    }
    let step = |step: js::PriceStep| {
        let input_tokens_above = amount(step.input_tokens_above, "call.prices.tiers.inputTokensAbove")?;
        Ok(PriceStep { input_tokens_above, factor: step.factor })
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
        cache_ttl_ms: milliseconds(call.cache_ttl_ms, "call.cacheTtlMs")?,
        cache_kept: call.cache_kept.map(probability).transpose()?,
        now_ms: milliseconds(call.now_ms, "call.nowMs")?,
        system_tokens: amount(call.system_tokens, "call.systemTokens")?,
        only_at_user_turn: call.only_at_user_turn,
        at_user_turn: call.at_user_turn,
        rolls: call.rolls,
        repeats: call.repeats.unwrap_or(call.rolls),
        place: call.place,
        closed: call.closed.unwrap_or(false),
        shortens: call.shortens.unwrap_or(false),
        sent_ms: call.sent_ms.map(|ms| milliseconds(ms, "call.sentMs")).transpose()?,
        sent_messages: call.sent_messages.map(|count| count as usize),
    })
}

fn binding(name: &str) -> Outcome<Binding> {
    Binding::named(name).ok_or_else(|| {
        Coded::invalid(format!("binding is 'none', 'keeps', 'drops' or 'refuses', not {name:?}"))
    })
}

/// A probability from JavaScript.
fn probability(kept: f64) -> Outcome<f64> {
    if (0.0..=1.0).contains(&kept) {
        Ok(kept)
    } else {
        Err(Coded::invalid(format!("call.cacheKept is a probability from 0 to 1, not {kept}")))
    }
}

/// An estimate from JavaScript, without its fraction. `what` begins the sentence.
fn amount(number: f64, what: &str) -> Outcome<u64> {
    if number >= 0.0 {
        Ok(number as u64)
    } else {
        Err(Coded::invalid(format!("{what} is a number of 0 or more, not {number}")))
    }
}

/// As an amount. Converting saturates: a lifetime without an end is a very long one.
fn milliseconds(number: f64, what: &str) -> Outcome<i64> {
    amount(number, what)?;
    Ok(number as i64)
}

fn plan(plan: context_engine::Plan) -> Outcome<js::Plan> {
    Ok(js::Plan {
        edits: plan.edits.into_iter().map(edit).collect::<Outcome<_>>()?,
        notices: plan.notices,
        receipt: plan.receipt.map(js::RollReceipt::from),
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
        Edit::Gone { key, reference } => js::Edit::Gone { key, reference },
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

fn held_back(HeldBack { tokens, because, chance }: HeldBack, call: &Call) -> js::HeldBack {
    let because = match because {
        Because::Off => "off",
        Because::Due => "due",
        Because::Young => "young",
        Because::Unseen => "unseen",
        Because::Turn => "turn",
        Because::Bound => "bound",
        Because::Reasoning => "reasoning",
        Because::Dear => "dear",
        Because::Debt => "debt",
    };
    let (name, calls) = match chance {
        None => (None, None),
        Some(Chance::Call) => (Some("call"), None),
        Some(Chance::Prompt) => (Some("prompt"), None),
        Some(Chance::Calls(calls)) => (Some("calls"), Some(calls)),
        Some(Chance::Pause) => (Some("pause"), None),
    };
    js::HeldBack {
        tokens: tokens as f64,
        because: because.to_owned(),
        chance: name.map(str::to_owned),
        calls,
        pause_ms: (chance == Some(Chance::Pause)).then_some(call.cache_ttl_ms as f64),
    }
}

impl From<RollReceipt> for js::RollReceipt {
    fn from(receipt: RollReceipt) -> Self {
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
