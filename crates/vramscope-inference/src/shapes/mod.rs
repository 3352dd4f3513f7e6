//! Shapes of tensors, guessed from the sizes of blocks.
//!
//! PyTorch records bytes, and no shapes. The parameters of a transformer have few widths, and their
//! sizes tell them ([`widths`]). Inputs of `int64` tell the number of tokens. A block of tokens x
//! width elements is an activation of that width.
//!
//! Equal bytes can have several shapes: `[tokens, 1536]` of two bytes is `[tokens, 768]` of four. A
//! shape is stated only if no other fits; the others are candidates.

mod widths;

pub use widths::Widths;

use self::widths::ELEMENTS;
use crate::category::{Categories, Category};
use vramscope_snapshot::{Snapshot, StackId};
use vramscope_trace::Block;
use vramscope_trace::Trace;
use vramscope_trace::slicing::Budget;
use vramscope_trace::{group_by_key, is_framework_frame};

/// Smaller blocks are scalars, losses and indices.
const MIN_BYTES: u64 = 2048;
/// Live activations that must have a whole number of tokens, in percent of their bytes.
const MIN_TOKENS_PERCENT: u64 = 20;
/// Activations of convolutions that exclude a transformer, in percent of their bytes.
const MAX_CONVOLUTIONS_PERCENT: u64 = 10;
/// Bytes of an element of a mask.
const MASK: u64 = 1;
/// Below this share, one size of elements is chance, in percent of the other's bytes.
const CHANCE_PERCENT: u64 = 2;

/// Why sizes do not tell shapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoShapes {
    /// No block is known to be a parameter.
    NoParameters,
    /// So few parameters that any widths would fit.
    FewParameters,
    /// The activations are those of convolutions, whose shapes have more than two dimensions.
    Convolutions,
    /// Most bytes of the model's tensors that stay are no trained weights: weights whose elements
    /// are packed, four bits each.
    Packed,
    /// The parameters are parts of larger ones, and no number of ranks fits.
    Shards,
    /// Few widths do not explain the parameters.
    ManyWidths {
        /// The number of widths that would be needed, if any number explains them.
        widths: Option<usize>,
    },
}

/// A shape that fits a block.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Dimensions. Of two widths the larger comes first: their order does not show in a size.
    pub dims: Vec<u64>,
    /// Bytes of an element.
    pub element_bytes: u64,
}

/// The shapes that fit a block.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shapes {
    /// All shapes that fit; empty if none does.
    pub shapes: Vec<Shape>,
    /// No other shape is plausible for the operation that allocated the block.
    pub is_certain: bool,
}

/// The dimensions of a model, and of its data at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dims {
    /// The widths; two readings where sizes do not tell the size of elements.
    pub widths: Vec<Widths>,
    /// Tokens of the live activations: batch x sequence. `None` if no input fits them.
    pub tokens: Option<u64>,
    /// Tokens of other inputs of the recording: what their batches left may be live, too.
    other_tokens: Vec<u64>,
    /// Sizes of elements in bytes that the live activations have.
    elements: Vec<u64>,
    /// Sizes of parameters in bytes, ascending.
    parameters: Vec<u64>,
}

/// What allocated a block, as far as it limits shapes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// Scores have heads x sequence x sequence elements, which can equal tokens x a width.
    Attention,
    /// A mask has a byte an element, and attention drops scores.
    Dropout,
    Convolution,
    Other,
}

