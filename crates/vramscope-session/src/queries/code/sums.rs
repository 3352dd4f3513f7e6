//! Sums of blocks by call stack, then by module, file and line.

use rustc_hash::FxHashMap;
use vramscope_analysis::slicing::{Budget, strides};
use vramscope_analysis::{Category, NoStack};
use vramscope_protocol::views::CodeSpec;
use vramscope_report::search::Matcher;
use vramscope_report::{Target, slot_after, slot_of, text};
use vramscope_snapshot::{FrameId, StackId, StrId};

/// The sums of some blocks.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    /// Bytes at the peak.
    pub(super) peak: u64,
    /// Bytes at the peak that the place allocates itself.
    pub(super) own: u64,
    /// Bytes at the cursor.
    pub(super) cursor: u64,
    /// Bytes at the end of the first step.
    pub(super) first_step: u64,
    /// Bytes at the end of the last whole step.
    pub(super) last_step: u64,
    /// Blocks in the window.
    pub(super) blocks: u64,
    /// The bytes of the largest block.
    pub(super) largest: u64,
    /// Bytes at the peak by category.
    pub(super) categories: [u64; Category::ALL.len()],
}

impl Sums {
    fn add(&mut self, other: &Self) {
        let add = |sum: &mut u64, bytes: u64| *sum = sum.saturating_add(bytes);
        add(&mut self.peak, other.peak);
        add(&mut self.cursor, other.cursor);
        add(&mut self.first_step, other.first_step);
        add(&mut self.last_step, other.last_step);
        add(&mut self.blocks, other.blocks);
        self.largest = self.largest.max(other.largest);
        for (sum, bytes) in self.categories.iter_mut().zip(other.categories) {
            add(sum, bytes);
        }
    }
}

/// A module, a file or a line.
pub(super) struct Place {
    pub(super) key: String,
    pub(super) parent: Option<usize>,
    pub(super) depth: u32,
    pub(super) label: String,
    pub(super) title: String,
    pub(super) terms: Vec<String>,
    pub(super) frame: Option<u32>,
    pub(super) sums: Sums,
    /// The number of the stack that was added last.
    stamp: u32,
}

/// All places with blocks.
pub(super) struct Places {
    pub(super) all: Vec<Place>,
    /// `requested_bytes` at the peak.
    pub(super) whole: u64,
}

/// The sums of each call stack, and of each reason for a missing one.
pub(super) type StackSums = Vec<((StackId, Option<NoStack>), Sums)>;

/// Sums the blocks of a search by call stack, in the order of the first block of each.
pub(super) async fn by_stack(at: Target<'_>, spec: &CodeSpec, budget: &mut Budget) -> StackSums {
    let trace = at.trace();
    let matcher = Matcher::new(at, &spec.text, budget).await;
    // A text that cannot be parsed finds nothing.
    let finds_nothing = matcher.is_none() && !spec.text.trim().is_empty();
    let slots = Slots::of(at, spec);
    let categories = at.entry.categories(at.index);
    let mut places: FxHashMap<(StackId, Option<NoStack>), usize> = FxHashMap::default();
    let mut sums: StackSums = Vec::new();
    let count = if finds_nothing { 0 } else { trace.blocks.len() };
    for part in strides(count) {
        budget.charge(6 * part.len() as u64).await;
        for index in part {
            if matcher.as_ref().is_some_and(|found| !found.block(at, index as u32)) {
                continue;
            }
            let block = &trace.blocks[index];
            let key = (block.stack, trace.no_stack(block));
            let place = *places.entry(key).or_insert_with(|| {
                sums.push((key, Sums::default()));
                sums.len() - 1
            });
            let (sum, bytes) = (&mut sums[place].1, block.bytes.0);
            let at_slot = |slot: Option<u32>| {
                let is_live = slot.is_some_and(|slot| block.enters <= slot && slot < block.leaves);
                if is_live { bytes } else { 0 }
            };
            let peak = at_slot(Some(slots.peak));
            let mut one = Sums {
                peak,
                own: 0,
                cursor: at_slot(slots.cursor),
                first_step: at_slot(slots.steps.map(|steps| steps.0)),
                last_step: at_slot(slots.steps.map(|steps| steps.1)),
                blocks: 1,
                largest: bytes,
                categories: [0; Category::ALL.len()],
            };
            one.categories[categories.get(index as u32).category as usize] = peak;
            sum.add(&one);
        }
    }
    sums
}

