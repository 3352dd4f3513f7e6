//! The figures of a message. Each is known by the words beside it, so their order and words that
//! other versions put between them do not matter. The words before it are enough where they tell
//! the figure, as the words after it may be cut. A number that may be cut itself is no figure.

/// From this number on a figure means that there is none: NVML reports 2^64 - 1 bytes where it does
/// not know, and so does a limit that was not set.
const NO_FIGURE: u64 = 1 << 60;

/// A message's next figure begins at most this many characters after one.
const MAX_GAP: usize = 400;

/// A number of bytes as it is printed, with two decimals mostly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) bytes: u64,
    /// Half of the last digit.
    pub(super) rounding: u64,
}

/// A process that holds memory of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: u64,
    pub(super) held: Size,
}

/// The figures of one message; `None` where it has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Figures {
    pub(super) gpu: Option<u32>,
    pub(super) asked: Option<Size>,
    pub(super) capacity: Option<Size>,
    pub(super) free: Option<Size>,
    pub(super) allocated: Option<Size>,
    pub(super) unallocated: Option<Size>,
    pub(super) reserved: Option<Size>,
    pub(super) private_pools: Option<Size>,
    pub(super) limit: Option<Size>,
    /// All memory of this process.
    pub(super) process: Option<Size>,
    /// Processes with a number, one of which may be this one.
    pub(super) processes: Vec<Process>,
    /// Memory of MPS outside of its allocator.
    pub(super) outside: Option<Size>,
    /// Whether the device has no count of its own processes' memory.
    pub(super) process_unknown: bool,
}

/// Reads a size at the start of a text without white space: `1.74gib`, `0bytes`.
pub(super) fn size(text: &str) -> Option<(Size, usize)> {
    let digits = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let whole_end = digits(text);
    let whole = text.get(..whole_end)?.parse::<u64>().ok()?;
    let (fraction, end) = match text[whole_end..].strip_prefix('.') {
        Some(after) => (&after[..digits(after)], whole_end + 1 + digits(after)),
        None => ("", whole_end),
    };
    let units = [
        ("bytes", 0),
        ("byte", 0),
        ("kib", 10),
        ("mib", 20),
        ("gib", 30),
        ("tib", 40),
        ("kb", 10),
        ("mb", 20),
        ("gb", 30),
        ("tb", 40),
    ];
    let (name, shift) = units.into_iter().find(|(name, _)| text[end..].starts_with(name))?;
    let fraction = fraction.get(..fraction.len().min(6))?;
    let scale = 10_u128.pow(fraction.len() as u32);
    let part = if fraction.is_empty() { 0 } else { fraction.parse::<u128>().ok()? };
    let bytes = ((u128::from(whole) * scale + part) << shift) / scale;
    let rounding = if shift == 0 { 0 } else { ((1_u128 << shift) / (2 * scale)) as u64 };
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    Some((Size { bytes, rounding }, end + name.len()))
}

/// Each size in a text with the text before it, after it, and its end.
pub(super) fn sizes(text: &str) -> impl Iterator<Item = (Size, &str, &str, usize)> {
    let bytes = text.as_bytes();
    // `isfree.1.05gib` begins with a 1: the dot ends a sentence. A number at the begin of the text,
    // or after dots that stand for words, may have lost digits.
    let starts = move |at: usize| {
        let within = match bytes[..at] {
            [] | [b'.'] | [.., b'.', b'.'] => true,
            [.., before, b'.'] | [.., before] => before.is_ascii_digit(),
        };
        bytes[at].is_ascii_digit() && !within && !text[..at].ends_with('…')
    };
    (0..bytes.len()).filter(move |at| starts(*at)).filter_map(move |at| {
        let (size, length) = size(&text[at..])?;
        Some((size, &text[..at], &text[at + length..], at + length))
    })
}

impl Figures {
    /// Reads the figures of the message at the start of a text without white space, in lower case.
    /// Returns the end of the last one, too.
    pub(super) fn read(text: &str) -> (Self, usize) {
        let mut figures = Self::default();
        let mut last = 0;
        for (size, before, after, end) in sizes(text) {
            if end > last + MAX_GAP {
                break;
            }
            if figures.take(size, before, after) {
                last = end;
            } else if before.ends_with("triedtoallocate") {
                // The next message begins.
                break;
            }
        }
        if let Some((_, device)) = text.get(..last).and_then(|read| read.split_once("ondevice")) {
            figures.gpu = figures.gpu.or_else(|| closed_number(device));
        }
        (figures, last)
    }

