//! The record of a block or a finding by its id, for scripts around the page.

use crate::blocks::record;
use crate::findings::with_id;
use crate::reference::BlockReference;
use crate::shapes::BlockShapes;
use crate::{BlockPlaces, Derived, Target, frames};
use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};
use vramscope_trace::slicing::Budget;

/// A record of the program's JSON. `vramscope schema` has the fields.
///
/// It is a tree of plain values, so that the page passes the program's numbers on, without texts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ProgramRecord(
    #[cfg_attr(feature = "typescript", ts(type = "Record<string, unknown>"))] Value,
);

/// The largest integer below which a double has every integer.
const MAX_SAFE: f64 = 9_007_199_254_740_992.0;

/// The block with this reference, or the finding with this id; `None` if the trace has none. A
/// block has its `reference`, `device`, `frames` and `shape` in place of indices into a report.
pub async fn by_id(target: Target<'_>, id: &str, budget: &mut Budget) -> Option<ProgramRecord> {
    let Ok(reference) = id.parse::<BlockReference>() else {
        target.entry.derive(Derived::Findings, target.index, budget).await;
        return Some(ProgramRecord(printed(&with_id(target, id)?)));
    };
    let trace = target.trace();
    let index = reference.find(trace)?;
    let stack = trace.blocks[index as usize].stack;
    let places = BlockPlaces::new(target, budget).await;
    // The index of the stack is replaced by the frames below.
    let mut fields = printed(&record(&places, target, index, 0));
    fields["reference"] = reference.to_string().into();
    fields["device"] = reference.device.into();
    fields["frames"] = printed(&frames(target.snapshot(), stack));
    if let Some(shape) = BlockShapes::new(target).of(index) {
        fields["shape"] = printed(&shape);
    }
    fields.as_object_mut()?.remove("stack");
    Some(ProgramRecord(fields))
}

/// The value that a reader of the printed JSON gets. A direct conversion would widen an `f32` to
/// digits that the program does not print.
fn printed(record: &impl Serialize) -> Value {
    let text = serde_json::to_string(record).expect("records have text keys");
    let mut value = serde_json::from_str(&text).expect("written by serde_json");
    as_doubles(&mut value);
    value
}

/// Rounds integers that no double has, as a script's JSON parser does.
fn as_doubles(value: &mut Value) {
    match value {
        Value::Number(number) => {
            if let Some(double) = number.as_f64().filter(|double| double.abs() >= MAX_SAFE)
                && let Some(rounded) = Number::from_f64(double)
            {
                *number = rounded;
            }
        }
        Value::Array(values) => values.iter_mut().for_each(as_doubles),
        Value::Object(fields) => fields.values_mut().for_each(as_doubles),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::printed;
    use serde_json::json;

    #[test]
    fn numbers_are_what_a_script_reads_from_the_printed_text() {
        assert_eq!(printed(&(0.9_f32, u64::MAX, 7)), json!([0.9, 18_446_744_073_709_551_615.0, 7]));
        assert!(printed(&(1_u64 << 53)).is_f64() && printed(&((1_u64 << 53) - 1)).is_u64());
    }
}
