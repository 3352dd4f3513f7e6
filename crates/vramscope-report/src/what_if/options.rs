//! The changes of a prediction, as a text. Page, links, program and Python send this text.
//!
//! ```
//! use vramscope_report::what_if::Options;
//!
//! let text = "expandable_segments:True,device_memory:24GiB,batch:2,del:train.py:12";
//! let options = Options::parse(text).expect("four items");
//! assert_eq!(options.recipes.len(), 2);
//! let exact = "expandable_segments:True,device_memory:25769803776,batch:2,del:train.py:12";
//! assert_eq!(options.to_string(), exact);
//! ```
//!
//! Commas outside of brackets separate items. An item is a name, a colon and a value:
//!
//! | item | meaning |
//! |---|---|
//! | a key of `PYTORCH_CUDA_ALLOC_CONF` | changes the recording's setting |
//! | `change:[SETTINGS]` | a scenario with these changes of the recording's settings |
//! | `set:[SETTINGS]` | a scenario with these settings and PyTorch's defaults |
//! | `device_memory:SIZE`, `pytorch_memory:SIZE` | memory of the device, or PyTorch's part |
//! | `plan:SIZE` | searches the cheapest changes with which the run fits on this device |
//! | `length:TOKENS` | the length of the sequences for which a KV cache is sized |
//! | `cache_tokens:TOKENS` | what the recorded KV cache holds |
//! | a recipe, such as `checkpoint:all` | changes the program |
//!
//! Names and values write `%`, `,`, `[` and `]` as `%25`, `%2C`, `%5B` and `%5D`.

use super::devices::{CONTEXT, parse_memory};
use serde::{Deserialize, Serialize};
use std::fmt;
use vramscope_inference::{
    HOST_SETTING_KEYS, HostChange, Recipe, RecipeError, SETTING_KEYS, SettingCause, parse_settings,
    split_outside_brackets,
};
use vramscope_trace::{AllocatorSettings, HostSettings};

/// Names with a meaning, besides settings and recipes, in the order of a written text.
const NAMES: [&str; 7] =
    ["set", "change", "device_memory", "pytorch_memory", "plan", "length", "cache_tokens"];

/// Whether a name is a key of the allocator's settings, or of those for pinned host memory.
fn is_setting(name: &str) -> bool {
    SETTING_KEYS.contains(&name) || HOST_SETTING_KEYS.contains(&name)
}

/// All recipes as one item, in the names of errors and edits.
const APPLY: &str = "apply";

/// An item of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// The name: `device_memory`, `del`.
    pub name: String,
    /// The value: `80GiB`, `train.py:12`.
    pub value: String,
}

impl Item {
    /// An item with these texts, which may have any characters.
    pub fn new(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: value.into() }
    }

    /// `SETTINGS` of `change` and `set`.
    fn bracketed(&self) -> Option<&str> {
        self.value.strip_prefix('[')?.strip_suffix(']')
    }

    /// Whether the value is a text with commas and brackets of its own.
    fn is_settings(&self) -> bool {
        NAMES[..2].contains(&&*self.name) || is_setting(&self.name)
    }

    fn error(&self, text: String) -> WrongItem {
        WrongItem { item: self.name.clone(), text }
    }
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_settings() {
            return write!(f, "{}:{}", self.name, self.value);
        }
        if self.value.is_empty() {
            return f.write_str(&escaped(&self.name));
        }
        write!(f, "{}:{}", escaped(&self.name), escaped(&self.value))
    }
}

/// The text with its special characters in hexadecimal.
fn escaped(text: &str) -> String {
    let one = |c: char| match c {
        '%' | ',' | '[' | ']' => format!("%{:02X}", u32::from(c)),
        _ => c.to_string(),
    };
    text.chars().map(one).collect()
}