impl Dims {
    /// The dimensions of the blocks that are live in `slot`. With widths that are `given`, the
    /// sizes of parameters are not asked.
    ///
    /// # Errors
    /// The sizes do not tell dimensions.
    pub async fn at<'a>(
        snapshot: &Snapshot,
        trace: &'a Trace,
        categories: &Categories,
        slot: u32,
        given: Option<Vec<Widths>>,
        budget: &mut Budget,
    ) -> Result<Self, NoShapes> {
        let mut parameters: Vec<&Block> = Vec::new();
        let mut activations: Vec<&Block> = Vec::new();
        let (mut inputs, mut live) = (Vec::new(), Vec::new());
        let mut buffers = 0_u64;
        let visit = |index, block: &'a Block| {
            let is_live = block.is_live_at(slot);
            if is_live {
                live.push((block.stack, ()));
            }
            match categories.get(index).category {
                // A copy in another precision is no parameter.
                Category::Parameter if categories.copy(index).is_some() => {}
                Category::Parameter => parameters.push(block),
                Category::Buffer if is_live => buffers = buffers.saturating_add(block.bytes.0),
                Category::Input => inputs.push(block.bytes.0),
                category if is_live && is_of_data(category) && block.bytes.0 >= MIN_BYTES => {
                    activations.push(block);
                }
                _ => {}
            }
        };
        trace.each_block(1, budget, visit).await;
        let stays = |block: &&Block| block.is_preexisting() || block.leaves == trace.slots();
        let staying: Vec<u64> =
            parameters.iter().copied().filter(stays).map(|block| block.bytes.0).collect();
        let sizes = if staying.is_empty() {
            parameters.iter().map(|block| block.bytes.0).collect()
        } else {
            staying
        };
        // Many blocks share a stack or a size, and each is looked at once.
        let by_stack = group_by_key(activations.iter().map(|b| (b.stack, b.bytes.0)).collect());
        let is_convolved = |stack: StackId| operation(snapshot, stack) == Operation::Convolution;
        let convolved = by_stack.into_iter().filter(|(stack, _)| is_convolved(*stack));
        let convolved: u64 = convolved.flat_map(|(_, bytes)| bytes).sum();
        let by_size: Vec<(u64, u64)> =
            group_by_key(activations.iter().map(|b| (b.bytes.0, ())).collect())
                .into_iter()
                .map(|(bytes, of)| (bytes, bytes.saturating_mul(of.len() as u64)))
                .collect();
        let sum = |bytes: u64| bytes.saturating_mul(100);
        let total: u64 = activations.iter().map(|block| block.bytes.0).sum();
        let are_convolved = sum(convolved) > total.saturating_mul(MAX_CONVOLUTIONS_PERCENT);
        let widths = match given {
            Some(widths) => widths,
            None if are_convolved => return Err(NoShapes::Convolutions),
            None if buffers > sizes.iter().fold(0, |sum, size| size.saturating_add(sum))
                || are_packed(snapshot, &parameters) =>
            {
                return Err(NoShapes::Packed);
            }
            None => {
                let stacks = group_by_key(live);
                let are_sharded =
                    stacks.into_iter().any(|(stack, _)| has_file(snapshot, stack, "fsdp"));
                widths::widths(&sizes, are_sharded)?
            }
        };
        let inputs = inputs.into_iter().filter(|bytes| bytes % 8 == 0 && *bytes > 8);
        let inputs = inputs.map(|bytes| bytes / 8);
        let mut parameters = sizes;
        parameters.sort_unstable();
        parameters.dedup();
        let mut dims = Self {
            widths,
            tokens: None,
            other_tokens: Vec::new(),
            elements: ELEMENTS.to_vec(),
            parameters,
        };
        let fits = |tokens: u64| {
            let fits = |size: u64| !dims.of_data(size, tokens, &dims.elements).is_empty();
            by_size.iter().filter(|size| fits(size.0)).map(|size| size.1).sum::<u64>()
        };
        let tokens = group_by_key(inputs.map(|tokens| (tokens, ())).collect());
        let best = tokens.iter().map(|&(tokens, _)| (fits(tokens), tokens)).max();
        dims.tokens = best
            .filter(|(fitting, _)| sum(*fitting) >= total.saturating_mul(MIN_TOKENS_PERCENT))
            .map(|(_, tokens)| tokens);
        dims.elements = dims.elements_of(&by_size);
        let others = tokens.into_iter().map(|(tokens, _)| tokens);
        dims.other_tokens = others.filter(|&tokens| Some(tokens) != dims.tokens).collect();
        Ok(dims)
    }

    /// The sizes of elements of activations. A size that only few bytes need is left out.
    ///
    /// `by_size` has the size of a block and the bytes of all blocks of it.
    fn elements_of(&self, by_size: &[(u64, u64)]) -> Vec<u64> {
        let Some(tokens) = self.tokens else { return self.elements.clone() };
        let needs = ELEMENTS.map(|element| {
            let only = by_size.iter().filter(|size| {
                let shapes = self.of_data(size.0, tokens, &self.elements);
                !shapes.is_empty() && shapes.iter().all(|shape| shape.element_bytes == element)
            });
            only.map(|size| size.1).sum::<u64>()
        });
        let most = needs.iter().copied().max().unwrap_or(0);
        let is_used = |bytes: u64| bytes.saturating_mul(100) > most.saturating_mul(CHANCE_PERCENT);
        let used = ELEMENTS.iter().zip(needs).filter(|(_, bytes)| most == 0 || is_used(*bytes));
        used.map(|(element, _)| *element).collect()
    }

    /// The shapes that fit a block of this size, category and stack.
    pub fn shapes(
        &self,
        snapshot: &Snapshot,
        bytes: u64,
        category: Category,
        stack: StackId,
    ) -> Shapes {
        if bytes < MIN_BYTES {
            return Shapes::default();
        }
        let mut is_doubtful = false;
        let mut shapes = match category {
            Category::Parameter | Category::Gradient | Category::OptimizerState => {
                self.of_parameter(bytes)
            }
            category if is_of_data(category) => {
                let operation = operation(snapshot, stack);
                let shapes = self.of_batches(bytes, operation);
                let hidden = |shape: &Shape| {
                    self.widths.iter().any(|widths| shape.dims[1..] == [widths.hidden])
                };
                is_doubtful = match operation {
                    Operation::Attention => true,
                    // Of scores, or of what an inner layer gives.
                    Operation::Dropout => !shapes.iter().all(hidden),
                    Operation::Convolution | Operation::Other => false,
                };
                is_doubtful |= self.may_be_of_parameter(bytes, category, &shapes);
                shapes
            }
            _ => Vec::new(),
        };
        shapes.sort();
        shapes.dedup();
        Shapes { is_certain: shapes.len() == 1 && !is_doubtful, shapes }
    }

    /// Whether a block of data may have the shape of a parameter, as temporaries of an optimizer
    /// and weights in another precision have.
    fn may_be_of_parameter(&self, bytes: u64, category: Category, shapes: &[Shape]) -> bool {
        let is_usual = |element: u64| self.widths.iter().any(|of| of.element_bytes == element);
        self.parameters.binary_search(&bytes).is_ok()
            && (category != Category::Activation
                || shapes.iter().any(|shape| !is_usual(shape.element_bytes)))
    }

    /// Shapes of data, if a shape of the batch at the peak is among them: those of its tokens, and
    /// those of the tokens of other batches, with elements as the parameters have.
    fn of_batches(&self, bytes: u64, operation: Operation) -> Vec<Shape> {
        let Some(tokens) = self.tokens else { return Vec::new() };
        let mut shapes = self.of_data(bytes, tokens, &self.elements);
        if shapes.is_empty() {
            return shapes;
        }
        if operation == Operation::Dropout {
            shapes.extend(self.of_data(bytes, tokens, &[MASK]));
        }
        let elements: Vec<u64> = self.widths.iter().map(|widths| widths.element_bytes).collect();
        for &other in &self.other_tokens {
            shapes.extend(self.of_data(bytes, other, &elements));
        }
        shapes
    }

    /// Shapes of a parameter, its gradient or its optimizer state.
    fn of_parameter(&self, bytes: u64) -> Vec<Shape> {
        let mut exact = Vec::new();
        for widths in &self.widths {
            exact.extend(widths.shapes(bytes, widths.element_bytes));
        }
        if !exact.is_empty() {
            return exact;
        }
        // State in `float32` of parameters in 16 bits, and the other way round.
        let other = |widths: &Widths| widths.shapes(bytes, 6 - widths.element_bytes);
        self.widths.iter().flat_map(other).collect()
    }

    /// Shapes with one dimension of tokens.
    fn of_data(&self, bytes: u64, tokens: u64, elements: &[u64]) -> Vec<Shape> {
        let mut shapes = Vec::new();
        for &width in self.widths.iter().flat_map(|widths| &widths.all) {
            for &element_bytes in elements {
                if tokens.checked_mul(width.saturating_mul(element_bytes)) == Some(bytes) {
                    let shape = Shape { dims: vec![tokens, width], element_bytes };
                    if !shapes.contains(&shape) {
                        shapes.push(shape);
                    }
                }
            }
        }
        shapes
    }
}

