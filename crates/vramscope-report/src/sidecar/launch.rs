//! What the command line of a process says of an inference engine: the flags that decide about its
//! KV cache.
//!
//! Nothing else of a command line is kept: it may have keys and paths.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use vramscope_units::named;

named! {
    /// An inference engine, by the names of its flags.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    #[serde(rename_all = "snake_case")]
    pub enum Engine {
        /// vLLM.
        Vllm = "vllm",
        /// SGLang.
        Sglang = "sglang",
    }
}

impl Engine {
    /// The name in prose.
    pub fn title(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::Sglang => "SGLang",
        }
    }
}

named! {
    /// A flag of an engine.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub enum Flag {
        /// The part of the GPU that vLLM takes.
        Utilization = "--gpu-memory-utilization",
        /// The bytes of vLLM's cache. vLLM's log shortens the name.
        CacheBytes = "--kv-cache-memory-bytes",
        /// The part of the free memory that SGLang takes for weights and cache.
        StaticFraction = "--mem-fraction-static",
        /// The longest sequence of vLLM, in tokens.
        MaxModelLen = "--max-model-len",
        /// The same of SGLang.
        ContextLength = "--context-length",
        /// The most sequences at once of vLLM.
        MaxNumSeqs = "--max-num-seqs",
        /// The same of SGLang.
        MaxRunningRequests = "--max-running-requests",
        /// Tokens of a block of vLLM's cache.
        BlockSize = "--block-size",
        /// Tokens of a page of SGLang's cache.
        PageSize = "--page-size",
        /// The blocks of vLLM's cache.
        Blocks = "--num-gpu-blocks-override",
        /// The tokens of SGLang's cache.
        TotalTokens = "--max-total-tokens",
    }
}

/// The most characters of a number. A file may have any.
pub(crate) const MAX_DIGITS: usize = 24;

/// The name with which vLLM's log tells [`Flag::CacheBytes`]: it stands for the whole name.
const SHORT: &str = "--kv-cache-memory";

impl Flag {
    /// The engine of a flag that no other engine has.
    fn engine(self) -> Option<Engine> {
        match self {
            Self::Utilization
            | Self::CacheBytes
            | Self::MaxModelLen
            | Self::MaxNumSeqs
            | Self::Blocks => Some(Engine::Vllm),
            Self::StaticFraction
            | Self::ContextLength
            | Self::MaxRunningRequests
            | Self::TotalTokens => Some(Engine::Sglang),
            Self::BlockSize | Self::PageSize => None,
        }
    }

    fn of(name: &str) -> Option<Self> {
        let name = name.replace('_', "-");
        let name = if name == SHORT { Self::CacheBytes.name() } else { &name };
        Self::ALL.into_iter().find(|flag| flag.name() == name)
    }
}

/// The engine and the flags of a command line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The engine that it names.
    engine: Option<Engine>,
    /// The flags with their values as they were written, numbers all. Of several the last counts.
    flags: Vec<(Flag, String)>,
}

impl Launch {
    /// Reads the words of a command line.
    pub fn of<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let mut launch = Self::default();
        let mut open: Option<Flag> = None;
        for word in words {
            if let Some(flag) = open.take() {
                launch.set(flag, word);
            } else if word.starts_with("--") {
                let (name, value) = word.split_once('=').unzip();
                match (Flag::of(name.unwrap_or(word)), value) {
                    (Some(flag), Some(value)) => launch.set(flag, value),
                    (flag, _) => open = flag,
                }
            } else if launch.engine.is_none() {
                launch.engine = named_by(word);
            }
        }
        launch
    }

    fn set(&mut self, flag: Flag, value: &str) {
        if value.len() <= MAX_DIGITS && number(value).is_some() {
            self.flags.retain(|(known, _)| *known != flag);
            self.flags.push((flag, value.to_owned()));
        }
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// The engine that the command names, or whose flags it has.
    pub fn engine(&self) -> Option<Engine> {
        self.engine.or_else(|| self.flags.iter().find_map(|(flag, _)| flag.engine()))
    }

    /// The value of a flag.
    pub fn value(&self, flag: Flag) -> Option<f64> {
        self.flags.iter().find(|(known, _)| *known == flag).and_then(|(_, text)| number(text))
    }

    /// The value of the first of these flags that is a whole number above zero.
    pub fn count(&self, flags: &[Flag]) -> Option<u64> {
        let value = flags.iter().find_map(|flag| self.value(*flag))?;
        (1.0..1e15).contains(&value).then_some(value as u64)
    }

    /// A flag as it was written: `--gpu-memory-utilization 0.9`.
    pub fn text(&self, flag: Flag) -> Option<String> {
        let (_, value) = self.flags.iter().find(|(known, _)| *known == flag)?;
        Some(format!("{} {value}", flag.name()))
    }
}

