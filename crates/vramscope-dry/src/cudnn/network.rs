//! Sizes of recurrent networks: weights as the documentation of cuDNN lays them out, scratch memory
//! by formula. No cuDNN answers these without a device.

use super::tensor::element_bytes;
use std::ffi::c_int;

/// Which bias vectors a cell has: `cudnnRNNBiasMode_t`.
pub(super) const BIAS_NONE: c_int = 0;
pub(super) const BIAS_BOTH: c_int = 2;
pub(super) const BIAS_RECURRENT: c_int = 3;

/// A network of `cudnnRNNDescriptor_t`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    /// 0 and 1: a plain cell, 2: LSTM, 3: GRU.
    pub(super) cell: c_int,
    pub(super) bias: c_int,
    /// 1, or 2 if it is bidirectional.
    pub(super) directions: i64,
    pub(super) data_type: c_int,
    /// Sizes of the input, the hidden state and its projection, in elements.
    pub(super) input: i64,
    pub(super) hidden: i64,
    /// 0, or equal to `hidden`: the hidden state is not projected.
    pub(super) projection: i64,
    pub(super) layers: i64,
}

/// A matrix or a bias vector in the weights.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// Bytes from the start of the weights.
    pub(super) offset: i64,
    pub(super) rows: i64,
    pub(super) columns: i64,
}

impl Network {
    /// Matrices that the input is multiplied with; as many are for the hidden state.
    pub(super) fn gates(&self) -> i64 {
        match self.cell {
            2 => 4,
            3 => 3,
            _ => 1,
        }
    }

    fn is_projected(&self) -> bool {
        self.projection != 0 && self.projection != self.hidden
    }

    /// Elements of a step's output.
    fn output(&self) -> i64 {
        if self.is_projected() { self.projection } else { self.hidden }
    }

    /// Layers, those of both directions counted.
    pub(super) fn pseudo_layers(&self) -> i64 {
        self.layers * self.directions
    }

    /// Elements of a step's input to a layer.
    fn input_of(&self, layer: i64) -> i64 {
        if layer < self.directions { self.input } else { self.output() * self.directions }
    }

    /// Elements of all matrices of a layer.
    fn matrices(&self, layer: i64) -> i64 {
        let projection = if self.is_projected() { self.hidden * self.output() } else { 0 };
        self.gates() * self.hidden * (self.input_of(layer) + self.output()) + projection
    }

    /// Elements of all bias vectors of a layer.
    fn biases(&self) -> i64 {
        let sets = match self.bias {
            BIAS_NONE => 0,
            BIAS_BOTH => 2,
            _ => 1,
        };
        sets * self.gates() * self.hidden
    }

    /// Bytes of all weights: the matrices of all layers, then their bias vectors.
    pub(super) fn weight_bytes(&self) -> i64 {
        let matrices: i64 = (0..self.pseudo_layers()).map(|layer| self.matrices(layer)).sum();
        (matrices + self.pseudo_layers() * self.biases()) * element_bytes(self.data_type)
    }

    /// Matrix `id` of a layer: first those for the input, then those for the hidden state, then the
    /// projection.
    pub(super) fn matrix(&self, layer: i64, id: i64) -> Option<Part> {
        let (gates, input) = (self.gates(), self.input_of(layer));
        let before: i64 = (0..layer).map(|layer| self.matrices(layer)).sum();
        let (at, rows, columns) = if id < gates {
            (id * self.hidden * input, self.hidden, input)
        } else if id < 2 * gates {
            let at = gates * input + (id - gates) * self.output();
            (at * self.hidden, self.hidden, self.output())
        } else if id == 2 * gates && self.is_projected() {
            (gates * self.hidden * (input + self.output()), self.output(), self.hidden)
        } else {
            return None;
        };
        Some(Part { offset: (before + at) * element_bytes(self.data_type), rows, columns })
    }

    /// The bias vector beside matrix `id` of a layer.
    pub(super) fn bias(&self, layer: i64, id: i64) -> Option<Part> {
        let gates = self.gates();
        let is_there = match self.bias {
            BIAS_NONE => false,
            BIAS_BOTH => id < 2 * gates,
            BIAS_RECURRENT => (gates..2 * gates).contains(&id),
            _ => id < gates,
        };
        let at = if self.bias == BIAS_BOTH { id } else { id % gates };
        let matrices: i64 = (0..self.pseudo_layers()).map(|layer| self.matrices(layer)).sum();
        let offset = matrices + layer * self.biases() + at * self.hidden;
        let offset = offset * element_bytes(self.data_type);
        is_there.then_some(Part { offset, rows: self.hidden, columns: 1 })
    }

    /// Bytes of scratch memory for inputs of `steps`, the batches of all time steps added: the
    /// gates of the whole sequence.
    pub(super) fn work_bytes(&self, steps: i64) -> i64 {
        steps * self.hidden * element_bytes(self.data_type) * self.gates() * self.directions
    }

    /// Bytes that the forward pass keeps for the backward pass: gates, cell and output of each
    /// layer.
    pub(super) fn reserve_bytes(&self, steps: i64) -> i64 {
        let state = steps * self.hidden * element_bytes(self.data_type);
        self.pseudo_layers() * state * (self.gates() + 2)
    }
}
