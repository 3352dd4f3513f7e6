//! Writes tables as text, row by row, so that a large table is in memory only once, as text.
//!
//! CSV follows RFC 4180. Numbers are exact, for spreadsheets and data frames.

use crate::BlockPlaces;
use crate::blocks::{BlockRecord, record};
use crate::findings::FindingEntry;
use crate::frames::FrameRecord;
use crate::segments::SegmentRecord;
use crate::target::Target;
use crate::text::{block_reference, pool_text};
use csv::{Terminator, WriterBuilder};
use serde::{Serialize, Serializer};
use std::io::{self, Write};
use vramscope_analysis::slicing::Budget;
use vramscope_analysis::{Category, FindingKind, Phase, Severity};

/// The cost of a row, in units of [`Budget`].
const ROW_COST: u64 = 256;

/// A line of CSV: a struct whose fields are the columns.
pub trait CsvLine: Serialize {
    /// The names of the columns.
    const HEAD: &'static [&'static str];
}

/// Declares a struct as a line of CSV. The names of its fields are the head line.
#[macro_export]
macro_rules! csv_line {
    ($(#[$meta:meta])* $vis:vis struct $name:ident $(<$life:lifetime>)? {
        $($(#[$attr:meta])* $field:ident: $type:ty,)*
    }) => {
        $(#[$meta])*
        #[derive(serde::Serialize)]
        $vis struct $name $(<$life>)? {
            $($(#[$attr])* $field: $type,)*
        }

        impl $(<$life>)? $crate::export::CsvLine for $name $(<$life>)? {
            const HEAD: &'static [&'static str] = &[$(stringify!($field)),*];
        }
    };
}

/// Writes rows as CSV with a head line.
///
/// # Errors
/// The output cannot be written.
pub async fn csv<R: CsvLine>(
    rows: impl Iterator<Item = R>,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    let mut builder = WriterBuilder::new();
    let mut writer = builder.terminator(Terminator::CRLF).has_headers(false).from_writer(out);
    writer.write_record(R::HEAD).map_err(io::Error::other)?;
    for row in rows {
        writer.serialize(row).map_err(io::Error::other)?;
        budget.charge(ROW_COST).await;
    }
    writer.flush()
}

/// Writes a JSON object that ends with a list: the fields of `head`, then `key` with the rows.
///
/// # Errors
/// The output cannot be written.
pub async fn json_list<R: Serialize>(
    head: &impl Serialize,
    key: &str,
    rows: impl Iterator<Item = R>,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    let head = serde_json::to_string(head)?;
    let fields = head.strip_suffix('}').unwrap_or(&head);
    let comma = if fields.ends_with('{') { "" } else { "," };
    write!(out, "{fields}{comma}\"{key}\":[")?;
    for (i, row) in rows.enumerate() {
        if i > 0 {
            out.write_all(b",")?;
        }
        serde_json::to_writer(&mut *out, &row)?;
        budget.charge(ROW_COST).await;
    }
    out.write_all(b"]}\n")
}

/// Writes the blocks at these indices as CSV.
///
/// # Errors
/// The output cannot be written.
pub async fn block_csv(
    target: Target<'_>,
    blocks: impl Iterator<Item = u32>,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    let places = BlockPlaces::sliced(target, budget).await;
    csv(blocks.map(|block| BlockLine::new(&places, target, block)), out, budget).await
}

/// Serializes text so that spreadsheets do not interpret it as a formula: an apostrophe is put
/// before a leading `=`, `+`, `-`, `@`, tab or carriage return.
///
/// # Errors
/// The serializer fails.
pub fn spreadsheet_text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        return serializer.collect_str(&format_args!("'{text}"));
    }
    serializer.serialize_str(text)
}

crate::csv_line! {
    /// A block as a line of CSV.
    pub struct BlockLine {
        device: u32,
        reference: String,
        address: String,
        reuse: u32,
        requested_bytes: u64,
        block_bytes: u64,
        category: Category,
        confidence: f32,
        alloc_event: Option<u32>,
        free_requested_event: Option<u32>,
        free_completed_event: Option<u32>,
        lifetime: u64,
        preexisting: bool,
        live_at_end: bool,
        stream: i64,
        /// `(0, 0)` is the default pool; empty if the file does not record pools.
        pool: Option<String>,
        segment_type: &'static str,
        stack_of_free: bool,
        #[serde(serialize_with = "spreadsheet_text")]
        site: String,
    }
}

impl BlockLine {
    /// The line of the block at `index`.
    pub fn new(places: &BlockPlaces<'_>, target: Target<'_>, index: u32) -> Self {
        // Lines have no call stack.
        let row: BlockRecord<'_> = record(places, target, index, 0);
        let trace = target.trace();
        Self {
            device: target.device(),
            reference: block_reference(trace, &trace.blocks[index as usize]),
            address: row.address,
            reuse: row.reuse,
            requested_bytes: row.bytes,
            block_bytes: row.block_bytes,
            category: row.category,
            confidence: row.confidence,
            alloc_event: row.alloc_event,
            free_requested_event: row.free_requested_event,
            free_completed_event: row.free_completed_event,
            lifetime: row.lifetime,
            preexisting: row.preexisting,
            live_at_end: row.live_at_end,
            stream: row.stream,
            pool: row.pool.map(pool_text),
            segment_type: row.segment_type,
            stack_of_free: row.of_free,
            site: row.site,
        }
    }
}

crate::csv_line! {
    /// A finding as a line of CSV.
    pub struct FindingLine<'a> {
        #[serde(serialize_with = "spreadsheet_text")]
        id: String,
        kind: FindingKind,
        severity: Severity,
        device: u32,
        bytes: u64,
        step: Option<u32>,
        phase: Option<&'static str>,
        blocks: u64,
        events: usize,
        first_event: Option<u32>,
        last_event: Option<u32>,
        #[serde(serialize_with = "spreadsheet_text")]
        title: &'a str,
        #[serde(serialize_with = "spreadsheet_text")]
        text: &'a str,
        #[serde(serialize_with = "spreadsheet_text")]
        action: &'a str,
        #[serde(serialize_with = "spreadsheet_text")]
        stack: String,
        #[serde(serialize_with = "spreadsheet_text")]
        path: &'a str,
    }
}

impl<'a> FindingLine<'a> {
    /// The line of a finding.
    pub fn new(FindingEntry { record: row, frames, .. }: &'a FindingEntry) -> Self {
        Self {
            id: row.id.to_string(),
            kind: row.kind,
            severity: row.severity,
            device: row.device,
            bytes: row.bytes.0,
            step: row.step,
            phase: row.phase.map(Phase::name),
            blocks: row.blocks.0,
            events: row.events.len(),
            first_event: row.events.first().map(|event| event.0),
            last_event: row.events.last().map(|event| event.0),
            title: &row.title,
            text: &row.text,
            action: &row.action,
            stack: joined(frames),
            path: &row.path,
        }
    }
}

crate::csv_line! {
    /// A segment as a line of CSV.
    pub struct SegmentLine<'a> {
        address: &'a str,
        total_size: u64,
        segment_type: &'static str,
        stream: i64,
        /// `(0, 0)` is the default pool; empty if the file does not record pools.
        pool: Option<String>,
        is_expandable: bool,
        allocated: u64,
        active: u64,
        requested: u64,
        free: u64,
        largest_free: u64,
        #[serde(serialize_with = "spreadsheet_text")]
        site: &'a str,
    }
}