/// The text that [`escaped`] wrote. Other percent signs stay.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend(before.bytes());
        let code = after.get(..2).filter(|code| code.bytes().all(|b| b.is_ascii_hexdigit()));
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(b'%');
                rest = after;
            }
        }
    }
    bytes.extend(rest.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The items of a text. A part without a colon is an item without a value, which no name allows.
fn items(text: &str) -> Vec<Item> {
    let parts = split_outside_brackets(text).map(str::trim).filter(|part| !part.is_empty());
    let item = |part: &str| {
        let (name, value) = part.split_once(':').unwrap_or((part, ""));
        let item = Item { name: unescaped(name.trim()), value: value.trim().to_owned() };
        if item.is_settings() { item } else { Item { value: unescaped(&item.value), ..item } }
    };
    parts.map(item).collect()
}

/// An item that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct WrongItem {
    /// The item's name; `apply` for a change of the program.
    pub item: String,
    /// The error in a sentence, with what was expected.
    pub text: String,
}

impl fmt::Display for WrongItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for WrongItem {}

/// A change of the allocator's settings. Each is one scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Configuration {
    /// Whether other settings have PyTorch's defaults, in place of the recording's values.
    is_whole: bool,
    /// The settings in the form of `PYTORCH_CUDA_ALLOC_CONF`, without spaces around items.
    text: String,
    /// Those of the allocator for devices.
    of_device: String,
    /// Those of the allocator for pinned host memory.
    pub(super) host: HostChange,
    /// Why a setting among them cannot be predicted.
    declined: Option<String>,
}

impl Configuration {
    /// A configuration on top of the recording's settings, or of PyTorch's defaults.
    ///
    /// # Errors
    ///
    /// A setting is wrong.
    pub fn new(text: &str, is_whole: bool) -> Result<Self, WrongItem> {
        let trimmed = |part: &str| match part.split_once(':') {
            Some((key, value)) => format!("{}:{}", key.trim(), value.trim()),
            None => part.trim().to_owned(),
        };
        let parts = split_outside_brackets(text).map(trimmed).filter(|part| !part.is_empty());
        let parts: Vec<String> = parts.collect();
        let mut host = HostChange::default();
        let mut rest = Vec::new();
        for part in &parts {
            let (key, value) = part.split_once(':').unwrap_or((part, ""));
            match host.set(key, value) {
                None => rest.push(part.as_str()),
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    return Err(WrongItem { item: key.to_owned(), text: error.to_string() });
                }
            }
        }
        let (text, of_device) = (parts.join(","), rest.join(","));
        match parse_settings(&of_device, &AllocatorSettings::default()) {
            Ok(_) => Ok(Self { is_whole, text, of_device, host, declined: None }),
            Err(error) if matches!(error.cause, SettingCause::NotModeled(_)) => {
                let declined = Some(error.to_string());
                Ok(Self { is_whole, text, of_device, host, declined })
            }
            Err(error) => {
                let item = error.text.split(':').next().unwrap_or_default().trim().to_owned();
                Err(WrongItem { item, text: error.to_string() })
            }
        }
    }

    /// The settings as they were given.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The settings of the scenario, for a recording with these settings on a device with `total`
    /// bytes.
    ///
    /// # Errors
    ///
    /// Why the settings cannot be predicted.
    pub(super) fn settings(
        &self,
        recorded: &AllocatorSettings,
        total: Option<u64>,
    ) -> Result<AllocatorSettings, String> {
        if let Some(why) = &self.declined {
            return Err(why.clone());
        }
        if !self.host.is_empty() {
            let why = "pinned_max_* are settings of pinned host memory: ask with --device host";
            return Err(why.to_owned());
        }
        // The version of PyTorch stays that of the recording.
        let default =
            || AllocatorSettings { release: recorded.release, ..AllocatorSettings::default() };
        let base = if self.is_whole { &default() } else { recorded };
        let settings =
            parse_settings(&self.of_device, base).expect("settings that were parsed before");
        let is_same = |key: &str| match key {
            "per_process_memory_fraction" => {
                settings.per_process_memory_fraction == recorded.per_process_memory_fraction
            }
            _ => settings.expandable_segments_reserve == recorded.expandable_segments_reserve,
        };
        match settings.needs_device_memory() {
            Some(key) if total.is_none() && !is_same(key) => Err(format!(
                "{key} is a part of the device's memory, which is not known: give --device-memory"
            )),
            _ => Ok(settings),
        }
    }

    /// The settings for pinned host memory, for a recording with these.
    pub(super) fn host_settings(&self, recorded: HostSettings) -> HostSettings {
        self.host.of(if self.is_whole { HostSettings::default() } else { recorded })
    }

    /// Whether the allocator for devices has one of the settings.
    pub(super) fn is_of_device(&self) -> bool {
        !self.of_device.is_empty()
    }
}

