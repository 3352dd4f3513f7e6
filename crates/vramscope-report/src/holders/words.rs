//! Links in words: `local "losses" (list of 12) of train(), train.py:42`, and the way from there to
//! a block.

use crate::sidecar::holders::{By, DropRow, HeldBlock, Holders, Link};
use crate::text::file_name;
use std::fmt::Write as _;
use vramscope_units::{Bytes, acts, grouped};

/// The longest name, in characters.
const MAX_NAME: usize = 60;
/// The most parts of a way. Those in the middle are left out.
const MAX_PARTS: usize = 8;
/// The most references that a sentence names.
const MAX_NAMED: usize = 3;

/// The indices of the items that differ between the chains of several blocks, by position.
pub(super) type Ranges = [Option<(u64, u64)>];

/// A name, cut, without quotes and signs that act on a terminal.
fn name(text: &str) -> String {
    let is_plain = |c: &char| !acts(*c) && *c != '"';
    let mut letters = text.chars().filter(is_plain);
    let short: String = letters.by_ref().take(MAX_NAME).collect();
    if letters.next().is_some() { short + "…" } else { short }
}

fn named(link: &Link) -> String {
    link.name.as_deref().map(name).unwrap_or_default()
}

/// ` "losses"`; empty without a name.
fn quoted(link: &Link) -> String {
    let name = named(link);
    if name.is_empty() { name } else { format!(" \"{name}\"") }
}

/// `list of 12`, `Tensor`; empty if the type is not known.
fn type_of(link: &Link) -> String {
    let name = link.type_name.as_deref().map(name).unwrap_or_default();
    match link.length {
        Some(length) if !name.is_empty() => format!("{name} of {}", grouped(length)),
        _ => name,
    }
}

/// ` (list of 12)`; empty if the type is not known.
pub(super) fn in_brackets(link: &Link) -> String {
    let of = type_of(link);
    if of.is_empty() { of } else { format!(" ({of})") }
}

/// `train()`, `<module>`; empty without a function.
fn function(link: &Link) -> String {
    match link.function.as_deref().map(name) {
        None => String::new(),
        Some(name) if name.starts_with('<') => name,
        Some(name) => format!("{name}()"),
    }
}

/// ` of train(), train.py:42`; empty if nothing of it is known.
fn place(link: &Link, word: &str) -> String {
    let file = link.file.as_deref().map(|file| name(file_name(file)));
    let line = link.line.filter(|&line| line > 0).map(|line| format!(":{line}"));
    let file = file.map(|file| file + &line.unwrap_or_default());
    match (function(link), file) {
        (function, Some(file)) if function.is_empty() => format!(" {word} {file}"),
        (function, Some(file)) => format!(" {word} {function}, {file}"),
        (function, None) if function.is_empty() => function,
        (function, None) => format!(" {word} {function}"),
    }
}

/// What holds a global variable: `of m.py`, or `of module m`.
fn module(link: &Link) -> String {
    match (&link.file, &link.module) {
        (Some(file), _) => format!(" of {}", name(file_name(file))),
        (None, Some(module)) => format!(" of module {}", name(module)),
        (None, None) => String::new(),
    }
}

/// A root: `local "losses" (list of 12) of train(), train.py:42`. `is_gone` if the functions that
/// have used the block may have ended: then a variable of them may have held a cycle.
pub(super) fn root(link: &Link, is_gone: bool) -> String {
    if link.by == By::Cycle {
        let objects = match link.length {
            Some(1) => "1 object".to_owned(),
            Some(count) => format!("{} objects", grouped(count)),
            None => "objects".to_owned(),
        };
        return only(&format!("a cycle of {objects}{}", cycle_type(link)), "holds", is_gone);
    }
    of_root(link, &format!("{}{}", quoted(link), in_brackets(link)))
}

/// ` (Node)`; empty if the type is not known.
fn cycle_type(link: &Link) -> String {
    link.type_name.as_deref().map(|kind| format!(" ({})", name(kind))).unwrap_or_default()
}

