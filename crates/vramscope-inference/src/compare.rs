//! Matches the call stacks of two recordings of the same program, even where lines have shifted and
//! folders have moved.
use rustc_hash::{FxHashMap, FxHashSet};
use vramscope_trace::NoStack;
use vramscope_trace::file_name;
use vramscope_trace::is_framework_frame;
use xxhash_rust::xxh3::xxh3_64;

/// The bytes held by one call stack, with frames as text. Unlike ids, text is comparable between
/// files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy<'a> {
    /// Bytes held.
    pub bytes: u64,
    /// Whether it is the stack of the free.
    pub is_of_free: bool,
    /// Why there are no frames. `None` if there are some.
    pub no_stack: Option<NoStack>,
    /// Frames, innermost first.
    pub frames: Vec<NamedFrame<'a>>,
}

/// A frame as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFrame<'a> {
    /// Function name.
    pub name: &'a str,
    /// File path.
    pub file: &'a str,
    /// Line number. 0 if unknown.
    pub line: u32,
}

/// Indices of one call stack in the lists `a` and `b`. `None` where a list does not have it.
type StackMatch = (Option<usize>, Option<usize>);

/// How much of two file paths must be equal. The strictest comes first.
#[derive(Clone, Copy)]
enum PathScope {
    /// The whole path, for the same checkout on the same machine.
    Whole,
    /// The path from the package root, or else the file and its folder. For another checkout or
    /// another environment.
    Package,
    /// The file name, for code at the root of a checkout.
    FileName,
}

impl PathScope {
    fn of(self, file: &str) -> &str {
        match self {
            Self::Whole => file,
            Self::Package => package_path(file),
            Self::FileName => file_name(file),
        }
    }
}

/// The part of a path that is equal on every machine: relative to the package root or to Python's
/// standard library, or else the last two components.
fn package_path(file: &str) -> &str {
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
    last_components(file, 2)
}

/// The last `count` components of a path.
fn last_components(file: &str, count: usize) -> &str {
    file.rmatch_indices(['/', '\\']).nth(count - 1).map_or(file, |(at, _)| &file[at + 1..])
}

/// Matches the stacks of two lists. Every stack occurs in exactly one match.
///
/// Stacks match if their functions and files are equal, frame by frame. Remaining stacks match if
/// the frames in the user's own code are equal. Several stacks of `a` and of `b` can then differ in
/// nothing but lines, for example if a function allocates in two places. Such a group is resolved
/// by its lines:
///
/// - If one list has all lines of the other, no line has shifted. Stacks with equal lines match.
/// - Otherwise the order of lines decides, because inserted code does not change it. Of all
///   matchings in that order, the one with the highest total similarity is taken.
pub fn match_stacks(a: &[HeldBy<'_>], b: &[HeldBy<'_>]) -> Vec<StackMatch> {
    let mut matches: Vec<StackMatch> = Vec::with_capacity(a.len().max(b.len()));
    let mut unmatched: [Vec<usize>; 2] = [(0..a.len()).collect(), (0..b.len()).collect()];
    for scope in [PathScope::Whole, PathScope::Package, PathScope::FileName] {
        unmatched = match_by_key([a, b], unmatched, scope, &mut matches);
    }
    // Releases of PyTorch differ in the frames between the user's code and the allocator.
    let user = [user_frames(a), user_frames(b)];
    let (with_frames, [without_a, without_b]) = split_by_frames(unmatched, &user);
    let user = [&user[0][..], &user[1][..]];
    let [only_a, only_b] = match_by_key(user, with_frames, PathScope::FileName, &mut matches);
    matches.extend(only_a.into_iter().chain(without_a).map(|i| (Some(i), None)));
    matches.extend(only_b.into_iter().chain(without_b).map(|j| (None, Some(j))));
    matches
}

