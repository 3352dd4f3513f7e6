//! The causes that the figures of a message show, allow or exclude.
//!
//! Facts about PyTorch's allocator (c10/cuda/CUDACachingAllocator.cpp, `DeviceCachingAllocator::
//! malloc`):
//!
//! - The size in the message is that of the segment that PyTorch asks the driver for. It is
//!   rounded up (`get_allocation_size`): 2 MiB for a tensor up to 1 MiB, 20 MiB up to 10 MiB, else
//!   a multiple of 2 MiB.
//! - Before the error PyTorch has returned each cached segment without a live block to the driver
//!   (`release_cached_blocks`), except while a CUDA graph is being captured. So "reserved but
//!   unallocated" lies beside live blocks, or in private pools.
//! - The free memory is read after the failure (`cudaMemGetInfo`).
//! - A request fails, too, if it and all that is reserved are more than the limit of
//!   `set_per_process_memory_fraction` (`alloc_block`).
//! - The list of processes is that of NVML, and has the process itself. Inside a container its
//!   number is another than the one that the process knows, so it is listed as if it were another.

use super::figures::{Figures, Process, Size};
use super::record::{Cause, CauseKind, CauseVerdict, ProcessMemory};
use vramscope_units::Bytes;

/// A number of bytes with the error that comes of rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct About {
    at: i128,
    by: i128,
}

impl From<Size> for About {
    fn from(size: Size) -> Self {
        Self { at: size.bytes.into(), by: size.rounding.into() }
    }
}

impl About {
    pub(super) fn plus(self, other: Self) -> Self {
        Self { at: self.at + other.at, by: self.by + other.by }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self { at: self.at - other.at, by: self.by + other.by }
    }

    /// Whether it is above the other one, whatever was rounded away.
    pub(super) fn surely_above(self, other: Self) -> bool {
        self.at - self.by > other.at + other.by
    }

    /// Whether it may be above or equal.
    pub(super) fn reaches(self, other: Self) -> bool {
        !other.surely_above(self)
    }

    fn smaller(self, other: Self) -> Self {
        if other.at < self.at { other } else { self }
    }

    /// The bytes; 0 if it is negative.
    pub(super) fn bytes(self) -> Bytes {
        Bytes(u64::try_from(self.at.max(0)).unwrap_or(u64::MAX))
    }

    /// The largest error.
    pub(super) fn rounding(self) -> Bytes {
        Bytes(u64::try_from(self.by).unwrap_or(u64::MAX))
    }

    /// The bytes in words: `about 1.20 GiB`.
    pub(super) fn words(self) -> String {
        if self.by == 0 { self.bytes().to_string() } else { format!("about {}", self.bytes()) }
    }
}

/// The figures of a message and what follows from them.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums {
    pub(super) asked: Option<About>,
    pub(super) capacity: Option<About>,
    pub(super) free: Option<About>,
    pub(super) allocated: Option<About>,
    pub(super) unallocated: Option<About>,
    pub(super) reserved: Option<About>,
    /// A limit below the capacity.
    pub(super) limit: Option<About>,
    /// All memory of this process.
    pub(super) process: Option<About>,
    /// The part of it that is not PyTorch's.
    pub(super) outside: Option<About>,
    /// Memory that is neither free nor this process's.
    pub(super) others: Option<About>,
    /// The sum of the listed processes without this one, if this one is known.
    pub(super) listed_others: Option<About>,
    /// Memory that is neither free nor PyTorch's.
    pub(super) not_pytorch: Option<About>,
    pub(super) processes: Vec<ProcessMemory>,
    /// Whether PyTorch holds more than the device has.
    pub(super) is_beyond_device: bool,
    /// Whether the message has its last figures: of all memory that PyTorch holds. Without them a
    /// sum may be larger.
    pub(super) is_whole: bool,
}

