//! A question as the page's controls show and change it. A wrong value stays in the text until the
//! user corrects it, so the items are not [`Options`].

use super::options::{APPLY, Item, Options, WrongItem, items as parsed, text_of};
use serde::{Deserialize, Serialize};
use vramscope_trace::AllocatorSettings;

/// Bytes of a setting that is given in MiB.
const MIB: u64 = 1 << 20;

/// A change of one item, or of all recipes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Edit {
    /// The item's name: `device_memory`, `batch`. `apply` stands for all changes of the program,
    /// with commas between them.
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
    /// The memory of the text. The usual scenarios do not follow settings and recipes.
    pub shared: String,
    /// `expandable_segments`; null as recorded.
    pub expandable_segments: Option<bool>,
    /// `max_split_size_mb`, 0 for no limit; null as recorded.
    pub max_split_size_mb: Option<u32>,
    /// `roundup_power2_divisions`, 0 for none; null as recorded, and if it differs by size.
    pub roundup_power2_divisions: Option<u32>,
    /// The memory of the device as it was entered: `80GiB`, `H100`. Empty for the recording's.
    pub device_memory: String,
    /// The changes of the program as they were entered, with commas between them.
    pub apply: String,
    /// The item that is wrong; null if none is.
    pub error: Option<WrongItem>,
}

impl QuestionRecord {
    /// The question of a text after edits.
    pub fn new(text: &str, edits: &[Edit]) -> Self {
        let mut items = parsed(text);
        for Edit { item: name, value } in edits {
            let is_old = |item: &Item| {
                if name == APPLY { item.is_recipe() } else { item.name == *name }
            };
            let at = items.iter().position(is_old).unwrap_or(items.len());
            items.retain(|item| !is_old(item));
            let new = match value {
                Some(list) if name == APPLY => parsed(list),
                value => value.iter().map(|value| Item::new(name, value.trim())).collect(),
            };
            items.splice(at..at, new);
        }
        let each: Vec<Result<Options, WrongItem>> =
            items.iter().map(|item| Options::of(std::slice::from_ref(item))).collect();
        // The last of equal items counts. A wrong setting has no value to show.
        let at = |name: &str| items.iter().rposition(|item| item.name == name);
        let setting = |name: &str| {
            let configuration = each[at(name)?].as_ref().ok()?.configurations.first()?;
            configuration.settings(&AllocatorSettings::default(), Some(0)).ok()
        };
        let number = |bytes: u64| u32::try_from(bytes).ok();
        let of = |is_wanted: fn(&Item) -> bool| {
            text_of(items.iter().filter(|item| is_wanted(item)).cloned().collect())
        };
        Self {
            shared: of(Item::is_memory),
            apply: of(Item::is_recipe),
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
            error: each.into_iter().find_map(Result::err),
            text: text_of(items),
        }
    }
}
