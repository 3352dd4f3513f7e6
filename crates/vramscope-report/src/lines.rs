//! The lines of the program that hold most memory at a moment, each beside the same place of the
//! pass before.

mod source;
mod untrained;

pub(crate) use source::call_of;

use crate::derived::Derived;
use crate::frames::row_site;
use crate::holders;
use crate::target::Target;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use vramscope_inference::{
    Allocation, BackwardBasis, BackwardSite, Category, CategoryBytes, Earlier, Facts,
    backward_sites, known_parts,
};
use vramscope_snapshot::{Frame, Snapshot, StackId};
use vramscope_trace::slicing::{Budget, strides};
use vramscope_trace::{
    NO_STACK, NoStack, is_framework_frame, is_generated_file, is_package_file, is_python, label_of,
    line_of, no_stack,
};
use vramscope_units::Bytes;

/// The most lines of a moment.
pub const MAX_LINES: usize = 5;

/// Lines with a smaller share of the moment are left out, in percent.
const MIN_PERCENT: u64 = 5;

/// A smaller change of a line since the pass before is left out, in percent.
const MIN_CHANGE_PERCENT: u64 = 5;

/// A line with at least this share of the moment is named for what it does, in percent.
const NAMED_PERCENT: u32 = 15;

/// The second category of a line is named from this share of the moment on, in percent.
const OTHER_PERCENT: u64 = 10;

/// A line has the parameters of a moment if it has this share of them, in percent.
const ONE_LINE_PERCENT: u64 = 95;

/// The most blocks of a moment whose forward line is looked for.
const MAX_BACKWARD: usize = 400;

/// A line that holds memory at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HoldingLine {
    /// The line: `model.py:212`. A line of the forward pass stands for what its backward makes:
    /// `backward of model.py:212`. Without a line, why there is none.
    pub site: String,
    /// The line of the program that calls a package's line; absent if the line is its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub called_from: Option<String>,
    /// Requested bytes that it holds.
    pub bytes: Bytes,
    /// The share of all requested bytes, in percent.
    pub percent: u32,
    /// The category of most of it.
    pub category: Category,
    /// What its memory is, if that alone explains it: `copies of the logits`, `conversion`, `copy`,
    /// `torch.cdist`; absent else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub does: Option<Cow<'static, str>>,
    /// What it held at the same place of the pass before; absent without such a pass, and where it
    /// is about the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub before_bytes: Option<Bytes>,
    /// The bytes before and when that was, in words: `was 1.10 GiB in step 3`, and of how many
    /// passes its blocks are; absent if neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub text: Option<String>,
    /// Where the line is; `None` without one. The page opens it.
    #[serde(skip)]
    pub place: Option<LinePlace>,
    /// Whether its memory is what the line's backward makes.
    #[serde(skip)]
    pub is_of_backward: bool,
    /// What it held at the same place of the pass before, however much; `None` without such a pass.
    /// The page shows it.
    #[serde(skip)]
    pub was: Option<Bytes>,
}

/// Where a line of the program is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinePlace {
    /// The path.
    pub file: String,
    /// The line.
    pub line: u32,
    /// Its function.
    pub function: String,
    /// Whether the memory is what the line's backward makes.
    pub is_backward: bool,
}

impl HoldingLine {
    /// Whether it is a line, and not memory without a call stack.
    pub(crate) fn is_place(&self) -> bool {
        let without = [NoStack::BeforeRecording, NoStack::Backward, NoStack::NotRecorded];
        self.site != NO_STACK && without.into_iter().all(|why| self.site != no_stack(why))
    }
}

/// A call site, or why there is none.
type SiteKey = (Option<Frame>, Option<NoStack>);

/// The moment of lines.
#[derive(Clone, Copy)]
struct At<'a> {
    slot: u32,
    /// All requested bytes.
    whole: u64,
    earlier: Option<&'a Earlier<'a>>,
}

/// The bytes of a line.
#[derive(Default)]
struct Held {
    bytes: u64,
    before: u64,
    categories: CategoryBytes,
    /// The bytes of each known part of a peak.
    parts: BTreeMap<&'static str, u64>,
    /// The bytes of each pass that its blocks are of.
    passes: BTreeMap<usize, u64>,
    /// The call stack of its largest block.
    stack: StackId,
    largest: u64,
}

