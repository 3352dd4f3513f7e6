//! The comparison of two recordings: a worker's side, and the coordinator's answers about both
//! sides.

mod curves;
mod flame;
mod side;
mod stacks;

pub(crate) use side::side;

use crate::messages::views::{
    CompareAnswer, CompareQuery, ComparedStacks, Comparison, ComparisonView,
};
use flame::FlameGraph;
use vramscope_report::diff::{DiffRow, Pair, StackDiff, amount, markdown};

use vramscope_report::side::{Align, Side, SideFinding};
use vramscope_units::{EventIndex, grouped};

/// Call stacks in the Markdown.
const MARKDOWN_STACKS: usize = 20;

/// The two sides that were compared last.
#[derive(Debug)]
pub(crate) struct Compared {
    a: Side,
    b: Side,
    stacks: Vec<StackDiff>,
    /// The call site of each stack, and the frame that distinguishes it from stacks of the same
    /// site.
    names: Vec<[String; 2]>,
    /// The flame graph that was asked for last.
    flame: Option<FlameGraph>,
}

impl Compared {
    /// Answers a query about the compared sides. `CompareQuery::Sides` replaces them.
    pub(crate) fn answer(compared: &mut Option<Box<Self>>, query: &CompareQuery) -> CompareAnswer {
        match query {
            CompareQuery::Sides { a, b } => {
                *compared = Self::new(a, b).map(Box::new);
                CompareAnswer::Comparison(compared.as_ref().map(|c| Box::new(c.comparison())))
            }
            CompareQuery::Stacks { text, group, tree, from, count } => {
                let none = ComparedStacks {
                    total: 0,
                    text: String::new(),
                    from: 0,
                    rows: Vec::new(),
                    groups: Vec::new(),
                };
                let page = match compared {
                    Some(compared) => compared.page(text, group, tree, *from, *count),
                    None => none,
                };
                CompareAnswer::Stacks(page)
            }
            CompareQuery::Markdown => {
                CompareAnswer::Markdown(compared.as_ref().map(|c| c.markdown()))
            }
            CompareQuery::Tree { tree } => {
                let flame = compared.as_mut().map(|c| Box::new(c.flame(tree)));
                CompareAnswer::Tree(flame)
            }
            CompareQuery::Boxes { tree, x0, x1, least } => CompareAnswer::Boxes(
                compared.as_mut().map_or_else(Vec::new, |c| c.boxes(tree, [*x0, *x1], *least)),
            ),
            CompareQuery::Node { tree, node } => {
                let node = compared.as_mut().and_then(|c| c.node(tree, *node));
                CompareAnswer::Node(node.map(Box::new))
            }
            CompareQuery::Tiles { tree, tiles } => CompareAnswer::Tiles(
                compared.as_mut().map_or_else(Vec::new, |c| c.tiles(tree, tiles)),
            ),
            &CompareQuery::Stack { row } => {
                CompareAnswer::Detail(compared.as_ref().and_then(|c| c.detail(row)).map(Box::new))
            }
        }
    }

    /// Compares two sides in JSON; `None` when one cannot be parsed.
    fn new(a: &str, b: &str) -> Option<Self> {
        let (a, b): (Side, Side) = (serde_json::from_str(a).ok()?, serde_json::from_str(b).ok()?);
        let stacks = vramscope_report::diff::stacks(&a, &b);
        let names = stacks::names(&stacks);
        Some(Self { a, b, stacks, names, flame: None })
    }

    /// The comparison for a pull request, with as many call stacks as the program prints.
    fn markdown(&self) -> String {
        let mut pair = Pair::new(&self.a, &self.b);
        let shown = self.stacks.len().min(MARKDOWN_STACKS);
        pair.stacks = Some(self.stacks[..shown].to_vec());
        pair.stacks_left_out = self.stacks.len() - shown;
        markdown::of_pair(self.b.band, &pair)
    }

    fn comparison(&self) -> Comparison {
        let record = Pair::new(&self.a, &self.b);
        let band = self.b.band;
        let peak = record.band(band).peak;
        let [a, b, change] = amount(peak);
        let label = band.name().replace('_', " ");
        let text = match peak.change.0 {
            0 => format!("Peak of {label}: {b} in both"),
            _ => format!("Peak of {label}: {a} → {b} ({change}, {})", peak.percent()),
        };
        let mut totals = record.totals();
        totals.extend(record.recording_totals());
        let categories = record.category_rows();
        let labels = |findings: &[SideFinding]| {
            findings.iter().map(|f| f.record.kind.label().to_owned()).collect()
        };
        let view = ComparisonView {
            text,
            recording: record.recording_rows(),
            totals_unchanged: unchanged(&totals),
            totals,
            categories_unchanged: unchanged(&categories),
            categories,
            curves: [Align::Event, Align::Time, Align::Step]
                .map(|align| curves::curves(&self.a, &self.b, align))
                .into(),
            new_labels: labels(&record.findings.new),
            gone_labels: labels(&record.findings.gone),
        };
        Comparison { record, view }
    }
}

/// An event as a place in the window.
fn place(event: i64) -> String {
    match u32::try_from(event) {
        Ok(event) => EventIndex(event).to_string(),
        Err(_) => "before the window".to_owned(),
    }
}

/// The number of rows without a change in words.
fn unchanged(rows: &[DiffRow]) -> String {
    match rows.iter().filter(|row| row.is_unchanged()).count() {
        0 => String::new(),
        count => format!("{} unchanged", grouped(count as u64)),
    }
}