/// The engine whose program or module a word is: `/opt/bin/vllm`, `sglang.launch_server`.
fn named_by(word: &str) -> Option<Engine> {
    let end = word.rsplit(['/', '\\']).next().unwrap_or(word);
    let first = end.split('.').next().unwrap_or(end);
    Engine::ALL.into_iter().find(|engine| engine.name() == first)
}

/// A number as engines read it: `0.9`, `4096`, `32k`, `32K`.
fn number(text: &str) -> Option<f64> {
    let split = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let factor = match &text[split..] {
        "" => 1.0,
        "k" => 1e3,
        "K" => 1024.0,
        "m" => 1e6,
        "M" => 1_048_576.0,
        "g" => 1e9,
        "G" => 1_073_741_824.0,
        _ => return None,
    };
    text[..split].parse::<f64>().ok().map(|number| number * factor)
}

impl Serialize for Launch {
    /// Writes a command line that reads as the same.
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let engine = self.engine.iter().map(|engine| engine.name());
        let flags = self.flags.iter().flat_map(|(flag, value)| [flag.name(), value.as_str()]);
        to.collect_seq(engine.chain(flags))
    }
}

impl<'de> Deserialize<'de> for Launch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let words: Vec<String> = Vec::deserialize(from)?;
        Ok(Self::of(words.iter().map(String::as_str)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Launch {
        Launch::of(line.split(' '))
    }

    #[test]
    fn flags_are_read_in_every_form() {
        let line = "python /opt/bin/vllm serve org/model --api-key secret --max-model-len 32k \
                    --gpu_memory_utilization=0.9 --max-num-seqs 8 --max-num-seqs 16";
        let launch = of(line);
        assert_eq!(launch.engine(), Some(Engine::Vllm));
        assert_eq!(launch.text(Flag::Utilization).as_deref(), Some("--gpu-memory-utilization 0.9"));
        assert_eq!(launch.count(&[Flag::ContextLength, Flag::MaxModelLen]), Some(32_000));
        assert_eq!(launch.count(&[Flag::MaxNumSeqs]), Some(16));
        assert_eq!(launch.value(Flag::CacheBytes), None);
        assert_eq!(of("x --kv-cache-memory=64G").count(&[Flag::CacheBytes]), Some(64 << 30));
        assert_eq!(of("x --block-size auto").value(Flag::BlockSize), None);
    }

    #[test]
    fn the_engine_is_that_of_the_program_else_of_its_flags() {
        for (line, engine) in [
            ("python -m sglang.launch_server --tp 2", Some(Engine::Sglang)),
            ("vllm serve sglang-like/model", Some(Engine::Vllm)),
            ("python serve.py --mem-fraction-static 0.8", Some(Engine::Sglang)),
            ("python serve.py --gpu-memory-utilization 0.8", Some(Engine::Vllm)),
            ("python train.py --block-size 1024", None),
        ] {
            assert_eq!(of(line).engine(), engine, "{line}");
        }
    }

    #[test]
    fn nothing_else_of_a_command_line_is_kept() {
        let launch = of("/home/me/vllm serve m --api-key secret --gpu-memory-utilization 0.9");
        let text = serde_json::to_string(&launch).expect("texts");
        assert_eq!(text, r#"["vllm","--gpu-memory-utilization","0.9"]"#);
        assert_eq!(serde_json::from_str::<Launch>(&text).expect("words"), launch);
    }
}