impl Held {
    /// The known part of a peak that has most of its bytes.
    fn known_part(&self) -> Option<&'static str> {
        let most = self.parts.iter().max_by_key(|(_, bytes)| **bytes);
        most.filter(|(_, bytes)| **bytes > self.bytes / 2).map(|(noun, _)| *noun)
    }
}

/// The lines that hold most requested bytes after a slot, most first.
pub async fn holding_lines(target: Target<'_>, slot: u32, budget: &mut Budget) -> Vec<HoldingLine> {
    lines_of_share(target, slot, MAX_LINES, MIN_PERCENT, budget).await
}

/// As [`holding_lines`], and the name of the pass before: `step 3`. For a page, which has the room
/// for more lines.
pub async fn largest_lines(
    target: Target<'_>,
    slot: u32,
    most: usize,
    budget: &mut Budget,
) -> (Vec<HoldingLine>, Option<String>) {
    let lines = lines_of_share(target, slot, most, 1, budget).await;
    let earlier = target.entry.passes(target.index).before(target.trace(), slot);
    (lines, earlier.map(|earlier| earlier.name()))
}

/// At most `most` lines that have this share of the moment at least, in percent.
async fn lines_of_share(
    target: Target<'_>,
    slot: u32,
    most: usize,
    min_percent: u64,
    budget: &mut Budget,
) -> Vec<HoldingLine> {
    let (trace, entry, index) = (target.trace(), target.entry, target.index);
    entry.derive(Derived::Passes, index, budget).await;
    entry.derive(Derived::Findings, index, budget).await;
    let (passes, categories) = (entry.passes(index), entry.categories(index));
    let earlier = passes.before(trace, slot);
    let slots: Vec<u32> = [slot].into_iter().chain(earlier.map(|of| of.slot)).collect();
    let forward = forward_lines(target, &slots, budget).await;
    let parts = known_parts(entry.evidence(index), slot, budget).await;
    let mut lines: FxHashMap<(SiteKey, Option<Frame>), Held> = FxHashMap::default();
    let mut whole = 0_u64;
    let mut parameters: FxHashMap<u64, u32> = FxHashMap::default();
    let entered = trace.blocks.partition_point(|block| block.enters <= slot);
    for part in strides(entered) {
        budget.charge(4 * part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            let was_live = earlier.as_ref().is_some_and(|earlier| block.is_live_at(earlier.slot));
            let is_live = block.is_live_at(slot);
            if !is_live && !was_live {
                continue;
            }
            let no_stack = trace.no_stack(block);
            let frame = entry.sites.get(block.stack).frame.filter(|_| no_stack.is_none());
            let line = forward.get(&i).copied();
            let held = lines.entry(((frame, no_stack), line)).or_default();
            let bytes = block.bytes.0;
            held.before = held.before.saturating_add(if was_live { bytes } else { 0 });
            if is_live {
                whole = whole.saturating_add(bytes);
                held.bytes = held.bytes.saturating_add(bytes);
                let category = categories.get(i).category;
                if let Some(part) = parts.get(&i) {
                    let of = held.parts.entry(part).or_default();
                    *of = of.saturating_add(bytes);
                }
                let of = &mut held.categories[category as usize];
                *of = of.saturating_add(bytes);
                if category == Category::Parameter {
                    *parameters.entry(bytes).or_default() += 1;
                }
                if is_result(category) || matches!(category, Category::Input | Category::Cache) {
                    let pass = block.alloc_event().and_then(|e| passes.of_event(e.0));
                    if let Some(pass) = pass {
                        let of = held.passes.entry(pass).or_default();
                        *of = of.saturating_add(bytes);
                    }
                }
                if bytes > held.largest {
                    (held.largest, held.stack) = (bytes, block.stack);
                }
            }
        }
    }
    let mut lines: Vec<_> = lines.into_iter().filter(|(_, held)| held.bytes > 0).collect();
    lines.sort_by(|a, b| b.1.bytes.cmp(&a.1.bytes).then_with(|| a.1.stack.0.cmp(&b.1.stack.0)));
    let is_large =
        |held: &Held| held.bytes.saturating_mul(100) >= whole.saturating_mul(min_percent);
    lines.truncate(most);
    lines.retain(|(_, held)| is_large(held));
    // If several lines make parameters of one size, a gradient's size does not tell its line.
    let of_parameters = lines.iter().position(|(_, held)| {
        let bytes = |(size, count): (&u64, &u32)| size.saturating_mul(u64::from(*count));
        let all = parameters.iter().map(bytes).fold(0, u64::saturating_add);
        let of_line = held.categories[Category::Parameter as usize];
        of_line.saturating_mul(100) >= all.saturating_mul(ONE_LINE_PERCENT)
    });
    let untrained = match of_parameters.filter(|_| !parameters.is_empty()) {
        Some(_) => untrained::untrained(target, &parameters, budget).await,
        None => None,
    };
    let is_part =
        |bytes: &Bytes| bytes.0.saturating_mul(100) >= whole.saturating_mul(OTHER_PERCENT);
    let untrained = of_parameters.zip(untrained.filter(is_part));
    let rows = lines.into_iter().enumerate();
    rows.map(|(at, (((_, no_stack), forward), held))| {
        let untrained = untrained.filter(|of| of.0 == at).map(|of| of.1);
        let moment = At { slot, whole, earlier: earlier.as_ref() };
        line(target, &held, no_stack, forward, moment, untrained)
    })
    .collect()
}