/// The slots at which bytes are summed.
struct Slots {
    peak: u32,
    cursor: Option<u32>,
    /// The ends of the first and the last whole step.
    steps: Option<(u32, u32)>,
}

impl Slots {
    fn of(at: Target<'_>, spec: &CodeSpec) -> Self {
        let trace = at.trace();
        let begins = at.entry.steps(at.index).map_or(&[][..], |steps| &steps.begins);
        Self {
            peak: slot_of(trace.requested_band.peak_event),
            cursor: spec.event.map(|event| slot_after(trace, event)),
            // Step `i` ends in slot `begins[i + 1]`.
            steps: begins.get(1).copied().zip(begins.last().copied()),
        }
    }
}

impl Places {
    /// The number of steps from the end of the first whole step to the end of the last one; `None`
    /// with fewer than two.
    pub(super) fn steps_between(at: Target<'_>) -> Option<u32> {
        let begins = at.entry.steps(at.index).map_or(0, |steps| steps.begins.len());
        begins.checked_sub(2).filter(|&steps| steps > 0).map(|steps| steps as u32)
    }

    /// Sums the blocks of a spec by place.
    pub(super) async fn sliced(at: Target<'_>, spec: &CodeSpec, budget: &mut Budget) -> Self {
        let snapshot = at.snapshot();
        let sums = by_stack(at, spec, budget).await;
        let peak = slot_of(at.trace().requested_band.peak_event);
        let mut all = Self { all: Vec::new(), whole: at.trace().requested.at(peak) };
        let mut index = Index::default();
        for (number, ((stack, no_stack), sums)) in (1..).zip(&sums) {
            let frames = snapshot.stacks.frames(*stack);
            budget.charge(8 + 4 * frames.len() as u64).await;
            if let Some(why) = no_stack {
                let place = index.reason(&mut all.all, *why);
                all.all[place].sums.add(sums);
                all.all[place].sums.own += sums.peak;
                continue;
            }
            let site = at.entry.sites.get(*stack).frame;
            let mut own = frames.iter().find(|&&id| site == Some(snapshot.frame(id)));
            for id in frames {
                if spec.hide_framework && own != Some(id) && index.is_framework(at, *id) {
                    continue;
                }
                let line = index.line(at, &mut all.all, *id);
                let is_own = own.take_if(|own| *own == id).is_some();
                let mut next = Some(line);
                while let Some(place) = next {
                    let found = &mut all.all[place];
                    if found.stamp != number {
                        found.stamp = number;
                        found.sums.add(sums);
                    }
                    if is_own {
                        found.sums.own += sums.peak;
                    }
                    next = found.parent;
                }
            }
        }
        all
    }
}

/// Where the place of a frame, file or module is.
#[derive(Default)]
struct Index {
    lines: FxHashMap<FrameId, usize>,
    files: FxHashMap<StrId, usize>,
    modules: FxHashMap<String, usize>,
    reasons: FxHashMap<NoStack, usize>,
    framework: FxHashMap<(StrId, StrId), bool>,
}

impl Index {
    fn is_framework(&mut self, at: Target<'_>, id: FrameId) -> bool {
        let frame = at.snapshot().frame(id);
        let known = self.framework.entry((frame.name, frame.file));
        *known.or_insert_with(|| text::is_framework(at.snapshot(), frame))
    }

    fn reason(&mut self, all: &mut Vec<Place>, why: NoStack) -> usize {
        *self.reasons.entry(why).or_insert_with(|| {
            let label = text::no_stack(why).to_owned();
            let terms = vec![format!("site:{label}")];
            push(all, None, 0, label.clone(), label.clone(), label, terms, None)
        })
    }

