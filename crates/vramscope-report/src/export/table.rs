//! Writes tables as text, row by row, so that a large table is in memory only once, as text.
//!
//! CSV follows RFC 4180. Numbers are exact, for spreadsheets and data frames.

use crate::BlockPlaces;
use crate::blocks::{self, BlockRow};
use crate::columns::{Column, Rows, Value};
use crate::findings::FindingEntry;
use crate::frames::FrameRecord;
use crate::target::Target;
use csv::{Terminator, WriterBuilder};
use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use std::io::{self, Write};
use vramscope_trace::slicing::Budget;

/// The cost of a row, in units of [`Budget`].
const ROW_COST: u64 = 256;

/// Writes rows as CSV with a head line. Columns without a name in CSV are left out.
///
/// # Errors
/// The output cannot be written.
pub async fn csv<'a, T: Rows>(
    columns: &[Column<T>],
    rows: impl Iterator<Item = T::Row<'a>>,
    out: &mut (dyn Write + Send),
    budget: &mut Budget,
) -> io::Result<()> {
    let mut builder = WriterBuilder::new();
    let mut writer = builder.terminator(Terminator::CRLF).has_headers(false).from_writer(out);
    writer
        .write_record(columns.iter().filter_map(|column| column.csv))
        .map_err(io::Error::other)?;
    for row in rows {
        writer.serialize(Line { columns, row: &row }).map_err(io::Error::other)?;
        budget.charge(ROW_COST).await;
    }
    writer.flush()
}

/// A row as a line of CSV.
struct Line<'r, 'a, T: Rows> {
    columns: &'r [Column<T>],
    row: &'r T::Row<'a>,
}

impl<T: Rows> Serialize for Line<'_, '_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut line = to.serialize_seq(None)?;
        for column in self.columns.iter().filter(|column| column.csv.is_some()) {
            column.with_value(self.row, |value| match value {
                Value::Text(text) => line.serialize_element(&SpreadsheetText(text)),
                value => line.serialize_element(&value),
            })?;
        }
        line.end()
    }
}

/// A row as a JSON object. Columns have their names in CSV.
pub struct Object<'r, 'a, T: Rows> {
    /// The columns.
    pub columns: &'r [Column<T>],
    /// The row.
    pub row: T::Row<'a>,
}

impl<T: Rows> Serialize for Object<'_, '_, T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut object = to.serialize_map(None)?;
        for column in self.columns {
            let Some(name) = column.csv else { continue };
            column.with_value(&self.row, |value| object.serialize_entry(name, &value))?;
        }
        object.end()
    }
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
    let places = BlockPlaces::new(target, budget).await;
    let rows = blocks.map(|index| BlockRow::new(&places, target, index));
    csv(&blocks::columns(), rows, out, budget).await
}

/// Text that spreadsheets do not interpret as a formula: an apostrophe is put before a leading `=`,
/// `+`, `-`, `@`, tab or carriage return.
struct SpreadsheetText<'a>(&'a str);

impl Serialize for SpreadsheetText<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if self.0.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            return to.collect_str(&format_args!("'{}", self.0));
        }
        to.serialize_str(self.0)
    }
}

/// Rows of the table of findings.
pub struct FindingRows;

impl Rows for FindingRows {
    type Row<'a> = &'a FindingEntry;
}

/// The columns of findings in CSV.
pub fn finding_columns() -> Vec<Column<FindingRows>> {
    type Of = Column<FindingRows>;
    vec![
        Of::text("id", "Id", |row| row.record.id.to_string().into()),
        Of::text("kind", "Kind", |row| row.record.kind.name().into()),
        Of::text("severity", "`high`, `medium` or `low`", |row| row.record.severity.name().into()),
        Of::new("device", "Device", |row| row.record.device),
        Of::new("bytes", "Bytes that it is about", |row| row.record.bytes.0),
        Of::new("step", "Step, from 0", |row| row.record.step),
        Of::maybe_text("phase", "Phase", |row| row.record.phase.map(|phase| phase.name().into())),
        Of::new("blocks", "Blocks that it is about", |row| row.record.blocks.0 as u32),
        Of::new("events", "Events of its evidence", |row| row.record.events.len()),
        Of::new("first_event", "First event of its evidence", |row| {
            row.record.events.first().map(|event| event.0)
        }),
        Of::new("last_event", "Last event of its evidence", |row| {
            row.record.events.last().map(|event| event.0)
        }),
        Of::text("title", "The finding in a few words", |row| row.record.title.as_str().into()),
        Of::text("text", "Subject, numbers and cause", |row| row.record.text.as_str().into()),
        Of::text("action", "What to do", |row| row.record.action.as_str().into()),
        Of::text("stack", "Frames, innermost first", |row| joined(&row.frames).into()),
        Of::text("path", "Path of the file", |row| row.record.path.as_str().into()),
    ]
}

/// A call stack in one field, innermost frame first.
fn joined(frames: &[FrameRecord<'_>]) -> String {
    frames.iter().map(FrameRecord::label).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramscope_trace::slicing::now;

    struct Words;

    impl Rows for Words {
        type Row<'a> = (Option<u32>, &'a str);
    }

    fn columns() -> Vec<Column<Words>> {
        type Of = Column<Words>;
        vec![
            Of::new("n", "", |row| row.0),
            Of::text("text", "", |row| row.1.into()),
            Of::new("length", "", |row| row.1.len()).not_in_csv(),
        ]
    }

    fn written<'a>(rows: impl IntoIterator<Item = (Option<u32>, &'a str)>) -> String {
        let (columns, mut out) = (columns(), Vec::new());
        now(async |budget| csv(&columns, rows.into_iter(), &mut out, budget).await)
            .expect("writing to memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn csv_quotes_text_and_escapes_formulas() {
        let rows = [(Some(1), "=1+1"), (None, "a,\"b\""), (Some(2), "plain")];
        assert_eq!(written(rows), "n,text\r\n1,'=1+1\r\n,\"a,\"\"b\"\"\"\r\n2,plain\r\n");
    }

    #[test]
    fn csv_without_rows_has_a_head_line() {
        assert_eq!(written([]), "n,text\r\n");
    }

    #[test]
    fn objects_have_the_columns_of_csv() {
        let (columns, row) = (columns(), (None, "=1+1"));
        let object = serde_json::to_value(Object { columns: &columns, row });
        assert_eq!(object.expect("plain"), serde_json::json!({"n": null, "text": "=1+1"}));
    }

    #[test]
    fn json_list_continues_the_head() {
        #[derive(serde::Serialize)]
        struct Head {
            device: u32,
        }
        let mut out = Vec::new();
        let head = Head { device: 3 };
        now(async |budget| json_list(&head, "rows", [1, 2].iter(), &mut out, budget).await)
            .expect("writing to memory");
        assert_eq!(out, b"{\"device\":3,\"rows\":[1,2]}\n");
        let (mut out, empty) = (Vec::new(), serde_json::json!({}));
        let rows = std::iter::empty::<u32>();
        now(async |budget| json_list(&empty, "rows", rows, &mut out, budget).await)
            .expect("writing to memory");
        assert_eq!(out, b"{\"rows\":[]}\n");
    }
}
