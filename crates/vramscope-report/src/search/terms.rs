//! Parses a search: words and terms between spaces. Quotes keep a term with spaces together.

use vramscope_inference::Category;
use vramscope_trace::Block;

/// The parsed terms of a search.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Parsed {
    /// Words, in lower case. All must occur.
    pub(crate) words: Vec<String>,
    /// Terms that are not words. Of each inner list, one must hold.
    pub(crate) groups: Vec<Vec<Term>>,
    /// Each term as it is written in the search, without quotes.
    pub(crate) texts: Vec<String>,
}

/// A term that is not a word. Texts are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Term {
    /// An address.
    Address(Address),
    /// Minimum and maximum of the requested bytes, both included.
    Size(u64, u64),
    /// The index of an event.
    Event(u32),
    /// The call site, with or without its function: `gpt.py:43`.
    Site(String),
    /// A frame of the call stack, as a call site.
    Via(String),
    /// The outermost frames of the call stack, as call sites.
    Path(Path),
    /// The innermost frames of the call stack, the innermost first.
    Leaf(Path),
    /// The hash of the call stack, as in its id.
    Stack(StackHash),
    /// The category.
    Category(Category),
    /// The module, as an end of its path in the table of modules.
    Module(String),
    /// What holds the block, as the table of holders spells it.
    Holder(String),
    /// The phase of the alloc.
    Phase(String),
    /// The first and last step of the alloc, both included.
    Step(u32, u32),
    /// The stream's handle.
    Stream(i64),
    /// The pool.
    Pool(Pool),
    /// Minimum and maximum of the lifetime in microseconds, both included.
    LifetimeMicros(u64, u64),
    /// Minimum and maximum of the lifetime in events, both included.
    LifetimeEvents(u64, u64),
    /// The rank of the file.
    Rank(u32),
    /// A moment at which the block is live.
    Live(Moment),
}

/// Frames from one end of a call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// The frames as call sites.
    pub(crate) frames: Vec<String>,
    /// Whether these are all frames from that end. Else frames of the framework may lie between.
    pub(crate) is_whole: bool,
}

/// A pool of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pool {
    /// The default pool.
    Default,
    /// Any private pool.
    Private,
    /// The pool with this id.
    Id([u64; 2]),
    /// Small segments.
    Small,
    /// Large segments.
    Large,
}

/// A moment of the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The peak of requested bytes.
    Peak,
    /// Before the first event.
    Start,
    /// After the last event.
    End,
    /// After this event.
    Event(u32),
}

/// An address term: a full address, an address prefix, or an address with a reuse number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    /// The value of all digits; `None` when only [`Address::reused`] is valid.
    plain: Option<u64>,
    /// The number of digits of `plain`.
    digits: u32,
    /// The address, and the number of earlier blocks at it: `0x7600_2a00_0000_3` is the fourth
    /// block at its address.
    reused: Option<(u64, u32)>,
}

impl Address {
    /// Whether memory of `bytes` bytes at `start` contains the address, or `start` begins with its
    /// digits.
    pub(crate) fn matches(&self, start: u64, bytes: u64) -> bool {
        let Some(value) = self.plain else { return false };
        let digits = (u64::BITS - start.leading_zeros()).div_ceil(4).max(1);
        let is_prefix = self.digits <= digits && start >> (4 * (digits - self.digits)) == value;
        is_prefix || value.checked_sub(start).is_some_and(|offset| offset < bytes)
    }

    /// Whether the block has this address and reuse number.
    pub(crate) fn is_reuse(&self, block: &Block) -> bool {
        self.reused == Some((block.address.0, block.reuse()))
    }
}

/// Fewer hexadecimal digits without `0x` are a word.
const MIN_BARE_DIGITS: usize = 9;