/// Matches stacks with equal keys. Returns the stacks whose key the other list does not have.
fn match_by_key(
    [a, b]: [&[HeldBy<'_>]; 2],
    unmatched: [Vec<usize>; 2],
    scope: PathScope,
    matches: &mut Vec<StackMatch>,
) -> [Vec<usize>; 2] {
    let mut groups: FxHashMap<u64, [Vec<usize>; 2]> = FxHashMap::default();
    for (list, (stacks, indices)) in [a, b].into_iter().zip(unmatched).enumerate() {
        for i in indices {
            groups.entry(stack_key(&stacks[i], scope)).or_default()[list].push(i);
        }
    }
    let mut rest = [Vec::new(), Vec::new()];
    for group in groups.into_values() {
        match group {
            [in_a, in_b] if in_a.is_empty() || in_b.is_empty() => {
                rest[0].extend(in_a);
                rest[1].extend(in_b);
            }
            group => match_group(a, b, group, matches),
        }
    }
    rest
}

/// The stacks without the frames of PyTorch, Python and compiled code.
fn user_frames<'a>(stacks: &[HeldBy<'a>]) -> Vec<HeldBy<'a>> {
    let is_framework = |f: &NamedFrame<'_>| is_framework_frame(f.name, f.file);
    let user = |s: &HeldBy<'a>| s.frames.iter().copied().filter(|f| !is_framework(f)).collect();
    stacks.iter().map(|s| HeldBy { frames: user(s), ..*s }).collect()
}