impl Sums {
    pub(super) fn new(figures: &Figures) -> Self {
        let about = |size: Option<Size>| size.map(About::from);
        let zero = About::default();
        let mut sums = Self {
            asked: about(figures.asked),
            capacity: about(figures.capacity),
            free: about(figures.free),
            allocated: about(figures.allocated),
            unallocated: about(figures.unallocated),
            reserved: about(figures.reserved),
            is_whole: figures.unallocated.or(figures.reserved).is_some(),
            ..Self::default()
        };
        let both = |a: Option<About>, b: Option<About>| Some((a?, b?));
        sums.reserved = sums.reserved.or_else(|| {
            both(sums.allocated, sums.unallocated).map(|(held, unused)| held.plus(unused))
        });
        sums.unallocated = sums.unallocated.or_else(|| {
            let difference = both(sums.reserved, sums.allocated).map(|(all, held)| all.minus(held));
            difference.filter(|unused| unused.reaches(zero))
        });
        sums.limit = about(figures.limit)
            .filter(|limit| sums.capacity.is_none_or(|capacity| capacity.surely_above(*limit)));
        sums.is_beyond_device = both(sums.allocated, sums.capacity)
            .is_some_and(|(held, capacity)| held.surely_above(capacity));
        sums.not_pytorch = both(sums.capacity, sums.free)
            .and_then(|(capacity, free)| Some(capacity.minus(free).minus(sums.reserved?)))
            .filter(|rest| rest.reaches(zero));
        sums.read_processes(figures);
        sums
    }

    /// Tells this process from the others.
    fn read_processes(&mut self, figures: &Figures) {
        let zero = About::default();
        let held = |process: &Process| About::from(process.held);
        let named = figures.process.map(About::from);
        // In a container this process has a number as the others have. It holds all that PyTorch
        // reserved, so it is the only one that is large enough.
        let hidden = match (self.reserved, named, figures.process_unknown) {
            (Some(reserved), None, false) if reserved.surely_above(zero) => {
                let mut large =
                    figures.processes.iter().filter(|process| held(process).reaches(reserved));
                large.next().filter(|_| large.next().is_none()).map(|process| process.pid)
            }
            _ => None,
        };
        let is_this = |process: &Process| match (named, hidden) {
            (Some(_), _) => Some(false),
            (None, Some(pid)) => Some(process.pid == pid),
            (None, None) => None,
        };
        self.processes = figures
            .processes
            .iter()
            .map(|process| ProcessMemory {
                pid: process.pid,
                bytes: Bytes(process.held.bytes),
                is_this: is_this(process),
            })
            .collect();
        let this = figures.processes.iter().find(|process| is_this(process) == Some(true));
        self.process = named.or_else(|| this.map(held));
        let Some(process) = self.process else { return };
        // The list is whole if there are figures before and after it.
        let after = figures.allocated.or(figures.limit).or(figures.unallocated);
        if figures.free.and(after).is_some() {
            let others = figures.processes.iter().filter(|of| is_this(of) == Some(false));
            self.listed_others = Some(others.map(held).fold(zero, About::plus));
        }
        self.outside = self.reserved.map(|reserved| process.minus(reserved));
        if self.outside.is_some_and(|outside| !outside.reaches(zero)) {
            // Memory that the driver does not count for the process.
            self.outside = None;
            return;
        }
        self.others = self
            .capacity
            .and_then(|capacity| Some(capacity.minus(self.free?).minus(process)))
            .filter(|others| others.reaches(zero));
    }

    /// The memory that one more request could have: what is free, below the limit.
    pub(super) fn room(&self) -> Option<About> {
        let free = self.free;
        let below = self.limit.and_then(|limit| Some(limit.minus(self.reserved?)));
        match (free, below) {
            (Some(free), Some(below)) => Some(free.smaller(below)),
            (room, None) | (None, room) => room,
        }
    }

    /// That memory in words.
    fn room_words(&self) -> String {
        let room = self.room().unwrap_or_default();
        let is_limited = self.free.is_none_or(|free| free.at != room.at);
        let whose = if is_limited { "left below the limit" } else { "free" };
        format!("{} {whose}", room.bytes())
    }

    /// What is missing even if PyTorch could use all that it reserved.
    pub(super) fn missing(&self) -> Option<About> {
        Some(self.asked?.minus(self.room()?).minus(self.unallocated?))
    }

    /// Whether the free memory is more than was asked.
    pub(super) fn is_free_enough(&self) -> bool {
        self.asked.zip(self.free).is_some_and(|(asked, free)| !asked.surely_above(free))
    }

    /// Whether the limit is reached.
    pub(super) fn is_limited(&self) -> bool {
        self.limit().is_some_and(|cause| cause.verdict == CauseVerdict::Shown)
    }

    /// Whether the request and the tensors alone are more than the process can have.
    pub(super) fn is_too_much(&self) -> bool {
        let most = match (self.capacity, self.limit) {
            (Some(capacity), Some(limit)) => Some(capacity.smaller(limit)),
            (capacity, limit) => capacity.or(limit),
        };
        let needed = self.asked.map(|asked| asked.plus(self.allocated.unwrap_or_default()));
        needed.zip(most).is_some_and(|(needed, most)| needed.surely_above(most))
    }

