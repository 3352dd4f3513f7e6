//! The field `holders` of the file beside a snapshot: which references hold the large blocks that
//! are live at the end (SIDECAR.md).
//!
//! Any program may have written it: lists are limited while they are read, and all indices are
//! checked once, so that readers may follow them.

use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::marker::PhantomData;

/// The maximum number of links. A mebibyte of JSON has fewer.
const MAX_LINKS: usize = 1 << 16;
/// The maximum number of blocks: 500 of the end, and 500 that were noted earlier.
const MAX_BLOCKS: usize = 1000;
/// The maximum number of drops.
const MAX_DROPS: usize = 1 << 12;
/// The maximum number of references of one drop.
const MAX_TOGETHER: usize = 1000;

/// Who holds the large live blocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct Holders {
    /// False where time or size has cut the walk.
    pub complete: bool,
    /// False where autograd graphs and gradients were not read.
    pub graph: bool,
    /// The number of tensors that were not read.
    #[serde(skip_serializing_if = "is_default")]
    pub opaque: u64,
    /// The number of objects that were visited.
    pub objects: u64,
    /// How long the program waited, in seconds, rounded to milliseconds.
    #[serde(deserialize_with = "seconds")]
    pub seconds: f64,
    /// When the blocks that are marked so were noted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noted: Option<Noted>,
    /// Whether the others are of the end of the program. What held them may be gone.
    #[serde(skip)]
    pub is_of_end: bool,
    /// References.
    #[serde(deserialize_with = "limited::<_, _, MAX_LINKS>")]
    pub links: Vec<Link>,
    /// Blocks.
    #[serde(deserialize_with = "limited::<_, _, MAX_BLOCKS>")]
    pub blocks: Vec<HeldBlock>,
    /// What dropping references frees.
    #[serde(deserialize_with = "limited::<_, _, MAX_DROPS>")]
    pub drops: Vec<DropRow>,
}

impl Default for Holders {
    fn default() -> Self {
        // A file that does not say that the walk was whole claims nothing by it.
        Self {
            complete: false,
            graph: true,
            opaque: 0,
            objects: 0,
            seconds: 0.0,
            noted: None,
            is_of_end: false,
            links: Vec::new(),
            blocks: Vec::new(),
            drops: Vec::new(),
        }
    }
}

/// A note of who held memory, before the snapshot.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Noted {
    /// When it was taken: the clock of the events.
    pub time_us: i64,
    /// The step that had ended; `None` if none was counted.
    #[serde(default)]
    pub step: Option<u64>,
}

/// One reference.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// The link that it continues; `None` for a root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<u32>,
    /// Its kind.
    pub by: By,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// The type of the object that it leads to.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<Box<str>>,
    /// The length of that object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// The number of links that were left out before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub between: Option<u64>,
    /// The function of a root, or that the link leads to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<Box<str>>,
    /// The file of the function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Box<str>>,
    /// The line of the function or frame.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// The module of a global variable.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<Box<str>>,
    /// The thread of a local variable, if it is not the main one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread: Option<Box<str>>,
}

/// The kind of a reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "SIDECAR.md has the kinds in tables")]
pub enum By {
    Local,
    Global,
    Context,
    Handled,
    Cycle,
    Expression,
    Attribute,
    Item,
    Key,
    Closure,
    Default,
    Cell,
    FrameLocal,
    Cache,
    Gradient,
    Base,
    Graph,
    Saved,
    Packed,
    Accumulates,
    /// Another reference, or a kind that this program does not know.
    #[default]
    #[serde(other)]
    Reference,
}

/// A block.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HeldBlock {
    /// The device's ordinal.
    pub device: u32,
    /// The address.
    pub address: u64,
    /// The last link of its shortest chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<u32>,
    /// The innermost row of drops that frees it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drop: Option<u32>,
    /// What the largest tensor that Python reaches uses, where that is less than the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub view_bytes: Option<u64>,
    /// Why there is no chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub none: Option<NoChain>,
    /// Whether it was live when the note was taken. Otherwise it is live at the end.
    #[serde(default, skip_serializing_if = "is_default")]
    pub noted: bool,
}

