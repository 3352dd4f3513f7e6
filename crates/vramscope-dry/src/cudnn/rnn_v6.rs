//! Recurrent networks as cuDNN 8 and PyTorch to 2.3 describe them: the input's size comes with each
//! question, lengths come as one tensor for each time step.
#![expect(unsafe_code, reason = "the functions have the interface of C")]

use super::legacy::{Filter, Opaque, kernels};
use super::network::{BIAS_BOTH, Network, Part};
use super::status::{SUCCESS, answer, bad_param, not_supported};
use super::tensor::Tensor;
use crate::abi::api;
use std::ffi::{c_int, c_void};

kernels! {
    cudnnSetRNNMatrixMathType
    cudnnRNNForwardInference
    cudnnRNNForwardTraining
    cudnnRNNBackwardData
    cudnnRNNBackwardWeights
}

api! {
    fn cudnnSetRNNDescriptor_v6(
        _handle: *mut c_void,
        network: *mut Network,
        hidden: c_int,
        layers: c_int,
        _dropout: *const Opaque,
        input_mode: c_int,
        direction: c_int,
        cell: c_int,
        _algorithm: c_int,
        data_type: c_int,
    ) -> c_int {
        let Some(network) = network.as_mut() else { return bad_param() };
        // Without matrices for the input: PyTorch has no such network.
        if input_mode != 0 {
            return not_supported();
        }
        *network = Network {
            cell,
            // The default of cuDNN, which PyTorch keeps.
            bias: BIAS_BOTH,
            directions: if direction == 0 { 1 } else { 2 },
            data_type,
            hidden: hidden.into(),
            layers: layers.into(),
            ..Network::default()
        };
        SUCCESS
    }

    fn cudnnSetRNNProjectionLayers(
        _handle: *mut c_void,
        network: *mut Network,
        recurrent: c_int,
        _output: c_int,
    ) -> c_int {
        let Some(network) = network.as_mut() else { return bad_param() };
        network.projection = recurrent.into();
        SUCCESS
    }

    fn cudnnGetRNNParamsSize(
        _handle: *mut c_void,
        network: *const Network,
        x: *const Tensor,
        bytes: *mut usize,
        data_type: c_int,
    ) -> c_int {
        let Some(network) = with_input(network, x) else { return bad_param() };
        answer(bytes, Network { data_type, ..network }.weight_bytes() as usize)
    }

    fn cudnnGetRNNLinLayerMatrixParams(
        _handle: *mut c_void,
        network: *const Network,
        layer: c_int,
        x: *const Tensor,
        weights: *const Filter,
        address: *mut c_void,
        id: c_int,
        out: *mut Filter,
        out_address: *mut *mut c_void,
    ) -> c_int {
        let Some(network) = of_weights(network, x, weights) else { return bad_param() };
        let part = network.matrix(layer.into(), id.into());
        place(&network, part, address, out, out_address)
    }

    fn cudnnGetRNNLinLayerBiasParams(
        _handle: *mut c_void,
        network: *const Network,
        layer: c_int,
        x: *const Tensor,
        weights: *const Filter,
        address: *mut c_void,
        id: c_int,
        out: *mut Filter,
        out_address: *mut *mut c_void,
    ) -> c_int {
        let Some(network) = of_weights(network, x, weights) else { return bad_param() };
        let part = network.bias(layer.into(), id.into());
        place(&network, part, address, out, out_address)
    }

    fn cudnnGetRNNWorkspaceSize(
        _handle: *mut c_void,
        network: *const Network,
        steps: c_int,
        x: *const *const Tensor,
        bytes: *mut usize,
    ) -> c_int {
        let Some((network, steps)) = with_inputs(network, steps, x) else { return bad_param() };
        answer(bytes, network.work_bytes(steps) as usize)
    }

    fn cudnnGetRNNTrainingReserveSize(
        _handle: *mut c_void,
        network: *const Network,
        steps: c_int,
        x: *const *const Tensor,
        bytes: *mut usize,
    ) -> c_int {
        let Some((network, steps)) = with_inputs(network, steps, x) else { return bad_param() };
        answer(bytes, network.reserve_bytes(steps) as usize)
    }
}

/// A network with the size of its input, the second dimension of a step.
///
/// # Safety
///
/// Each pointer is null or a descriptor of this library.
unsafe fn with_input(network: *const Network, x: *const Tensor) -> Option<Network> {
    // SAFETY: the caller's descriptors live during the call.
    let (network, x) = unsafe { (network.as_ref()?, x.as_ref()?) };
    Some(Network { input: *x.dims.get(1)?, ..network.clone() })
}

/// The same, with the type of the weights.
///
/// # Safety
///
/// As for [`with_input`].
unsafe fn of_weights(
    network: *const Network,
    x: *const Tensor,
    weights: *const Filter,
) -> Option<Network> {
    // SAFETY: the caller's descriptors live during the call.
    let (network, weights) = unsafe { (with_input(network, x)?, weights.as_ref()?) };
    Some(Network { data_type: weights.tensor.data_type, ..network })
}

/// A network with the size of its input, and the batches of all time steps added.
///
/// # Safety
///
/// `x` points to a descriptor for each step.
unsafe fn with_inputs(
    network: *const Network,
    steps: c_int,
    x: *const *const Tensor,
) -> Option<(Network, i64)> {
    let steps = usize::try_from(steps).ok()?;
    if x.is_null() || steps == 0 {
        return None;
    }
    // SAFETY: the caller has this many descriptors there.
    let x = unsafe { std::slice::from_raw_parts(x, steps) };
    let mut sum = 0;
    for step in x {
        // SAFETY: the caller's descriptors live during the call.
        sum += unsafe { step.as_ref() }?.dims.first()?;
    }
    // SAFETY: the same descriptors.
    Some((unsafe { with_input(network, x[0]) }?, sum))
}

/// Writes where a part of the weights is.
///
/// # Safety
///
/// Both last pointers are null or valid.
unsafe fn place(
    network: &Network,
    part: Option<Part>,
    weights: *mut c_void,
    out: *mut Filter,
    address: *mut *mut c_void,
) -> c_int {
    let Some(part) = part else { return bad_param() };
    // SAFETY: the caller's descriptor lives during the call.
    let Some(filter) = (unsafe { out.as_mut() }) else { return bad_param() };
    filter.tensor = Tensor::packed(network.data_type, &[1, part.rows, part.columns]);
    // SAFETY: the caller has memory for an address there.
    unsafe { answer(address, weights.wrapping_byte_offset(part.offset as isize)) }
}
