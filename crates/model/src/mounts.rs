//! Mount mappings between the agent's paths and canonical ones.

use serde::{Deserialize, Serialize};

use crate::error::ModelError;
use crate::path::{absolute, below, join};
use crate::source::{FilesystemSource, check_filesystem_id};

/// A rule that translates a prefix of the agent's paths to a canonical one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MountMapping {
    /// The prefix as the agent sees it, absolute.
    pub agent_prefix: String,
    /// The prefix on the filesystem that `filesystem_id` names, absolute.
    pub canonical_prefix: String,
    /// The filesystem namespace of everything below the prefix.
    pub filesystem_id: String,
}

/// The mount mappings of one client, and the namespace of every path that none of them covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mounts {
    default_filesystem: String,
    /// Longest agent prefix first.
    mappings: Vec<MountMapping>,
}

/// The place that an agent's path leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The filesystem namespace and the canonical path, links not yet followed.
    pub source: FilesystemSource,
    /// The canonical prefix of the mapping that covered the path; `None` if none did.
    pub mount: Option<String>,
}

impl Mounts {
    /// Checks and takes mount mappings.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a relative prefix, two mappings of one agent prefix, or a filesystem ID that is empty, longer than
    /// 512 bytes, has a control character, or begins or ends with a blank.
    pub fn new(default_filesystem: String, mappings: Vec<MountMapping>) -> Result<Self, ModelError> {
        check_filesystem_id(&default_filesystem)?;
        let mut normal: Vec<MountMapping> = Vec::with_capacity(mappings.len());
        for mapping in mappings {
            let (Some(agent_prefix), Some(canonical_prefix)) =
                (absolute(&mapping.agent_prefix), absolute(&mapping.canonical_prefix))
            else {
                return Err(ModelError::Invalid("the prefixes of a mount mapping are absolute paths".into()));
            };
            check_filesystem_id(&mapping.filesystem_id)?;
            let mapping =
                MountMapping { agent_prefix, canonical_prefix, filesystem_id: mapping.filesystem_id };
            if normal.iter().any(|m| m.agent_prefix == mapping.agent_prefix) {
                return Err(ModelError::Invalid("two mount mappings have the same agent prefix".into()));
            }
            normal.push(mapping);
        }
        normal.sort_by_key(|m| std::cmp::Reverse(m.agent_prefix.len()));
        Ok(Self { default_filesystem, mappings: normal })
    }

    /// The namespace of paths that no mapping covers.
    pub fn default_filesystem(&self) -> &str {
        &self.default_filesystem
    }

    /// The canonical prefixes of the mappings.
    pub fn canonical_prefixes(&self) -> impl Iterator<Item = &str> {
        self.mappings.iter().map(|mapping| mapping.canonical_prefix.as_str())
    }

    /// Forward translation: the longest agent prefix that covers the path at a segment border wins.
    ///
    /// `path` is absolute and normalised (see [`normalise`](crate::path::normalise)).
    pub fn resolve(&self, path: &str) -> Resolved {
        for mapping in &self.mappings {
            if let Some(rest) = below(path, &mapping.agent_prefix) {
                return Resolved {
                    source: FilesystemSource {
                        filesystem_id: mapping.filesystem_id.clone(),
                        path: join(&mapping.canonical_prefix, rest),
                    },
                    mount: Some(mapping.canonical_prefix.clone()),
                };
            }
        }
        Resolved {
            source: FilesystemSource {
                filesystem_id: self.default_filesystem.clone(),
                path: path.to_owned(),
            },
            mount: None,
        }
    }

    /// The binding of a canonical path that the client itself has found (a renamed file), if a mapping leads there: that with
    /// the longest canonical prefix.
    pub fn reached(&self, canonical: &str) -> Option<FilesystemSource> {
        self.mappings
            .iter()
            .filter(|m| below(canonical, &m.canonical_prefix).is_some())
            .map(|m| (m.canonical_prefix.len(), m.filesystem_id.clone()))
            .map(|(length, filesystem_id)| {
                (length, FilesystemSource { filesystem_id, path: canonical.to_owned() })
            })
            .filter(|(_, source)| self.reverse(source).is_some())
            .max_by_key(|(length, _)| *length)
            .map(|(_, source)| source)
    }

    /// Reverse translation: the agent's path for a canonical one. The filesystem must also match.
    ///
    /// If several mappings match, the one with the longest canonical prefix whose forward translation leads back is used, so
    /// that a path hidden by another mount is never shown. `None` if no mapping matches; the canonical path is then
    /// displayed.
    pub fn reverse(&self, source: &FilesystemSource) -> Option<String> {
        self.mappings
            .iter()
            .filter(|m| m.filesystem_id == source.filesystem_id)
            .filter_map(|m| {
                let rest = below(&source.path, &m.canonical_prefix)?;
                let path = join(&m.agent_prefix, rest);
                (self.resolve(&path).source == *source).then_some((m.canonical_prefix.len(), path))
            })
            .max_by_key(|(length, _)| *length)
            .map(|(_, path)| path)
    }
}
