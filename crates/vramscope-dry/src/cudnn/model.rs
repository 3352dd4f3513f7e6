//! A model of plans and their workspaces, for when the user has no cuDNN that answers.
//!
//! It was read off recordings of an H100. Kernels for channels innermost (NHWC) need next to no
//! workspace. With channels outermost (NCHW) the kernels of the tensor cores work on copies in
//! NHWC, whose channels are padded to 16 bytes.

use super::names::{attribute, element, kind};
use super::records::{Record, Values};
use super::tensor::Tensor;
use std::ffi::c_int;

/// Plans that the heuristics answer, in this order.
pub(super) const PLANS: usize = 3;
/// The place of the plan that runs without a search.
pub(super) const USUAL: usize = 0;
/// The place of a plan that only a search pays for.
pub(super) const LARGER: usize = 1;

/// The gradients that attention computes take this many matrix products.
const ATTENTION_BACKWARD_MATMULS: usize = 5;

/// The result of a convolution: its output, or the gradient of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// The output.
    Forward,
    /// The gradient of the input.
    Data,
    /// The gradient of the weights.
    Filter,
}

/// A convolution, or the gradient of one.
#[derive(Debug)]
pub(super) struct Convolution {
    pub(super) direction: Direction,
    pub(super) w: Tensor,
    pub(super) x: Tensor,
    pub(super) y: Tensor,
}

impl Convolution {
    /// The convolution that a record of an operation describes.
    fn of(operation: &Record) -> Option<Self> {
        let (direction, first) = match operation.kind {
            kind::CONVOLUTION_FORWARD => (Direction::Forward, attribute::FORWARD_W),
            kind::CONVOLUTION_DATA => (Direction::Data, attribute::DATA_W),
            kind::CONVOLUTION_FILTER => (Direction::Filter, attribute::FILTER_W),
            _ => return None,
        };
        let tensor = |at| operation.record(first + at).map(|record| tensor_of(&record));
        Some(Self { direction, w: tensor(0)?, x: tensor(1)?, y: tensor(2)? })
    }

    /// Whether it is a matrix product: 1x1 without a stride.
    fn is_matrix_product(&self) -> bool {
        let sizes = self.x.dims.iter().zip(&self.y.dims);
        self.w.dims.iter().zip(sizes).skip(2).all(|(w, (x, y))| *w == 1 && x == y)
    }

    /// The workspace of the plan at a place of the heuristics' answer, in bytes.
    pub(super) fn workspace(&self, plan: usize) -> i64 {
        let Self { w, x, y, .. } = self;
        let usual = if self.is_matrix_product() {
            // Parts of the sum over the batch.
            if self.direction == Direction::Filter { w.bytes() } else { 0 }
        } else if !x.is_channels_last() && !y.is_channels_last() {
            16 + x.padded_bytes() + y.padded_bytes() + w.padded_bytes()
        } else if x.padded_bytes() == x.bytes() {
            0
        } else {
            16 + x.padded_bytes() + w.padded_bytes()
        };
        match plan {
            USUAL => usual,
            LARGER => usual + x.bytes(),
            _ => 0,
        }
    }
}

fn tensor_of(record: &Record) -> Tensor {
    Tensor {
        data_type: record.integers(attribute::TENSOR_TYPE).first().map_or(0, |of| *of as c_int),
        dims: record.integers(attribute::TENSOR_DIMENSIONS),
        strides: record.integers(attribute::TENSOR_STRIDES),
    }
}

/// The workspace of a configuration that the heuristics answered, in bytes. One that the caller
/// made from an engine has none.
fn workspace(config: &Record) -> i64 {
    let Some(graph) = config.record(attribute::HEURISTICS_GRAPH) else { return 0 };
    let operations = graph.records(attribute::GRAPH_OPERATIONS);
    let matmuls = operations.iter().filter(|operation| operation.kind == kind::MATMUL).count();
    if matmuls >= ATTENTION_BACKWARD_MATMULS {
        // PyTorch's own part of cuDNN, the frontend, adds the accumulators.
        return 256;
    }
    let convolution = operations.first().and_then(|operation| Convolution::of(operation));
    convolution.map_or(0, |convolution| convolution.workspace(config.index()))
}