/// The forward lines of blocks without a line of their own that are live after one of the slots.
async fn forward_lines(
    target: Target<'_>,
    slots: &[u32],
    budget: &mut Budget,
) -> FxHashMap<u32, Frame> {
    let (trace, entry) = (target.trace(), target.entry);
    let mut blocks: Vec<(Reverse<u64>, u32)> = Vec::new();
    for part in strides(trace.blocks.len()) {
        budget.charge(part.len() as u64).await;
        for (i, block) in (part.start as u32..).zip(&trace.blocks[part]) {
            if !slots.iter().any(|&slot| block.is_live_at(slot)) {
                continue;
            }
            let frame = entry.sites.get(block.stack).frame;
            let has_line =
                frame.is_some_and(|frame| is_python(&target.snapshot().text(frame.file)));
            let is_backward = trace.no_stack(block) == Some(NoStack::Backward);
            if is_backward || block.stack != StackId::EMPTY && !has_line {
                blocks.push((Reverse(block.bytes.0), i));
            }
        }
    }
    blocks.sort_unstable();
    blocks.truncate(MAX_BACKWARD);
    let wanted: Vec<Allocation> = blocks.iter().map(|of| Allocation::Block(of.1)).collect();
    let found = backward_sites(target.snapshot(), trace, &entry.sites, &wanted, budget).await;
    let likely = |site: BackwardSite| {
        let forward = site.forward.filter(|_| site.basis < Some(BackwardBasis::NearestSize))?;
        entry.sites.get(forward).frame
    };
    let lines = blocks.iter().zip(found);
    lines.filter_map(|(&(_, i), site)| Some((i, likely(site?)?))).collect()
}

fn is_result(category: Category) -> bool {
    matches!(category, Category::Activation | Category::Temporary | Category::Unknown)
}

