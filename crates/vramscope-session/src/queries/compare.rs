//! Two recordings beside each other: what a worker gives of its own, and what the coordinator says
//! of both.

use super::card::category_label;
use super::minimap::{columns, outline};
use super::range::card;
use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{Series, Steps};
use vramscope_layout::{Axis, AxisKind};
use vramscope_protocol::views::{
    COMPARED, CompareAnswer, CompareQuery, ComparedCurves, ComparedFinding, ComparedRow,
    ComparedStack, ComparedStacks, Comparison, DetailCard, PlaceMark,
};
use vramscope_protocol::{DetailRow, FrameRow, StackDetail};
use vramscope_report::Target;
use vramscope_report::diff::{Change, Pair, StackDiff, stacks};
use vramscope_report::disambiguate::distinguishing_frames;
use vramscope_report::finding_text;
use vramscope_report::peak::BandKind;
use vramscope_report::side::{Align, Side, SideCurve, SideFinding};
use vramscope_report::{Quantity, text};
use vramscope_units::{Bytes, EventIndex, Tick, byte_ticks, event_ticks, grouped, time_ticks};

/// Columns of a curve: what two of them are compared by on a wide screen.
const COLUMNS: u32 = COMPARED[0] / 2;

/// What another worker needs to compare with this device, as JSON.
pub(crate) async fn side(at: Target<'_>, band: BandKind, budget: &mut Budget) -> String {
    let series = band.series_sliced(at, budget).await;
    let mut side = Side::sliced(at, band, budget).await;
    side.curves.extend(along(at, AxisKind::Event, Align::Event, &series, budget).await);
    side.curves.extend(along(at, AxisKind::Time, Align::Time, &series, budget).await);
    side.curves.extend(by_step(at, &series, budget).await);
    // Of texts and numbers alone there is always JSON.
    serde_json::to_string(&side).unwrap_or_default()
}

async fn along(
    at: Target<'_>,
    kind: AxisKind,
    align: Align,
    series: &Series,
    budget: &mut Budget,
) -> Option<SideCurve> {
    let axis = Axis::new(at.trace(), kind)?;
    let (origin, extent) = (axis.origin() as f64, axis.extent() as f64);
    Some(SideCurve {
        align,
        from: -origin,
        to: extent - origin,
        tops: columns(axis, series, COLUMNS, budget).await,
    })
}

/// Every step is as wide as the others, and so is what is before the first and after the last.
async fn by_step(at: Target<'_>, series: &Series, budget: &mut Budget) -> Option<SideCurve> {
    let steps = Steps::sliced(at.snapshot(), at.trace(), budget).await?;
    let (first, last) = (*steps.begins.first()?, *steps.begins.last()?);
    let end = series.len() as u32;
    let before = (first > 0).then_some(0);
    let after = (last + 1 < end).then_some(end.saturating_sub(1));
    let edges: Vec<u32> =
        before.into_iter().chain(steps.begins.iter().copied()).chain(after).collect();
    let from = if before.is_some() { -1.0 } else { 0.0 };
    let parts = edges.len() - 1;
    let slot = |column: u32| {
        let place = f64::from(column) * parts as f64 / f64::from(COLUMNS);
        let part = (place as usize).min(parts - 1);
        let (low, high) = (f64::from(edges[part]), f64::from(edges[part + 1]));
        (low + (high - low) * (place - part as f64)) as u32
    };
    let mut tops = Vec::with_capacity(COLUMNS as usize);
    for column in 0..COLUMNS {
        let slots = slot(column)..slot(column + 1).max(slot(column)) + 1;
        let (_, top) = series.largest_sliced(slots, budget).await.unwrap_or_default();
        tops.push(top);
    }
    Some(SideCurve { align: Align::Step, from, to: from + parts as f64, tops })
}

/// The two sides that were compared last.
#[derive(Debug)]
pub(crate) struct Compared {
    a: Side,
    b: Side,
    stacks: Vec<StackDiff>,
    /// What each stack is called, and where it parts from others that are called so.
    names: Vec<[String; 2]>,
}

impl Compared {
    /// The answer to a question about the sides that `kept` are.
    pub(crate) fn answer(kept: &mut Option<Box<Self>>, query: &CompareQuery) -> CompareAnswer {
        match query {
            CompareQuery::Sides { a, b } => {
                *kept = Self::new(a, b).map(Box::new);
                CompareAnswer::Comparison(kept.as_ref().map(|c| Box::new(c.comparison())))
            }
            CompareQuery::Stacks { text, from, count } => {
                let none =
                    ComparedStacks { total: 0, text: String::new(), from: 0, rows: Vec::new() };
                CompareAnswer::Stacks(kept.as_ref().map_or(none, |c| c.page(text, *from, *count)))
            }
            &CompareQuery::Stack { row } => {
                CompareAnswer::Detail(kept.as_ref().and_then(|c| c.detail(row)).map(Box::new))
            }
        }
    }

