//! JSON on its way across the border: as one text. V8 reads and writes a text many times faster than values can be made
//! one by one, and our side of it is done away from the event loop. A text also keeps what assigning fields would not: an
//! own field named `__proto__`.

use std::cell::Cell;

use context_store::Version;
use napi::bindgen_prelude::{Env, FromNapiValue, Function, FunctionRef, ToNapiValue};
use napi::sys;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::error::Coded;

/// Writes a value as JSON, and refuses what JSON has no name for. The number of values is bounded because a few objects
/// that hold each other several times can stand for more than any memory holds. The number of one object's fields is
/// because V8 is slow with very wide objects, and listing the names is most of that: they are listed once, and none is
/// written.
const WRITE: &str = "(() => {
  const most = 4_000_000
  const widest = 100_000
  return (value) => {
    let count = 0
    const checked = (_name, one) => {
      const type = typeof one
      if (type === 'function' || type === 'symbol') throw new TypeError(`a ${type} is not a JSON value`)
      if (type === 'number' && !Number.isFinite(one)) throw new TypeError(`${one} is not a JSON value`)
      if ((count += 1) > most) throw new RangeError(`there are more than ${most} values`)
      if (type === 'object' && one !== null && !Array.isArray(one)) {
        let fields = 0
        for (const _ in one) {
          if ((fields += 1) > widest) throw new RangeError(`an object has more than ${widest} fields; make a list of them, or a text`)
        }
      }
      if (type !== 'bigint') return one
      return Number.isSafeInteger(Number(one)) ? Number(one) : String(one)
    }
    const text = JSON.stringify(value, checked)
    if (text === undefined) throw new TypeError('undefined is not a JSON value')
    return text
  }
})()";

/// Reads a history: a list begins with so many elements of the same list one version earlier.
const READ_HISTORY: &str = "(() => (pages) => {
  let before
  return pages.flatMap((page) => JSON.parse(page).map(([version, lists]) => {
    for (const [name, count] of lists) {
      version.document[name] = before.document[name].slice(0, count).concat(version.document[name])
    }
    return (before = version)
  }))
})()";

/// A JSON value as its text.
pub struct Json(String);

impl Json {
    /// The text of a value.
    pub fn of(value: &impl Serialize) -> Result<Self, Coded> {
        let failed = |error| Coded::failed(format!("an answer can't be written as JSON: {error}"));
        serde_json::to_string(value).map(Self).map_err(failed)
    }

    /// The text of a version.
    pub fn version(version: &Version) -> Result<Self, Coded> {
        Self::of(&whole(version, json!(version.document)))
    }

    /// The value.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for one that is nested too deeply.
    pub fn value(self) -> Result<Value, Coded> {
        serde_json::from_str(&without_lone_surrogates(self.0)).map_err(|error| {
            Coded::invalid(format!("a value can't be read, or is nested too deeply: {error}"))
        })
    }

    /// The fields of an object.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for another value; `what` begins the sentence.
    pub fn object(self, what: &str) -> Result<Map<String, Value>, Coded> {
        match self.value()? {
            Value::Object(map) => Ok(map),
            _ => Err(Coded::invalid(format!("{what} is an object"))),
        }
    }
}

/// Half of a surrogate pair becomes the replacement character, as in every other text that crosses the border.
fn without_lone_surrogates(text: String) -> String {
    // Whole pairs stand for themselves in what JavaScript writes; only halves are escaped.
    if !text.contains("\\ud") {
        return text;
    }
    let mut bytes = text.into_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match &bytes[at..] {
            [b'\\', b'u', b'd', b'8'..=b'f', _, _, ..] => {
                bytes[at + 2..at + 6].copy_from_slice(b"fffd");
                at += 6;
            }
            [b'\\', ..] => at += 2,
            _ => at += 1,
        }
    }
    String::from_utf8(bytes).unwrap_or_else(|_| unreachable!("ASCII was replaced by ASCII"))
}

/// Versions of an object on their way to JavaScript, where they share their common parts. So a chat's history takes the
/// memory of its longest version and does not grow quadratically.
#[derive(Default)]
pub struct History {
    pages: Vec<String>,
    last: Option<Version>,
}