fn line(
    target: Target<'_>,
    held: &Held,
    no_stack: Option<NoStack>,
    forward: Option<Frame>,
    At { slot, whole, earlier }: At<'_>,
    untrained: Option<Bytes>,
) -> HoldingLine {
    let percent = (u128::from(held.bytes) * 100 / u128::from(whole.max(1))) as u32;
    let most = Category::ALL.into_iter().max_by_key(|of| held.categories[*of as usize]);
    let was = earlier.map(|_| Bytes(held.before));
    let is_changed = held.before.abs_diff(held.bytes).saturating_mul(100)
        >= held.bytes.saturating_mul(MIN_CHANGE_PERCENT);
    let earlier = earlier.filter(|_| is_changed);
    let before = earlier.map(|earlier| match held.before {
        bytes if bytes.saturating_mul(100) < held.bytes => format!("none {}", earlier.words()),
        bytes => format!("was {} {}", Bytes(bytes), earlier.words()),
    });
    let of_last = held.passes.values().next_back().copied().unwrap_or(0);
    let earlier_ones = held.passes.values().fold(0, |sum: u64, of| sum.saturating_add(*of));
    let has_earlier = earlier_ones.saturating_sub(of_last).saturating_mul(10) >= held.bytes;
    let of = has_earlier.then(|| format!("from {} passes", held.passes.len()));
    let untrained = untrained.map(|bytes| format!("{bytes} of it without gradients"));
    let text = other_part(held, most, whole).into_iter().chain(untrained).chain(of).chain(before);
    let category = most.unwrap_or(Category::Unknown);
    let is_made = is_result(category) || matches!(category, Category::Cache | Category::Parameter);
    let own = target.entry.sites.get(held.stack).frame.filter(|_| no_stack.is_none());
    let does = held.known_part().map(Cow::Borrowed).or_else(|| {
        let is_told = forward.is_none() && percent >= NAMED_PERCENT && is_made;
        is_told.then(|| source::does(target, held.stack)).flatten()
    });
    // A model holds its own weights.
    let is_asked = own.is_some()
        && forward.is_none()
        && percent >= NAMED_PERCENT
        && (category != Category::Parameter || does.is_some());
    let idle = idle(target, held.stack);
    let holder = || {
        let name = holders::name_of(target, held.stack, slot).filter(|_| is_asked)?;
        Some(format!("held by {name}"))
    };
    let text: Vec<String> = text.chain(idle.or_else(holder)).collect();
    HoldingLine {
        place: forward.or(own).and_then(|frame| {
            Some(LinePlace { is_backward: forward.is_some(), ..place_of(target, frame)? })
        }),
        was,
        is_of_backward: forward.is_some(),
        site: match forward {
            Some(frame) => format!("backward of {}", line_or_label(target.snapshot(), frame)),
            None => own.map_or_else(
                || row_site(target.entry, held.stack, no_stack),
                |frame| line_or_label(target.snapshot(), frame),
            ),
        },
        called_from: match forward {
            Some(_) => None,
            None => called_from(target, held.stack),
        },
        bytes: Bytes(held.bytes),
        percent,
        category,
        does,
        before_bytes: earlier.map(|_| Bytes(held.before)),
        text: (!text.is_empty()).then(|| text.join(", ")),
    }
}

/// When the parameters of a call stack were used last, if they are an idle model's.
fn idle(target: Target<'_>, stack: StackId) -> Option<String> {
    target.entry.findings(target.index).iter().find_map(|finding| {
        let Facts::IdleModel(idle) = &finding.facts else { return None };
        let is_of = finding.parts.iter().any(|part| part.stack == stack);
        let line = || line_or_label(target.snapshot(), idle.ran_at);
        is_of.then(|| format!("idle since {}", line()))
    })
}

/// `317.5 MiB of it parameters`: the second category of a line most of which is no result, as of
/// `model.cuda()` or `optimizer.step()`. `None` if it is a small part of the `whole` moment.
fn other_part(held: &Held, most: Option<Category>, whole: u64) -> Option<String> {
    let of = |category: Category| held.categories[category as usize];
    let most = most.filter(|most| !is_result(*most))?;
    let others = Category::ALL.into_iter().filter(|other| *other != most);
    let other = others.max_by_key(|other| of(*other))?;
    let is_large = of(other).saturating_mul(100) >= whole.saturating_mul(OTHER_PERCENT);
    is_large.then(|| format!("{} of it {}", Bytes(of(other)), crate::text::category(other)))
}

/// Where a line of the program is; `None` for generated code and for other languages.
fn place_of(target: Target<'_>, frame: Frame) -> Option<LinePlace> {
    let file = target.snapshot().text(frame.file).into_owned();
    let is_source = is_python(&file) && !is_generated_file(&file) && frame.line > 0;
    let function = target.snapshot().text(frame.name).into_owned();
    is_source.then_some(LinePlace { file, line: frame.line, function, is_backward: false })
}

/// `model.py:212`; the function where the line is not known.
fn line_or_label(snapshot: &Snapshot, frame: Frame) -> String {
    line_of(snapshot, frame).unwrap_or_else(|| label_of(snapshot, frame))
}

/// The line of the program's own files that calls a package's line; `None` if the line is its own.
fn called_from(target: Target<'_>, stack: StackId) -> Option<String> {
    let snapshot = target.snapshot();
    let site = target.entry.sites.get(stack).frame?;
    let is_package = |frame: Frame| is_package_file(&snapshot.text(frame.file));
    let is_own = |frame: &Frame| {
        let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
        is_python(&file) && !is_package(*frame) && !is_framework_frame(&name, &file)
    };
    let own = snapshot.stack(stack).filter(|_| is_package(site)).find(is_own)?;
    line_of(snapshot, own)
}
