//! Expressions of `--fail-on`: `peak>+2%` of `vramscope diff`, `peak>20GiB` of `vramscope
//! diagnose`.

mod parse;
mod site;

use crate::card::Card;
use crate::diff::{BytesDiff, CountDiff, Pair, amount, percent};
use crate::peak::BandKind;
use crate::side::Side;
use crate::text::signed_count;
use serde::Serialize;
use site::SiteMetric;
use vramscope_inference::{FindingKind, Severity};
use vramscope_units::{Bytes, signed_grouped};

/// A condition on a pair of snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expression {
    text: String,
    metric: Metric,
    operator: Operator,
    amount: Amount,
}

/// The figure that is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Metric {
    Band(BandKind, When),
    Blocks,
    Ooms,
    /// All findings, or those of a severity.
    Findings(Option<Severity>),
    Site(SiteMetric),
}

/// The figures of a device: of a snapshot, or of a card of an index.
#[derive(Debug)]
pub enum Figures {
    /// Of a snapshot.
    Side(Box<Side>),
    /// Of a card.
    Card(Box<Card>),
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

/// A checked expression and its result on one snapshot or pair.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// The expression as given by the user.
    pub expression: String,
    /// True if the expression holds for any snapshot or pair. The exit code is then 1.
    pub holds: bool,
    /// The values in words, for each snapshot or pair for which the expression holds.
    pub texts: Vec<String>,
    /// The number of call stacks in A and B that a `site:` matches; absent without a `site:`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matching_stacks: Option<usize>,
}

