//! Shapes that the recording program told: in the file beside the snapshot, or in the text that it
//! gave to a block.

use crate::Target;
use crate::notes::notes;
use serde::Serialize;
use vramscope_inference::Shape;

/// What tells a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ShapeSource {
    /// The file beside the snapshot.
    Sidecar,
    /// The text of `_annotate_tensor` or `_set_memory_metadata`.
    Annotation,
    /// `shape_data` of torch-snapkit: the tensors that operations returned at the block's address.
    ShapeData,
    /// The size of the block, and the widths of the model.
    Size,
}

/// The shape that is recorded for a live block of `bytes` bytes. A shape that does not have the
/// bytes of the block is that of a part of it, and does not count.
pub(super) fn recorded_shape(
    target: Target<'_>,
    block: u32,
    bytes: u64,
) -> Option<(Shape, ShapeSource)> {
    if let Some(tensor) = target.entry.tensor(target.index, block) {
        let element = element_bytes(&tensor.dtype)?;
        let shape = Shape { dims: tensor.shape.clone(), element_bytes: element };
        return has_bytes(&shape, bytes).then_some((shape, ShapeSource::Sidecar));
    }
    let told = notes(target, block);
    // The last text was given last.
    let mut texts = told.annotations.iter().rev().chain(&told.metadata);
    let told = texts.find_map(|text| shape_in(text, bytes));
    told.map(|shape| (shape, ShapeSource::Annotation))
        .or_else(|| logged_shape(target, block, bytes).map(|shape| (shape, ShapeSource::ShapeData)))
}

/// The shape of the tensors that operations returned at the block's address. `None` if it had
/// several with the bytes of the block: the log has no times, so it does not tell which block had
/// which.
fn logged_shape(target: Target<'_>, block: u32, bytes: u64) -> Option<Shape> {
    let address = target.trace().blocks[block as usize].address.0;
    let tensors = target.snapshot().logged_tensors(target.device(), address);
    let mut shapes = tensors.filter_map(|(dims, dtype)| {
        let shape = Shape { dims: dims.to_vec(), element_bytes: element_bytes(&dtype)? };
        has_bytes(&shape, bytes).then_some(shape)
    });
    let first = shapes.next()?;
    shapes.all(|shape| shape == first).then_some(first)
}

fn has_bytes(shape: &Shape, bytes: u64) -> bool {
    let elements = shape.dims.iter().try_fold(1u64, |product, &dim| product.checked_mul(dim));
    elements.and_then(|elements| elements.checked_mul(shape.element_bytes)) == Some(bytes)
}

/// The bytes of an element of a PyTorch type.
fn element_bytes(dtype: &str) -> Option<u64> {
    Some(match dtype.trim_start_matches("torch.") {
        "bool" | "uint8" | "int8" | "byte" => 1,
        name if name.starts_with("float8") => 1,
        "bfloat16" | "float16" | "half" | "int16" | "uint16" => 2,
        "float32" | "float" | "int32" | "uint32" => 4,
        "float64" | "double" | "int64" | "uint64" | "long" | "complex64" => 8,
        "complex128" => 16,
        _ => return None,
    })
}

/// A shape in a text: whole numbers in brackets, such as `[4096, 1536]` or `(4096, 1536)`, with the
/// name of a type in the text. Only if it has the bytes of the block.
fn shape_in(text: &str, bytes: u64) -> Option<Shape> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    let element = text.split(|c| !is_word(c)).find_map(element_bytes)?;
    let mut rest = text;
    while let Some(start) = rest.find(['[', '(']) {
        rest = &rest[start + 1..];
        let inner = &rest[..rest.find([']', ')', '[', '('])?];
        let numbers = inner.trim_end_matches(',').split(',');
        let dims: Option<Vec<u64>> = numbers.map(|number| number.trim().parse().ok()).collect();
        let shape = dims.map(|dims| Shape { dims, element_bytes: element });
        if let Some(shape) = shape.filter(|shape| has_bytes(shape, bytes)) {
            return Some(shape);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_tells_a_shape_that_has_the_bytes_of_the_block() {
        let found = |text, bytes| shape_in(text, bytes).map(|shape| shape.dims);
        assert_eq!(found("q_proj out: torch.Size([4, 8]) torch.float32", 128), Some(vec![4, 8]));
        assert_eq!(found("bfloat16(4, 8,)", 64), Some(vec![4, 8]));
        assert_eq!(found("step (3): [2, 2] int64", 32), Some(vec![2, 2]));
        for (text, bytes) in [
            ("[4, 8] float32", 64),
            ("[4, 8]", 128),
            ("[4, x] float32", 128),
            ("[4, 8 float32", 128),
            ("[18446744073709551615, 9] float32", 128),
            ("", 0),
        ] {
            assert_eq!(found(text, bytes), None, "{text}");
        }
    }

    #[test]
    fn types_have_the_sizes_of_their_elements() {
        for (name, bytes) in [
            ("torch.bfloat16", Some(2)),
            ("float8_e4m3fn", Some(1)),
            ("complex64", Some(8)),
            ("float", Some(4)),
            ("floaty", None),
        ] {
            assert_eq!(element_bytes(name), bytes, "{name}");
        }
    }
}
