//! Source bindings of objects.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::error::ModelError;

/// A source binding: a union tagged by `type`, immutable once an object has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// A file in a filesystem namespace.
    Filesystem(FilesystemSource),
    /// A source type that this version does not track (`s3`, `git`, …): kept, shown and exported untouched.
    Other(Map<String, Value>),
}

/// A file: the filesystem namespace and the canonical absolute path inside it. The two always travel together.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct FilesystemSource {
    /// The filesystem namespace.
    pub filesystem_id: String,
    /// The canonical absolute path within it.
    pub path: String,
}

/// The greatest length of the ID of a filesystem namespace, in bytes.
const MAX_FILESYSTEM_ID: usize = 512;

/// Checks the ID of a filesystem namespace that a caller gives. Those in stored documents are taken as they are.
///
/// # Errors
/// `INVALID_ARGUMENT` if it is empty, longer than [`MAX_FILESYSTEM_ID`] bytes, has a control character, or begins or ends with a
/// blank: most of these come from the output of a command, and would make a second object of each file.
pub(crate) fn check_filesystem_id(id: &str) -> Result<(), ModelError> {
    let is_long = id.is_empty() || id.len() > MAX_FILESYSTEM_ID;
    if is_long || id.chars().any(char::is_control) || id.trim() != id {
        return Err(ModelError::Invalid(format!(
            "filesystemId must have 1 to {MAX_FILESYSTEM_ID} bytes, no control characters such as line breaks, and no \
             blanks at its ends: pass the container's ID, or any short text that all clients of that filesystem agree on"
        )));
    }
    Ok(())
}

impl Source {
    /// A file's binding.
    #[must_use]
    pub fn file(filesystem_id: impl Into<String>, path: impl Into<String>) -> Self {
        Self::Filesystem(FilesystemSource { filesystem_id: filesystem_id.into(), path: path.into() })
    }

    /// The filesystem binding, if it is one.
    pub fn as_filesystem(&self) -> Option<&FilesystemSource> {
        match self {
            Self::Filesystem(file) => Some(file),
            Self::Other(_) => None,
        }
    }

    /// Reads a binding from its JSON form.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if it is not an object, has no `type`, or a filesystem binding lacks a field.
    pub fn from_value(value: Value) -> Result<Self, ModelError> {
        let Value::Object(mut map) = value else {
            return Err(ModelError::Invalid("a source binding is an object with a type".into()));
        };
        match map.get("type").and_then(Value::as_str) {
            Some("filesystem") => {
                map.remove("type");
                serde_json::from_value(Value::Object(map))
                    .map(Self::Filesystem)
                    .map_err(|e| ModelError::Invalid(format!("a filesystem source binding: {e}")))
            }
            Some(_) => Ok(Self::Other(map)),
            None => Err(ModelError::Invalid("a source binding names its type".into())),
        }
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Tagged<'a> {
            r#type: &'static str,
            #[serde(flatten)]
            file: &'a FilesystemSource,
        }
        match self {
            Self::Filesystem(file) => Tagged { r#type: "filesystem", file }.serialize(serializer),
            Self::Other(map) => map.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Source {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_value(Value::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
