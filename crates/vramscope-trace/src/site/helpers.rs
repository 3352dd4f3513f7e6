//! Helpers of installed packages: functions such as `einops.einsum`, whose lines say nothing about
//! a program. The program's line that calls one is the call site.

use super::{FrameKind, frames};
use rustc_hash::FxHashMap;
use vramscope_snapshot::{FrameId, Snapshot};

/// The maximum number of frames of a package with modules that make a helper.
const MAX_HELPER_FRAMES: usize = 3;

/// The package of each frame, and which packages have modules.
pub(super) struct Helpers {
    /// By [`FrameId`]: the number of the installed package that has the frame's file.
    packages: Vec<Option<u32>>,
    /// Whether frames are PyTorch's call of a module.
    calls_module: Vec<bool>,
    /// Whether frames are of Python. With C++ stacks, frames of the interpreter lie between them.
    is_python: Vec<bool>,
    /// By package: whether it calls modules or is called by them in some stack, as packages with
    /// models, layers and trainers are.
    has_modules: Vec<bool>,
}

impl Helpers {
    /// Finds the packages of a snapshot. `kinds` has the hash and the kind of each frame.
    pub(super) fn find(snapshot: &Snapshot, kinds: &[(u64, FrameKind)]) -> Self {
        let mut names: FxHashMap<Box<str>, u32> = FxHashMap::default();
        let mut of_file = FxHashMap::default();
        let mut packages = Vec::with_capacity(kinds.len());
        let mut calls_module = Vec::with_capacity(kinds.len());
        let mut is_python = Vec::with_capacity(kinds.len());
        for (id, &(_, kind)) in (0u32..).zip(kinds) {
            let file = snapshot.frame(FrameId(id)).file;
            let &mut (package, is_call) = of_file.entry(file).or_insert_with(|| {
                let text = snapshot.text(file);
                let package = frames::package(&text).map(|name| {
                    let next = names.len() as u32;
                    *names.entry(name.into()).or_insert(next)
                });
                (package, frames::is_module_call(&text))
            });
            // PyTorch's own files are of no package here.
            packages.push(package.filter(|_| kind >= FrameKind::Wrapper));
            calls_module.push(is_call);
            is_python.push(kind >= FrameKind::Python || kind == FrameKind::Interceptor);
        }
        let has_modules = vec![false; names.len()];
        let mut helpers = Self { packages, calls_module, is_python, has_modules };
        if !helpers.has_modules.is_empty() {
            for id in 0..snapshot.stacks.len() as u32 {
                helpers.note_modules(snapshot.stacks.frames(vramscope_snapshot::StackId(id)));
            }
        }
        helpers
    }

    /// Notes the packages of a stack that call modules, or that modules call.
    fn note_modules(&mut self, ids: &[FrameId]) {
        for pair in self.python_of(ids).windows(2) {
            for [one, other] in [[pair[0], pair[1]], [pair[1], pair[0]]] {
                if let (Some(package), true) = (self.package(one), self.is_call(other)) {
                    self.has_modules[package as usize] = true;
                }
            }
        }
    }

    /// The Python frames of a stack.
    fn python_of(&self, ids: &[FrameId]) -> Vec<FrameId> {
        ids.iter().copied().filter(|id| self.is_python[id.0 as usize]).collect()
    }

    fn package(&self, id: FrameId) -> Option<u32> {
        self.packages[id.0 as usize]
    }

    fn is_call(&self, id: FrameId) -> bool {
        self.calls_module[id.0 as usize]
    }

    /// The program's line that calls a helper. `best` is the innermost frame that is not PyTorch's.
    /// `None` if it is the program's.
    ///
    /// A package without modules has helpers only. A package with modules has a helper where a
    /// module of the program calls at most three frames of it: more are a loop or a model of its
    /// own, and outside of modules it may be a trainer.
    pub(super) fn caller(
        &self,
        ids: &[FrameId],
        best: FrameId,
        of: impl Fn(&FrameId) -> (u64, FrameKind),
    ) -> Option<FrameId> {
        let package = self.package(best).filter(|_| of(&best).1 >= FrameKind::Wrapper)?;
        let ids = self.python_of(ids);
        let at = ids.iter().position(|&id| id == best)?;
        let is_program = |id: FrameId| of(&id).1 == FrameKind::User && self.package(id).is_none();
        if !self.has_modules[package as usize] {
            // Other packages with modules may lie between the helper and the program.
            let is_site = |id: &&FrameId| {
                of(id).1 == FrameKind::User
                    && self.package(**id).is_none_or(|other| self.has_modules[other as usize])
            };
            return ids[at..].iter().find(is_site).copied();
        }
        let is_own = |id: &&FrameId| self.package(**id) == Some(package);
        let count = ids[at..].iter().take_while(is_own).count();
        let &[caller, ref outside @ ..] = &ids[at + count..] else { return None };
        let in_module = outside.first().is_some_and(|&id| self.is_call(id));
        (count <= MAX_HELPER_FRAMES && is_program(caller) && in_module).then_some(caller)
    }
}