    fn limit(&self) -> Option<Cause> {
        let (limit, asked) = (self.limit?, self.asked?);
        let held = self.reserved.or(self.allocated)?;
        let is_least = self.reserved.is_none();
        let needed = held.plus(asked);
        let what = if is_least { "allocated" } else { "reserved" };
        let sums = format!("{} {what} and {} asked", held.bytes(), asked.bytes());
        let (verdict, text) = if needed.surely_above(limit) {
            let text = format!(
                "{sums} are more than the {} that the program lets this process reserve",
                limit.bytes()
            );
            (CauseVerdict::Shown, text)
        } else if is_least || !limit.surely_above(needed) {
            // With more free than was asked, the limit alone is left as a cause.
            let verdict = if self.is_free_enough() {
                CauseVerdict::Possible
            } else {
                CauseVerdict::CannotBeTold
            };
            (verdict, format!("{sums} are about the limit of {}", limit.bytes()))
        } else {
            (CauseVerdict::Excluded, format!("{sums} are below the limit of {}", limit.bytes()))
        };
        let is_told = verdict == CauseVerdict::Shown && self.is_whole;
        let bytes = is_told.then(|| needed.minus(limit).bytes());
        Some(Cause { cause: CauseKind::Limit, verdict, bytes, text })
    }

    fn demand(&self) -> Option<Cause> {
        let asked = self.asked?;
        let cause = |verdict, bytes, text| Cause { cause: CauseKind::Demand, verdict, bytes, text };
        let most = self.limit.or(self.capacity);
        let whose = if self.limit.is_some() { "the limit" } else { "the device" };
        if let (true, Some(most)) = (self.is_too_much(), most) {
            let held = self.allocated.unwrap_or_default();
            let needed = held.plus(asked);
            let text = if asked.surely_above(most) {
                format!("the request alone is larger than {whose}")
            } else {
                format!(
                    "tensors and the request need {}, {whose} has {}",
                    needed.words(),
                    most.bytes()
                )
            };
            let missing = self.is_whole.then(|| needed.minus(most).bytes());
            return Some(cause(CauseVerdict::Shown, missing, text));
        }
        let room = self.room()?;
        let Some((unused, missing)) = self.unallocated.zip(self.missing()) else {
            return self.demand_of_part(asked, room);
        };
        let zero = About::default();
        Some(if missing.surely_above(zero) {
            let text = format!(
                "{} missing, even with the {} that PyTorch holds unused",
                missing.words(),
                unused.bytes()
            );
            // Other processes of unknown size may have what is missing.
            let elsewhere = self.not_pytorch.filter(|_| self.listed_others.is_none());
            let verdict = if elsewhere.is_some_and(|rest| rest.reaches(missing)) {
                CauseVerdict::Possible
            } else {
                CauseVerdict::Shown
            };
            cause(verdict, Some(missing.bytes()), text)
        } else if room.surely_above(asked) {
            cause(
                CauseVerdict::CannotBeTold,
                None,
                "more is free than was asked: the figures do not show why it failed".to_owned(),
            )
        } else {
            let text = format!(
                "{} and {} unallocated would be enough together",
                self.room_words(),
                unused.bytes()
            );
            cause(CauseVerdict::CannotBeTold, None, text)
        })
    }

    /// Demand without the memory that PyTorch holds unused.
    fn demand_of_part(&self, asked: About, room: About) -> Option<Cause> {
        if !asked.surely_above(room) {
            return None;
        }
        let whole = self.capacity.map_or(String::new(), |of| format!(" of {}", of.bytes()));
        let held = match (self.process, self.allocated) {
            (Some(process), _) => format!("this process has {}{whole}, ", process.bytes()),
            (None, Some(allocated)) => format!("tensors have {}{whole}, ", allocated.bytes()),
            (None, None) => String::new(),
        };
        let (room, asked) = (self.room_words(), asked.bytes());
        Some(Cause {
            cause: CauseKind::Demand,
            verdict: CauseVerdict::Possible,
            bytes: None,
            text: format!(
                "{held}{room}, {asked} asked; what PyTorch holds unused is not in the message"
            ),
        })
    }

