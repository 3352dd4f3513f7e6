//! What `vramscope diff --fail-on` asks: `peak>+2%`.

use crate::Quantity;
use crate::diff::{Change, Pair};
use crate::peak::BandKind;
use crate::text::signed_count;
use serde::Serialize;

/// A question to a pair of snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    text: String,
    metric: Metric,
    operator: Operator,
    amount: Amount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Band(BandKind, When),
    Blocks,
    Ooms,
    Findings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Start,
    Peak,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    More,
    AtLeast,
    Less,
    AtMost,
}

/// In millionths, so that `0.1%` and `1.5GiB` are what they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    /// The value in `b`.
    Value(i128),
    /// The change.
    By(i128),
    /// The change in percent of the value in `a`.
    Percent(i128),
}

const MILLION: i128 = 1_000_000;

/// An expression that was asked, and whether it holds.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// As it was given.
    pub expression: String,
    /// Whether it holds for any pair: then the program exits with 1.
    pub holds: bool,
    /// For each pair for which it holds, the values in words.
    pub texts: Vec<String>,
}

impl Expression {
    /// Reads `METRIC[.start|.peak|.end] > [+|-]AMOUNT`.
    ///
    /// ```
    /// use vramscope_report::check::Expression;
    ///
    /// assert!(Expression::parse("peak>+2%").is_ok());
    /// assert!(Expression::parse("reserved.end >= 20GiB").is_ok());
    /// assert!(Expression::parse("peak>2%").is_err_and(|why| why.contains("+2%")));
    /// ```
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: String| format!("--fail-on '{text}': {what}");
        let at = text.find(['<', '>']).ok_or_else(|| {
            wrong("there is no < or > in it; expected for instance 'peak>+2%' (in quotes: > is the shell's)".to_owned())
        })?;
        let (name, rest) = text.split_at(at);
        let (operator, amount) =
            match (rest.strip_prefix(">="), rest.strip_prefix("<="), rest.strip_prefix('>')) {
                (Some(amount), ..) => (Operator::AtLeast, amount),
                (_, Some(amount), _) => (Operator::AtMost, amount),
                (.., Some(amount)) => (Operator::More, amount),
                _ => (Operator::Less, &rest[1..]),
            };
        let metric = metric(name.trim()).ok_or_else(|| {
            wrong(format!(
                "there is no {:?}; expected peak, requested, active, allocated or reserved (with .start, .peak or .end), \
                 blocks, ooms or findings",
                name.trim()
            ))
        })?;
        let amount = amount_of(amount.trim(), matches!(metric, Metric::Band(..))).map_err(wrong)?;
        Ok(Self { text: text.trim().to_owned(), metric, operator, amount })
    }

    /// Asks it of every pair.
    pub fn check(&self, pairs: &[Pair]) -> Check {
        let several = pairs.len() > 1;
        let held = pairs.iter().filter(|pair| self.holds(self.metric.of(pair)));
        let texts: Vec<String> = held
            .map(|pair| {
                let name = if several { format!("{}: ", pair.name()) } else { String::new() };
                format!("{name}{}", self.metric.text(self.metric.of(pair)))
            })
            .collect();
        Check { expression: self.text.clone(), holds: !texts.is_empty(), texts }
    }

    fn holds(&self, value: Change) -> bool {
        let change = i128::from(value.b) - i128::from(value.a);
        let (is, asked) = match self.amount {
            Amount::Value(asked) => (i128::from(value.b) * MILLION, asked),
            Amount::By(asked) => (change * MILLION, asked),
            Amount::Percent(asked) => {
                (change * 100 * MILLION, asked.saturating_mul(value.a.unsigned_abs().into()))
            }
        };
        match self.operator {
            Operator::More => is > asked,
            Operator::AtLeast => is >= asked,
            Operator::Less => is < asked,
            Operator::AtMost => is <= asked,
        }
    }
}

