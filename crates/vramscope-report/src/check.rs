//! Expressions of `vramscope diff --fail-on`, such as `peak>+2%`.

mod parse;

use crate::Quantity;
use crate::diff::{Change, Pair};
use crate::peak::BandKind;
use crate::text::signed_count;
use serde::Serialize;

/// A condition on a pair of snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    text: String,
    metric: Metric,
    operator: Operator,
    amount: Amount,
}

/// The figure that is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Metric {
    Band(BandKind, When),
    Blocks,
    Ooms,
    Findings,
}

/// The position in the window at which a band is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Start,
    Peak,
    End,
}

/// `>`, `>=`, `<` or `<=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    More,
    AtLeast,
    Less,
    AtMost,
}

/// The limit, in millionths, so that `0.1%` and `1.5GiB` are exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    /// An absolute value in `b`.
    Value(i128),
    /// A change from `a` to `b`.
    By(i128),
    /// A change in percent of the value in `a`.
    Percent(i128),
}

const MILLION: i128 = 1_000_000;

/// A checked expression and its result.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The expression as given by the user.
    pub expression: String,
    /// True if the expression holds for any pair. The exit code is then 1.
    pub holds: bool,
    /// The values in words, for each pair for which the expression holds.
    pub texts: Vec<String>,
}

impl Expression {
    /// Parses `METRIC[.start|.peak|.end] > [+|-]AMOUNT`.
    ///
    /// ```
    /// use vramscope_report::check::Expression;
    ///
    /// assert!(Expression::parse("peak>+2%").is_ok());
    /// assert!(Expression::parse("reserved.end >= 20GiB").is_ok());
    /// assert!(Expression::parse("peak>2%").is_err_and(|error| error.contains("+2%")));
    /// ```
    ///
    /// # Errors
    /// The text is not an expression. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        let error = |what: String| format!("--fail-on '{text}': {what}");
        let at = text.find(['<', '>']).ok_or_else(|| {
            error(
                "no < or > found. Example: 'peak>+2%' (in quotes, because > is special in shells)"
                    .to_owned(),
            )
        })?;
        let (name, rest) = text.split_at(at);
        let (operator, amount) =
            match (rest.strip_prefix(">="), rest.strip_prefix("<="), rest.strip_prefix('>')) {
                (Some(amount), ..) => (Operator::AtLeast, amount),
                (_, Some(amount), _) => (Operator::AtMost, amount),
                (.., Some(amount)) => (Operator::More, amount),
                _ => (Operator::Less, &rest[1..]),
            };
        let metric = parse::metric(name.trim()).ok_or_else(|| {
            error(format!(
                "unknown metric {:?}. Expected peak, requested, active, allocated or reserved \
                 (with .start, .peak or .end), blocks, ooms or findings",
                name.trim()
            ))
        })?;
        let is_bytes = matches!(metric, Metric::Band(..));
        let amount = parse::amount(amount.trim(), is_bytes).map_err(error)?;
        Ok(Self { text: text.trim().to_owned(), metric, operator, amount })
    }

    /// Checks the expression on every pair.
    pub fn check(&self, pairs: &[Pair]) -> Check {
        let several = pairs.len() > 1;
        let holding = pairs.iter().filter(|pair| self.holds(self.metric.of(pair)));
        let texts: Vec<String> = holding
            .map(|pair| {
                let name = if several { format!("{}: ", pair.name()) } else { String::new() };
                format!("{name}{}", self.metric.text(self.metric.of(pair)))
            })
            .collect();
        Check { expression: self.text.clone(), holds: !texts.is_empty(), texts }
    }

    fn holds(&self, value: Change) -> bool {
        let change = i128::from(value.b) - i128::from(value.a);
        let (actual, limit) = match self.amount {
            Amount::Value(limit) => (i128::from(value.b) * MILLION, limit),
            Amount::By(limit) => (change * MILLION, limit),
            Amount::Percent(limit) => {
                (change * 100 * MILLION, limit.saturating_mul(value.a.unsigned_abs().into()))
            }
        };
        match self.operator {
            Operator::More => actual > limit,
            Operator::AtLeast => actual >= limit,
            Operator::Less => actual < limit,
            Operator::AtMost => actual <= limit,
        }
    }
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

    /// The change in words: `allocated_bytes peak: 4.00 GiB to 4.13 GiB (+130.0 MiB, +3.2 %)`.
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
            0 => format!("{what}: {to}, unchanged"),
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
    fn percentages_are_exact_and_relative_to_a() {
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
        // Any growth from zero exceeds any percentage.
        assert!(holds("peak>+500%", 0, 1) && !holds("peak>+500%", 0, 0));
        assert!(holds("peak<-5%", 100, 94) && !holds("peak<-5%", 100, 95));
        // The limit exceeds 64 bits.
        assert!(!holds("peak>+99999999999999999999%", i64::MAX, i64::MAX));
    }

    #[test]
    fn signed_amounts_limit_the_change_and_unsigned_ones_the_value() {
        assert!(holds("peak>+1KiB", 0, 1025) && !holds("peak>+1KiB", 1, 1025));
        assert!(holds("reserved > 1.5 KiB", 0, 1537) && !holds("reserved > 1.5KiB", 5000, 1536));
        assert!(holds("requested.end>-10", 100, 95) && !holds("requested.end>-10", 100, 90));
        assert!(holds("ooms>0", 3, 1) && !holds("ooms>0", 3, 0));
        assert!(holds("findings>+0", 1, 2) && !holds("findings>+0", 2, 2));
        assert!(holds("peak<=20GiB", 0, 20 << 30) && !holds("peak<20GiB", 0, 20 << 30));
    }

    #[test]
    fn parse_reads_metrics_and_explains_errors() {
        let metric = |text: &str| Expression::parse(text).map(|e| e.metric);
        assert_eq!(metric("peak>1"), Ok(Metric::Band(BandKind::Allocated, When::Peak)));
        assert_eq!(
            metric("requested_bytes.start>1"),
            Ok(Metric::Band(BandKind::Requested, When::Start))
        );
        assert_eq!(metric(" blocks > +1 "), Ok(Metric::Blocks));
        for (text, expected) in [
            ("peak", "no < or >"),
            ("peek>1", "unknown metric \"peek\""),
            ("peak.end>1", "unknown metric \"peak.end\""),
            ("peak>", "not an amount"),
            ("peak>1..2", "not an amount"),
            ("peak>+2%%", "unknown unit"),
            ("peak>1GB", "unknown unit"),
            ("peak>2%", "+2% or -2%"),
            ("ooms>1MiB", "with a count"),
            ("peak>0.1234567%", "not an amount"),
            ("peak>é", "not an amount"),
        ] {
            let error = Expression::parse(text).expect_err(text);
            assert!(error.contains(expected) && error.contains(text), "{error}");
        }
    }
}
