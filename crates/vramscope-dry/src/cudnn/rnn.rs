//! Recurrent networks and dropout.
#![expect(unsafe_code, reason = "the functions have the interface of C")]

use super::legacy::{Opaque, descriptors, kernels};
use super::network::{Network, Part};
use super::status::{SUCCESS, answer, bad_param, not_supported};
use super::tensor::Tensor;
use crate::abi::api;
use crate::settings::settings;
use std::ffi::{c_int, c_void};

/// Bytes of a random number generator's state. Dropout has one for each thread that a device can
/// hold.
const GENERATOR_BYTES: usize = 16;

/// Lengths and batch of an input, `cudnnRNNDataDescriptor_t`.
#[derive(Default)]
pub(crate) struct Sequences {
    /// Time steps of the longest sequence.
    steps: i64,
    batch: i64,
}

descriptors! {
    cudnnCreateDropoutDescriptor cudnnDestroyDropoutDescriptor Opaque;
    cudnnCreateRNNDescriptor cudnnDestroyRNNDescriptor Network;
    cudnnCreateRNNDataDescriptor cudnnDestroyRNNDataDescriptor Sequences;
}

kernels! {
    cudnnSetDropoutDescriptor
    cudnnRestoreDropoutDescriptor
    cudnnRNNForward
    cudnnRNNBackwardData_v8
    cudnnRNNBackwardWeights_v8
}

