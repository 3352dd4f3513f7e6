//! The nesting of modules in call stacks.
//!
//! PyTorch calls a module through `_call_impl` in `torch/nn/modules/module.py`, so the next frame
//! is that of the module. The `__init__` frames of a model nest in the same way. A frame names a
//! file and a function, not a class. Two frames belong to one class if no other class begins
//! between their lines: in a file, the lines of `__init__` and of called functions alternate.

use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_snapshot::{Frame, FrameId, Snapshot, StackId, StrId};
use vramscope_trace::slicing::Budget;
use vramscope_trace::{is_framework_file, is_framework_frame, name_hash};

/// How a stack enters a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Kind {
    /// By a call.
    Called,
    /// By its construction.
    Built,
}

/// A class, as far as frames tell: a file, and the class in its order in the file, or the hash of
/// its name where functions have qualified names.
pub(super) type Class = (StrId, u64);

/// A module that is entered at one place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The entry that this one is nested in; [`ROOT`] for an outermost one.
    pub(super) parent: u32,
    /// The number of entries around it, itself included. 0 for the root.
    pub(super) depth: u32,
    pub(super) kind: Kind,
    pub(super) class: Class,
    /// The line that calls or builds it.
    pub(super) caller: Option<FrameId>,
    /// The frame with the first of its lines that are seen.
    pub(super) frame: Frame,
    /// The last of its lines that are seen.
    pub(super) last_line: u32,
}

/// The entry of what is outside of modules.
pub(super) const ROOT: u32 = 0;

/// Deeper entries count as part of the one at this depth.
const MAX_DEPTH: u32 = 24;

/// The entries of the stacks of a device.
pub(super) struct Nesting {
    /// Parents come before what is nested in them.
    pub(super) entries: Vec<Entry>,
    /// The innermost entry of each stack, by [`StackId`].
    pub(super) of_stack: Vec<u32>,
}

/// What a frame does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    /// Compiled code, and wrappers around a function of someone else.
    Skipped,
    /// PyTorch's call of a module.
    Call,
    Init,
    /// Code that a call of a module can lead to.
    Module,
    /// Code that only leads to a module: PyTorch's own, outside of its modules.
    Other,
}

impl Nesting {
    /// Reads the stacks for which `is_used` holds.
    pub(super) async fn new(snapshot: &Snapshot, is_used: &[bool], budget: &mut Budget) -> Self {
        let used = || (0..is_used.len() as u32).map(StackId).filter(|id| is_used[id.0 as usize]);
        let roles: Vec<Role> =
            (0..snapshot.frames.len() as u32).map(|id| role(snapshot, FrameId(id))).collect();
        budget.charge(8 * roles.len() as u64).await;
        let mut called: FxHashSet<FrameId> = FxHashSet::default();
        for id in used() {
            let frames = snapshot.stacks.frames(id);
            budget.charge(frames.len() as u64).await;
            walk(frames, &roles, |frame, step, _| {
                if step == Step::Call {
                    called.insert(frame);
                }
            });
        }
        let classes = Classes::new(snapshot, &roles, &called);
        let root = Entry {
            parent: ROOT,
            depth: 0,
            kind: Kind::Called,
            class: (StrId(0), 0),
            caller: None,
            frame: Frame { name: StrId(0), file: StrId(0), line: 0 },
            last_line: 0,
        };
        let mut entries = vec![root];
        let mut known: FxHashMap<(u32, Kind, Class, Option<FrameId>), u32> = FxHashMap::default();
        let mut of_stack = vec![ROOT; is_used.len()];
        for id in used() {
            let frames = snapshot.stacks.frames(id);
            budget.charge(2 * frames.len() as u64).await;
            let builds_torch = frames.iter().any(|&frame| {
                roles[frame.0 as usize] == Role::Init && is_torch_module(snapshot, frame)
            });
            let mut at = ROOT;
            walk(frames, &roles, |frame, step, caller| {
                let kind = match step {
                    Step::Call => Kind::Called,
                    Step::Init => Kind::Built,
                };
                let class = classes.of(snapshot, frame);
                let around = entries[at as usize];
                let is_same = kind == Kind::Built
                    && around.kind == kind
                    && at != ROOT
                    && around.class == class;
                let is_module = kind == Kind::Called
                    || classes.are_called(class)
                    || builds_torch && !classes.has_called(class.0);
                if is_module && !is_same && around.depth < MAX_DEPTH {
                    at = *known.entry((at, kind, class, caller)).or_insert_with(|| {
                        let frame = snapshot.frame(frame);
                        entries.push(Entry {
                            parent: at,
                            depth: around.depth + 1,
                            kind,
                            class,
                            caller,
                            frame,
                            last_line: frame.line,
                        });
                        (entries.len() - 1) as u32
                    });
                }
                if is_module && (is_same || entries[at as usize].class == class) {
                    let (entry, line) = (&mut entries[at as usize], snapshot.frame(frame).line);
                    entry.frame.line = entry.frame.line.min(line);
                    entry.last_line = entry.last_line.max(line);
                }
            });
            of_stack[id.0 as usize] = at;
        }
        Self { entries, of_stack }
    }

