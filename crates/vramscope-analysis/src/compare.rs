//! Call stacks of two recordings of the same program, matched although lines have shifted and
//! folders have moved.

use crate::site::is_framework_file;
use rustc_hash::{FxHashMap, FxHashSet};
use xxhash_rust::xxh3::xxh3_64;

/// What one call stack holds, in words that mean the same in every file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy<'a> {
    /// Bytes.
    pub bytes: u64,
    /// Whether it is the stack of the free.
    pub is_of_free: bool,
    /// Innermost first.
    pub frames: Vec<NamedFrame<'a>>,
}

/// A frame in words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFrame<'a> {
    /// The function.
    pub name: &'a str,
    /// The file.
    pub file: &'a str,
    /// The line; 0 when unknown.
    pub line: u32,
}

/// Places in the two lists of the same call stack; what is only in one of them has no other.
pub type Matched = (Option<usize>, Option<usize>);

/// How much of a file's path must agree, the strictest first.
#[derive(Clone, Copy)]
enum Path {
    /// All of it: the same machine, the same checkout.
    Whole,
    /// From the root of the package, or the file and its folder: another checkout, another
    /// environment.
    Package,
    /// The file alone, for code that lies at the root of a checkout.
    Name,
}

impl Path {
    fn of(self, file: &str) -> &str {
        match self {
            Self::Whole => file,
            Self::Package => package_path(file),
            Self::Name => last_parts(file, 1),
        }
    }
}

/// A path from where it is the same on every machine: in a package, in Python's library, else its
/// last two parts.
///
/// ```
/// use vramscope_analysis::package_path;
///
/// assert_eq!(package_path("/opt/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py"), "torch/nn/modules/linear.py");
/// assert_eq!(package_path("/usr/lib/python3.12/threading.py"), "threading.py");
/// assert_eq!(package_path("/home/me/work/train/model.py"), "train/model.py");
/// ```
pub fn package_path(file: &str) -> &str {
    for root in ["-packages/", "-packages\\"] {
        if let Some((_, rest)) = file.rsplit_once(root) {
            return rest;
        }
    }
    if let Some((_, rest)) = file.rsplit_once("/lib/python")
        && let Some((_, rest)) = rest.split_once('/')
    {
        return rest;
    }
    last_parts(file, 2)
}

fn last_parts(file: &str, count: usize) -> &str {
    file.rmatch_indices(['/', '\\']).nth(count - 1).map_or(file, |(at, _)| &file[at + 1..])
}

/// Matches the stacks of two lists; each comes exactly once.
///
/// Stacks match when functions and files do, frame by frame; else when those of the user's own code
/// do. Several of `a` and of `b` can then be the same but for their lines, as where a function
/// allocates in two places. Where the lines of one side are all among the other's, nothing has
/// shifted and the lines decide; else their order does, which code that is put in does not change,
/// and of the ways to match in that order the one by which most is alike.
pub fn match_stacks(a: &[HeldBy<'_>], b: &[HeldBy<'_>]) -> Vec<Matched> {
    let mut matched: Vec<Matched> = Vec::with_capacity(a.len().max(b.len()));
    let mut left: [Vec<usize>; 2] = [(0..a.len()).collect(), (0..b.len()).collect()];
    for path in [Path::Whole, Path::Package, Path::Name] {
        left = pass([a, b], left, path, &mut matched);
    }
    // Another release of PyTorch has other frames between the user's code and the allocator.
    let own = [own_frames(a), own_frames(b)];
    let (named, [without_a, without_b]) = split(left, &own);
    let [of_a, of_b] = pass([&own[0], &own[1]], named, Path::Name, &mut matched);
    matched.extend(of_a.into_iter().chain(without_a).map(|i| (Some(i), None)));
    matched.extend(of_b.into_iter().chain(without_b).map(|j| (None, Some(j))));
    matched
}

/// Matches those of `left` that have the same key, and gives back those whose key the other side
/// does not have.
fn pass(
    [a, b]: [&[HeldBy<'_>]; 2],
    left: [Vec<usize>; 2],
    path: Path,
    matched: &mut Vec<Matched>,
) -> [Vec<usize>; 2] {
    let mut groups: FxHashMap<u64, [Vec<usize>; 2]> = FxHashMap::default();
    for (side, (stacks, left)) in [a, b].into_iter().zip(left).enumerate() {
        for i in left {
            groups.entry(key(&stacks[i], path)).or_default()[side].push(i);
        }
    }
    let mut still = [Vec::new(), Vec::new()];
    for group in groups.into_values() {
        match group {
            [in_a, in_b] if in_a.is_empty() || in_b.is_empty() => {
                still[0].extend(in_a);
                still[1].extend(in_b);
            }
            group => in_group(a, b, group, matched),
        }
    }
    still
}

/// The stacks without the frames of PyTorch, Python and compiled code.
fn own_frames<'a>(stacks: &[HeldBy<'a>]) -> Vec<HeldBy<'a>> {
    let own =
        |s: &HeldBy<'a>| s.frames.iter().copied().filter(|f| !is_framework_file(f.file)).collect();
    stacks.iter().map(|s| HeldBy { frames: own(s), ..*s }).collect()
}