api! {
    fn cudnnDropoutGetStatesSize(_handle: *mut c_void, bytes: *mut usize) -> c_int {
        let gpu = &settings().gpu;
        let threads = gpu.multiprocessors as usize * gpu.threads_per_multiprocessor as usize;
        answer(bytes, threads * GENERATOR_BYTES)
    }

    fn cudnnSetRNNDescriptor_v8(
        network: *mut Network,
        _algorithm: c_int,
        cell: c_int,
        bias: c_int,
        direction: c_int,
        input_mode: c_int,
        data_type: c_int,
        _math_precision: c_int,
        _math_type: c_int,
        input: i32,
        hidden: i32,
        projection: i32,
        layers: i32,
        _dropout: *const Opaque,
        _flags: u32,
    ) -> c_int {
        let Some(network) = network.as_mut() else { return bad_param() };
        // Without matrices for the input: PyTorch has no such network.
        if input_mode != 0 {
            return not_supported();
        }
        *network = Network {
            cell,
            bias,
            directions: if direction == 0 { 1 } else { 2 },
            data_type,
            input: input.into(),
            hidden: hidden.into(),
            projection: projection.into(),
            layers: layers.into(),
        };
        SUCCESS
    }

    fn cudnnSetRNNDataDescriptor(
        sequences: *mut Sequences,
        _data_type: c_int,
        _layout: c_int,
        steps: c_int,
        batch: c_int,
        _vector: c_int,
        _lengths: *const c_int,
        _fill: *const c_void,
    ) -> c_int {
        answer(sequences, Sequences { steps: steps.into(), batch: batch.into() })
    }

    fn cudnnGetRNNWeightSpaceSize(
        _handle: *mut c_void,
        network: *const Network,
        bytes: *mut usize,
    ) -> c_int {
        let Some(network) = network.as_ref() else { return bad_param() };
        answer(bytes, network.weight_bytes() as usize)
    }

    fn cudnnGetRNNWeightParams(
        _handle: *mut c_void,
        network: *const Network,
        layer: i32,
        _bytes: usize,
        weights: *mut c_void,
        id: i32,
        matrix: *mut Tensor,
        matrix_address: *mut *mut c_void,
        bias: *mut Tensor,
        bias_address: *mut *mut c_void,
    ) -> c_int {
        let Some(network) = network.as_ref() else { return bad_param() };
        if i64::from(layer) >= network.pseudo_layers() || layer < 0 || id < 0 {
            return bad_param();
        }
        let parts = [
            (network.matrix(layer.into(), id.into()), matrix, matrix_address),
            (network.bias(layer.into(), id.into()), bias, bias_address),
        ];
        for (part, tensor, address) in parts {
            let dims = part.as_ref().map(|part| [1, part.rows, part.columns]);
            if let Some(tensor) = tensor.as_mut() {
                // Without dimensions: the network has no such part.
                let dims = dims.as_ref().map_or(&[][..], |dims| dims);
                *tensor = Tensor::packed(network.data_type, dims);
            }
            if let Some(address) = address.as_mut() {
                let place = |part: Part| weights.wrapping_byte_offset(part.offset as isize);
                *address = part.map_or(std::ptr::null_mut(), place);
            }
        }
        SUCCESS
    }

    fn cudnnGetRNNTempSpaceSizes(
        _handle: *mut c_void,
        network: *const Network,
        mode: c_int,
        x: *const Sequences,
        work: *mut usize,
        reserve: *mut usize,
    ) -> c_int {
        let (Some(network), Some(x)) = (network.as_ref(), x.as_ref()) else { return bad_param() };
        let steps = x.steps * x.batch;
        if let Some(work) = work.as_mut() {
            *work = network.work_bytes(steps) as usize;
        }
        if let Some(reserve) = reserve.as_mut() {
            *reserve = if mode == 0 { 0 } else { network.reserve_bytes(steps) as usize };
        }
        SUCCESS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cudnn::network::{BIAS_BOTH, BIAS_NONE, BIAS_RECURRENT};
    use std::ptr::{null, null_mut};

    /// A network, by the exported function.
    fn network(cell: c_int, bias: c_int, direction: c_int, sizes: [i32; 4]) -> *mut Network {
        let [input, hidden, projection, layers] = sizes;
        let mut network = null_mut();
        // SAFETY: the pointers are those of variables.
        unsafe {
            assert_eq!(cudnnCreateRNNDescriptor(&raw mut network), SUCCESS);
            let status = cudnnSetRNNDescriptor_v8(
                network,
                0,
                cell,
                bias,
                direction,
                0,
                0,
                0,
                0,
                input,
                hidden,
                projection,
                layers,
                null(),
                0,
            );
            assert_eq!(status, SUCCESS);
        }
        network
    }

    fn weight_bytes(network: *const Network) -> usize {
        let mut bytes = 0;
        // SAFETY: the network is one of this test.
        let status = unsafe { cudnnGetRNNWeightSpaceSize(null_mut(), network, &raw mut bytes) };
        assert_eq!(status, SUCCESS);
        bytes
    }

    /// Dimensions and offset of matrix and bias.
    fn parts(network: *const Network, layer: i32, id: i32) -> [(Vec<i64>, Option<usize>); 2] {
        const BASE: usize = 1 << 20;
        let (mut tensors, mut places) = ([Tensor::default(), Tensor::default()], [null_mut(); 2]);
        let [matrix, bias] = &mut tensors;
        let [matrix_place, bias_place] = &mut places;
        // SAFETY: the network is one of this test, and nothing reads the weights.
        let status = unsafe {
            cudnnGetRNNWeightParams(
                null_mut(),
                network,
                layer,
                0,
                BASE as *mut c_void,
                id,
                matrix,
                matrix_place,
                bias,
                bias_place,
            )
        };
        assert_eq!(status, SUCCESS);
        let offset = |place: *mut c_void| (!place.is_null()).then(|| place as usize - BASE);
        let [matrix, bias] = tensors.map(|tensor| tensor.dims);
        [(matrix, offset(places[0])), (bias, offset(places[1]))]
    }

    fn temporary_bytes(network: *const Network, mode: c_int) -> (usize, usize) {
        let (mut sequences, mut work, mut reserve) = (null_mut(), 1, 1);
        // SAFETY: the pointers are those of variables and of this test.
        unsafe {
            assert_eq!(cudnnCreateRNNDataDescriptor(&raw mut sequences), SUCCESS);
            cudnnSetRNNDataDescriptor(sequences, 0, 0, 5, 8, 10, null(), null());
            cudnnGetRNNTempSpaceSizes(
                null_mut(),
                network,
                mode,
                sequences,
                &raw mut work,
                &raw mut reserve,
            );
            assert_eq!(cudnnDestroyRNNDataDescriptor(sequences), SUCCESS);
        }
        (work, reserve)
    }

    fn drop_network(network: *mut Network) {
        // SAFETY: the network is one of this test.
        assert_eq!(unsafe { cudnnDestroyRNNDescriptor(network) }, SUCCESS);
    }

    #[test]
    fn lstm_weights_are_four_gates_with_two_biases() {
        let lstm = network(2, BIAS_BOTH, 0, [10, 20, 20, 2]);
        // 4 x 20 x (10 + 20), 4 x 20 x (20 + 20) elements, 2 layers x 2 x 4 x 20 biases.
        assert_eq!(weight_bytes(lstm), (2400 + 3200 + 320) * 4);
        // Gate 1 of the input; gate 0 of the hidden state.
        assert_eq!(parts(lstm, 0, 1)[0], (vec![1, 20, 10], Some(200 * 4)));
        assert_eq!(parts(lstm, 0, 4)[0], (vec![1, 20, 20], Some(800 * 4)));
        assert_eq!(parts(lstm, 1, 0)[0], (vec![1, 20, 20], Some(2400 * 4)));
        // Biases follow all matrices.
        assert_eq!(parts(lstm, 0, 7)[1], (vec![1, 20, 1], Some((5600 + 140) * 4)));
        assert_eq!(parts(lstm, 1, 0)[1], (vec![1, 20, 1], Some((5600 + 160) * 4)));
        // No projection.
        assert_eq!(parts(lstm, 0, 8), [(vec![], None), (vec![], None)]);
        drop_network(lstm);
    }

    #[test]
    fn second_layer_of_two_directions_reads_both() {
        let gru = network(3, 1, 1, [10, 20, 20, 2]);
        // Layer 0: 2 x 3 x 20 x (10 + 20); layer 1: 2 x 3 x 20 x (40 + 20); 4 x 3 x 20 biases.
        assert_eq!(weight_bytes(gru), (3600 + 7200 + 240) * 4);
        assert_eq!(parts(gru, 2, 0)[0], (vec![1, 20, 40], Some(3600 * 4)));
        // One bias vector, beside the matrices of the input.
        assert_eq!(parts(gru, 1, 2)[1], (vec![1, 20, 1], Some((10_800 + 100) * 4)));
        assert_eq!(parts(gru, 1, 3)[1], (vec![], None));
        drop_network(gru);
    }

    #[test]
    fn projection_follows_the_matrices_of_its_layer() {
        let lstm = network(2, BIAS_NONE, 0, [10, 20, 5, 2]);
        // 4 x 20 x (10 + 5) + 20 x 5; 4 x 20 x (5 + 5) + 20 x 5.
        assert_eq!(weight_bytes(lstm), (1300 + 900) * 4);
        assert_eq!(parts(lstm, 0, 8)[0], (vec![1, 5, 20], Some(1200 * 4)));
        assert_eq!(parts(lstm, 1, 0), [(vec![1, 20, 5], Some(1300 * 4)), (vec![], None)]);
        drop_network(lstm);
    }

    #[test]
    fn recurrent_bias_is_beside_the_hidden_state() {
        let cell = network(1, BIAS_RECURRENT, 0, [10, 20, 0, 1]);
        assert_eq!(weight_bytes(cell), (20 * 30 + 20) * 4);
        assert_eq!(parts(cell, 0, 0)[1], (vec![], None));
        assert_eq!(parts(cell, 0, 1)[1], (vec![1, 20, 1], Some(600 * 4)));
        drop_network(cell);
    }

    #[test]
    fn reserve_is_for_training_only() {
        let lstm = network(2, BIAS_BOTH, 0, [10, 20, 20, 2]);
        // 5 steps of 8 sequences: 40 x 20 x 4 bytes of a state, 4 gates; 2 layers x 6 states.
        assert_eq!(temporary_bytes(lstm, 1), (3200 * 4, 3200 * 12));
        assert_eq!(temporary_bytes(lstm, 0), (3200 * 4, 0));
        drop_network(lstm);
    }

    #[test]
    fn dropout_has_a_state_for_each_thread() {
        let mut bytes = 0;
        // SAFETY: the pointer is that of a variable.
        assert_eq!(unsafe { cudnnDropoutGetStatesSize(null_mut(), &raw mut bytes) }, SUCCESS);
        // An H100: 132 multiprocessors of 2,048 threads.
        assert_eq!(bytes, 132 * 2048 * 16);
    }
}
