//! Tables as Arrow.
//!
//! A table is one record batch, which pandas, polars, pyarrow and `DuckDB` take by the Arrow
//! `PyCapsule` interface without a copy.

use crate::failure::internal;
use arrow_array::cast::AsArray as _;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float32Type, Int32Type, Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch, RecordBatchIterator, UInt64Array};
use arrow_schema::DataType;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_select::take::take_record_batch;
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PySlice, PyString};
use vramscope_dataset::Batch;
use vramscope_report::blocks::{self, BlockRow};
use vramscope_report::columns::{Column, Rows};
use vramscope_report::events::{self, EventRow};
use vramscope_report::segments::{self, segment_record, states};
use vramscope_report::{BlockPlaces, FrameRecord, SnapshotEntry, Target, frames};
use vramscope_snapshot::StackId;
use vramscope_trace::slicing::now;

/// A table. `__arrow_c_stream__` hands it to other libraries.
#[pyclass(frozen, module = "vramscope._vramscope")]
pub(crate) struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// The table as an Arrow stream of one batch.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows a producer to ignore a schema that it cannot give.
        drop(requested_schema);
        let batches = std::iter::once(Ok(self.batch.clone()));
        let reader = RecordBatchIterator::new(batches, self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The table's columns as an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref()).map_err(internal)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The number of rows.
    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// The columns as lists.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        let schema = self.batch.schema();
        for (field, column) in schema.fields().iter().zip(self.batch.columns()) {
            columns.set_item(field.name(), cells(py, column)?)?;
        }
        Ok(columns)
    }

    /// The rows as dicts.
    fn __iter__<'py>(of: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(of, "rows")
    }

    /// The rows as dicts, from the last.
    fn __reversed__<'py>(of: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(of, "rows_from_the_last")
    }

    /// The table as a `pandas.DataFrame`.
    fn to_pandas<'py>(of: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(of, "to_pandas")
    }

    /// The table as a `polars.DataFrame`, without a copy.
    fn to_polars<'py>(of: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(of, "to_polars")
    }

    /// The table as a `pyarrow.Table`, without a copy.
    fn to_arrow<'py>(of: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(of, "to_arrow")
    }

    /// The first rows, for notebooks.
    fn _repr_html_<'py>(of: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        helper(of, "html")
    }

    /// By an index a row as a dict, by a slice some rows as a table, by a name a column as a list.
    fn __getitem__<'py>(
        &self,
        py: Python<'py>,
        key: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if let Ok(slice) = key.cast::<PySlice>() {
            return Ok(Bound::new(py, self.rows(slice)?)?.into_any());
        }
        if key.is_instance_of::<PyString>() {
            let name: String = key.extract()?;
            let column = self.batch.column_by_name(&name).ok_or_else(|| {
                let names = self.columns().join(", ");
                PyKeyError::new_err(format!("no column {name:?} (available: {names})"))
            })?;
            return Ok(cells(py, column)?.into_any());
        }
        Ok(self.row(py, key.extract()?)?.into_any())
    }

    fn __repr__(&self) -> String {
        let names = self.columns().join(", ");
        format!("<vramscope.Table of {} rows: {names}>", self.batch.num_rows())
    }

    /// The names of the columns.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
}

impl Table {
    /// A row. A negative index counts from the end.
    fn row<'py>(&self, py: Python<'py>, index: isize) -> PyResult<Bound<'py, PyDict>> {
        let rows = self.batch.num_rows();
        let at =
            if index < 0 { rows.checked_add_signed(index) } else { usize::try_from(index).ok() };
        let at = at.filter(|&at| at < rows).ok_or_else(|| {
            PyIndexError::new_err(format!("there is no row {index}: the table has {rows}"))
        })?;
        let row = PyDict::new(py);
        for (field, column) in self.batch.schema().fields().iter().zip(self.batch.columns()) {
            row.set_item(field.name(), cells(py, &column.slice(at, 1))?.get_item(0)?)?;
        }
        Ok(row)
    }

    /// Some rows. Neighbors are not copied.
    fn rows(&self, slice: &Bound<'_, PySlice>) -> PyResult<Self> {
        let rows = isize::try_from(self.batch.num_rows()).map_err(internal)?;
        let of = slice.indices(rows)?;
        if of.slicelength == 0 {
            return Ok(Self { batch: self.batch.slice(0, 0) });
        }
        let first = usize::try_from(of.start).map_err(internal)?;
        if of.step == 1 {
            return Ok(Self { batch: self.batch.slice(first, of.slicelength) });
        }
        let rows = (0..of.slicelength as isize).map(|at| (of.start + at * of.step) as u64);
        let rows = UInt64Array::from_iter_values(rows);
        let batch = take_record_batch(&self.batch, &rows).map_err(internal)?;
        Ok(Self { batch })
    }
}

/// Calls a function of `vramscope.reader.tables`, which knows the other libraries.
fn helper<'py>(table: &Bound<'py, Table>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    table.py().import("vramscope.reader.tables")?.getattr(name)?.call1((table,))
}