impl Expression {
    /// Parses `METRIC[.start|.peak|.end] > [+|-]AMOUNT` or `site:TEXT blocks|bytes > [+|-]AMOUNT`.
    ///
    /// ```
    /// use vramscope_report::check::Expression;
    ///
    /// assert!(Expression::parse("peak>+2%").is_ok());
    /// assert!(Expression::parse("reserved.end >= 20GiB").is_ok());
    /// assert!(Expression::parse("site:reduce_scatter blocks>2").is_ok());
    /// assert!(Expression::parse("peak>2%").is_err_and(|error| error.contains("+2%")));
    /// ```
    ///
    /// # Errors
    /// The text is not an expression. The error is a message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.trim() == "oom" {
            let text = text.trim().to_owned();
            let amount = Amount::Value(0);
            return Ok(Self { text, metric: Metric::Ooms, operator: Operator::More, amount });
        }
        let error = |what: String| format!("--fail-on '{text}': {what}");
        let is_operator = ['<', '>'];
        // A site may contain these characters, as in `<module>`.
        let at =
            if SiteMetric::is_one(text) { text.rfind(is_operator) } else { text.find(is_operator) };
        let at = at.ok_or_else(|| {
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
        let metric = if SiteMetric::is_one(name) {
            // A limit in bytes needs no word for the figure.
            let is_bytes = amount.trim_end().ends_with('B');
            SiteMetric::parse(name, is_bytes).map(Metric::Site).map_err(error)?
        } else {
            parse::metric(name.trim()).ok_or_else(|| {
                error(format!(
                    "unknown metric {:?}. Expected peak, requested, active, allocated or reserved \
                     (with .start, .peak or .end), blocks, ooms, findings (with .high, .medium or \
                     .low), or site:TEXT with blocks or bytes; or oom alone",
                    name.trim()
                ))
            })?
        };
        let is_bytes = metric.is_bytes();
        let amount = parse::amount(amount.trim(), is_bytes).map_err(error)?;
        Ok(Self { text: text.trim().to_owned(), metric, operator, amount })
    }

    /// Checks the expression on every pair and the sides that it compares.
    pub fn check(&self, pairs: &[Pair], sides: &[(&Side, &Side)]) -> Check {
        let several = pairs.len() > 1;
        let mut texts = Vec::new();
        for (pair, &(a, b)) in pairs.iter().zip(sides) {
            let value = self.metric.of(pair, a, b);
            if self.holds(value) {
                let name = if several { format!("{}: ", pair.name()) } else { String::new() };
                texts.push(format!("{name}{}", self.metric.text(value)));
            }
        }
        let matching_stacks = match &self.metric {
            Metric::Site(site) => {
                Some(sides.iter().map(|&(a, b)| site.matching(a) + site.matching(b)).sum())
            }
            _ => None,
        };
        let expression = self.text.clone();
        Check { expression, holds: !texts.is_empty(), texts, matching_stacks }
    }

    /// Whether the expression is about a change, which needs two snapshots.
    pub fn is_about_change(&self) -> bool {
        !matches!(self.amount, Amount::Value(_))
    }

    /// Checks the expression on each device by itself.
    ///
    /// # Errors
    /// A card of an index lacks the figure. The error is a message for the user.
    pub fn check_each(&self, devices: &[Figures]) -> Result<Check, String> {
        let mut texts = Vec::new();
        for device in devices {
            let (path, value) = match device {
                Figures::Side(side) => (&side.path, self.metric.of_side(side)),
                Figures::Card(card) => {
                    let value = self.metric.of_card(card).map_err(|why| {
                        format!("--fail-on '{}': {why}. Name the snapshots themselves", self.text)
                    });
                    (&card.path, value?)
                }
            };
            if self.holds([value; 2]) {
                let name = if devices.len() > 1 { format!("{path}: ") } else { String::new() };
                let amount = match (self.metric.is_bytes(), u64::try_from(value)) {
                    (true, Ok(bytes)) => Bytes(bytes).to_string(),
                    _ => signed_grouped(value),
                };
                texts.push(format!("{name}{}: {amount}", self.metric.name()));
            }
        }
        let matching_stacks = match &self.metric {
            Metric::Site(site) => {
                let sides = devices.iter().filter_map(|device| match device {
                    Figures::Side(side) => Some(site.matching(side)),
                    Figures::Card(_) => None,
                });
                Some(sides.sum())
            }
            _ => None,
        };
        let expression = self.text.clone();
        Ok(Check { expression, holds: !texts.is_empty(), texts, matching_stacks })
    }

    fn holds(&self, value: [i64; 2]) -> bool {
        let [a, b] = value;
        let change = i128::from(b) - i128::from(a);
        let (actual, limit) = match self.amount {
            Amount::Value(limit) => (i128::from(b) * MILLION, limit),
            Amount::By(limit) => (change * MILLION, limit),
            Amount::Percent(limit) => {
                (change * 100 * MILLION, limit.saturating_mul(a.unsigned_abs().into()))
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
    fn is_bytes(&self) -> bool {
        match self {
            Self::Band(..) => true,
            Self::Site(site) => site.is_bytes(),
            Self::Blocks | Self::Ooms | Self::Findings(_) => false,
        }
    }

    /// The figure in A and in B.
    fn of(&self, pair: &Pair, a: &Side, b: &Side) -> [i64; 2] {
        let count = |of: CountDiff| [of.a.0, of.b.0];
        match self {
            Self::Site(site) => site.of(a, b),
            Self::Band(band, when) => {
                let band = pair.band(*band);
                let BytesDiff { a, b, .. } = match when {
                    When::Start => band.start,
                    When::Peak => band.peak,
                    When::End => band.end,
                };
                [a.0, b.0]
            }
            Self::Blocks => count(pair.blocks),
            Self::Ooms => count(pair.ooms),
            Self::Findings(None) => count(pair.findings.count),
            Self::Findings(Some(_)) => [self.of_side(a), self.of_side(b)],
        }
    }

    /// The figure of one device.
    fn of_side(&self, side: &Side) -> i64 {
        match self {
            Self::Site(site) => site.of(side, side)[0],
            Self::Band(band, when) => {
                let at = BandKind::ALL.iter().position(|kind| kind == band);
                let figures = side.bands[at.unwrap_or_default()];
                match when {
                    When::Start => figures.start,
                    When::Peak => figures.peak,
                    When::End => figures.end,
                }
            }
            Self::Blocks => side.blocks.into(),
            Self::Ooms => side.ooms.into(),
            Self::Findings(severity) => {
                let is_of = |wanted: &Severity, of: Severity| of == *wanted;
                let all = side.findings.iter().map(|finding| finding.record.severity);
                all.filter(|of| severity.as_ref().is_none_or(|wanted| is_of(wanted, *of))).count()
                    as i64
            }
        }
    }

    /// The figure of a card of an index.
    fn of_card(&self, card: &Card) -> Result<i64, String> {
        Ok(match self {
            Self::Site(_) => return Err("an index has no call stacks".to_owned()),
            Self::Band(band, when) => {
                let band = card.band(*band);
                match when {
                    When::Start => band.start.0,
                    When::Peak => band.peak.0,
                    When::End => band.end.0,
                }
            }
            Self::Blocks => card.categories.iter().map(|of| i64::from(of.blocks)).sum(),
            Self::Ooms => card.ooms.len() as i64,
            Self::Findings(None) => (card.findings.len() + card.other_findings.len()) as i64,
            Self::Findings(Some(severity)) => {
                let records = || card.findings.iter().map(|of| &of.record);
                let known = records().filter(|of| of.severity == *severity).count();
                // The others are not worse than the least of these.
                let least = records().max_by_key(|of| of.weight());
                let least = least.filter(|of| of.kind != FindingKind::Oom).map(|of| of.severity);
                match least {
                    _ if card.other_findings.is_empty() => known as i64,
                    Some(least) if least > *severity => known as i64,
                    Some(Severity::Low) => (known + card.other_findings.len()) as i64,
                    _ => {
                        return Err(format!(
                            "the index has {} of the {} findings of {}",
                            card.findings.len(),
                            card.findings.len() + card.other_findings.len(),
                            card.path
                        ));
                    }
                }
            }
        })
    }

    /// The figure in words: `allocated_bytes peak`.
    fn name(&self) -> String {
        match self {
            Self::Band(band, when) => {
                let when = match when {
                    When::Start => "start",
                    When::Peak => "peak",
                    When::End => "end",
                };
                format!("{} {when}", band.name())
            }
            Self::Blocks => "blocks at the peak".to_owned(),
            Self::Ooms => "out-of-memory events".to_owned(),
            Self::Findings(None) => "findings".to_owned(),
            Self::Findings(Some(severity)) => format!("findings of severity {}", severity.name()),
            Self::Site(site) => site.name(),
        }
    }

    /// The change in words: `allocated_bytes peak: 4.00 GiB to 4.13 GiB (+130.0 MiB, +3.2 %)`.
    fn text(&self, [a, b]: [i64; 2]) -> String {
        let what = self.name();
        let [before, after, by] = if self.is_bytes() {
            amount(BytesDiff::new(a, b))
        } else {
            [signed_grouped(a), signed_grouped(b), signed_count(b.saturating_sub(a))]
        };
        if a == b {
            return format!("{what}: {after}, unchanged");
        }
        format!("{what}: {before} to {after} ({by}, {})", percent(a, b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(expression: &str, a: i64, b: i64) -> bool {
        Expression::parse(expression).expect(expression).holds([a, b])
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
        assert!(holds(" oom ", 0, 1) && !holds("oom", 3, 0));
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
        assert_eq!(metric("findings.high>0"), Ok(Metric::Findings(Some(Severity::High))));
        assert_eq!(metric("site:f>2GiB"), metric("site:f bytes>2GiB"));
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
            ("findings.highest>0", "unknown metric"),
            ("site:all_gather>2", "blocks or bytes"),
            ("site: blocks>2", "blocks or bytes"),
            ("site:f blocks>2MiB", "with a count"),
            ("site:f bytes>2%", "+2% or -2%"),
        ] {
            let error = Expression::parse(text).expect_err(text);
            assert!(error.contains(expected) && error.contains(text), "{error}");
        }
    }
}
