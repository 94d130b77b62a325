//! The lists of a session document, as its patches change them.

use std::collections::HashSet;

use json_patch::PatchOperation;
use serde_json::{Map, Value};

/// Why a version is refused, as a sentence.
pub(super) type Refused = String;

/// Prefixes of the IDs of infrastructure objects.
const INFRASTRUCTURE: [&str; 3] = ["session:", "chat:", "system_prompt:"];

/// The lists of a session document. Each is a subset of the list whose position it names.
const LISTS: [(&str, Option<usize>); 4] =
    [("session_index", None), ("metadata_pool", Some(0)), ("active_set", Some(1)), ("pinned_set", Some(0))];

/// The part of a session's lists that a patch changed.
pub(super) enum Touched {
    /// A whole list.
    All,
    /// One ID.
    One(String),
}

pub(super) fn lists(payload: &Map<String, Value>) -> [HashSet<String>; 4] {
    LISTS.map(|(name, _)| {
        let list = payload.get(name).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    })
}

/// Tracks an operation on one of the lists before it is applied to the payload.
pub(super) fn change_list(
    lists: &mut [HashSet<String>; 4],
    payload: &Value,
    tokens: &[String],
    operation: &PatchOperation,
    touched: &mut Vec<Touched>,
) -> Result<(), Refused> {
    let Some(place) = LISTS.iter().position(|(name, _)| tokens.first().is_some_and(|first| first == name))
    else {
        return Ok(());
    };
    let name = LISTS[place].0;
    let wrong = || format!("after a patch, {name} is not a list of distinct IDs");
    let list = &mut lists[place];
    let mut insert = |list: &mut HashSet<String>, value: &Value| {
        let id = value.as_str().filter(|id| list.insert((*id).to_owned())).ok_or_else(wrong)?;
        touched.push(Touched::One(id.to_owned()));
        Ok::<_, Refused>(())
    };
    let at = |index: &str| payload.get(name)?.get(index.parse::<usize>().ok()?)?.as_str();
    let remove = |list: &mut HashSet<String>, index: &str| {
        let id = at(index).ok_or_else(wrong)?;
        list.remove(id);
        Ok::<_, Refused>(id.to_owned())
    };
    match (tokens, operation) {
        ([_], PatchOperation::Add(_) | PatchOperation::Replace(_)) => {
            let value = match operation {
                PatchOperation::Add(add) => &add.value,
                PatchOperation::Replace(replace) => &replace.value,
                _ => return Err(wrong()),
            };
            list.clear();
            for id in value.as_array().ok_or_else(wrong)? {
                insert(list, id)?;
            }
            touched.push(Touched::All);
            Ok(())
        }
        ([_, _], PatchOperation::Add(add)) => insert(list, &add.value),
        ([_, index], PatchOperation::Remove(_)) => {
            let id = remove(list, index)?;
            touched.push(Touched::One(id));
            Ok(())
        }
        ([_, index], PatchOperation::Replace(replace)) => {
            let id = remove(list, index)?;
            insert(list, &replace.value)?;
            touched.push(Touched::One(id));
            Ok(())
        }
        _ => Err(wrong()),
    }
}

/// Checks that each changed list is a subset of the next larger one, and contains only content objects.
pub(super) fn within(lists: &[HashSet<String>; 4], touched: &[Touched]) -> Result<(), Refused> {
    let holds = |id: &String| {
        LISTS.iter().enumerate().all(|(place, (_, outer))| {
            !lists[place].contains(id) || outer.is_none_or(|outer| lists[outer].contains(id))
        }) && !(lists[0].contains(id) && is_infrastructure(id))
    };
    let holds = touched.iter().all(|touched| match touched {
        Touched::All => lists.iter().flatten().all(holds),
        Touched::One(id) => holds(id),
    });
    if holds {
        return Ok(());
    }
    Err("a session's sets contain an object that is not content, or are not subsets of each other (active, pool, index)"
        .into())
}

pub(super) fn is_infrastructure(id: &str) -> bool {
    INFRASTRUCTURE.iter().any(|prefix| id.starts_with(prefix))
}
