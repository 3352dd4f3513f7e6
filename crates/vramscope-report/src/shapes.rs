//! `vramscope peak --by shape`: which shapes the tensors have, as recorded or as far as sizes tell.

mod config;
mod legend;
mod of_block;
mod recorded;

pub use config::{widths_of_config, widths_of_text};
pub use legend::LegendEntry;
pub use of_block::{BlockShape, BlockShapes, ShapeTable};
pub use recorded::ShapeSource;

use legend::Legend;
use recorded::recorded_shape;

use crate::{Target, event_of, rank_of, row_site, slot_of};
use serde::Serialize;
use std::cmp::Reverse;
use vramscope_inference::{Category, Dims, NoShapes, Shape, Shapes, Widths};
use vramscope_trace::group_by_key;
use vramscope_units::{Bytes, grouped};

/// `vramscope.peak-shape/1`.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShapesReport<'a> {
    /// The schema's name and version.
    pub schema: &'static str,
    /// The file's path.
    pub path: &'a str,
    /// The rank in the path; null if there is none.
    pub rank: Option<u32>,
    /// The device's ordinal.
    pub device: u32,
    /// The event of the moment: by default the first after which `requested_bytes` peaks; -1 is the
    /// state before the window.
    pub event: i64,
    /// `requested_bytes` after it.
    pub bytes: u64,
    /// The dimensions of the model; two readings where sizes do not tell the size of elements.
    /// Empty if sizes tell none.
    pub dims: Vec<DimsRecord>,
    /// Whether the user gave the dimensions.
    pub given: bool,
    /// Tokens of the live activations, batch x sequence; null if no input fits them.
    pub tokens: Option<u64>,
    /// Short names of dimensions, as `symbols` of shapes have them. Empty if there are no
    /// dimensions, or readings with different widths.
    pub legend: Vec<LegendEntry>,
    /// Why there are no shapes; null if there are.
    pub refused: Option<String>,
    /// Bytes of blocks with one shape that fits, or with a recorded one.
    pub shaped_bytes: u64,
    /// Bytes of blocks with a recorded shape, which are part of `shaped_bytes`.
    pub recorded_bytes: u64,
    /// Bytes of blocks with several shapes that fit, or with one that is in doubt.
    pub doubtful_bytes: u64,
    /// Bytes of blocks without a shape.
    pub other_bytes: u64,
    /// Blocks by category, call site and shape, most bytes first.
    pub rows: Vec<ShapeRow>,
    /// The number of rows left out by `--limit`; absent if none are.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: usize,
    /// Blocks with one shape, by shape, most bytes first.
    pub by_shape: Vec<ShapeSum>,
    /// What follows, in sentences.
    pub text: Vec<String>,
}

/// Dimensions of a model.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DimsRecord {
    /// Bytes of an element of the parameters.
    pub element_bytes: u64,
    /// The width that most parameters have, in elements.
    pub hidden: u64,
    /// All widths, ascending, with `hidden`.
    pub widths: Vec<u64>,
    /// The number of ranks that share each parameter.
    pub ranks: u64,
}

/// A shape.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShapeRecord {
    /// Dimensions. Of two widths the larger comes first: their order does not show in a size.
    pub dims: Vec<u64>,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// `[4,096, 1,536] of 4 bytes`.
    pub text: String,
    /// The dimensions by the names of the legend: `[N, 4h]`; absent without a legend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symbols: Option<String>,
}

/// Blocks of one category, call site and shape.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShapeRow {
    /// The category.
    pub category: &'static str,
    /// The call site.
    pub site: String,
    /// The shapes that fit; empty if none does.
    pub shapes: Vec<ShapeRecord>,
    /// Whether no other shape is plausible.
    pub is_certain: bool,
    /// What tells the shapes; null if none fits.
    pub source: Option<ShapeSource>,
    /// Blocks.
    pub blocks: u32,
    /// Requested bytes.
    pub bytes: u64,
}

/// Blocks of one shape.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShapeSum {
    /// The shape.
    pub shape: ShapeRecord,
    /// Blocks.
    pub blocks: u32,
    /// Requested bytes.
    pub bytes: u64,
}