/// Those of `left` that have frames, and those that have none.
fn split(
    left: [Vec<usize>; 2],
    stacks: &[Vec<HeldBy<'_>>; 2],
) -> ([Vec<usize>; 2], [Vec<usize>; 2]) {
    let [of_a, of_b] = left;
    let parts = |left: Vec<usize>, stacks: &[HeldBy<'_>]| -> (Vec<usize>, Vec<usize>) {
        left.into_iter().partition(|&i| !stacks[i].frames.is_empty())
    };
    let ((with_a, without_a), (with_b, without_b)) =
        (parts(of_a, &stacks[0]), parts(of_b, &stacks[1]));
    ([with_a, with_b], [without_a, without_b])
}

/// The same for stacks that differ in nothing but lines, and in as much of their paths as is not
/// asked for.
fn key(stack: &HeldBy<'_>, path: Path) -> u64 {
    let mut text = vec![u8::from(stack.is_of_free)];
    for frame in &stack.frames {
        // Zero bytes keep names and files apart.
        for part in [frame.name, path.of(frame.file)] {
            text.extend_from_slice(part.as_bytes());
            text.push(0);
        }
    }
    xxh3_64(&text)
}

/// More pairs than this are not weighed against each other.
const MOST_PAIRS: usize = 1 << 22;

fn in_group(
    a: &[HeldBy<'_>],
    b: &[HeldBy<'_>],
    [mut of_a, mut of_b]: [Vec<usize>; 2],
    matched: &mut Vec<Matched>,
) {
    // Outermost first: what runs later stands lower in its file.
    let lines = |s: &HeldBy<'_>| s.frames.iter().rev().map(|f| f.line).collect::<Vec<u32>>();
    of_a.sort_by_cached_key(|&i| (lines(&a[i]), i));
    of_b.sort_by_cached_key(|&j| (lines(&b[j]), j));
    let same = same_lines(a, b, &of_a, &of_b);
    let pairs = if same.len() == of_a.len().min(of_b.len()) {
        same
    } else if of_a.len().saturating_mul(of_b.len()) > MOST_PAIRS {
        of_a.iter().copied().zip(of_b.iter().copied()).collect()
    } else {
        most_alike(a, b, &of_a, &of_b)
    };
    let (paired_a, paired_b): (FxHashSet<usize>, FxHashSet<usize>) = pairs.iter().copied().unzip();
    matched.extend(pairs.into_iter().map(|(i, j)| (Some(i), Some(j))));
    // Whatever a laxer look at paths finds for the rest would be less like it than what was just
    // refused.
    matched.extend(of_a.into_iter().filter(|i| !paired_a.contains(i)).map(|i| (Some(i), None)));
    matched.extend(of_b.into_iter().filter(|j| !paired_b.contains(j)).map(|j| (None, Some(j))));
}

/// Those whose lines are equal, of two lists in the order of their lines.
fn same_lines(
    a: &[HeldBy<'_>],
    b: &[HeldBy<'_>],
    of_a: &[usize],
    of_b: &[usize],
) -> Vec<(usize, usize)> {
    let lines = |s: &HeldBy<'_>| s.frames.iter().rev().map(|f| f.line).collect::<Vec<u32>>();
    let (mut same, mut j) = (Vec::new(), 0);
    for &i in of_a {
        let wanted = lines(&a[i]);
        while j < of_b.len() && lines(&b[of_b[j]]) < wanted {
            j += 1;
        }
        if j < of_b.len() && lines(&b[of_b[j]]) == wanted {
            same.push((i, of_b[j]));
            j += 1;
        }
    }
    same
}

/// The matching in order that is most alike.
fn most_alike(
    a: &[HeldBy<'_>],
    b: &[HeldBy<'_>],
    of_a: &[usize],
    of_b: &[usize],
) -> Vec<(usize, usize)> {
    // How much is gained so far: `gain[j]` by the first stacks of `a` and the first `j` of `b`.
    let width = of_b.len() + 1;
    let mut steps = vec![Step::OnlyB; (of_a.len() + 1) * width];
    let mut gain = vec![0u64; width];
    for (row, &i) in (1..).zip(of_a) {
        let mut diagonal = gain[0];
        for (column, &j) in (1..).zip(of_b) {
            let ways = [
                (diagonal + likeness(&a[i], &b[j]), Step::Pair),
                (gain[column], Step::OnlyA),
                (gain[column - 1], Step::OnlyB),
            ];
            diagonal = gain[column];
            let best = ways.into_iter().reduce(|best, way| if way.0 > best.0 { way } else { best });
            (gain[column], steps[row * width + column]) = best.unwrap_or(ways[0]);
        }
    }
    let (mut row, mut column, mut pairs) = (of_a.len(), of_b.len(), Vec::new());
    while row > 0 && column > 0 {
        match steps[row * width + column] {
            Step::Pair => {
                (row, column) = (row - 1, column - 1);
                pairs.push((of_a[row], of_b[column]));
            }
            Step::OnlyA => row -= 1,
            Step::OnlyB => column -= 1,
        }
    }
    pairs
}

/// What speaks for two stacks being the same: bytes that are alike, and as much as half of that for
/// a match at all and for the same lines.
fn likeness(a: &HeldBy<'_>, b: &HeldBy<'_>) -> u64 {
    let (least, most) = (a.bytes.min(b.bytes), a.bytes.max(b.bytes).max(1));
    let same_lines = a.frames.iter().zip(&b.frames).all(|(x, y)| x.line == y.line);
    (u128::from(least) * 100 / u128::from(most)) as u64 + 50 + if same_lines { 50 } else { 0 }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    Pair,
    OnlyA,
    OnlyB,
}

#[cfg(test)]
mod tests;