/// Cycles that hold a block alone.
fn only(cycles: &str, hold: &str, is_gone: bool) -> String {
    if is_gone {
        format!("only {cycles} {hold} it at the end; a function that has ended may have held it")
    } else {
        format!("only {cycles} {hold} it, gc.collect() frees it")
    }
}

/// When a block was noted: `, after step 34`. Empty if it is live at the end.
pub(super) fn when(holders: &Holders, block: &HeldBlock) -> String {
    match holders.noted.filter(|_| block.noted) {
        None => String::new(),
        Some(noted) => match noted.step {
            Some(step) => format!(", after step {}", grouped(step)),
            None => ", while it ran".to_owned(),
        },
    }
}

/// A part of a root: `local net.layers (ModuleList of 12) of main(), train.py:40`.
pub(super) fn part_of_root(root: &Link, part: &str) -> String {
    of_root(root, &format!(" {part}"))
}

/// A root with what stands for its name and type.
fn of_root(link: &Link, named: &str) -> String {
    let brackets = in_brackets(link);
    match link.by {
        By::Local => {
            let thread = link.thread.as_deref().map(|thread| format!(", thread {}", name(thread)));
            format!("local{named}{}{}", place(link, "of"), thread.unwrap_or_default())
        }
        By::Global => format!("global{named}{}", module(link)),
        By::Context => format!("context variable{named}"),
        By::Handled => format!("the exception that is handled now{brackets}"),
        By::Expression => format!("a container in a running expression or native code{brackets}"),
        _ => format!("a reference{named}{}", place(link, "of")),
    }
}

/// Several cycles, of which this is one.
pub(super) fn cycles(count: usize, one: &Link, is_gone: bool) -> String {
    let cycles = format!("{} cycles of objects{}", grouped(count as u64), cycle_type(one));
    only(&cycles, "hold", is_gone)
}

/// The name of a root at the begin of a way: `losses`.
fn begin(link: &Link) -> String {
    let name = named(link);
    match link.by {
        By::Local | By::Global | By::Context if !name.is_empty() => name,
        By::Handled => "exception".to_owned(),
        By::Cycle => link.type_name.as_deref().map_or("object".to_owned(), self::name),
        _ => "value".to_owned(),
    }
}

/// A root in few words: `losses of train()`, `CACHE of m.py`. A search has them.
pub(super) fn short_root(link: &Link) -> String {
    let (name, place) = root_parts(link);
    name + &place
}

/// The name and the place of [`short_root`]: `losses`, ` of train()`.
pub(super) fn root_parts(link: &Link) -> (String, String) {
    let place = match link.by {
        By::Local => match function(link) {
            function if function.is_empty() => function,
            function => format!(" of {function}"),
        },
        By::Global => module(link),
        _ => String::new(),
    };
    let name = match link.by {
        By::Local | By::Global => begin(link),
        By::Context => format!("context variable {}", named(link)),
        By::Handled => "the handled exception".to_owned(),
        By::Cycle => "a reference cycle".to_owned(),
        _ => "a running expression".to_owned(),
    };
    (name, place)
}

/// A link that goes on from a name: `.weight`, `[0]`. `None` for other kinds.
pub(super) fn step(link: &Link, range: Option<(u64, u64)>) -> Option<String> {
    let name = named(link);
    Some(match link.by {
        By::Attribute => format!(".{name}"),
        By::Item => match range {
            Some((first, last)) => format!("[{first}..{last}]"),
            None => format!("[{name}]"),
        },
        By::Key => format!("[\"{name}\"]"),
        By::Gradient => ".grad".to_owned(),
        By::Base => "._base".to_owned(),
        By::Cell => String::new(),
        _ => return None,
    })
}

/// A part of a way, between arrows.
#[derive(Default)]
struct Part {
    text: String,
    /// Where it is: ` of hook(), b.py:3`. Steps come before it.
    place: String,
    /// Whether it is nodes of the autograd graph.
    is_graph: bool,
    /// Whether such nodes save the next part.
    saves: bool,
    /// Whether steps have been added to its name.
    has_steps: bool,
}