/// What a prediction changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// The settings of each scenario. Without any, the usual settings are tried.
    pub configurations: Vec<Configuration>,
    /// The memory of the device, in bytes.
    pub device_memory: Option<u64>,
    /// The memory of the device for which the cheapest changes are searched, in bytes. It stands
    /// for `device_memory`.
    pub plan: Option<u64>,
    /// What PyTorch can have, in bytes.
    pub pytorch_memory: Option<u64>,
    /// The length of the sequences for which a KV cache is sized, in tokens.
    pub length: Option<u64>,
    /// What the recorded KV cache holds, in tokens.
    pub cache_tokens: Option<u64>,
    /// Changes of the program, in the order in which they are made.
    pub recipes: Vec<Recipe>,
}

impl Options {
    /// Reads the text of options.
    ///
    /// # Errors
    ///
    /// An item is wrong.
    pub fn parse(text: &str) -> Result<Self, WrongItem> {
        Self::of(&items(text))
    }

    /// The options of items.
    ///
    /// # Errors
    ///
    /// An item is wrong.
    pub fn of(items: &[Item]) -> Result<Self, WrongItem> {
        let mut options = Self::default();
        let mut settings = Vec::new();
        for item in items {
            let size = || parse_memory(&item.value).map(Some).map_err(|text| item.error(text));
            match item.name.as_str() {
                "set" | "change" => {
                    let text = item.bracketed().ok_or_else(|| {
                        item.error(format!("`{item}` has no list: expected {}:[..]", item.name))
                    })?;
                    let one = Configuration::new(text, item.name == "set")?;
                    options.configurations.push(one);
                }
                "device_memory" => options.device_memory = size()?,
                "pytorch_memory" => options.pytorch_memory = size()?,
                "plan" => options.plan = size()?,
                "length" => options.length = Some(tokens(item)?),
                "cache_tokens" => options.cache_tokens = Some(tokens(item)?),
                name if is_setting(name) => settings.push(item.to_string()),
                _ => options.recipes.push(recipe(item)?),
            }
        }
        if !settings.is_empty() {
            options.configurations.insert(0, Configuration::new(&settings.join(","), false)?);
        }
        Ok(options)
    }

    /// Whether anything was asked for: else the usual changes are tried.
    pub(super) fn has_question(&self) -> bool {
        self.plan.is_some() || !self.configurations.is_empty() || !self.recipes.is_empty()
    }

    /// The memory of the device, in bytes.
    pub(crate) fn memory(&self) -> Option<u64> {
        self.plan.or(self.device_memory)
    }

    /// What PyTorch can have, in bytes.
    pub fn available(&self) -> Option<u64> {
        let on_device = self.memory().map(|bytes| bytes.saturating_sub(CONTEXT));
        self.pytorch_memory.or(on_device)
    }
}

impl fmt::Display for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut items = Vec::new();
        let mut settings = String::new();
        match self.configurations.as_slice() {
            [Configuration { is_whole: false, text, .. }] if !text.is_empty() => {
                settings.clone_from(text);
            }
            all => items.extend(all.iter().map(|one| {
                let name = if one.is_whole { "set" } else { "change" };
                Item::new(name, format!("[{}]", one.text)).to_string()
            })),
        }
        let sizes =
            [self.device_memory, self.pytorch_memory, self.plan, self.length, self.cache_tokens];
        for (name, size) in NAMES[2..].iter().zip(sizes) {
            items.extend(size.map(|bytes| format!("{name}:{bytes}")));
        }
        items.extend(self.recipes.iter().map(|recipe| item_of(recipe).to_string()));
        items.splice(0..0, Some(settings).filter(|text| !text.is_empty()));
        f.write_str(&items.join(","))
    }
}

/// A number of tokens.
fn tokens(item: &Item) -> Result<u64, WrongItem> {
    let digits: String = item.value.chars().filter(|c| !matches!(c, ',' | '_' | ' ')).collect();
    digits.parse().ok().filter(|count| (1..1_000_000_000_000).contains(count)).ok_or_else(|| {
        item.error(format!("`{}` is no number of tokens: expected one such as 4096", item.value))
    })
}