/// Splits a search into its terms. `None` when the text is empty or a term is malformed.
pub(crate) fn parse(text: &str) -> Option<Parsed> {
    let mut parsed = Parsed::default();
    let mut keyed: Vec<(&'static str, Vec<Term>)> = Vec::new();
    let mut parts = tokens(text).into_iter().peekable();
    while let Some(mut written) = parts.next() {
        let is_operator = matches!(written.as_str(), ">" | ">=" | "<" | "<=" | "=");
        if is_operator {
            written.push_str(&parts.next()?);
        }
        if let Some(is_bare) = wants_unit(&written)
            && let Some(unit) = parts.next_if(|next| is_unit(&next.to_ascii_lowercase(), is_bare))
        {
            written.push(' ');
            written.push_str(&unit);
        }
        let lower = written.to_ascii_lowercase();
        if let Some((key, value)) = key_of(&lower) {
            // Terms of one key are alternatives, except bounds.
            let term = keyed_term(key, value.trim())?;
            match keyed.iter_mut().find(|(known, _)| *known == key && !is_bound(key)) {
                Some((_, terms)) => terms.push(term),
                None => keyed.push((key, vec![term])),
            }
        } else if is_word(&lower) {
            parsed.words.push(lower);
        } else {
            parsed.groups.push(vec![plain_term(&lower)?]);
        }
        parsed.texts.push(written);
    }
    parsed.groups.extend(keyed.into_iter().map(|(_, terms)| terms));
    (!parsed.texts.is_empty()).then_some(parsed)
}

/// Whether terms of a key must all hold.
fn is_bound(key: &str) -> bool {
    matches!(key, "size" | "lifetime" | "via")
}

/// The parts between spaces, without their quotes.
fn tokens(text: &str) -> Vec<String> {
    let (mut tokens, mut token, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in text.chars() {
        match c {
            '"' => is_quoted = !is_quoted,
            c if c.is_whitespace() && !is_quoted => tokens.push(std::mem::take(&mut token)),
            c => token.push(c),
        }
    }
    tokens.push(token);
    tokens.into_iter().map(|one| one.trim().to_owned()).filter(|one| !one.is_empty()).collect()
}

/// The known key of a term, and its value.
fn key_of(term: &str) -> Option<(&'static str, &str)> {
    const KEYS: [&str; 14] = [
        "site", "stack", "via", "path", "leaf", "category", "module", "holder", "phase", "step",
        "stream", "pool", "size", "lifetime",
    ];
    let (key, value) = term.split_once(':')?;
    let known = KEYS.into_iter().chain(["rank"]).find(|&known| known == key)?;
    (!value.is_empty()).then_some((known, value))
}

/// Separates the frames of a path. C++ names contain other signs.
pub const STEP: &str = " › ";
/// The start of a path that has all frames of the stack from its end.
pub const WHOLE: &str = "› ";

/// The fewest digits of a hash that name a stack.
const MIN_HASH_DIGITS: usize = 8;

/// The hash of a call stack, or its first digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StackHash {
    start: u64,
    /// The number of bits that are not named.
    unnamed: u32,
}

impl StackHash {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.len();
        let is_hash = (MIN_HASH_DIGITS..=16).contains(&digits)
            && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let start = u64::from_str_radix(text, 16).ok().filter(|_| is_hash)?;
        Some(Self { start, unnamed: 64 - 4 * digits as u32 })
    }

    /// Whether a stack has this hash.
    pub(super) fn is_of(self, hash: u64) -> bool {
        hash >> self.unnamed == self.start
    }
}

fn path(value: &str) -> Path {
    let whole = value.strip_prefix(WHOLE);
    let frames = whole.unwrap_or(value).split(STEP).map(|step| step.trim().to_owned()).collect();
    Path { frames, is_whole: whole.is_some() }
}

fn keyed_term(key: &str, value: &str) -> Option<Term> {
    Some(match key {
        "site" => Term::Site(value.to_owned()),
        "via" => Term::Via(value.to_owned()),
        "path" => Term::Path(path(value)),
        "leaf" => Term::Leaf(path(value)),
        "stack" => Term::Stack(StackHash::parse(value)?),
        "category" => Term::Category(category(value)?),
        "module" => Term::Module(value.to_owned()),
        "holder" => Term::Holder(value.to_owned()),
        "phase" => Term::Phase(value.to_owned()),
        "step" => match value.split_once('-') {
            Some((first, last)) => Term::Step(number(first)?, number(last)?),
            None => Term::Step(number(value)?, number(value)?),
        },
        "stream" => Term::Stream(stream(value)?),
        "pool" => Term::Pool(pool(value)?),
        "size" => size(value)?,
        "lifetime" => lifetime(value)?,
        _ => Term::Rank(number(value)?),
    })
}

/// Whether a part without a key is a word.
fn is_word(part: &str) -> bool {
    // Python names such as `<module>` and `<lambda>` are words, not bounds.
    let is_name =
        part.strip_prefix('<').is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic()));
    let is_bound = part.starts_with(['>', '<', '=']) && !is_name;
    let is_marked = is_bound || ["#", "0x", "live@"].iter().any(|mark| part.starts_with(mark));
    !is_marked && !is_bare_address(part) && !is_size(part)
}

