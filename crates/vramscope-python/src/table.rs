//! Tables as Arrow.
//!
//! A table is one record batch, which pandas, polars, pyarrow and `DuckDB` take by the Arrow
//! `PyCapsule` interface without a copy.

use crate::failure::internal;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float32Array, Int64Array, RecordBatch,
    RecordBatchIterator, UInt32Array, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{Field, Schema};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;
use vramscope_report::blocks::record;
use vramscope_report::events::event_record;
use vramscope_report::segments::segments as segment_report;
use vramscope_report::text::pool_text;
use vramscope_report::{BlockPlaces, FrameRecord, SnapshotEntry, Target, TensorRecord, frames};
use vramscope_snapshot::StackId;

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

    fn __repr__(&self) -> String {
        let names = self.column_names().join(", ");
        format!("<vramscope.Table of {} rows: {names}>", self.batch.num_rows())
    }

    /// The names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }
}

/// The columns of a table, in order.
#[derive(Default)]
struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    fn add(&mut self, name: &str, is_nullable: bool, array: ArrayRef) {
        self.fields.push(Field::new(name, array.data_type().clone(), is_nullable));
        self.arrays.push(array);
    }

    fn u64s(&mut self, name: &str, values: impl Iterator<Item = u64>) {
        self.add(name, false, Arc::new(values.collect::<UInt64Array>()));
    }

    fn some_u64s(&mut self, name: &str, values: impl Iterator<Item = Option<u64>>) {
        self.add(name, true, Arc::new(values.collect::<UInt64Array>()));
    }

    fn u32s(&mut self, name: &str, values: impl Iterator<Item = u32>) {
        self.add(name, false, Arc::new(values.collect::<UInt32Array>()));
    }

    fn some_u32s(&mut self, name: &str, values: impl Iterator<Item = Option<u32>>) {
        self.add(name, true, Arc::new(values.collect::<UInt32Array>()));
    }

    fn i64s(&mut self, name: &str, values: impl Iterator<Item = i64>) {
        self.add(name, false, Arc::new(values.collect::<Int64Array>()));
    }

    fn some_i64s(&mut self, name: &str, values: impl Iterator<Item = Option<i64>>) {
        self.add(name, true, Arc::new(values.collect::<Int64Array>()));
    }

    fn bools(&mut self, name: &str, values: impl Iterator<Item = bool>) {
        self.add(name, false, Arc::new(values.map(Some).collect::<BooleanArray>()));
    }

    /// Text of which few values are distinct.
    fn names<'a>(&mut self, name: &str, values: impl Iterator<Item = Option<&'a str>>) {
        let array: DictionaryArray<Int32Type> = values.collect();
        self.add(name, true, Arc::new(array));
    }

    fn table(self) -> PyResult<Table> {
        let schema = Arc::new(Schema::new(self.fields));
        Ok(Table { batch: RecordBatch::try_new(schema, self.arrays).map_err(internal)? })
    }
}

/// A stack as in the table of stacks; `None` if none was recorded.
fn stack(id: StackId) -> Option<u32> {
    (id != StackId::EMPTY).then_some(id.0)
}

/// The blocks of a device's window.
pub(crate) fn blocks(target: Target<'_>) -> PyResult<Table> {
    let trace = target.trace();
    let places = BlockPlaces::new(target);
    let rows: Vec<_> =
        (0..trace.blocks.len() as u32).map(|i| record(&places, target, i, 0)).collect();
    let pools: Vec<Option<String>> = rows.iter().map(|row| row.pool.map(pool_text)).collect();
    let annotations: Vec<Option<String>> = rows
        .iter()
        .map(|row| (!row.annotations.is_empty()).then(|| row.annotations.join("; ")))
        .collect();
    let lifetime = if trace.clock.is_some() { "lifetime_us" } else { "lifetime_events" };
    let mut table = Columns::default();
    table.u64s("address", trace.blocks.iter().map(|block| block.address.0));
    table.u32s("reuse", rows.iter().map(|row| row.reuse));
    table.u64s("requested_bytes", rows.iter().map(|row| row.bytes));
    table.u64s("block_bytes", rows.iter().map(|row| row.block_bytes));
    table.names("category", rows.iter().map(|row| Some(row.category.name())));
    let confidence = rows.iter().map(|row| row.confidence).collect::<Float32Array>();
    table.add("confidence", false, Arc::new(confidence));
    table.some_u32s("alloc_event", rows.iter().map(|row| row.alloc_event));
    table.some_u32s("free_requested_event", rows.iter().map(|row| row.free_requested_event));
    table.some_u32s("free_completed_event", rows.iter().map(|row| row.free_completed_event));
    table.u64s(lifetime, rows.iter().map(|row| row.lifetime));
    table.bools("preexisting", rows.iter().map(|row| row.preexisting));
    table.bools("live_at_end", rows.iter().map(|row| row.live_at_end));
    table.i64s("stream", rows.iter().map(|row| row.stream));
    table.names("pool", pools.iter().map(Option::as_deref));
    table.names("segment_type", rows.iter().map(|row| Some(row.segment_type)));
    table.bools("stack_of_free", rows.iter().map(|row| row.of_free));
    table.names("site", rows.iter().map(|row| Some(row.site.as_str())));
    table.some_u32s("stack", trace.blocks.iter().map(|block| stack(block.stack)));
    table.names("user_metadata", rows.iter().map(|row| row.user_metadata.as_deref()));
    table.names("annotations", annotations.iter().map(Option::as_deref));
    let tensors: Vec<_> = rows.iter().map(|row| row.tensor).collect();
    let shapes: Vec<Option<String>> =
        tensors.iter().map(|tensor| tensor.map(TensorRecord::shape_text)).collect();
    let kinds = tensors.iter().map(|tensor| tensor.map(|tensor| tensor.kind.as_str()));
    table.names("tensor_kind", kinds);
    let names = tensors.iter().map(|tensor| tensor.map(|tensor| tensor.name.as_str()));
    table.names("tensor_name", names);
    table.names("tensor_shape", shapes.iter().map(Option::as_deref));
    let dtypes = tensors.iter().map(|tensor| tensor.map(|tensor| tensor.dtype.as_str()));
    table.names("tensor_dtype", dtypes);
    table.table()
}