/// serde demands a reference.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The shapes of the blocks that are live at the peak of `requested_bytes`.
pub fn shapes(target: Target<'_>, limit: Option<usize>) -> ShapesReport<'_> {
    shapes_at(target, slot_of(target.trace().requested_band.peak_event), limit)
}

/// The shapes of the blocks that are live in a slot.
pub fn shapes_at(target: Target<'_>, slot: u32, limit: Option<usize>) -> ShapesReport<'_> {
    shapes_with(target, target.entry.dims(target.index), slot, limit)
}

/// The dimensions of a device's model and data, if they are derived: `N = 4,096 tokens`.
pub fn legend_texts(target: Target<'_>) -> Vec<String> {
    let dims = target.entry.known_dims(target.index);
    let legend = dims.map(|dims| Legend::new(dims).into_entries()).unwrap_or_default();
    legend.into_iter().map(|entry| entry.text).collect()
}

/// The same with these dimensions.
fn shapes_with<'a>(
    target: Target<'a>,
    found: &Result<Dims, NoShapes>,
    slot: u32,
    limit: Option<usize>,
) -> ShapesReport<'a> {
    let (trace, snapshot) = (target.trace(), target.snapshot());
    let categories = target.entry.categories(target.index);
    let legend = found.as_ref().map_or_else(|_| Legend::default(), Legend::new);
    // Blocks of one size and stack have one answer.
    let mut alike = Vec::new();
    for (index, block) in (0u32..).zip(&trace.blocks) {
        if block.is_live_at(slot) {
            let category = categories.get(index).category;
            let recorded = recorded_shape(target, index, block.bytes.0);
            let no_stack = trace.no_stack(block);
            alike.push(((category, block.stack, no_stack, block.bytes.0, recorded), ()));
        }
    }
    let blocks =
        group_by_key(alike).into_iter().map(|((category, stack, no_stack, bytes, told), of)| {
            let (shapes, source) = match told {
                Some((shape, source)) => {
                    (Shapes { shapes: vec![shape], is_certain: true }, Some(source))
                }
                None => {
                    let dims = found.as_ref();
                    let shapes = dims.map(|dims| dims.shapes(snapshot, bytes, category, stack));
                    let shapes = shapes.unwrap_or_default();
                    let source = (!shapes.shapes.is_empty()).then_some(ShapeSource::Size);
                    (shapes, source)
                }
            };
            let site = target.entry.sites.same_line(stack);
            ((category, site, no_stack, shapes, source), (bytes, of.len() as u64))
        });
    let row = |((category, stack, no_stack, shapes, source), sizes): (
        (Category, _, _, Shapes, _),
        Vec<(u64, u64)>,
    )| ShapeRow {
        category: category.name(),
        site: row_site(target.entry, stack, no_stack),
        shapes: shapes.shapes.iter().map(|shape| record(shape, &legend)).collect(),
        is_certain: shapes.is_certain,
        source,
        blocks: sizes.iter().map(|size| size.1).sum::<u64>() as u32,
        bytes: sizes.iter().fold(0, |sum, size| sum.saturating_add(size.0.saturating_mul(size.1))),
    };
    let mut rows: Vec<ShapeRow> = group_by_key(blocks.collect()).into_iter().map(row).collect();
    rows.sort_by_key(|row| Reverse(row.bytes));
    let sum = |wanted: &dyn Fn(&ShapeRow) -> bool| {
        rows.iter().filter(|row| wanted(row)).map(|row| row.bytes).sum::<u64>()
    };
    let shaped_bytes = sum(&|row| row.is_certain);
    let doubtful_bytes = sum(&|row| !row.is_certain && !row.shapes.is_empty());
    let other_bytes = sum(&|row| row.shapes.is_empty());
    let is_recorded = |row: &ShapeRow| row.source.is_some_and(|of| of != ShapeSource::Size);
    let recorded_bytes = sum(&is_recorded);
    let by_shape = by_shape(&rows);
    let omitted = rows.len().saturating_sub(limit.unwrap_or(usize::MAX));
    rows.truncate(rows.len() - omitted);
    let mut report = ShapesReport {
        schema: "vramscope.peak-shape/1",
        path: target.path,
        rank: rank_of(target.path),
        device: target.device(),
        event: event_of(slot),
        bytes: shaped_bytes.saturating_add(doubtful_bytes).saturating_add(other_bytes),
        dims: found.as_ref().map_or(Vec::new(), |dims| dims.widths.iter().map(dims_of).collect()),
        given: target.entry.given_widths().is_some(),
        tokens: found.as_ref().ok().and_then(|dims| dims.tokens),
        legend: legend.into_entries(),
        refused: found.as_ref().err().map(|why| refusal(*why)),
        shaped_bytes,
        recorded_bytes,
        doubtful_bytes,
        other_bytes,
        rows,
        omitted,
        by_shape,
        text: Vec::new(),
    };
    report.text = sentences(&report);
    report
}

