//! Batch normalization and CTC loss. On an H100 neither needed memory beside its tensors.
#![expect(unsafe_code, reason = "the functions have the interface of C")]

use super::legacy::{Opaque, descriptors, kernels};
use super::status::answer;
use super::tensor::Tensor;
use crate::abi::api;
use std::ffi::{c_int, c_void};

descriptors! {
    cudnnCreateCTCLossDescriptor cudnnDestroyCTCLossDescriptor Opaque;
}

kernels! {
    cudnnBatchNormalizationForwardTrainingEx
    cudnnBatchNormalizationForwardInference
    cudnnBatchNormalizationBackwardEx
    cudnnSetCTCLossDescriptorEx
    cudnnSetCTCLossDescriptor_v9
    cudnnCTCLoss
    cudnnCTCLoss_v8
}

api! {
    fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
        _handle: *mut c_void,
        _mode: c_int,
        _operations: c_int,
        _x: *const Tensor,
        _z: *const Tensor,
        _y: *const Tensor,
        _scale: *const Tensor,
        _activation: *const Opaque,
        bytes: *mut usize,
    ) -> c_int {
        answer(bytes, 0)
    }

    fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(
        _handle: *mut c_void,
        _mode: c_int,
        _operations: c_int,
        _x: *const Tensor,
        _y: *const Tensor,
        _dy: *const Tensor,
        _dz: *const Tensor,
        _dx: *const Tensor,
        _scale: *const Tensor,
        _activation: *const Opaque,
        bytes: *mut usize,
    ) -> c_int {
        answer(bytes, 0)
    }

    fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
        _handle: *mut c_void,
        _mode: c_int,
        _operations: c_int,
        _activation: *const Opaque,
        _x: *const Tensor,
        bytes: *mut usize,
    ) -> c_int {
        answer(bytes, 0)
    }

    fn cudnnGetCTCLossWorkspaceSize(
        _handle: *mut c_void,
        _probabilities: *const Tensor,
        _gradients: *const Tensor,
        _labels: *const c_int,
        _label_lengths: *const c_int,
        _input_lengths: *const c_int,
        _algorithm: c_int,
        _loss: *const Opaque,
        bytes: *mut usize,
    ) -> c_int {
        answer(bytes, 0)
    }

    fn cudnnGetCTCLossWorkspaceSize_v8(
        _handle: *mut c_void,
        _algorithm: c_int,
        _loss: *const Opaque,
        _probabilities: *const Tensor,
        _gradients: *const Tensor,
        bytes: *mut usize,
    ) -> c_int {
        answer(bytes, 0)
    }
}