/// The model's answer to a question for an attribute.
pub(super) enum Answer {
    /// Elements, to copy into the caller's memory.
    Values(Values),
    /// The caller's own descriptors become results of the heuristics.
    Results,
    /// The caller's own descriptor becomes the engine with this number.
    Engine(usize),
    /// No elements.
    Nothing,
}

/// Answers for an attribute of a record, with elements of a type.
pub(super) fn get(record: &Record, name: c_int, of: c_int) -> Answer {
    if name == attribute::HEURISTICS_RESULTS {
        return Answer::Results;
    }
    if let Some(values) = record.get(name) {
        return Answer::Values(values);
    }
    let number = match name {
        attribute::PLAN_WORKSPACE => {
            record.record(attribute::PLAN_CONFIG).map_or(0, |config| workspace(&config))
        }
        attribute::CONFIG_WORKSPACE => workspace(record),
        attribute::CONFIG_ENGINE => return Answer::Engine(record.index()),
        attribute::ENGINE_INDEX => record.index() as i64,
        // Shared memory of a configuration, engines of a graph.
        _ => 0,
    };
    match of {
        element::INT64 => Answer::Values(Values::Plain { of, bytes: number.to_ne_bytes().into() }),
        element::INT32 => {
            Answer::Values(Values::Plain { of, bytes: (number as i32).to_ne_bytes().into() })
        }
        _ => Answer::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::{Convolution, Direction, LARGER, PLANS, USUAL};
    use crate::cudnn::tensor::Tensor;

    /// 16 images of 3 x 224 x 224 to 64 x 112 x 112 by 7x7, as ResNet-50 begins.
    fn stem(data_type: i32) -> Convolution {
        Convolution {
            direction: Direction::Forward,
            w: Tensor::packed(data_type, &[64, 3, 7, 7]),
            x: Tensor::packed(data_type, &[16, 3, 224, 224]),
            y: Tensor::packed(data_type, &[16, 64, 112, 112]),
        }
    }

    fn channels_last(tensor: &Tensor) -> Tensor {
        let [n, c, h, w] = tensor.dims[..].try_into().expect("four dimensions");
        let data_type = tensor.data_type;
        Tensor { data_type, dims: vec![n, c, h, w], strides: vec![c * h * w, 1, w * c, c] }
    }

    #[test]
    fn workspace_has_padded_copies_of_nchw() {
        // Three channels of floats are padded to four: 16 x 4 x 224 x 224 x 4, 16 x 64 x 112 x 112
        // x 4, 64 x 4 x 7 x 7 x 4.
        let usual = 16 + 12_845_056 + 51_380_224 + 50_176;
        let workspaces: Vec<_> = (0..PLANS).map(|plan| stem(0).workspace(plan)).collect();
        assert_eq!(workspaces, [usual, usual + 9_633_792, 0]);
    }

    #[test]
    fn workspace_of_nhwc_is_padding_only() {
        let mut convolution = stem(2);
        convolution.x = channels_last(&convolution.x);
        convolution.y = channels_last(&convolution.y);
        // Three channels of two bytes are padded to eight.
        assert_eq!(convolution.workspace(USUAL), 16 + 12_845_056 + 50_176);
        convolution.x = channels_last(&Tensor::packed(2, &[16, 8, 224, 224]));
        assert_eq!(convolution.workspace(USUAL), 0);
        assert_eq!(convolution.workspace(LARGER), 12_845_056);
    }

    #[test]
    fn workspace_of_a_matrix_product_is_that_of_its_weights() {
        let mut convolution = Convolution {
            direction: Direction::Forward,
            w: Tensor::packed(0, &[256, 64, 1, 1]),
            x: Tensor::packed(0, &[16, 64, 56, 56]),
            y: Tensor::packed(0, &[16, 256, 56, 56]),
        };
        assert_eq!(convolution.workspace(USUAL), 0);
        convolution.direction = Direction::Filter;
        assert_eq!(convolution.workspace(USUAL), 256 * 64 * 4);
        // With a stride of 2 it is none.
        convolution.y = Tensor::packed(0, &[16, 256, 28, 28]);
        assert_eq!(convolution.workspace(USUAL), 16 + 12_845_056 + 12_845_056 + 65_536);
    }
}
