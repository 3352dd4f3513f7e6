//! The scene of a claim, which its words may name, and the parts of a claim.

use super::found::{Common, Part};
use super::phrase::Sentence;
use super::predicted::Predicted;
use crate::category::Phase;
use crate::evidence::Evidence;
use crate::what_if::MeasuredMemory;
use vramscope_snapshot::{DeviceKind, Frame, PoolIndex, StackId, StreamId};
use vramscope_trace::{FreeKind, NO_STACK, frame_filter, label_of};
use vramscope_units::Bytes;

/// A finding beside what is known of its run.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The evidence of its device.
    pub cx: Evidence<'a>,
    /// The finding.
    pub finding: &'a Common,
    /// The results of replays.
    pub predicted: &'a Predicted,
    /// The memory of the device when the snapshot was written; `None` if it was not measured.
    pub memory: Option<MeasuredMemory>,
    /// Whether the allocator's model says something about a finding of this device.
    pub has_replays: bool,
    /// Whether other words name what holds its memory.
    pub is_held: bool,
}

/// The words of a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    /// The finding in a few words: cause, place, amount. It begins with a capital letter.
    pub title: Sentence,
    /// Subject, numbers and cause, in sentences.
    pub text: String,
    /// The remedy, in sentences that begin with a verb.
    pub action: String,
}

/// The line that a finding is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The frame of the line.
    pub frame: Frame,
    /// The part of it: `in its backward (LogSoftmaxBackward0)`. Empty if it is the line itself.
    pub note: String,
    /// The memory that it allocates.
    pub what: SpotWhat,
}

/// The memory that the line of a [`Spot`] allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpotWhat {
    /// In words; empty if nothing more is known.
    Text(String),
    /// Blocks of the size of a request that failed, in the state at a slot.
    SameSize {
        /// The request.
        requested: Bytes,
        /// The slot.
        slot: u32,
    },
}

/// The chart of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exhibit {
    /// Live bytes of its call stacks after each step, from a step on.
    Steps {
        /// The first step.
        from: usize,
    },
    /// The lives of its largest blocks that are live at a slot.
    Lives {
        /// The title of the chart.
        title: &'static str,
        /// The slot.
        slot: u32,
    },
    /// Memory until a request failed.
    Failure,
    /// Parts of one whole.
    Parts(Parts),
    /// Returns to the driver.
    Returns,
}

impl Exhibit {
    /// The lives of its largest blocks at the peak.
    pub(crate) fn at_peak(scene: &Scene<'_>) -> Self {
        let title = "lives of the largest blocks, and the peak";
        Self::Lives { title, slot: scene.cx.peak_slot() }
    }
}