fn dims_of(widths: &Widths) -> DimsRecord {
    DimsRecord {
        element_bytes: widths.element_bytes,
        hidden: widths.hidden,
        widths: widths.all.clone(),
        ranks: widths.ranks,
    }
}

fn record(shape: &Shape, legend: &Legend) -> ShapeRecord {
    let dims: Vec<String> = shape.dims.iter().map(|&dim| grouped(dim)).collect();
    ShapeRecord {
        dims: shape.dims.clone(),
        element_bytes: shape.element_bytes,
        text: match shape.element_bytes {
            1 => format!("[{}] of 1 byte", dims.join(", ")),
            bytes => format!("[{}] of {bytes} bytes", dims.join(", ")),
        },
        symbols: legend.symbols(&shape.dims),
    }
}

fn by_shape(rows: &[ShapeRow]) -> Vec<ShapeSum> {
    let certain = rows.iter().filter(|row| row.is_certain);
    let keyed = certain.map(|row| ((row.shapes[0].dims.clone(), row.shapes[0].element_bytes), row));
    let sum = |(_, rows): (_, Vec<&ShapeRow>)| ShapeSum {
        shape: rows[0].shapes[0].clone(),
        blocks: rows.iter().map(|row| row.blocks).sum(),
        bytes: rows.iter().map(|row| row.bytes).sum(),
    };
    let mut sums: Vec<ShapeSum> = group_by_key(keyed.collect()).into_iter().map(sum).collect();
    sums.sort_by_key(|sum| Reverse(sum.bytes));
    sums
}

fn refusal(why: NoShapes) -> String {
    match why {
        NoShapes::NoParameters => "No block is known to be a parameter.".to_owned(),
        NoShapes::FewParameters => {
            "There are so few parameters that any widths would fit.".to_owned()
        }
        NoShapes::Convolutions => {
            "The activations are those of convolutions: their sizes do not tell shapes.".to_owned()
        }
        NoShapes::Packed => {
            "Most bytes of the model are no plain parameters: their elements may be packed."
                .to_owned()
        }
        NoShapes::Shards => {
            "The parameters are parts of larger ones (FSDP), and no number of ranks fits."
                .to_owned()
        }
        NoShapes::ManyWidths { widths: Some(count) } => format!(
            "The parameters would need {} widths. A transformer has few.",
            grouped(count as u64)
        ),
        NoShapes::ManyWidths { widths: None } => {
            "Few widths do not explain the sizes of the parameters.".to_owned()
        }
    }
}

fn sentences(report: &ShapesReport<'_>) -> Vec<String> {
    if let Some(why) = &report.refused {
        let mut text = vec![
            why.clone(),
            "`--config` or `--dims` gives the widths of a transformer.".to_owned(),
        ];
        text.extend(of_recorded(report));
        return text;
    }
    let mut text = Vec::new();
    for dims in &report.dims {
        let widths: Vec<String> = dims.widths.iter().map(|&width| grouped(width)).collect();
        let parts = match dims.ranks {
            1 => String::new(),
            ranks => format!(", each spread over {} ranks", grouped(ranks)),
        };
        let of = if report.given { "Given" } else { "Parameters" };
        text.push(format!(
            "{of}: widths {}, mostly {}; elements of {} bytes{parts}.",
            widths.join(", "),
            grouped(dims.hidden),
            dims.element_bytes
        ));
    }
    if report.dims.len() > 1 {
        text.push("Both readings fit: sizes do not tell which.".to_owned());
    }
    text.push(match report.tokens {
        Some(tokens) => {
            format!("Tokens at the peak: {} (batch x sequence).", grouped(tokens))
        }
        None => "No input tells the number of tokens, so activations have no shape.".to_owned(),
    });
    text.push(format!(
        "Of {} at the peak, {} has one shape that fits, {} has several or one in doubt.",
        Bytes(report.bytes),
        Bytes(report.shaped_bytes),
        Bytes(report.doubtful_bytes)
    ));
    text.extend(of_recorded(report));
    text
}

fn of_recorded(report: &ShapesReport<'_>) -> Option<String> {
    (report.recorded_bytes > 0).then(|| {
        format!("The shapes of {} are recorded, not inferred.", Bytes(report.recorded_bytes))
    })
}