/// The events of a device's trace.
pub(crate) fn events(target: Target<'_>) -> PyResult<Table> {
    let (snapshot, range) = (target.snapshot(), &target.trace().device.events);
    let rows: Vec<_> =
        (0..range.len() as u32).map(|index| event_record(target, index, 0)).collect();
    let address = |row: u32| Some(snapshot.events.addr(row).0).filter(|&address| address != 0);
    let pools: Vec<Option<String>> = rows.iter().map(|row| row.pool.map(pool_text)).collect();
    let mut table = Columns::default();
    table.u32s("event", rows.iter().map(|row| row.index));
    table.some_i64s("time_us", rows.iter().map(|row| row.time_us));
    table.names("action", rows.iter().map(|row| Some(row.action.as_str())));
    table.some_u64s("address", range.clone().map(address));
    table.u64s("size_bytes", rows.iter().map(|row| row.size));
    table.i64s("stream", rows.iter().map(|row| row.stream));
    table.names("pool", pools.iter().map(Option::as_deref));
    table.names("site", rows.iter().map(|row| Some(row.site.as_str())));
    table.some_u32s("stack", range.clone().map(|row| stack(snapshot.events.stack(row))));
    table.table()
}

/// The segments of a device after the last event.
pub(crate) fn segments(target: Target<'_>) -> PyResult<Table> {
    let last = target.trace().slots().saturating_sub(1);
    let report = segment_report(target, last, None);
    let rows = &report.segments;
    let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16);
    let addresses: Vec<u64> =
        rows.iter().map(|row| address(&row.address)).collect::<Result<_, _>>().map_err(internal)?;
    let pools: Vec<Option<String>> = rows.iter().map(|row| row.pool.map(pool_text)).collect();
    let mut table = Columns::default();
    table.u64s("address", addresses.into_iter());
    table.u64s("total_bytes", rows.iter().map(|row| row.total_size));
    table.names("segment_type", rows.iter().map(|row| Some(row.segment_type)));
    table.i64s("stream", rows.iter().map(|row| row.stream));
    table.names("pool", pools.iter().map(Option::as_deref));
    table.bools("is_expandable", rows.iter().map(|row| row.is_expandable));
    table.u64s("allocated_bytes", rows.iter().map(|row| row.allocated));
    table.u64s("active_bytes", rows.iter().map(|row| row.active));
    table.u64s("requested_bytes", rows.iter().map(|row| row.requested));
    table.u64s("free_bytes", rows.iter().map(|row| row.free));
    table.u64s("largest_free_bytes", rows.iter().map(|row| row.largest_free));
    table.names("site", rows.iter().map(|row| Some(row.site.as_str())));
    table.table()
}

/// The call stacks of a snapshot: a row for each frame, innermost first.
pub(crate) fn stacks(entry: &SnapshotEntry) -> PyResult<Table> {
    let snapshot = &entry.snapshot;
    let ids = 1..snapshot.stacks.len() as u32;
    let rows: Vec<_> = ids
        .flat_map(|id| (0..).zip(frames(snapshot, StackId(id))).map(move |(d, f)| (id, d, f)))
        .collect();
    let mut table = Columns::default();
    table.u32s("stack", rows.iter().map(|(stack, ..)| *stack));
    table.u32s("depth", rows.iter().map(|(_, depth, _)| *depth));
    table.names("function", rows.iter().map(|(.., frame)| Some(frame.name.as_ref())));
    table.names("file", rows.iter().map(|(.., frame)| Some(frame.file.as_ref())));
    table.u32s("line", rows.iter().map(|(.., frame)| frame.line));
    table.bools("is_framework", rows.iter().map(|(.., frame)| frame.is_framework()));
    let source = |frame: &FrameRecord<'_>| entry.source(&frame.file, frame.line);
    table.names("source", rows.iter().map(|(.., frame)| source(frame)));
    table.table()
}
