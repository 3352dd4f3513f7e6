//! Messages that are alike: several ranks that fail in one way, and one message that a log repeats.

use super::causes::Sums;
use super::record::{CauseVerdict, Kind, Message};
use super::scan::Found;
use super::words;
use rustc_hash::FxHashMap;
use vramscope_units::Count;

/// The part of a message that is equal for ranks that fail in one way.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    kind: u8,
    library: Option<&'static str>,
    asked: Option<u64>,
    capacity: Option<u64>,
    verdicts: Vec<(u8, u8)>,
    cache: [Option<u64>; 4],
}

impl Key {
    fn new(found: &Found, said: &Message) -> Self {
        let bytes = |size: Option<super::figures::Size>| size.map(|size| size.bytes);
        let verdict = |verdict: CauseVerdict| match verdict {
            CauseVerdict::Shown => 0,
            CauseVerdict::Possible => 1,
            CauseVerdict::Excluded => 2,
            CauseVerdict::CannotBeTold => 3,
        };
        let cache = &found.cache;
        Self {
            kind: found.kind as u8,
            library: found.library,
            asked: bytes(found.figures.asked),
            capacity: bytes(found.figures.capacity),
            verdicts: said.causes.iter().map(|c| (c.cause as u8, verdict(c.verdict))).collect(),
            cache: [cache.tokens, cache.stored_tokens, bytes(cache.needed), cache.requests],
        }
    }
}

/// One answer for each kind of message. That of PyTorch's allocator comes first, as it has figures;
/// else the order is that of the log.
pub(super) fn alike(found: &[Found]) -> Vec<Message> {
    let mut groups: Vec<(Message, &Found)> = Vec::new();
    let mut by_key: FxHashMap<Key, usize> = FxHashMap::default();
    for one in found {
        let said = words::message(one);
        let key = Key::new(one, &said);
        let index = *by_key.entry(key).or_insert(groups.len());
        let Some((group, _)) = groups.get_mut(index) else {
            groups.push((said, one));
            continue;
        };
        group.count = Count(group.count.0 + 1);
        group.ranks.extend(said.ranks);
        group.gpus.extend(said.gpus);
    }
    for (group, first) in &mut groups {
        for numbers in [&mut group.ranks, &mut group.gpus] {
            numbers.sort_unstable();
            numbers.dedup();
        }
        group.headline = words::headline(group, &Sums::new(&first.figures), first);
    }
    groups.sort_by_key(|(group, _)| match group.kind {
        Kind::Allocator | Kind::MallocAsync | Kind::Mps | Kind::Invalid => 0,
        Kind::CacheEmpty | Kind::CacheLength | Kind::CacheStart | Kind::CacheWarmUp => 1,
        _ => 2,
    });
    groups.into_iter().map(|(group, _)| group).collect()
}
