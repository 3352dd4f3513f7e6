//! The comparison of two recordings: a worker's side, and the coordinator's answers about both
//! sides.

mod curves;
mod flame;
mod side;
mod stacks;

pub(crate) use side::side;

use super::shares::category_label;
use flame::FlameGraph;
use stacks::count_change;
use vramscope_protocol::views::{
    CompareAnswer, CompareQuery, ComparedFinding, ComparedRow, ComparedSetting, ComparedStacks,
    Comparison,
};
use vramscope_report::Quantity;
use vramscope_report::diff::{CategoryDiff, Change, Pair, StackDiff, markdown};
use vramscope_report::finding_text;
use vramscope_report::peak::BandKind;
use vramscope_report::side::{Align, Side, SideFinding};
use vramscope_units::{Bytes, EventIndex, grouped};

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
        let pair = Pair::new(&self.a, &self.b);
        let band = self.b.band;
        let peak = pair.band(band).peak;
        let (a, b) = (Quantity::signed_bytes(peak.a).text, Quantity::signed_bytes(peak.b).text);
        let label = band.name().replace('_', " ");
        let text = match peak.change {
            0 => format!("Peak of {label}: {b} in both"),
            change => format!(
                "Peak of {label}: {a} → {b} ({}, {})",
                Quantity::change_of_bytes(change).text,
                peak.percent()
            ),
        };
        let finding = |is_new: bool, f: &SideFinding| ComparedFinding {
            is_new,
            label: finding_text::label(f.kind).to_owned(),
            title: f.title.clone(),
            text: f.text.clone(),
            bytes: Quantity::bytes(Bytes(f.bytes)),
        };
        let totals = totals(&pair);
        let category = |c: &CategoryDiff| {
            let label = category_label(c.category).to_owned();
            bytes_row(c.category.name().to_owned(), label, c.bytes)
        };
        let categories: Vec<ComparedRow> = pair.categories.iter().map(category).collect();
        let new = pair.findings.new.iter().map(|f| finding(true, f));
        Comparison {
            text,
            recording: pair
                .recording_rows()
                .into_iter()
                .map(|[name, a, b]| ComparedSetting { name, a, b })
                .collect(),
            causes: pair.causes.clone(),
            peaks: [place(self.a.event), place(self.b.event)],
            totals_unchanged: unchanged(&totals),
            totals,
            categories_unchanged: unchanged(&categories),
            categories,
            curves: [Align::Event, Align::Time, Align::Step]
                .map(|align| curves::curves(&self.a, &self.b, align))
                .into(),
            findings: new.chain(pair.findings.gone.iter().map(|f| finding(false, f))).collect(),
        }
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
fn unchanged(rows: &[ComparedRow]) -> String {
    match rows.iter().filter(|row| row.change.value == 0).count() {
        0 => String::new(),
        count => format!("{} unchanged", grouped(count as u64)),
    }
}

/// The totals of all bands, then counts.
fn totals(pair: &Pair) -> Vec<ComparedRow> {
    let mut rows = Vec::new();
    for kind in BandKind::ALL {
        let band = pair.band(kind);
        let name = kind.name().trim_end_matches("_bytes");
        let estimate = if band.exactness == "exact" { "" } else { " (estimate)" };
        let key = |when: &str| format!("{}.{when}", kind.name());
        rows.push(bytes_row(key("peak"), format!("{name} peak{estimate}"), band.peak));
        if band.start.a != 0 || band.start.b != 0 {
            rows.push(bytes_row(key("start"), format!("{name} start"), band.start));
        }
        rows.push(bytes_row(key("end"), format!("{name} end"), band.end));
    }
    let counted = |key: &str, label: &str, change: Change| ComparedRow {
        key: key.to_owned(),
        label: label.to_owned(),
        a: Quantity::count(change.a.unsigned_abs(), "", ""),
        b: Quantity::count(change.b.unsigned_abs(), "", ""),
        change: count_change(change.change),
        percent: change.percent(),
    };
    rows.push(counted("blocks", "blocks at the peak", pair.blocks));
    rows.push(counted("ooms", "out-of-memory events", pair.ooms));
    rows.push(counted("findings", "findings", pair.findings.count));
    if (pair.steps.a, pair.steps.b) != (0, 0) {
        rows.push(counted("steps", "whole training steps", pair.steps));
    }
    let inputs = pair.tokens.map(|tokens| tokens.input_bytes_per_step);
    let row = |bytes| bytes_row("input_bytes_per_step".to_owned(), "input per step".into(), bytes);
    rows.extend(inputs.map(row));
    rows
}

fn bytes_row(key: String, label: String, change: Change) -> ComparedRow {
    ComparedRow {
        key,
        label,
        a: Quantity::signed_bytes(change.a),
        b: Quantity::signed_bytes(change.b),
        change: Quantity::change_of_bytes(change.change),
        percent: change.percent(),
    }
}
