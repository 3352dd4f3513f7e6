//! What the values of a generated snapshot stand for.

/// What a value stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Root,
    Segments,
    Segment,
    Blocks,
    Block,
    History,
    Use,
    Traces,
    Trace,
    Event,
    Stack,
    Frame,
    Annotations,
    Annotation,
    Settings,
    Pool,
    Lines,
    Size,
    Address,
    Count,
    Action,
    State,
    Type,
    Stage,
    Text,
    Anything,
}

pub(super) const KINDS: usize = Kind::Anything as usize + 1;
/// The kinds that take items, for later changes.
pub(super) const CONTAINERS: [Kind; 15] = [
    Kind::Root,
    Kind::Segments,
    Kind::Segment,
    Kind::Blocks,
    Kind::Block,
    Kind::History,
    Kind::Use,
    Kind::Traces,
    Kind::Trace,
    Kind::Event,
    Kind::Stack,
    Kind::Frame,
    Kind::Annotations,
    Kind::Annotation,
    Kind::Settings,
];

impl Kind {
    /// What a list of this kind holds.
    pub(super) fn item(self) -> Option<Self> {
        Some(match self {
            Self::Segments => Self::Segment,
            Self::Blocks => Self::Block,
            Self::History => Self::Use,
            Self::Traces => Self::Trace,
            Self::Trace => Self::Event,
            Self::Stack => Self::Frame,
            Self::Annotations => Self::Annotation,
            Self::Lines => Self::Text,
            _ => return None,
        })
    }

    /// The keys of a dict of this kind.
    pub(super) fn fields(self) -> &'static [(&'static str, Self)] {
        match self {
            Self::Root => &[
                ("segments", Self::Segments),
                ("device_traces", Self::Traces),
                ("external_annotations", Self::Annotations),
                ("allocator_settings", Self::Settings),
                ("host_segments", Self::Segments),
                ("host_traces", Self::Trace),
                ("trace_alloc_max_entries", Self::Count),
            ],
            Self::Segment => &[
                ("address", Self::Address),
                ("total_size", Self::Size),
                ("blocks", Self::Blocks),
                ("device", Self::Count),
                ("allocated_size", Self::Size),
                ("active_size", Self::Size),
                ("requested_size", Self::Size),
                ("stream", Self::Count),
                ("segment_type", Self::Type),
                ("segment_pool_id", Self::Pool),
                ("is_expandable", Self::Count),
                ("frames", Self::Stack),
            ],
            Self::Block => &[
                ("size", Self::Size),
                ("state", Self::State),
                ("address", Self::Address),
                ("requested_size", Self::Size),
                ("frames", Self::Stack),
                ("history", Self::History),
            ],
            Self::Use => {
                &[("real_size", Self::Size), ("frames", Self::Stack), ("addr", Self::Address)]
            }
            Self::Event => &[
                ("action", Self::Action),
                ("addr", Self::Address),
                ("size", Self::Size),
                ("stream", Self::Count),
                ("frames", Self::Stack),
                ("time_us", Self::Count),
                ("device_free", Self::Size),
                ("pool_id", Self::Pool),
                ("compile_context", Self::Text),
                ("user_metadata", Self::Text),
                ("forward_frames", Self::Lines),
                ("category", Self::Text),
                ("internal_metadata", Self::Text),
            ],
            Self::Frame => &[
                ("name", Self::Text),
                ("filename", Self::Text),
                ("line", Self::Count),
                ("fx_node_op", Self::Text),
            ],
            Self::Annotation => &[
                ("stage", Self::Stage),
                ("name", Self::Text),
                ("device", Self::Count),
                ("time_us", Self::Count),
            ],
            Self::Settings => &[
                ("max_split_size", Self::Count),
                ("expandable_segments", Self::Count),
                ("roundup_power2_divisions", Self::Settings),
                ("PYTORCH_CUDA_ALLOC_CONF", Self::Text),
            ],
            _ => &[],
        }
    }

    /// What a text of this kind may be.
    pub(super) fn texts(self) -> &'static [&'static str] {
        match self {
            Self::Action => &[
                "alloc",
                "free_requested",
                "free_completed",
                "segment_alloc",
                "segment_free",
                "oom",
                "snapshot",
                "other",
            ],
            Self::State => &["active_allocated", "inactive", "active_pending_free", "other"],
            Self::Type => &["small", "large", "other"],
            Self::Stage => &["START", "END"],
            _ => &["forward", "a.py", "", "N/A", "caf\u{e9}", "\\u0041", "a\\\\u0041", "x'y", "7"],
        }
    }
}