/// An address, a size, an event or a moment.
fn plain_term(part: &str) -> Option<Term> {
    Some(if let Some(event) = part.strip_prefix('#') {
        Term::Event(number(event)?)
    } else if let Some(digits) = part.strip_prefix("0x") {
        Term::Address(address(digits)?)
    } else if let Some(moment) = part.strip_prefix("live@") {
        Term::Live(moment_of(moment)?)
    } else if is_bare_address(part) {
        Term::Address(address(part)?)
    } else {
        size(part)?
    })
}

/// A number with or without separators: `1,024`.
fn number(text: &str) -> Option<u32> {
    text.trim().replace(',', "").parse().ok()
}

/// A category by its name or by a label of a table: `optimizer state`, `activations`.
fn category(text: &str) -> Option<Category> {
    let name = text.replace([' ', '-'], "_");
    let singular = match name.strip_suffix("ies") {
        Some(start) => format!("{start}y"),
        None => name.strip_suffix('s').unwrap_or(&name).to_owned(),
    };
    Category::parse(&name).or_else(|| Category::parse(&singular))
}

fn stream(text: &str) -> Option<i64> {
    let digits = text.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|handle| handle as i64),
        None if digits == "default" || digits == "0 (default)" => Some(0),
        None => digits.parse().ok(),
    }
}

fn pool(text: &str) -> Option<Pool> {
    Some(match text {
        "default" => Pool::Default,
        "private" => Pool::Private,
        "small" => Pool::Small,
        "large" => Pool::Large,
        id => {
            let (first, second) = id.trim_matches(['(', ')']).split_once(',')?;
            Pool::Id([first.trim().parse().ok()?, second.trim().parse().ok()?])
        }
    })
}

fn moment_of(text: &str) -> Option<Moment> {
    Some(match text {
        "peak" => Moment::Peak,
        "start" => Moment::Start,
        "end" => Moment::End,
        event => Moment::Event(number(event.strip_prefix('#').unwrap_or(event))?),
    })
}

fn address(digits: &str) -> Option<Address> {
    let value = |digits: &str| {
        let digits = digits.replace('_', "");
        let is_hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
        let value = u64::from_str_radix(&digits, 16).ok().filter(|_| is_hex)?;
        Some((value, digits.len() as u32))
    };
    let plain = value(digits);
    // Digit groups have four digits. A shorter last group is the reuse number.
    let reused = digits.rsplit_once('_').filter(|(_, reuse)| reuse.len() < 4);
    let reused = reused.and_then(|(start, reuse)| Some((value(start)?.0, reuse.parse().ok()?)));
    (plain.is_some() || reused.is_some()).then(|| Address {
        plain: plain.map(|p| p.0),
        digits: plain.map_or(0, |p| p.1),
        reused,
    })
}

/// The binary logarithm of a unit of bytes, given in lower case.
fn shift_of(unit: &str) -> Option<u32> {
    Some(match unit {
        "b" | "byte" | "bytes" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    })
}

/// Microseconds of a unit of time, given in lower case.
fn micros_of(unit: &str) -> Option<u64> {
    Some(match unit {
        "us" | "µs" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "min" => 60_000_000,
        _ => return None,
    })
}

/// Whether a part is the unit of the number before it. A bare number has a unit of bytes with more
/// than one letter.
fn is_unit(word: &str, is_bare: bool) -> bool {
    let is_bytes = shift_of(word).is_some();
    if is_bare {
        return is_bytes && word.len() > 1;
    }
    is_bytes || micros_of(word).is_some() || matches!(word, "event" | "events")
}

/// Whether the next part may be the unit of a term: of `>512` and `size:512` (`Some(false)`), or
/// of the bare number `512` (`Some(true)`).
fn wants_unit(term: &str) -> Option<bool> {
    let lower = term.to_ascii_lowercase();
    let value = ["size:", "lifetime:"].into_iter().find_map(|key| lower.strip_prefix(key));
    let number = value.unwrap_or(&lower).trim_start_matches(['>', '<', '=']);
    let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && number.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_number.then_some(number.len() == lower.len())
}