/// Parts of one whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// The name of the whole.
    pub title: &'static str,
    /// Names, bytes, and whether a part shows the finding.
    pub parts: Vec<(&'static str, Bytes, bool)>,
    /// The name and bytes of a line to compare the whole with.
    pub line: Option<(&'static str, Bytes)>,
}

/// A claim about a run: its facts speak for themselves.
pub trait Claim {
    /// Title, text and action.
    fn words(&self, scene: &Scene<'_>) -> Words;

    /// Why it is so, in one line that follows the title, without its figures. Empty where the title
    /// says all.
    fn why(&self, scene: &Scene<'_>) -> String;

    /// The line that it is about; `None` without one.
    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        scene.own_spot()
    }

    /// The peak is lower by this without its memory; `None` where that is not measured.
    fn saving(&self, _scene: &Scene<'_>) -> Option<Bytes> {
        None
    }

    /// The chart.
    fn exhibit(&self, scene: &Scene<'_>) -> Exhibit {
        Exhibit::at_peak(scene)
    }
}

impl<T: Claim> Claim for Box<T> {
    fn words(&self, scene: &Scene<'_>) -> Words {
        (**self).words(scene)
    }

    fn why(&self, scene: &Scene<'_>) -> String {
        (**self).why(scene)
    }

    fn spot(&self, scene: &Scene<'_>) -> Option<Spot> {
        (**self).spot(scene)
    }

    fn saving(&self, scene: &Scene<'_>) -> Option<Bytes> {
        (**self).saving(scene)
    }

    fn exhibit(&self, scene: &Scene<'_>) -> Exhibit {
        (**self).exhibit(scene)
    }
}

/// The longest call site in a title, in characters.
const MAX_SITE: usize = 100;

/// A name from a file, without its middle if it is longer than a title may be.
fn cut(name: &str) -> String {
    let count = name.chars().count();
    if count <= MAX_SITE {
        return name.to_owned();
    }
    let head: String = name.chars().take(MAX_SITE / 2).collect();
    let tail: String = name.chars().skip(count - MAX_SITE / 2).collect();
    format!("{head}…{tail}")
}

impl Scene<'_> {
    /// Bytes that the finding is about.
    pub(super) fn bytes(&self) -> Bytes {
        Bytes(self.finding.bytes)
    }

    /// The finding's first event.
    pub(super) fn first_event(&self) -> Option<u32> {
        self.finding.events.first().copied()
    }

    /// The kind of the device.
    pub(super) fn device_kind(&self) -> DeviceKind {
        self.cx.trace.device.kind
    }

    /// A frame as a call site: `model.py:212 forward`.
    pub(super) fn label(&self, frame: Frame) -> String {
        label_of(self.cx.snapshot, frame)
    }

    /// A frame as a noun that filters.
    pub(super) fn frame_noun(&self, frame: Frame) -> Sentence {
        Sentence::default().site(self.label(frame), Some(frame_filter(self.cx.snapshot, frame)))
    }

    /// The frame of a stack's call site.
    pub(super) fn frame_of(&self, stack: StackId) -> Option<Frame> {
        self.cx.sites.get(stack).frame
    }

    /// The call site of a stack; [`NO_STACK`] without one.
    pub(super) fn site(&self, stack: StackId) -> String {
        self.frame_of(stack).map_or_else(|| NO_STACK.to_owned(), |frame| self.label(frame))
    }

    /// The call site of the finding's largest part; [`NO_STACK`] without one.
    pub(super) fn main_site(&self) -> String {
        self.site(self.finding.stack().unwrap_or(StackId::EMPTY))
    }

    /// The call site of the largest part with a call stack.
    pub(super) fn named_site(&self) -> Option<String> {
        let named = |part: &&Part| part.stack != StackId::EMPTY;
        self.finding.parts.iter().find(named).map(|part| self.site(part.stack))
    }

    /// The line of the largest part, with the number of blocks.
    pub(super) fn own_spot(&self) -> Option<Spot> {
        let frame = self.finding.stack().and_then(|stack| self.frame_of(stack))?;
        Some(Spot { frame, note: String::new(), what: SpotWhat::Text(self.blocks_text()) })
    }

    /// ` at gpt.py:44 forward`: the line that a finding is about, in its title. Empty without one.
    pub(super) fn at(&self, spot: Option<&Spot>) -> Sentence {
        let at = |spot: &Spot| {
            let label = cut(&self.label(spot.frame));
            let filter = frame_filter(self.cx.snapshot, spot.frame);
            Sentence::new(" at ").site(label, Some(filter))
        };
        spot.map(at).unwrap_or_default()
    }

    /// A title: `Leak at gpt.py:44 forward: 49.1 MiB`. The amount leads to the first event.
    pub(super) fn titled(&self, cause: &str, spot: Option<&Spot>, amount: Bytes) -> Sentence {
        let title = Sentence::new(cause).and(self.at(spot)).text(": ");
        title.event(amount.brief(), self.first_event())
    }

    /// The number of blocks, if there are several.
    pub(super) fn blocks_text(&self) -> String {
        match self.finding.blocks {
            0 | 1 => String::new(),
            blocks => super::words::counted(blocks as usize, "block"),
        }
    }

    /// The line of a library that allocates for a line of the program: `in utils.py:98 concat`.
    /// Empty where the program's line is the innermost one outside of PyTorch.
    pub(super) fn inside(&self, own: Frame) -> String {
        let Some(stack) = self.finding.stack() else { return String::new() };
        let innermost = self.cx.program_frame(stack).map(|frame| self.cx.snapshot.frame(frame));
        innermost
            .map(|frame| self.label(frame))
            .filter(|label| *label != self.label(own))
            .map(|label| format!("in {label}"))
            .unwrap_or_default()
    }

    /// A stream: `stream 0x7f00`, or `the default stream`.
    pub(super) fn stream(&self, stream: StreamId) -> String {
        match self.cx.snapshot.stream(stream) {
            0 => "the default stream".to_owned(),
            handle => format!("stream {handle:#x}"),
        }
    }

    /// Streams in a sentence.
    pub(super) fn streams(&self, streams: &[StreamId]) -> String {
        super::words::list(&streams.iter().map(|&id| self.stream(id)).collect::<Vec<_>>())
    }

    /// Where free memory is, as far as it differs from `than`: `pool (0, 1)`.
    pub(super) fn free_kind(&self, kind: FreeKind, than: FreeKind) -> String {
        let mut words = Vec::new();
        if kind.is_small != than.is_small {
            words.push(if kind.is_small { "small segments" } else { "large segments" }.to_owned());
        }
        if kind.pool != than.pool {
            let is_known = |_: &_| kind.pool != PoolIndex::UNKNOWN;
            words.push(super::words::pool(self.cx.snapshot.pool(kind.pool).filter(is_known)));
        }
        if kind.stream != than.stream {
            words.push(self.stream(kind.stream));
        }
        words.join(" of ")
    }

    /// Whether the file says that expandable segments are off.
    pub(super) fn can_expand(&self) -> bool {
        self.cx.can_expand()
    }

    /// ` in backward of step 2`; empty if neither is known.
    pub(super) fn place(&self) -> Sentence {
        super::words::place_words(self.finding.phase.map(Phase::name), self.finding.step)
    }
}
