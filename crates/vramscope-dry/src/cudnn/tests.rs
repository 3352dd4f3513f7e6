//! The exported functions together, as PyTorch calls them, answered by the model.
#![expect(unsafe_code, reason = "the functions have the interface of C")]

use super::backend::*;
use super::convolution::*;
use super::legacy::*;
use super::names::{attribute, element, kind};
use super::records::Descriptor;
use super::rnn::*;
use super::rnn_v6::*;
use super::status::{SUCCESS, bad_param, not_supported};
use super::tensor::Tensor;
use std::ffi::c_int;
use std::ptr::{null, null_mut};

fn create(of: c_int) -> Descriptor {
    let mut descriptor = null_mut();
    // SAFETY: the pointer is that of a variable.
    assert_eq!(unsafe { cudnnBackendCreateDescriptor(of, &raw mut descriptor) }, SUCCESS);
    descriptor
}

fn set<T>(descriptor: Descriptor, name: c_int, of: c_int, values: &[T]) {
    assert_eq!(size_of::<T>(), element::size(of));
    // SAFETY: the values have the size of the type.
    let status = unsafe {
        cudnnBackendSetAttribute(descriptor, name, of, values.len() as i64, values.as_ptr().cast())
    };
    assert_eq!(status, SUCCESS);
}

fn link(descriptor: Descriptor, name: c_int, others: &[Descriptor]) {
    set(descriptor, name, element::DESCRIPTOR, others);
}

/// Fills `values` with an attribute. Returns how many elements the attribute has.
fn get<T>(descriptor: Descriptor, name: c_int, of: c_int, values: &mut [T]) -> i64 {
    let (mut count, wanted) = (-1, values.len() as i64);
    // SAFETY: the values have the size of the type.
    let status = unsafe {
        let values = values.as_mut_ptr().cast();
        cudnnBackendGetAttribute(descriptor, name, of, wanted, &raw mut count, values)
    };
    assert_eq!(status, SUCCESS);
    count
}

fn destroy(descriptors: &[Descriptor]) {
    for descriptor in descriptors {
        // SAFETY: the descriptor is one of this test.
        assert_eq!(unsafe { cudnnBackendDestroyDescriptor(*descriptor) }, SUCCESS);
    }
}

fn tensor(dims: [i64; 4]) -> Descriptor {
    let tensor = create(kind::TENSOR);
    set(tensor, attribute::TENSOR_TYPE, element::DATA_TYPE, &[0_i32]);
    set(tensor, attribute::TENSOR_DIMENSIONS, element::INT64, &dims);
    let strides = Tensor::packed(0, &dims).strides;
    set(tensor, attribute::TENSOR_STRIDES, element::INT64, &strides);
    tensor
}

/// 2 images of 4 x 8 x 8 to 8 x 8 x 8 by 3x3, in floats. Copies: 2,048 + 4,096 + 1,152 bytes.
const W: [i64; 4] = [8, 4, 3, 3];
const X: [i64; 4] = [2, 4, 8, 8];
const Y: [i64; 4] = [2, 8, 8, 8];
const USUAL_BYTES: usize = 16 + 2048 + 4096 + 1152;
const LARGER_BYTES: usize = USUAL_BYTES + 2048;

#[test]
fn plans_keep_the_operations_that_the_caller_destroyed() {
    let tensors = [W, X, Y].map(tensor);
    let operation = create(kind::CONVOLUTION_FORWARD);
    for (at, tensor) in tensors.iter().enumerate() {
        link(operation, attribute::FORWARD_W + at as c_int, &[*tensor]);
    }
    let (graph, heuristics) = (create(kind::GRAPH), create(kind::HEURISTICS));
    link(graph, attribute::GRAPH_OPERATIONS, &[operation]);
    link(heuristics, attribute::HEURISTICS_GRAPH, &[graph]);
    let mut none: [Descriptor; 0] = [];
    let (results, of) = (attribute::HEURISTICS_RESULTS, element::DESCRIPTOR);
    assert_eq!(get(heuristics, results, of, &mut none), 3);
    let mut configs = [(); 3].map(|()| create(kind::CONFIG));
    assert_eq!(get(heuristics, results, of, &mut configs), 3);
    let mut bytes = [-1_i64];
    get(configs[1], attribute::CONFIG_WORKSPACE, element::INT64, &mut bytes);
    assert_eq!(bytes, [LARGER_BYTES as i64]);
    let plans = configs.map(|config| {
        let plan = create(kind::PLAN);
        link(plan, attribute::PLAN_CONFIG, &[config]);
        // SAFETY: the descriptor is one of this test.
        assert_eq!(unsafe { cudnnBackendFinalize(plan) }, SUCCESS);
        plan
    });
    // The engine of a configuration tells its number.
    let mut engine = [create(kind::ENGINE)];
    get(configs[2], attribute::CONFIG_ENGINE, element::DESCRIPTOR, &mut engine);
    let mut index = [-1_i64];
    assert_eq!(get(engine[0], attribute::ENGINE_INDEX, element::INT64, &mut index), 1);
    assert_eq!(index, [2]);
    destroy(&[tensors.as_slice(), &[operation, graph, heuristics], &configs, &engine].concat());
    let workspaces = plans.map(|plan| {
        let mut bytes = [-1_i64];
        get(plan, attribute::PLAN_WORKSPACE, element::INT64, &mut bytes);
        bytes[0] as usize
    });
    assert_eq!(workspaces, [USUAL_BYTES, LARGER_BYTES, 0]);
    for plan in plans {
        // SAFETY: the descriptor is one of this test.
        assert_eq!(unsafe { cudnnBackendExecute(null_mut(), plan, null_mut()) }, SUCCESS);
    }
    destroy(&plans);
    // SAFETY: an address alone is looked up.
    assert_eq!(unsafe { cudnnBackendFinalize(plans[0]) }, bad_param());
}