/// The values of a column.
fn cells<'py>(py: Python<'py>, column: &dyn Array) -> PyResult<Bound<'py, PyList>> {
    fn list<'py, T: IntoPyObject<'py>>(
        py: Python<'py>,
        values: impl Iterator<Item = T>,
    ) -> PyResult<Bound<'py, PyList>> {
        PyList::new(py, values.collect::<Vec<T>>())
    }
    match column.data_type() {
        DataType::Int32 => list(py, column.as_primitive::<Int32Type>().iter()),
        DataType::Int64 => list(py, column.as_primitive::<Int64Type>().iter()),
        DataType::UInt32 => list(py, column.as_primitive::<UInt32Type>().iter()),
        DataType::UInt64 => list(py, column.as_primitive::<UInt64Type>().iter()),
        DataType::Float32 => list(py, column.as_primitive::<Float32Type>().iter()),
        DataType::Boolean => list(py, column.as_boolean().iter()),
        DataType::Utf8 => list(py, column.as_string::<i32>().iter()),
        DataType::Dictionary(..) => {
            let names = column.as_dictionary::<Int32Type>();
            // A row has few of the texts.
            let texts = match names.len() {
                1 => None,
                _ => Some(cells(py, names.values())?),
            };
            let text = |key: i32| match &texts {
                Some(texts) => texts.get_item(key as usize),
                None => cells(py, &names.values().slice(key as usize, 1))?.get_item(0),
            };
            let texts = names.keys().iter().map(|key| key.map(text).transpose());
            list(py, texts.collect::<PyResult<Vec<_>>>()?.into_iter())
        }
        DataType::List(_) => {
            let lists = column.as_list::<i32>().iter();
            let lists = lists.map(|of| of.map(|of| cells(py, &of)).transpose());
            list(py, lists.collect::<PyResult<Vec<_>>>()?.into_iter())
        }
        other => Err(internal(format!("a column of {other} has no values in Python"))),
    }
}

/// A table of rows.
fn table<'a, T: Rows>(
    columns: impl IntoIterator<Item = Column<T>>,
    rows: impl Iterator<Item = T::Row<'a>>,
) -> PyResult<Table> {
    let mut batch = Batch::new(columns.into_iter().filter(|column| column.in_tables));
    for row in rows {
        batch.push(&row);
    }
    Ok(Table { batch: batch.take().map_err(internal)? })
}

/// The blocks of a device's window.
pub(crate) fn blocks(target: Target<'_>) -> PyResult<Table> {
    let (trace, places) =
        (target.trace(), now(async |budget| BlockPlaces::new(target, budget).await));
    let lifetime = if trace.clock.is_some() { "lifetime_us" } else { "lifetime_events" };
    let columns = blocks::columns().into_iter().map(|column| match column.name {
        "lifetime" => Column { name: lifetime, ..column },
        _ => column,
    });
    let blocks = 0..trace.blocks.len() as u32;
    table(columns, blocks.map(|index| BlockRow::new(&places, target, index)))
}

/// The events of a device's trace.
pub(crate) fn events(target: Target<'_>) -> PyResult<Table> {
    let rows = 0..target.trace().device.events.len() as u32;
    table(events::columns(), rows.map(|index| EventRow::new(target, index, None)))
}

/// The segments of a device after the last event.
pub(crate) fn segments(target: Target<'_>) -> PyResult<Table> {
    let last = target.trace().slots().saturating_sub(1);
    let states = now(async |budget| states(target, last, budget).await);
    // The table has no call stacks.
    table(segments::columns(), states.iter().map(|state| segment_record(target, state, 0)))
}

/// Rows of the table of call stacks.
struct FrameRows;

/// A frame of a call stack.
struct FrameRow<'a> {
    stack: u32,
    depth: u32,
    frame: FrameRecord<'a>,
    source: Option<&'a str>,
}

impl Rows for FrameRows {
    type Row<'a> = FrameRow<'a>;
}

/// The call stacks of a snapshot: a row for each frame, innermost first.
pub(crate) fn stacks(entry: &SnapshotEntry) -> PyResult<Table> {
    type Of = Column<FrameRows>;
    let columns = [
        Of::new("stack", "Call stack", |row| row.stack),
        Of::new("depth", "Frames below it in the stack", |row| row.depth),
        Of::text("function", "Function", |row| row.frame.name.as_ref().into()),
        Of::text("file", "File", |row| row.frame.file.as_ref().into()),
        Of::new("line", "Line; 0 if unknown", |row| row.frame.line),
        Of::new("is_framework", "Whether it is code of PyTorch or Python", |row| {
            row.frame.is_framework()
        }),
        Of::maybe_text("source", "Source line, from the file beside the snapshot", |row| {
            row.source.map(Into::into)
        }),
    ];
    let snapshot = &entry.snapshot;
    let rows = (1..snapshot.stacks.len() as u32).flat_map(|stack| {
        (0..).zip(frames(snapshot, StackId(stack))).map(move |(depth, frame)| {
            let source = entry.source(&frame.file, frame.line);
            FrameRow { stack, depth, frame, source }
        })
    });
    table(columns, rows)
}