/// Whether a text is an address without `0x`, in groups of four digits if it has groups.
fn is_bare_address(text: &str) -> bool {
    let digits = text.bytes().filter(u8::is_ascii_hexdigit).count();
    let mut groups = text.split('_');
    let (first, last) = (groups.next().unwrap_or_default(), groups.next_back());
    digits >= MIN_BARE_DIGITS
        && text.bytes().all(|b| b.is_ascii_hexdigit() || b == b'_')
        && text.bytes().any(|b| b.is_ascii_digit())
        && last.is_none_or(|last| last.len() <= 4 && first.len() <= 4)
        && groups.all(|group| group.len() == 4)
}

/// Whether a text is a number with a unit of bytes: `512 mib`, `512mib`. A letter alone is no unit
/// here: `4b` can be part of a name.
fn is_size(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let is_unit = shift_of(unit.trim()).is_some() && (unit.len() > 1 || unit.starts_with(' '));
    number.starts_with(|c: char| c.is_ascii_digit()) && is_unit
}

/// A bound as a rational number: `twice` / `scale`, where `scale` is even.
struct Bound<'a> {
    operator: &'a str,
    unit: &'a str,
    /// The number times `scale`, before its unit.
    twice: u128,
    scale: u128,
    decimals: usize,
}

impl<'a> Bound<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let number = text.trim_start_matches(['>', '<', '=']);
        let operator = &text[..text.len() - number.len()];
        let number = number.trim_start();
        let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
        let (number, unit) = number.split_at(end);
        let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
        if decimals.len() > 9 {
            return None;
        }
        // The doubled value keeps half of the last digit an integer.
        let twice = u128::from(format!("{whole}{decimals}").parse::<u64>().ok()?) << 1;
        let scale = 2 * 10u128.pow(decimals.len() as u32);
        Some(Self { operator, unit: unit.trim(), twice, scale, decimals: decimals.len() })
    }

    /// The values in a unit of `unit` that the bound allows, both included.
    fn range(&self, unit: u64) -> Option<(u64, u64)> {
        let whole = |value: u128| u64::try_from(value).unwrap_or(u64::MAX);
        let value = self.twice * u128::from(unit);
        let (floor, ceil) = (whole(value / self.scale), whole(value.div_ceil(self.scale)));
        let half = u128::from(unit);
        let rounded = || {
            let low = value.saturating_sub(half).div_ceil(self.scale);
            (whole(low), whole((value + half) / self.scale))
        };
        // `<0` matches nothing, which an empty range expresses.
        let below = |bound: u64| bound.checked_sub(1).map_or((1, 0), |max| (0, max));
        Some(match self.operator {
            ">" => floor.checked_add(1).map_or((1, 0), |min| (min, u64::MAX)),
            ">=" => (ceil, u64::MAX),
            "<" => below(ceil),
            "<=" => (0, floor),
            // A value with decimals was rounded for display, so it matches what rounds to it.
            "=" if self.decimals > 0 => rounded(),
            // Without an operator, a value matches what rounds to it.
            "" if unit > 1 => rounded(),
            "=" | "" => (ceil, floor),
            _ => return None,
        })
    }
}

/// Parses a size: `>1.5gib`, `512 mib`.
fn size(text: &str) -> Option<Term> {
    let bound = Bound::parse(text)?;
    let shift = if bound.unit.is_empty() { 0 } else { shift_of(bound.unit)? };
    bound.range(1 << shift).map(|(min, max)| Term::Size(min, max))
}

