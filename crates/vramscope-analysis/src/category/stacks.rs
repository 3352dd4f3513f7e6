//! What each stack says by itself, looked at once.

use super::rules::{Rule, Rules};
use super::{Category, Guess};
use crate::site::is_framework_file;
use crate::slicing::{Budget, strides};
use vramscope_snapshot::{FrameId, Snapshot, StackId};

/// When in a training step something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Forward,
    Backward,
    /// An optimizer's step, clipping, zeroing: whatever ends a step.
    Update,
    /// The program's own code.
    User,
}

/// What a stack says.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Says {
    /// The user's rule that it matches.
    pub(super) user: Option<Guess>,
    /// The built-in rule that it matches.
    pub(super) hint: Option<Guess>,
    /// It has frames.
    pub(super) frames: bool,
    /// It was recorded on a thread that C++ started, or inside the autograd engine.
    pub(super) engine: bool,
    /// A module's own `__init__` made it: a parameter, or a buffer.
    pub(super) either: bool,
}

impl Says {
    /// The phase that it shows; `None` where it could be any.
    pub(super) fn phase(&self) -> Option<Phase> {
        if self.engine {
            return Some(Phase::Backward);
        }
        match self.hint.map(|h| h.category) {
            Some(Category::Activation) => Some(Phase::Forward),
            Some(Category::Gradient) => Some(Phase::Backward),
            Some(Category::OptimizerState | Category::Temporary) => Some(Phase::Update),
            Some(_) => None,
            None => self.frames.then_some(Phase::User),
        }
    }
}

/// What one frame says.
#[derive(Clone, Copy, Default)]
struct Facts {
    user: Option<u32>,
    built_in: Option<u32>,
    kind: Kind,
    init: bool,
    place: Place,
}

/// Where a frame comes from.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Compiled,
    /// The autograd engine's loop over a graph.
    Engine,
    /// Where Python starts a program or a thread.
    Root,
    /// PyTorch and Python's library.
    Library,
    /// The program, and packages that it uses.
    Own,
}

/// Functions that hold both kinds of tensors of a module, told apart by the order of their lines.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Elsewhere,
    Apply,
    NormInit,
}

/// What it costs to look at a frame, as [`Budget`] counts it.
const RULED: u64 = 100;

fn first_match(rules: &[Rule], file: &str, name: &str) -> Option<u32> {
    rules.iter().position(|rule| rule.matches(file, name)).map(|i| i as u32)
}

fn facts(snapshot: &Snapshot, id: FrameId, rules: &Rules) -> Facts {
    let frame = snapshot.frame(id);
    // Windows writes paths its own way.
    let (file, name) = (snapshot.text(frame.file).replace('\\', "/"), snapshot.text(frame.name));
    let kind = match &*name {
        "<module>" | "_bootstrap" | "_run_module_as_main" | "_run_code" => Kind::Root,
        _ if name.contains("torch::autograd::Engine::evaluate_function") => Kind::Engine,
        _ if name.contains("torch::autograd::Engine::thread_main") => Kind::Engine,
        _ if !file.contains(".py") && !file.starts_with('<') => Kind::Compiled,
        _ if is_framework_file(&file) => Kind::Library,
        _ => Kind::Own,
    };
    let place = match &*name {
        "_apply" if file.ends_with("/nn/modules/module.py") => Place::Apply,
        "__init__" if file.ends_with("/nn/modules/batchnorm.py") => Place::NormInit,
        _ => Place::Elsewhere,
    };
    Facts {
        user: first_match(rules.user(), &file, &name),
        built_in: first_match(Rules::built_in(), &file, &name),
        kind,
        init: name == "__init__",
        place,
    }
}