    fn line(&mut self, at: Target<'_>, all: &mut Vec<Place>, id: FrameId) -> usize {
        if let Some(&line) = self.lines.get(&id) {
            return line;
        }
        let (snapshot, frame) = (at.snapshot(), at.snapshot().frame(id));
        let path = snapshot.text(frame.file).into_owned();
        let (module, prefix) = module_of(&path);
        let parent = *self.modules.entry(module.clone()).or_insert_with(|| {
            let terms = if prefix.is_empty() { Vec::new() } else { vec![prefix.clone()] };
            push(all, None, 0, module.clone(), module.clone(), prefix.clone(), terms, None)
        });
        let file = *self.files.entry(frame.file).or_insert_with(|| {
            let name = path.rsplit(['/', '\\']).next().unwrap_or(&path);
            let name = if name.is_empty() { "(unknown file)" } else { name }.to_owned();
            let terms = if path.is_empty() { Vec::new() } else { vec![path.clone()] };
            let key = format!("{module}|{path}");
            push(all, Some(parent), 1, key, name, path.clone(), terms, None)
        });
        let label = text::label_of(snapshot, frame);
        let short = match text::place_of(snapshot, frame) {
            Some(_) if frame.line > 0 => {
                format!("{} {}", frame.line, text::short_function(snapshot, frame))
            }
            _ => label.clone(),
        };
        let key = format!("{path}:{}:{}", frame.line, snapshot.text(frame.name));
        let terms = vec![format!("via:{label}")];
        let line = push(all, Some(file), 2, key, short, label, terms, Some(id.0));
        self.lines.insert(id, line);
        line
    }
}

#[expect(clippy::too_many_arguments, reason = "the fields of a place")]
fn push(
    all: &mut Vec<Place>,
    parent: Option<usize>,
    depth: u32,
    key: String,
    label: String,
    title: String,
    terms: Vec<String>,
    frame: Option<u32>,
) -> usize {
    let sums = Sums::default();
    all.push(Place { key, parent, depth, label, title, terms, frame, sums, stamp: 0 });
    all.len() - 1
}

/// The module of a file, and the start of the paths of its files: the package in `site-packages`,
/// else the folder.
pub(super) fn module_of(path: &str) -> (String, String) {
    let slashed = path.replace('\\', "/");
    for packages in ["site-packages/", "dist-packages/"] {
        if let Some(at) = slashed.rfind(packages).map(|at| at + packages.len()) {
            let name = slashed[at..].split('/').next().unwrap_or_default();
            let module = name.strip_suffix(".py").unwrap_or(name);
            return (module.to_owned(), path[..at + name.len()].to_owned());
        }
    }
    if let Some(at) = slashed.find("/lib/python3") {
        let end = slashed[at + 5..].find('/').map_or(slashed.len(), |end| at + 5 + end + 1);
        return ("python".to_owned(), path[..end].to_owned());
    }
    let extension = std::path::Path::new(&slashed).extension();
    let is_python = extension.is_some_and(|suffix| suffix == "py" || suffix == "ipynb");
    if !is_python && !slashed.starts_with('<') {
        return ("(compiled code)".to_owned(), String::new());
    }
    match slashed.rfind('/') {
        Some(at) if at > 0 => {
            let folder = slashed[..at].rsplit('/').next().unwrap_or_default();
            (folder.to_owned(), path[..=at].to_owned())
        }
        _ => ("(program)".to_owned(), String::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_packages_and_folders() {
        for (path, module, prefix) in [
            (
                "/usr/lib/python3.12/site-packages/transformers/models/qwen2/modeling_qwen2.py",
                "transformers",
                "/usr/lib/python3.12/site-packages/transformers",
            ),
            ("/opt/dist-packages/six.py", "six", "/opt/dist-packages/six.py"),
            ("/usr/lib/python3.12/threading.py", "python", "/usr/lib/python3.12/"),
            ("/home/me/train/gpt.py", "train", "/home/me/train/"),
            (r"D:\train\gpt.py", "train", r"D:\train\"),
            ("train.py", "(program)", ""),
            ("<string>", "(program)", ""),
            ("??", "(compiled code)", ""),
            ("", "(compiled code)", ""),
            ("/opt/libtorch.so", "(compiled code)", ""),
        ] {
            assert_eq!(module_of(path), (module.to_owned(), prefix.to_owned()), "{path}");
        }
    }
}