/// The change of the program that an item names.
fn recipe(item: &Item) -> Result<Recipe, WrongItem> {
    let text = match item.value.as_str() {
        "" => item.name.clone(),
        value => format!("{}:{value}", item.name),
    };
    text.parse().map_err(|error: RecipeError| WrongItem {
        item: APPLY.to_owned(),
        text: format!("{error}."),
    })
}

fn item_of(recipe: &Recipe) -> Item {
    let text = recipe.to_string();
    let (name, value) = text.split_once(':').unwrap_or((&text, ""));
    Item::new(name, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SETTINGS: [&str; 6] = [
        "expandable_segments:True",
        "expandable_segments:0",
        "max_split_size_mb:0",
        "large_segment_size_mb:40,max_non_split_rounding_mb:64",
        "roundup_power2_divisions:[256:1,512:2,>:4]",
        "garbage_collection_threshold:0.6",
    ];

    const RECIPES: [&str; 4] =
        ["checkpoint:model.py:65", "batch:0.5", "optimizer_in_backward", "del:a/train.py:133"];

    fn configuration() -> impl Strategy<Value = Configuration> {
        let texts = proptest::sample::subsequence(&SETTINGS[..], 0..=SETTINGS.len());
        (texts, any::<bool>()).prop_map(|(texts, is_whole)| {
            Configuration::new(&texts.join(" , "), is_whole).expect("right settings")
        })
    }

    fn options() -> impl Strategy<Value = Options> {
        let size = || proptest::option::of(1..1_000_000_000_000_000_u64);
        let tokens = || proptest::option::of(1..1_000_000_000_000_u64);
        let configurations = proptest::collection::vec(configuration(), 0..4);
        let recipes = proptest::sample::subsequence(&RECIPES[..], 0..=RECIPES.len());
        let recipes =
            recipes.prop_map(|texts| Recipe::parse_list(&texts.join(",")).expect("right recipes"));
        (configurations, size(), size(), size(), (tokens(), tokens()), recipes).prop_map(
            |(configurations, device_memory, plan, pytorch_memory, tokens, recipes)| Options {
                configurations,
                device_memory,
                plan,
                pytorch_memory,
                length: tokens.0,
                cache_tokens: tokens.1,
                recipes,
            },
        )
    }

    proptest! {
        #[test]
        fn options_are_what_their_text_says(options in options()) {
            let text = options.to_string();
            prop_assert_eq!(Options::parse(&text).expect("right options"), options, "{}", text);
        }

        #[test]
        fn any_text_is_options_or_an_error(text in any::<String>()) {
            if let Ok(options) = Options::parse(&text) {
                prop_assert_eq!(Options::parse(&options.to_string()), Ok(options), "{}", text);
            }
        }
    }

    #[test]
    fn items_have_a_place_in_the_written_text() {
        let text = "del:a%2Cb/train.py:12, device_memory:H100, batch:0.5, max_split_size_mb: 64, \
                    expandable_segments:False";
        let options = Options::parse(text).expect("right options");
        let bytes = 81_079_u64 << 20;
        assert_eq!(
            options.to_string(),
            format!(
                "max_split_size_mb:64,expandable_segments:False,device_memory:{bytes},\
                 del:a%2Cb/train.py:12,batch:0.5"
            )
        );
        assert_eq!(Options::parse("").expect("nothing"), Options::default());
    }

    #[test]
    fn several_configurations_are_lists() {
        let text = "set:[],change:[max_split_size_mb:64,expandable_segments:True],set:[\
                    roundup_power2_divisions:[256:1,>:4]],pytorch_memory:1073741824";
        let options = Options::parse(text).expect("right options");
        let texts: Vec<&str> = options.configurations.iter().map(Configuration::text).collect();
        assert_eq!(
            texts,
            [
                "",
                "max_split_size_mb:64,expandable_segments:True",
                "roundup_power2_divisions:[256:1,>:4]"
            ]
        );
        assert_eq!(options.available(), Some(1 << 30));
        assert_eq!(options.to_string(), text);
    }
}
