//! Redaction of what holds blocks: variables, types, functions, modules and threads.

use super::public::{self, Words};
use super::{PACKAGES, PARTS, Redaction};
use crate::sidecar::holders::{By, Holders, Link};

/// Types of Python and PyTorch that hold tensors.
const TYPES: Words = Words(
    "list dict tuple set frozenset deque OrderedDict defaultdict function method generator \
     coroutine cell frame traceback module type partial Queue SimpleQueue SimpleNamespace Tensor \
     Parameter Buffer UntypedStorage Module ModuleList ModuleDict Sequential Adam AdamW",
);

/// Attributes of PyTorch's classes, and names of what its nodes save.
const NAMES: Words = Words(
    "state param_groups params data _parameters _buffers _modules _forward_hooks _backward_hooks \
     saved_tensors __dict__ __traceback__ self other input target result mat1 mat2",
);

impl Redaction {
    /// What holds blocks. Numbers and the structure stay.
    pub(super) fn holders(&self, holders: &mut Holders) {
        holders.links.iter_mut().for_each(|link| self.link(link));
    }

    fn link(&self, link: &mut Link) {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let by = link.by;
        let change = |text: &mut Option<Box<str>>, of: &dyn Fn(&str) -> String| {
            if let Some(text) = text {
                *text = of(text).into();
            }
        };
        let file = link.file.clone().unwrap_or_default();
        change(&mut link.name, &|name| match by {
            By::Item if is_number(name) => name.to_owned(),
            By::Attribute | By::Saved | By::Key | By::Gradient | By::Base => {
                self.dotted(name, &|part| PARTS.contains(part) || NAMES.contains(part))
            }
            _ => self.hash(name),
        });
        change(&mut link.type_name, &|name| {
            self.dotted(name, &|part| {
                TYPES.contains(part)
                    || PACKAGES.contains(part)
                    || by == By::Graph && public::is_identifier(part)
            })
        });
        change(&mut link.function, &|name| self.function(name, &file));
        change(&mut link.file, &|file| self.file(file));
        change(&mut link.module, &|name| {
            self.dotted(name, &|part| part == "__main__" || PACKAGES.contains(part))
        });
        change(&mut link.thread, &|name| match name {
            "MainThread" => name.to_owned(),
            _ => self.hash(name),
        });
    }

    /// A dotted name whose public parts stay.
    fn dotted(&self, name: &str, is_public: &dyn Fn(&str) -> bool) -> String {
        let part = |part: &str| {
            if is_public(part) { part.to_owned() } else { self.hash(part) }
        };
        name.split('.').map(part).collect::<Vec<_>>().join(".")
    }
}