/// What every stack of a snapshot says, by [`StackId`].
pub(super) async fn read(snapshot: &Snapshot, rules: &Rules, budget: &mut Budget) -> Vec<Says> {
    let mut frames: Vec<Facts> = Vec::with_capacity(snapshot.frames.len());
    for id in 0..snapshot.frames.len() as u32 {
        // Each is held against all rules.
        budget.charge(RULED).await;
        frames.push(facts(snapshot, FrameId(id), rules));
    }
    let count = snapshot.stacks.len();
    let stack = |id: usize| snapshot.stacks.frames(StackId(id as u32));
    let outermost = |stack: &[FrameId]| {
        stack.iter().rev().map(|f| frames[f.0 as usize]).find(|f| f.kind as u8 >= Kind::Root as u8)
    };
    // Where stacks reach down to where Python started, one that does not is of a thread that C++
    // started.
    let (mut with, mut rooted) = (0, 0);
    for part in strides(count) {
        budget.charge(part.len() as u64).await;
        for found in part.filter_map(|id| outermost(stack(id))) {
            with += 1;
            rooted += u32::from(found.kind == Kind::Root);
        }
    }
    let rooted = 2 * rooted > with;
    let guess = |rules: &[Rule], index: Option<u32>| {
        index
            .map(|i| &rules[i as usize])
            .map(|r| Guess { category: r.category, confidence: r.confidence })
    };
    let of_stack = |stack: &[FrameId]| {
        let facts = || stack.iter().map(|f| frames[f.0 as usize]);
        let built_in = guess(Rules::built_in(), facts().filter_map(|f| f.built_in).min());
        let own = facts().find(|f| f.kind == Kind::Own);
        let module_init = facts().any(|f| f.init && f.kind == Kind::Library);
        Says {
            user: guess(rules.user(), facts().filter_map(|f| f.user).min()),
            hint: built_in,
            frames: !stack.is_empty(),
            engine: facts().any(|f| f.kind == Kind::Engine)
                || rooted && outermost(stack).is_some_and(|f| f.kind != Kind::Root),
            either: built_in.is_some_and(|g| g.category == Category::Parameter)
                && own.is_some_and(|f| f.init)
                && !module_init
                && !facts().any(|f| f.place == Place::Apply),
        }
    };
    let mut says: Vec<Says> = Vec::with_capacity(count);
    for id in 0..count {
        // Its frames are gone through several times.
        budget.charge(1 + 2 * stack(id).len() as u64).await;
        says.push(of_stack(stack(id)));
    }
    for place in [Place::Apply, Place::NormInit] {
        by_line(snapshot, &frames, place, &mut says, budget).await;
    }
    says
}

/// Tell buffers from parameters by the line, in functions that go through parameters first and
/// through buffers last.
///
/// `Module._apply` calls the function for each parameter, each gradient and each buffer, in this
/// order, and has done so since before 2.0. `_NormBase.__init__` makes weight and bias if it is
/// affine, then, on one line each, the running mean, the running variance and the number of
/// batches, or none of them.
async fn by_line(
    snapshot: &Snapshot,
    frames: &[Facts],
    place: Place,
    says: &mut [Says],
    budget: &mut Budget,
) {
    let mut lines: Vec<(u32, u32)> = Vec::new();
    for id in 0..says.len() as u32 {
        let stack = snapshot.stacks.frames(StackId(id));
        budget.charge(1 + stack.len() as u64 / 8).await;
        let found = stack.iter().find(|f| frames[f.0 as usize].place == place);
        lines.extend(found.map(|&f| (id, snapshot.frame(f).line)));
    }
    let mut distinct: Vec<u32> = lines.iter().map(|l| l.1).collect();
    distinct.sort_unstable();
    distinct.dedup();
    let count = distinct.len();
    for (id, line) in lines {
        let index = distinct.partition_point(|&l| l < line);
        let category = match place {
            Place::Apply if index > 0 && index + 1 == count => Category::Buffer,
            Place::NormInit if count >= 3 && index + 3 >= count => Category::Buffer,
            _ => continue,
        };
        let says = &mut says[id as usize];
        if says.hint.is_some_and(|g| g.category == Category::Parameter) {
            says.hint = Some(Guess { category, confidence: 0.85 });
        }
    }
}
