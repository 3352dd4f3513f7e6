//! Parses the parts of an expression.

use super::{Amount, Metric, When};
use crate::peak::BandKind;
use vramscope_inference::Severity;

/// Parses the name of a metric, with an optional `.start`, `.peak` or `.end`.
pub(super) fn metric(name: &str) -> Option<Metric> {
    match name {
        // `peak` alone is torch.cuda.max_memory_allocated().
        "peak" => return Some(Metric::Band(BandKind::Allocated, When::Peak)),
        "blocks" => return Some(Metric::Blocks),
        "ooms" => return Some(Metric::Ooms),
        "findings" => return Some(Metric::Findings(None)),
        "findings.high" => return Some(Metric::Findings(Some(Severity::High))),
        "findings.medium" => return Some(Metric::Findings(Some(Severity::Medium))),
        "findings.low" => return Some(Metric::Findings(Some(Severity::Low))),
        _ => {}
    }
    let (band, when) = name.split_once('.').unwrap_or((name, "peak"));
    let band = BandKind::ALL
        .into_iter()
        .find(|kind| kind.name() == band || kind.name().strip_suffix("_bytes") == Some(band))?;
    let when = match when {
        "start" => When::Start,
        "peak" => When::Peak,
        "end" => When::End,
        _ => return None,
    };
    Some(Metric::Band(band, when))
}

/// Parses `[+|-]NUMBER[UNIT]`. The error is a message for the user.
pub(super) fn amount(text: &str, is_bytes: bool) -> Result<Amount, String> {
    let (sign, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (Some(1), rest),
        (_, Some(rest)) => (Some(-1), rest),
        _ => (None, text),
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, unit) = (millionths(&rest[..digits]), rest[digits..].trim());
    let Some(number) = number else {
        return Err(format!("{text:?} is not an amount. Examples: +2%, -100MiB, 20GiB"));
    };
    let scale = match unit {
        "%" => {
            return match sign {
                Some(sign) => Ok(Amount::Percent(sign * number)),
                None => Err(format!("a percentage needs a sign: +{rest} or -{rest}")),
            };
        }
        "" => 1,
        _ if !is_bytes => return Err(format!("unit {unit:?} cannot be used with a count")),
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(format!("unknown unit {unit:?}. Expected %, B, KiB, MiB, GiB or TiB")),
    };
    let number = number.saturating_mul(scale);
    Ok(match sign {
        Some(sign) => Amount::By(sign * number),
        None => Amount::Value(number),
    })
}

/// A decimal number with at most six decimal places, in millionths.
fn millionths(text: &str) -> Option<i128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let is_number =
        !whole.is_empty() && decimals.len() <= 6 && !decimals.contains('.') && whole.len() <= 20;
    let padded = is_number.then(|| format!("{whole}{decimals:0<6}"))?;
    padded.parse().ok()
}