    /// Takes a size by the words beside it. Returns false for one that is no figure, or that the
    /// message has already.
    fn take(&mut self, size: Size, before: &str, after: &str) -> bool {
        let is_known = size.bytes < NO_FIGURE;
        let ends = |words: &[&str]| words.iter().any(|word| before.ends_with(word));
        let starts = |words: &[&str]| words.iter().any(|word| after.starts_with(word));
        // `(GPU 0; 8.00 GiB total capacity; 7.00 GiB already allocated; ...`: the words come after.
        let first = |words: &str| before.ends_with(';') && after.starts_with(words);
        let slot = if ends(&["triedtoallocate", "requested:"]) {
            // `. GPU 0 has` and `(GPU 0;`: also of other devices.
            let device = after.get(4..).filter(|_| starts(&[".", "("]));
            self.gpu = self.gpu.or_else(|| closed_number(device?));
            &mut self.asked
        } else if ends(&["totalcapacityof", "totalcapactyof", "devicelimit:"])
            || starts(&["totalcapacity"])
            || before.strip_suffix(';').is_some_and(|device| {
                let kind = device.trim_end_matches(|c: char| c.is_ascii_digit());
                ["(gpu", "(npu", "(xpu"].iter().any(|known| kind.ends_with(known))
            })
        {
            self.gpu = self.gpu.or_else(|| {
                let device = ["hasatotalcapacityof", "hasatotalcapactyof"];
                let device = device.iter().find_map(|words| before.strip_suffix(words))?;
                let kind = device.trim_end_matches(|c: char| c.is_ascii_digit());
                device[kind.len()..].parse().ok().filter(|_| kind.ends_with("gpu"))
            });
            &mut self.capacity
        } else if ends(&["ofwhich", "free(accordingtocuda):"])
            || starts(&["isfree"])
            || first("free")
        {
            &mut self.free
        } else if starts(&["memoryinuse"]) || before.ends_with("has") {
            return self.take_process(size, before);
        } else if starts(&["allowed"])
            || ends(&["pytorchlimit(setbyuser-suppliedmemoryfraction):", "maxallowed:"])
        {
            &mut self.limit
        } else if ends(&["oftheallocatedmemory", "currentlyallocated:", "mpsallocated:"])
            || starts(&["isallocatedbypytorch", "alreadyallocated"])
            || first("already")
        {
            &mut self.allocated
        } else if ends(&["bypytorch,with"]) || starts(&["allocatedinprivatepool"]) {
            &mut self.private_pools
        } else if starts(&["isreservedbypytorchbutunallocated"])
            || ends(&["bypytorch,and", "),and"])
            || first("cached")
        {
            // Before PyTorch 1.4 `cached` left out what tensors hold
            // (c10/cuda/CUDACachingAllocator.cpp: amount_cached - amount_allocated).
            &mut self.unallocated
        } else if starts(&["reservedintotalbypytorch"]) || first("reserved") {
            &mut self.reserved
        } else if ends(&["otherallocations:"]) {
            &mut self.outside
        } else {
            return false;
        };
        if slot.is_some() {
            return false;
        }
        *slot = is_known.then_some(size);
        true
    }

    /// Takes the memory of a process: `this process has`, or `Process 123 has`.
    fn take_process(&mut self, size: Size, before: &str) -> bool {
        let is_known = size.bytes < NO_FIGURE;
        let Some(owner) = before.strip_suffix("has") else { return false };
        if owner.ends_with("thisprocess") {
            self.process_unknown |= !is_known;
            self.process = self.process.or(is_known.then_some(size));
            return true;
        }
        let name = owner.trim_end_matches(|c: char| c.is_ascii_digit());
        let pid = owner[name.len()..].parse().ok().filter(|_| name.ends_with("process"));
        if let (Some(pid), true) = (pid, is_known) {
            self.processes.push(Process { pid, held: size });
        }
        pid.is_some()
    }
}

/// The number at the start of a text.
pub(super) fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    text[..end].parse().ok()
}

/// The number at the start of a text, unless the text ends with it: it may be cut.
pub(super) fn closed_number<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_closed = text.contains(|c: char| !c.is_ascii_digit());
    number(text).filter(|_| is_closed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_that_may_be_cut_is_no_size() {
        let of = |text: &str| sizes(text).map(|of| of.0.bytes >> 20).collect::<Vec<_>>();
        assert_eq!(of("of31.00gib"), [31 << 10]);
        assert_eq!(of("isfree.2.00mib"), [2]);
        for cut in
            ["31.00gib", ".37gib", "of...31.00gib", "of\u{2026}31.00gib", "of31.00gi", "of31."]
        {
            assert!(of(cut).is_empty(), "{cut}");
        }
    }

    #[test]
    fn sizes_have_the_error_of_their_last_digit() {
        let of = |text: &str| size(text).map(|(size, length)| (size.bytes, size.rounding, length));
        assert_eq!(of("2.00gib"), Some((2 << 30, 5_368_709, 7)));
        assert_eq!(of("1024.00kib."), Some((1 << 20, 5, 10)));
        assert_eq!(of("0bytes"), Some((0, 0, 6)));
        assert_eq!(of("512mb"), Some((512 << 20, 1 << 19, 5)));
        assert_eq!(of("17179869184.00gib"), Some((u64::MAX, 5_368_709, 17)));
        assert_eq!(of("12apples"), None);
        assert_eq!(of("99999999999999999999999gib"), None);
    }
}
