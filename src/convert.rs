//! From JavaScript's shapes to the core's, and back.

use context_engine::{
    Assembled, Block, Found, IndexResult, Indexed, Part, SessionSets, SetChange, Stay, Stays, Wanted,
};
use context_model::collapse::Window;
use context_model::id::ObjectId;
use context_model::object::{ObjectType, Status, Toolcall};
use context_model::time::TxId;
use context_store::{AsOf, KnownAt};
use napi::bindgen_prelude::Either;

use crate::error::Coded;
use crate::json;
use crate::types as js;

/// `Number.MAX_SAFE_INTEGER`.
const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;

pub(crate) fn bytes(content: js::Content) -> Vec<u8> {
    match content {
        Either::A(text) => text.into_bytes(),
        Either::B(bytes) => bytes.to_vec(),
    }
}

impl From<context_engine::EditGuard> for js::EditGuard {
    fn from(guard: context_engine::EditGuard) -> Self {
        match guard {
            context_engine::EditGuard::Refused(text) => Self { refusal: Some(text), difference: None },
            context_engine::EditGuard::Allowed { difference } => Self { refusal: None, difference },
        }
    }
}

impl From<IndexResult> for js::IndexResult {
    fn from(result: IndexResult) -> Self {
        Self { id: result.id.to_string(), action: result.action.as_str().to_owned(), reason: result.reason }
    }
}

impl From<Indexed> for js::IndexedFiles {
    fn from(indexed: Indexed) -> Self {
        let refused = indexed.refused.into_iter().map(|(path, error)| js::RefusedFile {
            path,
            code: error.code().as_str().to_owned(),
            message: error.to_string(),
        });
        Self { indexed: list(indexed.results), refused: refused.collect() }
    }
}

pub(crate) fn set_change(change: SetChange) -> Result<js::SetChange, Coded> {
    Ok(js::SetChange {
        ok: change.ok,
        id: change.id.to_string(),
        message: change.message,
        code: change.code.map(|code| code.as_str().to_owned()),
        content: change.content,
        arguments: change.arguments.as_ref().map(json::text).transpose()?,
        visible: change.visible,
    })
}

impl From<SessionSets> for js::SessionSets {
    fn from(sets: SessionSets) -> Self {
        Self {
            session_index: texts(&sets.session_index),
            metadata_pool: texts(&sets.metadata_pool),
            active_set: texts(&sets.active_set),
            pinned_set: texts(&sets.pinned_set),
        }
    }
}

pub(crate) fn assembled(view: &Assembled) -> Result<js::Assembled, Coded> {
    let block = |b: Block<'_>| js::Block { id: b.id.to_string(), content: b.content.to_owned() };
    Ok(js::Assembled {
        system_prompt: view.system_prompt().to_owned(),
        metadata_pool: view.metadata_pool().to_owned(),
        chat: json::text(&view.chat().collect::<Vec<_>>())?,
        active_content: view.active_content().to_owned(),
        blocks: view.blocks().map(block).collect(),
        text: view.text().to_owned(),
    })
}