/// Descriptors of the convolution above, as cuDNN 8 has them.
fn legacy() -> (*mut Filter, *mut Tensor, *mut Tensor) {
    let (mut w, mut x, mut y) = (null_mut(), null_mut(), null_mut());
    let ints = |dims: &[i64]| dims.iter().map(|dim| *dim as c_int).collect::<Vec<_>>();
    // SAFETY: all pointers are those of variables.
    unsafe {
        cudnnCreateFilterDescriptor(&raw mut w);
        cudnnSetFilterNdDescriptor(w, 0, 0, 4, ints(&W).as_ptr());
        for (out, dims) in [(&mut x, X), (&mut y, Y)] {
            cudnnCreateTensorDescriptor(out);
            let strides = ints(&Tensor::packed(0, &dims).strides);
            cudnnSetTensorNdDescriptor(*out, 0, 4, ints(&dims).as_ptr(), strides.as_ptr());
        }
    }
    (w, x, y)
}

#[test]
fn algorithms_have_the_workspaces_of_plans() {
    let (w, x, y) = legacy();
    let size = |algorithm| {
        let mut bytes = usize::MAX;
        // SAFETY: the descriptors are those of this test.
        let status = unsafe {
            cudnnGetConvolutionForwardWorkspaceSize(
                null_mut(),
                x,
                w,
                null(),
                y,
                algorithm,
                &raw mut bytes,
            )
        };
        if status == SUCCESS { Ok(bytes) } else { Err(status) }
    };
    assert_eq!([1, 7, 0].map(size), [Ok(USUAL_BYTES), Ok(LARGER_BYTES), Ok(0)]);
    // FFT.
    assert_eq!(size(4), Err(not_supported()));
    let (mut found, mut count) = (Vec::<Performance>::with_capacity(8), 0);
    // SAFETY: the descriptors are those of this test, the list has room for 8.
    unsafe {
        let status = cudnnFindConvolutionBackwardDataAlgorithmEx(
            null_mut(),
            w,
            null(),
            y,
            null(),
            null(),
            x,
            null_mut(),
            8,
            &raw mut count,
            found.as_mut_ptr(),
            null_mut(),
            USUAL_BYTES,
        );
        assert_eq!((status, count), (SUCCESS, 3));
        found.set_len(3);
    }
    // Algorithms with a larger workspace than that of the search did not run.
    let found: Vec<_> = found.iter().map(Performance::summary).collect();
    let failed = (5, not_supported(), LARGER_BYTES);
    assert_eq!(found, [(1, SUCCESS, USUAL_BYTES), (0, SUCCESS, 0), failed]);
    // SAFETY: the descriptors are those of this test.
    unsafe {
        cudnnDestroyFilterDescriptor(w);
        cudnnDestroyTensorDescriptor(x);
        cudnnDestroyTensorDescriptor(y);
    }
}

#[test]
fn version_6_of_a_network_has_the_weights_of_version_8() {
    let (mut network, mut x, mut bytes) = (null_mut(), null_mut(), 0);
    // SAFETY: all pointers are those of variables.
    unsafe {
        cudnnCreateRNNDescriptor(&raw mut network);
        // A bidirectional GRU of 20, two layers.
        cudnnSetRNNDescriptor_v6(null_mut(), network, 20, 2, null(), 0, 1, 3, 0, 0);
        cudnnCreateTensorDescriptor(&raw mut x);
        cudnnSetTensorNdDescriptor(x, 0, 3, [8, 10, 1].as_ptr(), [10, 1, 1].as_ptr());
        let status = cudnnGetRNNParamsSize(null_mut(), network, x, &raw mut bytes, 0);
        assert_eq!(status, SUCCESS);
        // 2 x 3 x 20 x (10 + 20), 2 x 3 x 20 x (40 + 20), 4 x 2 x 3 x 20 biases.
        assert_eq!(bytes, (3600 + 7200 + 480) * 4);
        let steps = [x.cast_const(); 5];
        cudnnGetRNNWorkspaceSize(null_mut(), network, 5, steps.as_ptr(), &raw mut bytes);
        // 5 steps of 8 x 20 elements, 3 gates, 2 directions.
        assert_eq!(bytes, 3200 * 3 * 2);
        cudnnGetRNNTrainingReserveSize(null_mut(), network, 5, steps.as_ptr(), &raw mut bytes);
        assert_eq!(bytes, 4 * 3200 * 5);
        cudnnDestroyTensorDescriptor(x);
        cudnnDestroyRNNDescriptor(network);
    }
}