    /// The entries around an entry, itself included, outermost first. The root is left out.
    pub(super) fn path(&self, entry: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut at = entry;
        while at != ROOT {
            path.push(at);
            at = self.entries[at as usize].parent;
        }
        path.reverse();
        path
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Call,
    Init,
}

/// Tells each frame of a stack that enters a module, from the outermost one, with its caller.
fn walk(frames: &[FrameId], roles: &[Role], mut enter: impl FnMut(FrameId, Step, Option<FrameId>)) {
    let (mut is_called, mut last, mut caller) = (false, None, None);
    for &frame in frames.iter().rev() {
        let role = roles[frame.0 as usize];
        match role {
            Role::Skipped => continue,
            Role::Call => {
                if !is_called {
                    (is_called, caller) = (true, last);
                }
                continue;
            }
            // A decorator or a compiler between the call and the module.
            Role::Other if is_called => continue,
            Role::Module | Role::Init if is_called => enter(frame, Step::Call, caller),
            Role::Init => enter(frame, Step::Init, last),
            Role::Module | Role::Other => {}
        }
        (is_called, last) = (false, Some(frame));
    }
}

fn role(snapshot: &Snapshot, id: FrameId) -> Role {
    let frame = snapshot.frame(id);
    let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
    let function = name.rsplit('.').next().unwrap_or_default();
    if !file.ends_with(".py") && !file.starts_with('<') {
        return Role::Skipped;
    }
    if in_folder(&file, &["torch", "nn", "modules"]) {
        let is_call = matches!(function, "_call_impl" | "_wrapped_call_impl" | "_slow_forward");
        return match function {
            _ if is_call && file.ends_with("module.py") => Role::Call,
            "__init__" => Role::Init,
            _ => Role::Module,
        };
    }
    let is_framework = is_framework_file(&file);
    if !is_framework && is_framework_frame(&name, &file) {
        return Role::Skipped;
    }
    match function {
        "__init__" => Role::Init,
        "forward" => Role::Module,
        _ if is_framework => Role::Other,
        _ => Role::Module,
    }
}

/// Whether a file lies in this folder, on any system.
fn in_folder(file: &str, folder: &[&str]) -> bool {
    let parts: Vec<&str> = file.split(['/', '\\']).collect();
    parts.windows(folder.len()).any(|part| part == folder)
}

fn is_torch_module(snapshot: &Snapshot, frame: FrameId) -> bool {
    in_folder(&snapshot.text(snapshot.frame(frame).file), &["torch", "nn", "modules"])
}

/// The classes of frames.
struct Classes {
    /// Lines by file: the line, and whether it is in `__init__`. Ascending.
    lines: FxHashMap<StrId, Vec<(u32, bool)>>,
    /// Classes that are called.
    called: FxHashSet<Class>,
    /// Files of classes that are called.
    files: FxHashSet<StrId>,
}

impl Classes {
    fn new(snapshot: &Snapshot, roles: &[Role], called: &FxHashSet<FrameId>) -> Self {
        let mut rows: Vec<(StrId, u32, bool)> = Vec::new();
        for id in (0..roles.len() as u32).map(FrameId) {
            let (is_init, frame) = (roles[id.0 as usize] == Role::Init, snapshot.frame(id));
            if is_init || called.contains(&id) {
                rows.push((frame.file, frame.line, is_init));
            }
        }
        rows.sort_unstable_by_key(|row| (row.1, row.2));
        let mut lines: FxHashMap<StrId, Vec<(u32, bool)>> = FxHashMap::default();
        for (file, line, is_init) in rows {
            lines.entry(file).or_default().push((line, is_init));
        }
        let mut classes = Self { lines, called: FxHashSet::default(), files: FxHashSet::default() };
        let of_called: Vec<Class> = called.iter().map(|&id| classes.of(snapshot, id)).collect();
        classes.files = of_called.iter().map(|class| class.0).collect();
        classes.called = of_called.into_iter().collect();
        classes
    }

    fn of(&self, snapshot: &Snapshot, id: FrameId) -> Class {
        let frame = snapshot.frame(id);
        let name = snapshot.text(frame.name);
        if let Some((class, _)) = name.rsplit_once('.') {
            return (frame.file, name_hash(class) | 1 << 63);
        }
        // A class begins where `__init__` follows other code.
        let lines = self.lines.get(&frame.file).map_or(&[][..], Vec::as_slice);
        let before = &lines[..lines.partition_point(|line| line.0 <= frame.line)];
        let begins = before.windows(2).filter(|pair| !pair[0].1 && pair[1].1).count();
        (frame.file, begins as u64)
    }

    fn are_called(&self, class: Class) -> bool {
        self.called.contains(&class)
    }

    fn has_called(&self, file: StrId) -> bool {
        self.files.contains(&file)
    }
}