/// Why a block has no chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoChain {
    /// No Python object holds it.
    BelowPython,
    /// It was not looked at, or the reason is unknown to this program.
    #[serde(other)]
    Unread,
}

/// What dropping references frees.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DropRow {
    /// The row that frees these blocks too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<u32>,
    /// The references. All must be dropped.
    #[serde(deserialize_with = "limited::<_, _, MAX_TOGETHER>")]
    pub links: Vec<u32>,
    /// Freed bytes.
    pub bytes: u64,
    /// Freed blocks.
    pub blocks: u64,
}

/// A list of at most `MAX` entries. A longer one takes no more memory.
fn limited<'de, D, T, const MAX: usize>(from: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct Limited<T, const MAX: usize>(PhantomData<T>);

    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Limited<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "a list of at most {MAX} entries")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(entry) = entries.next_element()? {
                if all.len() == MAX {
                    return Err(A::Error::custom(format!(
                        "a list of holders has more than {MAX} entries"
                    )));
                }
                all.push(entry);
            }
            Ok(all)
        }
    }

    from.deserialize_seq(Limited::<T, MAX>(PhantomData))
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Seconds that are written as they were read.
fn seconds<'de, D: Deserializer<'de>>(from: D) -> Result<f64, D::Error> {
    let seconds = f64::deserialize(from)?.clamp(0.0, 1e6);
    Ok((seconds * 1e3).round() / 1e3)
}

impl Holders {
    /// Checks all indices.
    ///
    /// # Errors
    /// The first index that is wrong.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (links, drops) = (self.links.len(), self.drops.len());
        let is_link = |index: u32| (index as usize) < links;
        let is_drop = |index: u32| (index as usize) < drops;
        for (index, link) in self.links.iter().enumerate() {
            if let Some(from) = link.from.filter(|&from| from as usize >= index) {
                return Err(format!(
                    "link {index} of its holders is from {from}, expected an earlier link"
                ));
            }
        }
        for (index, block) in self.blocks.iter().enumerate() {
            if let Some(link) = block.link.filter(|&link| !is_link(link)) {
                return Err(format!("block {index} of its holders has link {link} of {links}"));
            }
            if let Some(row) = block.drop.filter(|&row| !is_drop(row)) {
                return Err(format!("block {index} of its holders has drop {row} of {drops}"));
            }
        }
        for (index, row) in self.drops.iter().enumerate() {
            if let Some(&link) = row.links.iter().find(|&&link| !is_link(link)) {
                return Err(format!("drop {index} of its holders has link {link} of {links}"));
            }
            if let Some(within) = row.within.filter(|&within| !is_drop(within)) {
                return Err(format!("drop {index} of its holders is within {within} of {drops}"));
            }
        }
        self.check_nesting()
    }

    /// Checks that no drop is within itself.
    fn check_nesting(&self) -> Result<(), String> {
        const UNSEEN: u32 = u32::MAX;
        // The walk that has seen each row first.
        let mut seen = vec![UNSEEN; self.drops.len()];
        for first in 0..self.drops.len() {
            let mut row = first;
            while seen[row] == UNSEEN {
                seen[row] = first as u32;
                match self.drops[row].within {
                    Some(within) => row = within as usize,
                    None => break,
                }
            }
            // A row that this walk has seen and that goes on is reached again.
            if seen[row] == first as u32 && self.drops[row].within.is_some() {
                return Err(format!("drop {row} of its holders is within itself"));
            }
        }
        Ok(())
    }

    /// Whether the functions that have used a block may have ended before its holder was searched.
    pub fn is_gone(&self, block: &HeldBlock) -> bool {
        self.is_of_end && !block.noted
    }

    /// Whether all references were read. Otherwise bytes of drops are upper bounds.
    pub fn is_whole(&self) -> bool {
        self.complete && self.opaque == 0
    }

    /// A chain from its root to this link.
    pub fn chain(&self, link: u32) -> Vec<u32> {
        let next = |&link: &u32| self.link(link).from;
        let mut chain: Vec<u32> = std::iter::successors(Some(link), next).collect();
        chain.reverse();
        chain
    }

    /// A link.
    pub fn link(&self, index: u32) -> &Link {
        &self.links[index as usize]
    }

    /// The rows that free what this row frees, this one first.
    pub fn around(&self, row: u32) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(Some(row), |&row| self.drops[row as usize].within)
    }
}