    fn fragmentation(&self) -> Option<Cause> {
        let (asked, unused) = (self.asked?, self.unallocated?);
        let (room, missing) = (self.room()?, self.missing()?);
        let zero = About::default();
        let cause = |verdict, text| Cause {
            cause: CauseKind::Fragmentation,
            verdict,
            bytes: Some(unused.bytes()),
            text,
        };
        Some(if missing.surely_above(zero) {
            let text = format!(
                "{} unallocated and {} are less than {} asked",
                unused.bytes(),
                self.room_words(),
                asked.bytes()
            );
            cause(CauseVerdict::Excluded, text)
        } else if room.surely_above(asked) {
            cause(CauseVerdict::Excluded, "more is free than was asked".to_owned())
        } else if missing.at > 0 {
            let text = format!(
                "{} missing, which is less than the error of rounded figures",
                missing.words()
            );
            cause(CauseVerdict::CannotBeTold, text)
        } else if unused.at >= asked.at {
            let text = format!(
                "PyTorch holds {} unused, and found no piece of {} in it",
                unused.bytes(),
                asked.bytes()
            );
            cause(CauseVerdict::Possible, text)
        } else {
            let text = format!(
                "{} and {} that PyTorch holds unused would be enough together",
                self.room_words(),
                unused.bytes()
            );
            cause(CauseVerdict::Possible, text)
        })
    }

    fn other_processes(&self) -> Option<Cause> {
        let asked = self.asked?;
        let free = self.free?;
        let unused = self.unallocated.unwrap_or_default();
        let cause = |verdict, bytes: Option<About>, text| Cause {
            cause: CauseKind::OtherProcesses,
            verdict,
            bytes: bytes.map(About::bytes),
            text,
        };
        if self.is_free_enough() {
            let text = "more is free than was asked".to_owned();
            return Some(cause(CauseVerdict::Excluded, self.listed_others, text));
        }
        if self.is_too_much() {
            let text = "without them the request would not fit".to_owned();
            return Some(cause(CauseVerdict::Excluded, self.listed_others, text));
        }
        let Some(listed) = self.listed_others else {
            let (rest, whose) = match self.others {
                Some(others) => (others, "this process's"),
                None => (
                    self.not_pytorch?,
                    "PyTorch's: this process's CUDA context and libraries, and other processes",
                ),
            };
            let text = format!("{} neither free nor {whose}", rest.words());
            return Some(cause(CauseVerdict::CannotBeTold, Some(rest), text));
        };
        let zero = About::default();
        // The rest is of processes that are not listed, and of the driver.
        let all = self.others.unwrap_or(listed);
        Some(if listed.surely_above(zero) && !asked.surely_above(free.plus(listed)) {
            let text = format!("they hold {}: without them this request would fit", listed.bytes());
            cause(CauseVerdict::Shown, Some(listed), text)
        } else if self.is_whole && asked.surely_above(free.plus(all).plus(unused)) {
            let text = format!("they hold {}: without them it would not fit", listed.bytes());
            cause(CauseVerdict::Excluded, Some(listed), text)
        } else if listed.surely_above(zero) {
            let text =
                format!("they hold {}, which alone is not enough for this request", listed.bytes());
            cause(CauseVerdict::Possible, Some(listed), text)
        } else {
            let text = format!("{} belong to no listed process", all.words());
            cause(CauseVerdict::CannotBeTold, Some(all), text)
        })
    }

    /// Each cause that the figures speak of.
    pub(super) fn causes(&self) -> Vec<Cause> {
        let all = [self.limit(), self.demand(), self.other_processes(), self.fragmentation()];
        all.into_iter().flatten().collect()
    }

    /// The main cause. One that more memory for this request would not cure comes first.
    pub(super) fn main(&self) -> Option<CauseKind> {
        let causes = self.causes();
        let is = |kind: CauseKind, verdict: CauseVerdict| {
            causes.iter().any(|cause| (cause.cause, cause.verdict) == (kind, verdict))
        };
        let order: [(bool, CauseKind, CauseVerdict); 8] = [
            (self.is_free_enough(), CauseKind::Limit, CauseVerdict::Shown),
            (self.is_too_much(), CauseKind::Demand, CauseVerdict::Shown),
            (true, CauseKind::OtherProcesses, CauseVerdict::Shown),
            (true, CauseKind::Demand, CauseVerdict::Shown),
            (true, CauseKind::Limit, CauseVerdict::Shown),
            (true, CauseKind::Limit, CauseVerdict::Possible),
            (true, CauseKind::Fragmentation, CauseVerdict::Possible),
            (true, CauseKind::Demand, CauseVerdict::Possible),
        ];
        order.into_iter().find(|(when, kind, verdict)| *when && is(*kind, *verdict)).map(|of| of.1)
    }
}
