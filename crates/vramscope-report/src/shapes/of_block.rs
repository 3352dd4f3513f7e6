//! The shape of one block, in words.

use super::recorded::{ShapeSource, recorded_shape};
use crate::Target;
use rustc_hash::FxHashMap;
use serde::Serialize;
use vramscope_inference::{Category, Dims, Shape};
use vramscope_snapshot::StackId;
use vramscope_units::grouped;

/// The shape of a block.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BlockShape {
    /// `[4,096 tokens, 1,536] of 4 bytes`. Of several shapes that fit, each: `[..] or [..] of 4
    /// bytes`.
    pub text: String,
    /// Whether no other shape is plausible.
    pub is_certain: bool,
    /// What tells it.
    pub source: ShapeSource,
}

impl BlockShape {
    /// The shape with a question mark if it is in doubt.
    pub fn words(&self) -> String {
        format!("{}{}", self.text, if self.is_certain { "" } else { "?" })
    }
}

/// The shapes of blocks, as far as they are known: recorded ones, and inferred ones where the
/// dimensions of the model are derived. Blocks of one size, category and stack have one answer.
pub struct BlockShapes<'a> {
    target: Target<'a>,
    dims: Option<&'a Dims>,
    known: FxHashMap<(Category, StackId, u64), Option<BlockShape>>,
}

impl<'a> BlockShapes<'a> {
    /// The shapes of a device's blocks.
    pub fn new(target: Target<'a>) -> Self {
        let dims = target.entry.known_dims(target.index);
        Self { target, dims, known: FxHashMap::default() }
    }

    /// The shape of a block.
    pub fn of(&mut self, index: u32) -> Option<BlockShape> {
        let block = &self.target.trace().blocks[index as usize];
        if let Some((shape, source)) = recorded_shape(self.target, index, block.bytes.0) {
            return Some(BlockShape { text: words(&[shape], None), is_certain: true, source });
        }
        let dims = self.dims?;
        let category = self.target.entry.categories(self.target.index).get(index).category;
        let key = (category, block.stack, block.bytes.0);
        let find = || {
            let (bytes, stack) = (block.bytes.0, block.stack);
            let found = dims.shapes(self.target.snapshot(), bytes, category, stack);
            let of_data = !matches!(
                category,
                Category::Parameter | Category::Gradient | Category::OptimizerState
            );
            let tokens = dims.tokens.filter(|_| of_data);
            (!found.shapes.is_empty()).then(|| BlockShape {
                text: words(&found.shapes, tokens),
                is_certain: found.is_certain,
                source: ShapeSource::Size,
            })
        };
        self.known.entry(key).or_insert_with(find).clone()
    }

    /// The shape that all of these blocks have.
    pub fn of_all(&mut self, blocks: impl IntoIterator<Item = u32>) -> Option<BlockShape> {
        let mut blocks = blocks.into_iter();
        let first = self.of(blocks.next()?)?;
        blocks.all(|block| self.of(block).as_ref() == Some(&first)).then_some(first)
    }
}

/// The distinct shapes of a report's rows. A row refers to its shape by index.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct ShapeTable {
    shapes: Vec<BlockShape>,
    #[serde(skip)]
    indices: FxHashMap<BlockShape, u32>,
}

impl ShapeTable {
    /// The index of a shape, which is added if it is new.
    pub fn add(&mut self, shape: BlockShape) -> u32 {
        let next = self.shapes.len() as u32;
        let index = *self.indices.entry(shape.clone()).or_insert(next);
        if index == next {
            self.shapes.push(shape);
        }
        index
    }

    /// All shapes, by index.
    pub fn all(&self) -> &[BlockShape] {
        &self.shapes
    }
}

/// Shapes in words. The first dimension of data is its tokens.
fn words(shapes: &[Shape], tokens: Option<u64>) -> String {
    let dim = |shape: &Shape, at: usize| {
        let is_tokens = at == 0 && shape.dims.len() > 1 && Some(shape.dims[0]) == tokens;
        format!("{}{}", grouped(shape.dims[at]), if is_tokens { " tokens" } else { "" })
    };
    let one = |(place, shape): (usize, &Shape)| {
        let dims: Vec<String> = (0..shape.dims.len()).map(|at| dim(shape, at)).collect();
        let bytes = shape.element_bytes;
        // Alternatives with elements of one size name it once.
        let of = match shapes.get(place + 1) {
            Some(next) if next.element_bytes == bytes => String::new(),
            _ if bytes == 1 => " of 1 byte".to_owned(),
            _ => format!(" of {bytes} bytes"),
        };
        format!("[{}]{of}", dims.join(", "))
    };
    shapes.iter().enumerate().map(one).collect::<Vec<_>>().join(" or ")
}