impl Part {
    fn of(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// The part in words.
    fn words(self) -> String {
        self.text + &self.place
    }
}

/// `a ... z` of the steps of a long name.
fn shorten(steps: &[String]) -> String {
    if steps.len() <= 2 * MAX_PARTS {
        return steps.concat();
    }
    let (first, last) = (&steps[..MAX_PARTS], &steps[steps.len() - MAX_PARTS..]);
    format!("{}...{}", first.concat(), last.concat())
}

/// The parts of a way from a root.
fn parts(holders: &Holders, chain: &[u32], ranges: &Ranges) -> Vec<Part> {
    let Some((&first, rest)) = chain.split_first() else { return Vec::new() };
    let mut parts: Vec<Part> = vec![Part::of(begin(holders.link(first)))];
    let mut before = holders.link(first);
    let mut at = 0;
    while at < rest.len() {
        let link = holders.link(rest[at]);
        let range = |at: usize| ranges.get(at + 1).copied().flatten();
        let is_graph = link.by == By::Graph;
        if let (Some(between), false) = (link.between.filter(|&between| between > 0), is_graph) {
            parts.push(Part::of(format!("{} more", grouped(between))));
        }
        if step(link, None).is_some() {
            let names: Vec<String> = rest[at..]
                .iter()
                .zip(at..)
                .map_while(|(&of, at)| step(holders.link(of), range(at)))
                .collect();
            let last = parts.last_mut().expect("a way has a begin");
            last.text += &shorten(&names);
            last.has_steps = true;
            at += names.len();
            before = holders.link(rest[at - 1]);
            continue;
        }
        let kind = before.type_name.as_deref().map(name);
        let has_steps = parts.last().is_some_and(|part| part.has_steps);
        if let Some(kind) = kind.filter(|_| has_steps) {
            parts.push(Part::of(kind));
        }
        let named = quoted(link);
        let after_graph = parts.last().is_some_and(|part| part.is_graph);
        match link.by {
            By::Graph => {
                let nodes: Vec<&Link> = rest[at..]
                    .iter()
                    .map(|&of| holders.link(of))
                    .take_while(|link| link.by == By::Graph)
                    .collect();
                parts.push(Part { text: graph(&nodes), is_graph: true, ..Part::default() });
                at += nodes.len() - 1;
            }
            By::Saved | By::Packed | By::Accumulates if after_graph => {
                let last = parts.last_mut().expect("a way has a begin");
                (last.is_graph, last.saves) = (false, true);
                let wrote = match link.by {
                    By::Saved if named.is_empty() => write!(last.text, " saves it"),
                    By::Saved => write!(last.text, " saves it as{named}"),
                    By::Packed => write!(last.text, " has what a hook packed as{named}"),
                    _ => write!(last.text, " adds to its gradient"),
                };
                wrote.expect("writing to a String cannot fail");
            }
            _ => parts.push(part_of(link)),
        }
        at += 1;
        before = link;
    }
    parts
}

/// A link that no name goes on to.
fn part_of(link: &Link) -> Part {
    let named = quoted(link);
    let at_place = |text: String| Part { text, place: place(link, "of"), ..Part::default() };
    Part::of(match link.by {
        By::Closure => return at_place(format!("closure variable{named}")),
        By::Default => return at_place(format!("default argument{named}")),
        By::FrameLocal => return at_place(format!("local{named}")),
        By::Cache => return at_place("a result in the lru_cache".to_owned()),
        By::Saved => format!("saved{named}"),
        By::Packed => format!("packed by a hook{named}"),
        By::Accumulates => "the leaf of a gradient".to_owned(),
        _ => {
            let kind = type_of(link);
            let named = if named.is_empty() { named } else { format!("{named} ") };
            format!("{}{kind}", named.trim_start())
        }
    })
}

/// `its autograd graph (AddBackward0 ... MulBackward0)`.
fn graph(nodes: &[&Link]) -> String {
    let kind = |link: &Link| link.type_name.as_deref().map(name).unwrap_or_default();
    let is_whole = nodes.iter().skip(1).all(|node| node.between.unwrap_or(0) == 0);
    let named = match nodes {
        [] => String::new(),
        [only] => kind(only),
        [first, last] if is_whole => format!("{}, {}", kind(first), kind(last)),
        [first, .., last] => format!("{} ... {}", kind(first), kind(last)),
    };
    if named.is_empty() {
        "its autograd graph".to_owned()
    } else {
        format!("its autograd graph ({named})")
    }
}

/// The way from a root to a block: `losses[0] -> Tensor -> its autograd graph saves it as "other"`.
/// Empty if the root itself holds it.
pub(super) fn way(holders: &Holders, chain: &[u32], ranges: &Ranges) -> String {
    if chain.len() < 2 {
        return String::new();
    }
    let mut texts: Vec<String> =
        parts(holders, chain, ranges).into_iter().map(Part::words).collect();
    texts.retain(|text| !text.is_empty());
    if texts.len() > MAX_PARTS {
        let left_out = texts.len() - MAX_PARTS;
        let end = MAX_PARTS / 2 + left_out;
        texts.splice(MAX_PARTS / 2..end, [format!("{} more", grouped(left_out as u64))]);
    }
    texts.join(" -> ")
}

/// A reference that is dropped: `"losses"`, `losses[0]`; with `is_one_of_several` also where it is:
/// `local "h" of train()`. `ranges` are of its chain.
pub(super) fn reference(
    holders: &Holders,
    link: u32,
    ranges: &Ranges,
    is_one_of_several: bool,
) -> String {
    let chain = holders.chain(link);
    let root = holders.link(chain[0]);
    if chain.len() == 1 {
        return match root.by {
            By::Local if is_one_of_several => match function(root) {
                function if function.is_empty() => format!("local{}", quoted(root)),
                function => format!("local{} of {function}", quoted(root)),
            },
            By::Global if is_one_of_several => format!("global{}{}", quoted(root), module(root)),
            By::Local | By::Global => quoted(root).trim_start().to_owned(),
            By::Expression | By::Cycle => short_root(root),
            _ => self::root(root, false),
        };
    }
    let mut parts = parts(holders, &chain, ranges);
    let last = parts.pop().unwrap_or_default();
    match parts.iter().rev().find(|part| !part.text.is_empty()) {
        Some(before) if last.is_graph => format!("the autograd graph of {}", before.text),
        Some(before) if last.saves => format!("the graph of {}", before.text),
        _ => last.words(),
    }
}

/// Several references: `local "h" of train() and global "CACHE" of m.py`.
pub(super) fn references(holders: &Holders, links: &[u32]) -> String {
    let is_several = links.len() > 1;
    let named = links.iter().take(MAX_NAMED);
    let mut names: Vec<String> =
        named.map(|&link| reference(holders, link, &[], is_several)).collect();
    let and = match links.len().saturating_sub(MAX_NAMED) {
        0 => names.pop().unwrap_or_default(),
        1 => "1 more reference".to_owned(),
        rest => format!("{} more references", grouped(rest as u64)),
    };
    if names.is_empty() { and } else { format!("{} and {and}", names.join(", ")) }
}

/// `dropping "losses" frees 3.18 GiB`.
pub(super) fn drop(holders: &Holders, row: u32) -> String {
    let row = &holders.drops[row as usize];
    let freed = format!("{}{}", at_most(holders), Bytes(row.bytes));
    dropping(holders, row, &freed)
}

/// `dropping "losses" frees all of it`, with what is freed.
pub(super) fn dropping(holders: &Holders, row: &DropRow, freed: &str) -> String {
    let together = if row.links.len() > 1 { " together" } else { "" };
    format!("dropping {}{together} frees {freed}", references(holders, &row.links))
}

/// `at most `, where not all references were read.
pub(super) fn at_most(holders: &Holders) -> &'static str {
    if holders.is_whole() { "" } else { "at most " }
}