impl Widths {
    /// Shapes of a parameter of this size, or of a rank's part of it.
    fn shapes(&self, bytes: u64, element_bytes: u64) -> Vec<Shape> {
        let Some(whole) = bytes.checked_mul(self.ranks).filter(|b| b % element_bytes == 0) else {
            return Vec::new();
        };
        let elements = whole / element_bytes;
        let part = |width: u64| width / self.ranks;
        let vector = self.all.iter().filter(|&&width| width == elements);
        let matrix =
            self.all.iter().filter(|&&width| width.saturating_mul(self.hidden) == elements);
        let vectors = vector.map(|&width| vec![part(width)]);
        let matrices = matrix.map(|&width| {
            // Shards are parts of the first dimension, whose place is known by that.
            if width >= self.hidden || self.ranks > 1 {
                vec![part(width), self.hidden]
            } else {
                vec![self.hidden, width]
            }
        });
        vectors.chain(matrices).map(|dims| Shape { dims, element_bytes }).collect()
    }
}

fn is_of_data(category: Category) -> bool {
    matches!(category, Category::Activation | Category::Temporary | Category::Unknown)
}

/// Functions that pack the elements of weights.
const PACKING: [&str; 4] = ["quantize", "4bit", "nf4", "pack_weight"];

/// Whether code that packs elements allocated most bytes of these blocks.
fn are_packed(snapshot: &Snapshot, blocks: &[&Block]) -> bool {
    let by_stack = group_by_key(blocks.iter().map(|b| (b.stack, b.bytes.0)).collect());
    let (mut packed, mut all) = (0_u64, 0_u64);
    for (stack, bytes) in by_stack {
        let bytes = bytes.into_iter().fold(0_u64, u64::saturating_add);
        all = all.saturating_add(bytes);
        let is_packed = snapshot.stack(stack).any(|frame| {
            let name = snapshot.text(frame.name).to_ascii_lowercase();
            PACKING.iter().any(|word| name.contains(word)) && !name.contains("dequantize")
        });
        packed = packed.saturating_add(if is_packed { bytes } else { 0 });
    }
    packed > all / 2
}