pub(crate) fn wanted(text: String, options: Option<js::SearchOptions>) -> Result<Wanted, Coded> {
    let (limit, kind, session_id) = options.map_or((None, None, None), |o| (o.limit, o.r#type, o.session_id));
    let limit = limit.map_or(Ok(20), |n| whole(n, "limit"))?;
    Ok(Wanted { text, limit, object_type: object_type(kind)?, session_id })
}

impl From<Found> for js::SearchHit {
    fn from(found: Found) -> Self {
        Self {
            id: found.id.to_string(),
            handle: found.handle,
            r#type: found.object_type.as_str().to_owned(),
            path: found.path,
            tool: found.tool,
            tx_id: number(found.tx_id),
            is_latest: found.is_latest,
            line: count(found.line),
            snippet: found.snippet,
            score: found.score,
            shown: found.shown,
        }
    }
}

impl From<context_engine::Stats> for js::Stats {
    fn from(stats: context_engine::Stats) -> Self {
        Self {
            context_tokens: i64::try_from(stats.context_tokens).unwrap_or(i64::MAX),
            active_tokens: i64::try_from(stats.active_tokens).unwrap_or(i64::MAX),
            objects: count(stats.objects),
            rolls: count(stats.rolls),
        }
    }
}

pub(crate) fn toolcall(call: js::Toolcall) -> Result<Toolcall, Coded> {
    let status = match call.status.as_str() {
        "ok" => Status::Ok,
        "fail" => Status::Fail,
        _ => return Err(Coded::invalid("status must be 'ok' or 'fail'")),
    };
    Ok(Toolcall {
        id: call.id,
        tool: call.tool,
        args: json::object(call.args, "args")?,
        args_display: call.args_display,
        content: call.content,
        status,
        file_refs: call.file_refs.unwrap_or_default().into_iter().map(ObjectId::new).collect(),
        parent: call.parent,
    })
}

pub(crate) fn part(part: Option<js::Part>) -> Result<Option<Part>, Coded> {
    let Some(part) = part else { return Ok(None) };
    match (part.lines, part.grep) {
        (None, None) => Ok(None),
        (Some(Either::A(range)), None) => line_range(&range).map(Some),
        (Some(Either::B(lines)), None) => match lines[..] {
            [first, last] => Ok(Some(Part::Lines(whole(first, "a line")?, whole(last, "a line")?))),
            _ => Err(Coded::invalid("lines must be a pair of line numbers, first and last")),
        },
        (None, Some(pattern)) => Ok(Some(Part::Grep(pattern))),
        (Some(_), Some(_)) => Err(Coded::invalid("give either lines or grep, not both")),
    }
}

/// `120-180`, or `120` for a single line.
fn line_range(range: &str) -> Result<Part, Coded> {
    let (first, last) = range.split_once('-').unwrap_or((range, range));
    let line = |text: &str| text.trim().parse::<u32>().ok().and_then(|line| usize::try_from(line).ok());
    line(first)
        .zip(line(last))
        .map(|(first, last)| Part::Lines(first, last))
        .ok_or_else(|| Coded::invalid(format!("lines is a range such as \"120-180\", not {range:?}")))
}

pub(crate) fn as_of(at: Either<String, js::AsOf>) -> Result<AsOf, Coded> {
    let at = match at {
        Either::A(time) => return Ok(AsOf { valid_time: Some(time.parse()?), known: None }),
        Either::B(at) => at,
    };
    let valid_time = at.valid_time.map(|t| t.parse()).transpose()?;
    let known = match (at.tx_id, at.tx_time) {
        (Some(id), None) => Some(KnownAt::Tx(tx(id)?)),
        (None, Some(time)) => Some(KnownAt::Time(time.parse()?)),
        (None, None) => None,
        (Some(_), Some(_)) => return Err(Coded::invalid("give either txId or txTime, not both")),
    };
    Ok(AsOf { valid_time, known })
}

/// After which transaction a part of a history begins, and how many versions it has at most.
pub(crate) fn history_part(part: Option<js::HistoryPart>) -> Result<(TxId, usize), Coded> {
    let Some(js::HistoryPart { after, limit }) = part else { return Ok((TxId(0), usize::MAX)) };
    Ok((after.map_or(Ok(TxId(0)), tx)?, limit.map_or(Ok(usize::MAX), |n| whole(n, "limit"))?))
}

pub(crate) fn object_type(name: Option<String>) -> Result<Option<ObjectType>, Coded> {
    Ok(name.map(|n| n.parse()).transpose()?)
}

pub(crate) fn tx(id: f64) -> Result<TxId, Coded> {
    Ok(TxId(whole(id, "a transaction")? as u64))
}

/// A count or number from JavaScript, which has fractions and NaN where we have none. `what` begins the sentence.
pub(crate) fn whole(number: f64, what: &str) -> Result<usize, Coded> {
    if number.fract() == 0.0 && (0.0..=MAX_SAFE_INTEGER).contains(&number) {
        Ok(number as usize)
    } else {
        Err(Coded::invalid(format!("{what} must be a whole number from 0 on")))
    }
}

pub(crate) fn window(options: Option<js::WindowOptions>) -> Result<Window, Coded> {
    let usual = Window::default();
    let Some(js::WindowOptions { per_turn, turns_back }) = options else { return Ok(usual) };
    Ok(Window {
        per_turn: per_turn.map_or(Ok(usual.per_turn), |n| whole(n, "window.perTurn"))?,
        turns_back: turns_back.map_or(Ok(usual.turns_back), |n| whole(n, "window.turnsBack"))?,
    })
}

pub(crate) fn stays(options: Option<js::StayOptions>) -> Result<Stays, Coded> {
    let usual = Stays::default();
    let Some(js::StayOptions { thinking, calls, prose, weight, debt_cap }) = options else {
        return Ok(usual);
    };
    if weight.is_some_and(|weight| !weight.is_finite() || weight <= 0.0) {
        return Err(Coded::invalid("stay.weight is a number above 0"));
    }
    Ok(Stays {
        thinking: stay(thinking, "stay.thinking")?,
        calls: stay(calls, "stay.calls")?,
        prose: stay(prose, "stay.prose")?,
        weight: weight.or(usual.weight),
        debt_cap: debt_cap.map(share).transpose()?,
    })
}

/// A bound as a share of the spending so far; infinite if there is none.
fn share(given: Either<String, f64>) -> Result<f64, Coded> {
    match given {
        Either::A(word) if word == "none" => Ok(f64::INFINITY),
        Either::B(share) if share.is_finite() && share >= 0.0 => Ok(share),
        _ => Err(Coded::invalid("stay.debtCap is \"none\" or a share of what was spent, 0 or more")),
    }
}

fn stay(given: Option<Either<String, f64>>, what: &str) -> Result<Stay, Coded> {
    match given {
        None => Ok(Stay::Needed),
        Some(Either::A(word)) if word == "keep" => Ok(Stay::Keep),
        Some(Either::B(calls)) if calls >= 1.0 => Ok(Stay::Calls(whole(calls, what)? as u64)),
        Some(_) => {
            Err(Coded::invalid(format!("{what} is \"keep\" or a whole number of model calls from 1 on")))
        }
    }
}

/// A list in JavaScript's shape.
pub(crate) fn list<T, U: From<T>>(list: Vec<T>) -> Vec<U> {
    list.into_iter().map(U::from).collect()
}

/// IDs or times as texts.
pub(crate) fn texts<T: ToString>(list: &[T]) -> Vec<String> {
    list.iter().map(ToString::to_string).collect()
}

/// A count or a place, which stay far below the largest number of JavaScript.
pub(crate) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// Transaction numbers count up from 1, so they stay far below JavaScript's largest exact integer.
pub(crate) fn number(tx: TxId) -> i64 {
    i64::try_from(tx.0).unwrap_or(i64::MAX)
}