/// Parses a lifetime: `>10ms`, `<100 events`.
fn lifetime(text: &str) -> Option<Term> {
    let bound = Bound::parse(text)?;
    match bound.unit {
        "" | "event" | "events" => bound.range(1).map(|(min, max)| Term::LifetimeEvents(min, max)),
        unit => bound.range(micros_of(unit)?).map(|(min, max)| Term::LifetimeMicros(min, max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(text: &str) -> Vec<Vec<Term>> {
        parse(text).unwrap_or_else(|| panic!("{text} is valid")).groups
    }

    #[test]
    fn words_and_terms_are_told_apart() {
        let words = |text: &str| parse(text).map(|parsed| parsed.words).unwrap_or_default();
        for (text, expected) in [
            ("Forward gpt.py:43", vec!["forward", "gpt.py:43"]),
            ("\"two words\" <module>", vec!["two words", "<module>"]),
            // Numbers, short hexadecimal numbers and C++ names are words.
            (
                "512 3 b 7f00bc40 at::mul foo:bar site:",
                vec!["512", "3", "b", "7f00bc40", "at::mul", "foo:bar", "site:"],
            ),
            // So are names that look like hexadecimal numbers.
            (
                "decade_2020 abcdefabcdef add_00001",
                vec!["decade_2020", "abcdefabcdef", "add_00001"],
            ),
            (">512MiB category:activation", vec![]),
        ] {
            assert_eq!(words(text), expected, "{text}");
        }
        for text in [
            "",
            "  ",
            "\"\"",
            ">",
            "#x",
            "0x",
            "category:no",
            "step:one",
            "pool:odd",
            "live@now",
            "size:many",
            "lifetime:1year",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn terms_of_one_key_are_alternatives_and_bounds_are_not() {
        let activation = Term::Category(Category::Activation);
        let optimizer = Term::Category(Category::OptimizerState);
        assert_eq!(
            groups("category:activations step:3 \"category:optimizer state\" step:5-7"),
            [vec![activation, optimizer], vec![Term::Step(3, 3), Term::Step(5, 7)]]
        );
        assert_eq!(
            groups("size:>=1KiB size:<2KiB"),
            [[Term::Size(1024, u64::MAX)], [Term::Size(0, 2047)]]
        );
        assert_eq!(
            groups("\"site:gpt.py:43 Forward\" site:(backward)"),
            [[Term::Site("gpt.py:43 forward".into()), Term::Site("(backward)".into())]]
        );
        let frames = ["a.py:1 main", "b.py:2 <module>"].map(String::from).to_vec();
        let path = |is_whole| Path { frames: frames.clone(), is_whole };
        let term = "\"path:a.py:1 main › b.py:2 <module>\"";
        assert_eq!(groups(term), [[Term::Path(path(false))]]);
        let term = "\"leaf:› a.py:1 main › b.py:2 <module>\"";
        assert_eq!(groups(term), [[Term::Leaf(path(true))]]);
    }

    #[test]
    fn sizes_need_no_operator() {
        let mib = 1 << 20;
        let around = |n: u64, half: u64| vec![vec![Term::Size(n - half, n + half)]];
        for text in ["140MiB", "140 MiB", "140mb", "size:140MiB", "size:140 MiB", "\"140 MiB\""] {
            assert_eq!(groups(text), around(140 * mib, mib / 2), "{text}");
        }
        assert_eq!(groups("512 bytes"), around(512, 0));
        assert_eq!(groups("size:512"), around(512, 0));
        assert_eq!(groups("=140MiB"), around(140 * mib, 0));
        assert_eq!(groups("> 512 MiB"), groups("size:>512MiB"));
    }

    #[test]
    fn lifetimes_streams_pools_moments_and_ranks() {
        for (text, term) in [
            ("lifetime:>10ms", Term::LifetimeMicros(10_001, u64::MAX)),
            ("lifetime:<=1.5 s", Term::LifetimeMicros(0, 1_500_000)),
            ("lifetime:<100 events", Term::LifetimeEvents(0, 99)),
            ("stream:default", Term::Stream(0)),
            ("stream:0x7f00_aa10", Term::Stream(0x7f00_aa10)),
            ("stream:-3", Term::Stream(-3)),
            ("pool:private", Term::Pool(Pool::Private)),
            ("\"pool:(0, 7)\"", Term::Pool(Pool::Id([0, 7]))),
            ("live@peak", Term::Live(Moment::Peak)),
            ("live@#1,024", Term::Live(Moment::Event(1024))),
            ("rank:3", Term::Rank(3)),
        ] {
            assert_eq!(groups(text), [[term]], "{text}");
        }
        let bare = groups("7601bc400000");
        assert_eq!(bare, groups("0x7601bc400000"));
        assert_eq!(groups("7601_bc40_0000_5"), groups("0x7601_bc40_0000_5"));
    }

    #[test]
    fn texts_of_terms_parse_to_the_same_terms() {
        let text = "Attention > 512 MiB \"site:a.py:1 f\" lifetime:>1 s live@peak 140 MiB";
        let parsed = parse(text).expect("valid");
        let expected =
            ["Attention", ">512 MiB", "site:a.py:1 f", "lifetime:>1 s", "live@peak", "140 MiB"];
        assert_eq!(parsed.texts, expected);
        let quoted: Vec<String> = parsed.texts.iter().map(|term| format!("\"{term}\"")).collect();
        assert_eq!(parse(&quoted.join(" ")), Some(parsed));
    }
}