fn has_file(snapshot: &Snapshot, stack: StackId, part: &str) -> bool {
    snapshot.stack(stack).any(|frame| snapshot.text(frame.file).contains(part))
}

/// Names of functions, in Python and in C++, that allocate scores of attention.
const ATTENTION: [&str; 6] = ["softmax", "bmm", "matmul", "attention", "attn", "masked_fill"];
/// A linear layer calls a product, too, whose result has its width.
const LINEAR: [&str; 2] = ["linear", "addmm"];

/// The operation by the innermost frames, up to the first of the program.
fn operation(snapshot: &Snapshot, stack: StackId) -> Operation {
    let mut found = Operation::Other;
    for frame in snapshot.stack(stack) {
        let (name, file) = (snapshot.text(frame.name), snapshot.text(frame.file));
        let is_linear = LINEAR.iter().any(|word| name.contains(word));
        if is_linear || file.ends_with("/linear.py") || name.contains("log_softmax") {
            return Operation::Other;
        }
        if name.contains("conv") && !name.contains("convert") {
            return Operation::Convolution;
        }
        if name.contains("dropout") {
            found = Operation::Dropout;
        } else if ATTENTION.iter().any(|word| name.contains(word)) {
            found = Operation::Attention;
        }
        if !is_framework_frame(&name, &file) {
            break;
        }
    }
    found
}