/// Splits `indices` into stacks with frames, and stacks without.
fn split_by_frames(
    indices: [Vec<usize>; 2],
    stacks: &[Vec<HeldBy<'_>>; 2],
) -> ([Vec<usize>; 2], [Vec<usize>; 2]) {
    let [of_a, of_b] = indices;
    let split = |indices: Vec<usize>, stacks: &[HeldBy<'_>]| -> (Vec<usize>, Vec<usize>) {
        indices.into_iter().partition(|&i| !stacks[i].frames.is_empty())
    };
    let ((with_a, without_a), (with_b, without_b)) =
        (split(of_a, &stacks[0]), split(of_b, &stacks[1]));
    ([with_a, with_b], [without_a, without_b])
}

/// A hash of a stack without its lines, and with paths reduced to `scope`.
fn stack_key(stack: &HeldBy<'_>, scope: PathScope) -> u64 {
    let mut text = vec![u8::from(stack.is_of_free), stack.no_stack.map_or(0, |why| 1 + why as u8)];
    for frame in &stack.frames {
        // Zero bytes separate names and files.
        for part in [frame.name, scope.of(frame.file)] {
            text.extend_from_slice(part.as_bytes());
            text.push(0);
        }
    }
    xxh3_64(&text)
}

/// Larger groups are paired in order, without comparing all pairs. Bounds time and memory.
const MAX_COMPARED_PAIRS: usize = 1 << 22;

/// The lines of a stack, outermost frame first. Code that runs later is usually lower in its file,
/// so this order is stable when lines shift.
fn lines(stack: &HeldBy<'_>) -> impl Iterator<Item = u32> + Clone {
    stack.frames.iter().rev().map(|f| f.line)
}

/// Matches a group of stacks with equal keys.
fn match_group(
    a: &[HeldBy<'_>],
    b: &[HeldBy<'_>],
    [mut of_a, mut of_b]: [Vec<usize>; 2],
    matches: &mut Vec<StackMatch>,
) {
    of_a.sort_by(|&i, &j| lines(&a[i]).cmp(lines(&a[j])).then(i.cmp(&j)));
    of_b.sort_by(|&i, &j| lines(&b[i]).cmp(lines(&b[j])).then(i.cmp(&j)));
    let equal = equal_lines(a, b, &of_a, &of_b);
    let pairs = if equal.len() == of_a.len().min(of_b.len()) {
        equal
    } else if of_a.len().saturating_mul(of_b.len()) > MAX_COMPARED_PAIRS {
        of_a.iter().copied().zip(of_b.iter().copied()).collect()
    } else {
        best_alignment(a, b, &of_a, &of_b)
    };
    let (paired_a, paired_b): (FxHashSet<usize>, FxHashSet<usize>) = pairs.iter().copied().unzip();
    matches.extend(pairs.into_iter().map(|(i, j)| (Some(i), Some(j))));
    // The rest stays unmatched. A wider path scope could only find worse matches than the ones that
    // were rejected here.
    matches.extend(of_a.into_iter().filter(|i| !paired_a.contains(i)).map(|i| (Some(i), None)));
    matches.extend(of_b.into_iter().filter(|j| !paired_b.contains(j)).map(|j| (None, Some(j))));
}

/// Pairs stacks with equal lines. `of_a` and `of_b` are sorted by their lines.
fn equal_lines(
    a: &[HeldBy<'_>],
    b: &[HeldBy<'_>],
    of_a: &[usize],
    of_b: &[usize],
) -> Vec<(usize, usize)> {
    let (mut pairs, mut j) = (Vec::new(), 0);
    for &i in of_a {
        let wanted = lines(&a[i]);
        while j < of_b.len() && lines(&b[of_b[j]]).lt(wanted.clone()) {
            j += 1;
        }
        if j < of_b.len() && lines(&b[of_b[j]]).eq(wanted) {
            pairs.push((i, of_b[j]));
            j += 1;
        }
    }
    pairs
}

/// Pairs stacks in order, so that the total similarity is highest. A sequence alignment by dynamic
/// programming.
fn best_alignment(
    a: &[HeldBy<'_>],
    b: &[HeldBy<'_>],
    of_a: &[usize],
    of_b: &[usize],
) -> Vec<(usize, usize)> {
    // `scores[column]` is the best score of the first `row` stacks of `a` and the first `column`
    // stacks of `b`.
    let width = of_b.len() + 1;
    let mut steps = vec![AlignStep::OnlyB; (of_a.len() + 1) * width];
    let mut scores = vec![0u64; width];
    for (row, &i) in (1..).zip(of_a) {
        let mut diagonal = scores[0];
        for (column, &j) in (1..).zip(of_b) {
            let options = [
                (diagonal + similarity(&a[i], &b[j]), AlignStep::Pair),
                (scores[column], AlignStep::OnlyA),
                (scores[column - 1], AlignStep::OnlyB),
            ];
            diagonal = scores[column];
            let best = options.into_iter().reduce(|best, o| if o.0 > best.0 { o } else { best });
            (scores[column], steps[row * width + column]) = best.unwrap_or(options[0]);
        }
    }
    let (mut row, mut column, mut pairs) = (of_a.len(), of_b.len(), Vec::new());
    while row > 0 && column > 0 {
        match steps[row * width + column] {
            AlignStep::Pair => {
                (row, column) = (row - 1, column - 1);
                pairs.push((of_a[row], of_b[column]));
            }
            AlignStep::OnlyA => row -= 1,
            AlignStep::OnlyB => column -= 1,
        }
    }
    pairs
}

/// The similarity of two stacks, 50 to 200: up to 100 for the ratio of their bytes, 50 for any
/// match, and 50 for equal lines.
fn similarity(a: &HeldBy<'_>, b: &HeldBy<'_>) -> u64 {
    let (smaller, larger) = (a.bytes.min(b.bytes), a.bytes.max(b.bytes).max(1));
    let has_equal_lines = a.frames.iter().zip(&b.frames).all(|(x, y)| x.line == y.line);
    let ratio = (u128::from(smaller) * 100 / u128::from(larger)) as u64;
    ratio + 50 + if has_equal_lines { 50 } else { 0 }
}

/// A step of an alignment: a pair, or a stack without a partner.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AlignStep {
    Pair,
    OnlyA,
    OnlyB,
}

#[cfg(test)]
mod tests;