    fn new(a: &str, b: &str) -> Option<Self> {
        let (a, b): (Side, Side) = (serde_json::from_str(a).ok()?, serde_json::from_str(b).ok()?);
        let stacks = stacks(&a, &b);
        let names = names(&stacks);
        Some(Self { a, b, stacks, names })
    }

    fn comparison(&self) -> Comparison {
        let pair = Pair::new(&self.a, &self.b);
        let band = self.b.band;
        let peak = pair.band(band).peak;
        let (a, b) = (Quantity::signed_bytes(peak.a).text, Quantity::signed_bytes(peak.b).text);
        let label = band.name().replace('_', " ");
        let text = match peak.change {
            0 => format!("{label} peak at {b} in both"),
            by => format!(
                "{label} peak at {a} in A, at {b} in B: {}, {}",
                Quantity::change_of_bytes(by).text,
                peak.percent()
            ),
        };
        let place = |event: i64| match u32::try_from(event) {
            Ok(event) => EventIndex(event).to_string(),
            Err(_) => "before the window".to_owned(),
        };
        let finding = |is_new: bool, f: &SideFinding| ComparedFinding {
            is_new,
            label: finding_text::label(f.kind).to_owned(),
            text: f.text.clone(),
            bytes: Quantity::bytes(Bytes(f.bytes)),
        };
        let new = pair.findings.new.iter().map(|f| finding(true, f));
        Comparison {
            text,
            peaks: [place(self.a.event), place(self.b.event)],
            totals: totals(&pair),
            categories: pair
                .categories
                .iter()
                .map(|c| {
                    let label = category_label(c.category).to_owned();
                    bytes_row(c.category.name().to_owned(), label, c.bytes)
                })
                .collect(),
            curves: [Align::Event, Align::Time, Align::Step].map(|align| self.curves(align)).into(),
            findings: new.chain(pair.findings.gone.iter().map(|f| finding(false, f))).collect(),
        }
    }

    /// Both curves in one box: x from where the first begins to where the last ends, y to the
    /// higher peak.
    fn curves(&self, align: Align) -> ComparedCurves {
        let of = |side: &'_ Side| side.curves.iter().find(|c| c.align == align).cloned();
        let (Some(a), Some(b)) = (of(&self.a), of(&self.b)) else {
            let without = match (of(&self.a), of(&self.b)) {
                (None, None) => "neither",
                (None, _) => "A",
                _ => "B",
            };
            let missing = match (align, without) {
                (Align::Time, "neither") => "Neither recording has times".to_owned(),
                (Align::Time, side) => format!("{side} was recorded without times"),
                (Align::Step, "neither") => "No training steps were found in either".to_owned(),
                (_, side) => format!("No training steps were found in {side}"),
            };
            return ComparedCurves {
                align,
                missing,
                a: String::new(),
                b: String::new(),
                x: Vec::new(),
                y: Vec::new(),
            };
        };
        let (from, to) = (a.from.min(b.from), a.to.max(b.to));
        let length = (to - from).max(f64::MIN_POSITIVE);
        let top = a.tops.iter().chain(&b.tops).copied().max().unwrap_or(0);
        // Headroom, so that the line along the top is seen whole.
        let scale = top.saturating_add(top / 24).max(1);
        let path = |curve: &SideCurve| {
            let tenths =
                |x: f64| ((x - from) / length * f64::from(COMPARED[0]) * 10.0).round() as u32;
            outline(&curve.tops, [tenths(curve.from), tenths(curve.to)], COMPARED[1], scale)
        };
        let marks = |ticks: Vec<Tick>, low: f64, length: f64| -> Vec<PlaceMark> {
            let mark = |t: Tick| PlaceMark { at: (t.value - low) / length, text: t.text };
            ticks.into_iter().map(mark).collect()
        };
        let x = match align {
            Align::Event => event_ticks(from.max(0.0), to, 8),
            Align::Time => time_ticks(from.max(0.0), to, 8),
            Align::Step => {
                let step = |t: Tick| Tick {
                    text: format!("step {}", t.text.trim_start_matches('#')),
                    ..t
                };
                event_ticks(from.max(0.0), to, 8).into_iter().map(step).collect()
            }
        };
        ComparedCurves {
            align,
            missing: String::new(),
            a: path(&a),
            b: path(&b),
            x: marks(x, from, length),
            y: marks(byte_ticks(0.0, scale as f64, 4), 0.0, scale as f64),
        }
    }

