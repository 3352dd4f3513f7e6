//! Sums of blocks by module, file and line.

use super::filter_of;
use crate::messages::views::CodeSpec;
use rustc_hash::FxHashMap;
use vramscope_report::code::{Sums, by_stack};
use vramscope_report::{Target, slot_of, text};
use vramscope_snapshot::{FrameId, StrId};
use vramscope_trace::NoStack;
use vramscope_trace::slicing::Budget;

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
    /// Bytes at the peak that the place allocates itself.
    pub(super) own: u64,
    /// The number of the stack that was added last.
    stamp: u32,
}

/// All places with blocks.
pub(super) struct Places {
    pub(super) all: Vec<Place>,
    /// `requested_bytes` at the peak.
    pub(super) whole: u64,
}

impl Places {
    /// Sums the blocks of a spec by place.
    pub(super) async fn new(at: Target<'_>, spec: &CodeSpec, budget: &mut Budget) -> Self {
        let snapshot = at.snapshot();
        let sums = by_stack(at, &filter_of(at, spec), budget).await;
        let peak = slot_of(at.trace().requested_band.peak_event);
        let mut all = Self { all: Vec::new(), whole: at.trace().requested.at(peak) };
        let mut index = Index::default();
        for (number, ((stack, _, no_stack), sums)) in (1..).zip(&sums) {
            let frames = snapshot.stacks.frames(*stack);
            budget.charge(8 + 4 * frames.len() as u64).await;
            if let Some(why) = no_stack {
                let place = index.reason(&mut all.all, *why);
                all.all[place].sums.add(sums);
                all.all[place].own += sums.peak;
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
                        found.own += sums.peak;
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
    all.push(Place { key, parent, depth, label, title, terms, frame, sums, own: 0, stamp: 0 });
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