#[cfg(test)]
mod tests {
    use crate::sidecar::Sidecar;
    use std::fmt::Write as _;

    /// The sidecar with these holders, or why they are left out.
    fn read(holders: &str) -> Result<Sidecar, String> {
        let json = format!("{{\"version\": 1, \"host\": \"node7\", \"holders\": {holders}}}");
        let sidecar = Sidecar::parse(json.as_bytes()).expect("a sidecar");
        assert_eq!(sidecar.host.as_deref(), Some("node7"), "the rest is used");
        match &sidecar.left_out[..] {
            [] => Ok(sidecar),
            [reason] => Err(reason.strip_prefix("holders: ").expect("the field").to_owned()),
            more => panic!("{more:?}"),
        }
    }

    #[test]
    fn unknown_kinds_and_reasons_are_tolerated() {
        let sidecar = read(
            r#"{"links": [{"by": "later", "name": "x", "new": 1}],
                "blocks": [{"device": 0, "address": 1, "none": "later"}]}"#,
        )
        .expect("a sidecar");
        let holders = sidecar.holders.expect("holders");
        assert_eq!(holders.link(0).by, super::By::Reference);
        assert_eq!(holders.blocks[0].none, Some(super::NoChain::Unread));
        assert!(!holders.complete && holders.graph);
    }

    #[test]
    fn wrong_indices_are_refused_with_the_reason() {
        let cases = [
            (
                r#"{"links": [{"by": "local"}, {"by": "item", "from": 1}]}"#,
                "link 1 of its holders is from 1, expected an earlier link",
            ),
            (
                r#"{"links": [{"by": "item", "from": 1}, {"by": "item", "from": 0}]}"#,
                "link 0 of its holders is from 1, expected an earlier link",
            ),
            (
                r#"{"blocks": [{"device": 0, "address": 1, "link": 0}]}"#,
                "block 0 of its holders has link 0 of 0",
            ),
            (
                r#"{"blocks": [{"device": 0, "address": 1, "drop": 3}]}"#,
                "block 0 of its holders has drop 3 of 0",
            ),
            (
                r#"{"drops": [{"links": [1], "bytes": 1, "blocks": 1}]}"#,
                "drop 0 of its holders has link 1 of 0",
            ),
            (
                r#"{"drops": [{"links": [], "bytes": 1, "blocks": 1, "within": 1}]}"#,
                "drop 0 of its holders is within 1 of 1",
            ),
            (
                r#"{"drops": [{"links": [], "bytes": 1, "blocks": 1, "within": 0}]}"#,
                "drop 0 of its holders is within itself",
            ),
        ];
        for (json, reason) in cases {
            assert_eq!(read(json).expect_err(json), reason);
        }
        let ring = r#"{"drops": [{"links": [], "bytes": 1, "blocks": 1},
            {"links": [], "bytes": 1, "blocks": 1, "within": 2},
            {"links": [], "bytes": 1, "blocks": 1, "within": 3},
            {"links": [], "bytes": 1, "blocks": 1, "within": 2}]}"#;
        assert_eq!(read(ring).expect_err(ring), "drop 2 of its holders is within itself");
        let tree = ring.replace(r#""within": 3"#, r#""within": 0"#);
        assert!(read(&tree).is_ok());
    }

    #[test]
    fn a_million_links_are_refused() {
        let mut json = String::from(r#"{"links": [{"by": "local"}"#);
        (0..1_000_000)
            .for_each(|at| write!(json, r#",{{"by":"item","from":{at}}}"#).expect("text"));
        json.push_str("]}");
        let reason = read(&json).expect_err("too many");
        assert!(reason.starts_with("a list of holders has more than 65536 entries"), "{reason}");
        let blocks = r#"{"device": 0, "address": 1},"#.repeat(1001);
        let json = format!(r#"{{"blocks": [{}]}}"#, blocks.trim_end_matches(','));
        assert!(read(&json).expect_err("too many").contains("more than 1000 entries"));
    }
}