impl History {
    /// Adds the versions that follow.
    pub fn add(&mut self, page: Vec<Version>) -> Result<(), Coded> {
        let mut steps = Vec::with_capacity(page.len());
        for version in page {
            steps.push(step(self.last.as_ref(), &version));
            self.last = Some(version);
        }
        self.pages.push(Json::of(&steps)?.0);
        Ok(())
    }
}

/// A version without the beginnings of lists that the one before it has, too, and the lengths of these.
fn step(before: Option<&Version>, version: &Version) -> Value {
    let document = &version.document;
    let mut fields = Map::new();
    let mut lists = Vec::new();
    for (name, value) in document.payload() {
        let earlier = before.and_then(|before| before.document.field(name)).and_then(Value::as_array);
        let (Some(earlier), Some(now)) = (earlier.filter(|_| name != "__proto__"), value.as_array()) else {
            fields.insert(name.clone(), value.clone());
            continue;
        };
        let count = earlier.iter().zip(now).take_while(|(a, b)| a == b).count();
        fields.insert(name.clone(), json!(now[count..]));
        lists.push((name, count));
    }
    fields.insert("xt/id".into(), json!(document.id()));
    fields.insert("type".into(), document.object_type().as_str().into());
    fields.insert("source".into(), json!(document.source()));
    fields.insert("identity_hash".into(), document.identity_hash().to_string().into());
    json!([whole(version, fields.into()), lists])
}

/// A version with its document in this form.
fn whole(version: &Version, document: Value) -> Value {
    let mut whole = json!({
        "document": document,
        "txId": version.tx_id.0,
        "txTime": version.tx_time.to_string(),
        "validTime": version.valid_time.to_string(),
    });
    if let Some(erased) = &version.erased {
        whole["erased"] = json!({ "at": erased.at.to_string(), "why": erased.why });
    }
    whole
}

/// A value that stays JavaScript's.
struct Raw(sys::napi_value);

/// A function of ours in JavaScript, made once for each environment.
struct Made<A: ToNapiValue + 'static, R: FromNapiValue + 'static>(
    Cell<Option<(usize, &'static FunctionRef<A, R>)>>,
);

impl<A: ToNapiValue, R: FromNapiValue> Made<A, R> {
    const fn new() -> Self {
        Self(Cell::new(None))
    }

    fn call(&self, env: &Env, script: &str, argument: A) -> napi::Result<R> {
        let own = env.raw() as usize;
        if let Some((of, function)) = self.0.get()
            && of == own
        {
            return function.borrow_back(env)?.call(argument);
        }
        let function: Function<'_, A, R> = env.run_script(script)?;
        // Kept for as long as the environment: nobody may let go of it once that has ended.
        self.0.set(Some((own, Box::leak(Box::new(function.create_ref()?)))));
        function.call(argument)
    }
}

thread_local! {
    static WRITING: Made<Raw, String> = const { Made::new() };
    static READING: Made<String, Raw> = const { Made::new() };
    static READING_HISTORY: Made<Vec<String>, Raw> = const { Made::new() };
}

#[expect(unsafe_code, reason = "a trait of napi's with an unsafe method; the value is handed on as it is")]
impl ToNapiValue for Raw {
    unsafe fn to_napi_value(_: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        Ok(value.0)
    }
}

#[expect(unsafe_code, reason = "a trait of napi's with an unsafe method; the value is handed on as it is")]
impl FromNapiValue for Raw {
    unsafe fn from_napi_value(_: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        Ok(Self(value))
    }
}

#[expect(unsafe_code, reason = "a trait of napi's with an unsafe method; only safe ones are called")]
impl FromNapiValue for Json {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> napi::Result<Self> {
        WRITING.with(|made| made.call(&Env::from(env), WRITE, Raw(value))).map(Self)
    }
}

#[expect(unsafe_code, reason = "a trait of napi's with an unsafe method; only safe ones are called")]
impl ToNapiValue for Json {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        READING.with(|made| made.call(&Env::from(env), "JSON.parse", value.0)).map(|raw| raw.0)
    }
}

#[expect(unsafe_code, reason = "a trait of napi's with an unsafe method; only safe ones are called")]
impl ToNapiValue for History {
    unsafe fn to_napi_value(env: sys::napi_env, value: Self) -> napi::Result<sys::napi_value> {
        READING_HISTORY.with(|made| made.call(&Env::from(env), READ_HISTORY, value.pages)).map(|raw| raw.0)
    }
}