fn metric(name: &str) -> Option<Metric> {
    match name {
        // What people mean by the peak is torch.cuda.max_memory_allocated().
        "peak" => return Some(Metric::Band(BandKind::Allocated, When::Peak)),
        "blocks" => return Some(Metric::Blocks),
        "ooms" => return Some(Metric::Ooms),
        "findings" => return Some(Metric::Findings),
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

fn amount_of(text: &str, is_bytes: bool) -> Result<Amount, String> {
    let (sign, rest) = match (text.strip_prefix('+'), text.strip_prefix('-')) {
        (Some(rest), _) => (Some(1), rest),
        (_, Some(rest)) => (Some(-1), rest),
        _ => (None, text),
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, unit) = (millionths(&rest[..digits]), rest[digits..].trim());
    let Some(number) = number else {
        return Err(format!("{text:?} is no amount; expected for instance +2%, -100MiB or 20GiB"));
    };
    let scale = match unit {
        "%" => {
            return match sign {
                Some(sign) => Ok(Amount::Percent(sign * number)),
                None => Err(format!("a percentage is of a change; expected +{rest} or -{rest}")),
            };
        }
        "" => 1,
        _ if !is_bytes => return Err(format!("{unit:?} is of bytes, and this is a count")),
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return Err(format!("{unit:?} is no unit; expected %, B, KiB, MiB, GiB or TiB")),
    };
    let number = number.saturating_mul(scale);
    Ok(match sign {
        Some(sign) => Amount::By(sign * number),
        None => Amount::Value(number),
    })
}

/// A decimal number, to six places.
fn millionths(text: &str) -> Option<i128> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number =
        !whole.is_empty() && part.len() <= 6 && !part.contains('.') && whole.len() <= 20;
    let padded = is_number.then(|| format!("{whole}{part:0<6}"))?;
    padded.parse().ok()
}

impl Metric {
    fn of(self, pair: &Pair) -> Change {
        match self {
            Self::Band(band, when) => {
                let band = pair.band(band);
                match when {
                    When::Start => band.start,
                    When::Peak => band.peak,
                    When::End => band.end,
                }
            }
            Self::Blocks => pair.blocks,
            Self::Ooms => pair.ooms,
            Self::Findings => pair.findings.count,
        }
    }

    /// `allocated_bytes' peak went from 4.00 GiB to 4.13 GiB (+130.0 MiB, +3.2 %)`.
    fn text(self, value: Change) -> String {
        let (what, from, to, by) = match self {
            Self::Band(band, when) => {
                let when = match when {
                    When::Start => "start",
                    When::Peak => "peak",
                    When::End => "end",
                };
                let bytes = |b: i64| Quantity::signed_bytes(b).text;
                let what = format!("{} {when}", band.name());
                (what, bytes(value.a), bytes(value.b), Quantity::change_of_bytes(value.change).text)
            }
            Self::Blocks | Self::Ooms | Self::Findings => {
                let what = match self {
                    Self::Blocks => "blocks at the peak",
                    Self::Ooms => "out-of-memory events",
                    _ => "findings",
                };
                let count = |n: i64| vramscope_units::signed_grouped(n);
                (what.to_owned(), count(value.a), count(value.b), signed_count(value.change))
            }
        };
        match value.change {
            0 => format!("{what}: {to}, as before"),
            _ => format!("{what}: {from} to {to} ({by}, {})", value.percent()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(expression: &str, a: i64, b: i64) -> bool {
        Expression::parse(expression).expect(expression).holds(Change::new(a, b))
    }

    #[test]
    fn percentages_are_of_the_value_before_and_exact() {
        assert!(
            !holds("peak>+2%", 100, 102)
                && holds("peak>+2%", 100, 103)
                && holds("peak>=+2%", 100, 102)
        );
        assert!(!holds("peak>+0.1%", 1000, 1001) && holds("peak>+0.1%", 1000, 1002));
        assert!(
            holds("allocated>+0%", 7, 8)
                && !holds("allocated>+0%", 7, 7)
                && !holds("allocated>+0%", 8, 7)
        );
        // Of nothing every growth is more than any share.
        assert!(holds("peak>+500%", 0, 1) && !holds("peak>+500%", 0, 0));
        assert!(holds("peak<-5%", 100, 94) && !holds("peak<-5%", 100, 95));
        // Beyond what 64 bits hold.
        assert!(!holds("peak>+99999999999999999999%", i64::MAX, i64::MAX));
    }

    #[test]
    fn amounts_are_of_the_change_with_a_sign_and_of_the_value_without() {
        assert!(holds("peak>+1KiB", 0, 1025) && !holds("peak>+1KiB", 1, 1025));
        assert!(holds("reserved > 1.5 KiB", 0, 1537) && !holds("reserved > 1.5KiB", 5000, 1536));
        assert!(holds("requested.end>-10", 100, 95) && !holds("requested.end>-10", 100, 90));
        assert!(holds("ooms>0", 3, 1) && !holds("ooms>0", 3, 0));
        assert!(holds("findings>+0", 1, 2) && !holds("findings>+0", 2, 2));
        assert!(holds("peak<=20GiB", 0, 20 << 30) && !holds("peak<20GiB", 0, 20 << 30));
    }

    #[test]
    fn what_is_meant_is_told() {
        let band = |text: &str| Expression::parse(text).map(|e| e.metric);
        assert_eq!(band("peak>1"), Ok(Metric::Band(BandKind::Allocated, When::Peak)));
        assert_eq!(
            band("requested_bytes.start>1"),
            Ok(Metric::Band(BandKind::Requested, When::Start))
        );
        assert_eq!(band(" blocks > +1 "), Ok(Metric::Blocks));
        for (text, says) in [
            ("peak", "no < or >"),
            ("peek>1", "there is no \"peek\""),
            ("peak.end>1", "there is no \"peak.end\""),
            ("peak>", "no amount"),
            ("peak>1..2", "no amount"),
            ("peak>+2%%", "no unit"),
            ("peak>1GB", "no unit"),
            ("peak>2%", "expected +2%"),
            ("ooms>1MiB", "is a count"),
            ("peak>0.1234567%", "no amount"),
            ("peak>é", "no amount"),
        ] {
            let why = Expression::parse(text).expect_err(text);
            assert!(why.contains(says) && why.contains(text), "{why}");
        }
    }
}