impl<'a> SegmentLine<'a> {
    /// The line of a segment.
    pub fn new(row: &'a SegmentRecord) -> Self {
        Self {
            address: &row.address,
            total_size: row.total_size,
            segment_type: row.segment_type,
            stream: row.stream,
            pool: row.pool.map(pool_text),
            is_expandable: row.is_expandable,
            allocated: row.allocated,
            active: row.active,
            requested: row.requested,
            free: row.free,
            largest_free: row.largest_free,
            site: &row.site,
        }
    }
}

/// A call stack in one field, innermost frame first.
fn joined(frames: &[FrameRecord<'_>]) -> String {
    frames.iter().map(FrameRecord::label).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_analysis::slicing::run_to_completion;

    crate::csv_line! {
        struct Row {
            n: Option<u32>,
            #[serde(serialize_with = "spreadsheet_text")]
            text: &'static str,
        }
    }

    #[test]
    fn csv_quotes_text_and_escapes_formulas() {
        let rows = [
            Row { n: Some(1), text: "=1+1" },
            Row { n: None, text: "a,\"b\"" },
            Row { n: Some(2), text: "plain" },
        ];
        let (mut out, budget) = (Vec::new(), &mut Budget::unlimited());
        let written = csv(rows.into_iter(), &mut out, budget);
        run_to_completion(written).expect("writing to memory");
        let text = String::from_utf8(out).expect("text");
        assert_eq!(text, "n,text\r\n1,'=1+1\r\n,\"a,\"\"b\"\"\"\r\n2,plain\r\n");
    }

    #[test]
    fn csv_without_rows_has_a_head_line() {
        let (mut out, budget) = (Vec::new(), &mut Budget::unlimited());
        let written = csv(std::iter::empty::<Row>(), &mut out, budget);
        run_to_completion(written).expect("writing to memory");
        assert_eq!(out, b"n,text\r\n");
    }

    #[test]
    fn json_list_continues_the_head() {
        #[derive(Serialize)]
        struct Head {
            device: u32,
        }
        let (mut out, budget) = (Vec::new(), &mut Budget::unlimited());
        let head = Head { device: 3 };
        let written = json_list(&head, "rows", [1, 2].iter(), &mut out, budget);
        run_to_completion(written).expect("writing to memory");
        assert_eq!(out, b"{\"device\":3,\"rows\":[1,2]}\n");
        let (mut out, empty) = (Vec::new(), serde_json::json!({}));
        let rows = std::iter::empty::<u32>();
        let written = json_list(&empty, "rows", rows, &mut out, budget);
        run_to_completion(written).expect("writing to memory");
        assert_eq!(out, b"{\"rows\":[]}\n");
    }
}