    fn page(&self, text: &str, from: u32, count: u32) -> ComparedStacks {
        let wanted = text.trim().to_lowercase();
        let has = |of: &str| of.to_lowercase().contains(&wanted);
        let is_wanted = |i: &usize| {
            let (s, [site, via]) = (&self.stacks[*i], &self.names[*i]);
            let category = s.category.is_some_and(|category| has(category.name()));
            let words = category || has(&s.site) || has(site) || has(via);
            wanted.is_empty() || words || s.frames.iter().any(|f| has(&f.name) || has(&f.file))
        };
        let found: Vec<usize> = (0..self.stacks.len()).filter(is_wanted).collect();
        let change =
            found.iter().fold(0i64, |sum, &i| sum.saturating_add(self.stacks[i].bytes.change));
        let (some, all) = (
            grouped(found.len() as u64),
            Quantity::count(self.stacks.len() as u64, "call stack", "call stacks"),
        );
        let of_all = if wanted.is_empty() { all.exact } else { format!("{some} of {}", all.exact) };
        let largest = self.stacks.first().map_or(0, |s| s.bytes.change.unsigned_abs()).max(1);
        let row = |&i: &usize| {
            let (stack, [site, via]) = (&self.stacks[i], &self.names[i]);
            ComparedStack {
                row: i as u32,
                site: site.clone(),
                via: via.clone(),
                category: stack.category.map(|c| c.name().to_owned()).unwrap_or_default(),
                a: Quantity::signed_bytes(stack.bytes.a),
                b: Quantity::signed_bytes(stack.bytes.b),
                change: Quantity::change_of_bytes(stack.bytes.change),
                share: stack.bytes.change as f64 / largest as f64,
                blocks: count_change(stack.blocks.change),
                note: note(stack).to_owned(),
            }
        };
        ComparedStacks {
            total: found.len() as u32,
            text: format!("{of_all}, {}", Quantity::change_of_bytes(change).text),
            from,
            rows: found.iter().skip(from as usize).take(count as usize).map(row).collect(),
        }
    }

    fn detail(&self, row: u32) -> Option<DetailCard> {
        let stack = self.stacks.get(row as usize)?;
        let line = |key: &str, label: &str, text: String, raw: i64| DetailRow {
            key: key.to_owned(),
            label: label.to_owned(),
            text,
            raw: Some(raw.to_string()),
        };
        let (bytes, blocks) = (stack.bytes, stack.blocks);
        let counts = |n: i64| Quantity::count(n.unsigned_abs(), "block", "blocks").exact;
        let held = |bytes: i64, blocks: i64| {
            format!("{}, {}", Quantity::signed_bytes(bytes).exact, counts(blocks))
        };
        let mut rows = vec![
            line("a", "in A", held(bytes.a, blocks.a), bytes.a),
            line("b", "in B", held(bytes.b, blocks.b), bytes.b),
            line("percent", "in percent", bytes.percent(), bytes.change),
        ];
        let words = [
            ("category", "category", stack.category.map(|c| c.name().to_owned())),
            ("matched", "frames", matched(stack)),
        ];
        rows.extend(words.into_iter().filter_map(|(key, label, text)| {
            Some(DetailRow { key: key.to_owned(), label: label.to_owned(), text: text?, raw: None })
        }));
        let frame = |f: &vramscope_report::FrameRecord<'_>| FrameRow {
            name: f.name.to_string(),
            file: f.file.to_string(),
            line: f.line,
            place: text::place(&f.file, f.line),
            framework: f.is_framework(),
        };
        let note = match (stack.frames.is_empty(), stack.of_free) {
            (true, _) => Some("No call stack was recorded for these blocks.".to_owned()),
            (_, true) => {
                Some("This is the stack of the free: the alloc is not in the trace.".to_owned())
            }
            _ => None,
        };
        let mut card =
            card("Change", Quantity::change_of_bytes(bytes.change), rows, "", Vec::new());
        let line = |f: &vramscope_report::FrameRecord<'_>| {
            format!("  {}  {}:{}\n", f.name, f.file, f.line)
        };
        card.copy.extend(stack.frames.iter().map(line));
        card.stack = Some(StackDetail { frames: stack.frames.iter().map(frame).collect(), note });
        Some(card)
    }
}

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

fn count_change(n: i64) -> Quantity {
    let text = text::signed_count(n);
    Quantity { value: n.into(), exact: text.clone(), text }
}

fn note(stack: &StackDiff) -> &'static str {
    match (stack.matched, stack.of_free) {
        ("only_a", _) => "only in A",
        ("only_b", _) => "only in B",
        (_, true) => "the stack of the free",
        ("moved", _) => "other lines",
        _ => "",
    }
}

fn matched(stack: &StackDiff) -> Option<String> {
    let text = match stack.matched {
        "only_a" => "only in A",
        "only_b" => "only in B",
        "moved" => "the same functions; lines or folders differ. These are those of B",
        _ => return None,
    };
    Some(text.to_owned())
}

/// The call site of each stack, and the frame that distinguishes it from stacks of the same site.
fn names(stacks: &[StackDiff]) -> Vec<[String; 2]> {
    let keys: Vec<_> = stacks.iter().map(|stack| (stack.site.as_str(), &*stack.frames)).collect();
    let via = |frame: Option<&vramscope_report::FrameRecord<'_>>| {
        frame.map_or_else(String::new, vramscope_report::FrameRecord::label)
    };
    let sites = stacks.iter().map(|stack| stack.site.clone());
    sites.zip(distinguishing_frames(&keys).into_iter().map(via)).map(<[String; 2]>::from).collect()
}
