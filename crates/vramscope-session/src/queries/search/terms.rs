//! Parses the terms of a search.

use vramscope_analysis::Block;

/// A term that is not a word.
pub(super) enum Term {
    /// An address.
    Address(Address),
    /// Minimum and maximum of the requested bytes, both included.
    Size(u64, u64),
    /// The index of an event.
    Event(u32),
}

/// An address term: a full address, an address prefix, or an address with a reuse number.
pub(super) struct Address {
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
    pub(super) fn matches(&self, start: u64, bytes: u64) -> bool {
        let Some(value) = self.plain else { return false };
        let digits = (u64::BITS - start.leading_zeros()).div_ceil(4).max(1);
        let is_prefix = self.digits <= digits && start >> (4 * (digits - self.digits)) == value;
        is_prefix || value.checked_sub(start).is_some_and(|offset| offset < bytes)
    }

    /// Whether the block has this address and reuse number.
    pub(super) fn is_reuse(&self, block: &Block) -> bool {
        self.reused == Some((block.address.0, block.reuse()))
    }
}

/// Splits a search into words, in lower case, and other terms. `None` when the text is empty or a
/// term is malformed.
pub(super) fn parse(text: &str) -> Option<(Vec<String>, Vec<Term>)> {
    let (mut words, mut terms) = (Vec::new(), Vec::new());
    let mut parts = text.split_whitespace().peekable();
    while let Some(part) = parts.next() {
        let mut part = part.to_ascii_lowercase();
        if matches!(part.as_str(), ">" | ">=" | "<" | "<=" | "=") {
            part.push_str(&parts.next()?.to_ascii_lowercase());
        }
        // Python names such as `<module>` and `<lambda>` are words, not bounds.
        let is_name = part
            .strip_prefix('<')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_alphabetic()));
        if part.starts_with(['>', '<', '=']) && !is_name {
            if part.ends_with(|c: char| c.is_ascii_digit())
                && let Some(unit) =
                    parts.next_if(|next| shift_of(&next.to_ascii_lowercase()).is_some())
            {
                part.push_str(&unit.to_ascii_lowercase());
            }
            terms.push(size(&part)?);
        } else if let Some(event) = part.strip_prefix('#') {
            terms.push(Term::Event(event.replace(',', "").parse().ok()?));
        } else if let Some(digits) = part.strip_prefix("0x") {
            terms.push(Term::Address(address(digits)?));
        } else {
            words.push(part);
        }
    }
    (!words.is_empty() || !terms.is_empty()).then_some((words, terms))
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

/// Parses a size bound such as `>1.5gib`.
fn size(text: &str) -> Option<Term> {
    let number = text.trim_start_matches(['>', '<', '=']);
    let operator = &text[..text.len() - number.len()];
    let end = number.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(number.len());
    let (number, unit) = number.split_at(end);
    let shift = if unit.is_empty() { 0 } else { shift_of(unit)? };
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    if decimals.len() > 9 {
        return None;
    }
    // The doubled value keeps half of the last digit an integer.
    let twice = u128::from(format!("{whole}{decimals}").parse::<u64>().ok()?) << (shift + 1);
    let scale = 2 * 10u128.pow(decimals.len() as u32);
    let whole = |bytes: u128| u64::try_from(bytes).unwrap_or(u64::MAX);
    let (floor, ceil) = (whole(twice / scale), whole(twice.div_ceil(scale)));
    // `<0` matches nothing, which an empty range expresses.
    let below =
        |bound: u64| bound.checked_sub(1).map_or(Term::Size(1, 0), |max| Term::Size(0, max));
    Some(match operator {
        ">" => floor.checked_add(1).map_or(Term::Size(1, 0), |min| Term::Size(min, u64::MAX)),
        ">=" => Term::Size(ceil, u64::MAX),
        "<" => below(ceil),
        "<=" => Term::Size(0, floor),
        // A value with decimals was rounded for display, so it matches what rounds to it.
        "=" if !decimals.is_empty() => {
            let half = 1 << shift;
            Term::Size(
                whole(twice.saturating_sub(half).div_ceil(scale)),
                whole((twice + half) / scale),
            )
        }
        "=" => Term::Size(ceil, floor),
        _ => return None,
    })
}
