//! A question as the page's controls show and change it. A wrong value stays in the text until the
//! user corrects it, so the items are not [`Options`].

use super::options::{Item, Options, WrongItem, items, text_of};
use serde::{Deserialize, Serialize};
use vramscope_inference::SETTING_KEYS;
use vramscope_trace::AllocatorSettings;

/// Bytes of a setting that is given in MiB.
const MIB: u64 = 1 << 20;

/// A change of one item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Edit {
    /// The item's name: `tokens`, `optimizer_state`.
    pub item: String,
    /// The new value; null removes the item.
    pub value: Option<String>,
}

/// What a text asks for, by control of the page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct QuestionRecord {
    /// The text; empty for the recording as it is.
    pub text: String,
    /// The text without settings, which the usual scenarios do not follow.
    pub shared: String,
    /// `expandable_segments`; null as recorded.
    pub expandable_segments: Option<bool>,
    /// `max_split_size_mb`, 0 for no limit; null as recorded.
    pub max_split_size_mb: Option<u32>,
    /// `roundup_power2_divisions`, 0 for none; null as recorded, and if it differs by size.
    pub roundup_power2_divisions: Option<u32>,
    /// The memory of the device as it was entered: `80GiB`, `H100`. Empty for the recording's.
    pub device_memory: String,
    /// The factor of tokens.
    pub tokens: f64,
    /// Blocks with another size.
    pub parts: Vec<ScaledPart>,
    /// The item that is wrong; null if none is.
    pub error: Option<WrongItem>,
}

/// Blocks with another size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ScaledPart {
    /// A category, or a call site such as `train.py:12`.
    pub what: String,
    /// The factor of the sizes; 0 leaves the blocks out.
    pub factor: f64,
}

impl QuestionRecord {
    /// The question of a text after edits.
    pub fn new(text: &str, edits: &[Edit]) -> Self {
        let mut items = items(text);
        for Edit { item: name, value } in edits {
            let at = items.iter().position(|item| item.name == *name).unwrap_or(items.len());
            items.retain(|item| item.name != *name);
            let new = value.as_ref().map(|value| Item::new(name, value.trim()));
            items.splice(at..at, new);
        }
        let each: Vec<Result<Options, WrongItem>> =
            items.iter().map(|item| Options::of(std::slice::from_ref(item))).collect();
        let right = || each.iter().flatten();
        // The last of equal items counts. A wrong setting has no value to show.
        let at = |name: &str| items.iter().rposition(|item| item.name == name);
        let setting = |name: &str| {
            let configuration = each[at(name)?].as_ref().ok()?.configurations.first()?;
            Some(configuration.settings(&AllocatorSettings::default()))
        };
        let number = |bytes: u64| u32::try_from(bytes).ok();
        let is_shared = |item: &&Item| {
            !SETTING_KEYS.contains(&&*item.name) && item.name != "set" && item.name != "change"
        };
        Self {
            shared: text_of(items.iter().filter(is_shared).cloned().collect()),
            expandable_segments: setting("expandable_segments").map(|s| s.expandable_segments),
            max_split_size_mb: setting("max_split_size_mb").and_then(|s| match s.max_split_size {
                u64::MAX => Some(0),
                bytes => number(bytes / MIB),
            }),
            roundup_power2_divisions: setting("roundup_power2_divisions")
                .map(|s| s.roundup_power2_divisions)
                .filter(|all| all.iter().all(|n| *n == all[0]))
                .and_then(|all| number(all[0])),
            device_memory: at("device_memory").map_or(String::new(), |i| items[i].value.clone()),
            tokens: right().filter_map(|options| options.tokens).next_back().unwrap_or(1.0),
            parts: right()
                .flat_map(|options| &options.parts)
                .map(|part| ScaledPart { what: part.of.name().to_owned(), factor: part.factor })
                .collect(),
            error: each.into_iter().find_map(Result::err),
            text: text_of(items),
        }
    }
}
