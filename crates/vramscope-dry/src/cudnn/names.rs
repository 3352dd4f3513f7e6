//! Numbers of the backend API, as `cudnn_graph.h` has them. cuDNN 8 and 9 share them.

use std::ffi::c_int;

/// Kinds of descriptors: `cudnnBackendDescriptorType_t`.
pub(super) mod kind {
    use super::c_int;

    pub(crate) const ENGINE: c_int = 2;
    pub(crate) const CONFIG: c_int = 3;
    pub(crate) const HEURISTICS: c_int = 4;
    pub(crate) const PLAN: c_int = 5;
    pub(crate) const CONVOLUTION_FORWARD: c_int = 10;
    pub(crate) const CONVOLUTION_FILTER: c_int = 11;
    pub(crate) const CONVOLUTION_DATA: c_int = 12;
    pub(crate) const GRAPH: c_int = 15;
    #[cfg(test)]
    pub(crate) const TENSOR: c_int = 17;
    pub(crate) const MATMUL: c_int = 19;
    pub(crate) const DEVICE: c_int = 38;
}

/// Names of attributes: `cudnnBackendAttributeName_t`.
pub(super) mod attribute {
    use super::c_int;

    pub(crate) const HEURISTICS_GRAPH: c_int = 201;
    pub(crate) const HEURISTICS_RESULTS: c_int = 202;
    pub(crate) const HEURISTICS_DEVICE: c_int = 204;
    pub(crate) const CONFIG_ENGINE: c_int = 300;
    pub(crate) const CONFIG_WORKSPACE: c_int = 303;
    pub(crate) const PLAN_CONFIG: c_int = 401;
    pub(crate) const PLAN_WORKSPACE: c_int = 402;
    pub(crate) const PLAN_DEVICE: c_int = 407;
    /// Weights, input and output of a convolution have numbers in a row. These are the weights.
    pub(crate) const FORWARD_W: c_int = 703;
    pub(crate) const DATA_W: c_int = 709;
    pub(crate) const FILTER_W: c_int = 715;
    pub(crate) const GRAPH_OPERATIONS: c_int = 801;
    pub(crate) const TENSOR_TYPE: c_int = 901;
    pub(crate) const TENSOR_DIMENSIONS: c_int = 902;
    pub(crate) const TENSOR_STRIDES: c_int = 903;
    pub(crate) const ENGINE_GRAPH: c_int = 1300;
    pub(crate) const ENGINE_INDEX: c_int = 1301;
    pub(crate) const ENGINE_DEVICE: c_int = 1307;
    pub(crate) const DEVICE_ID: c_int = 2700;
    pub(crate) const DEVICE_HANDLE: c_int = 2701;
    pub(crate) const DEVICE_JSON: c_int = 2702;
}

/// Types of an attribute's elements: `cudnnBackendAttributeType_t`.
pub(super) mod element {
    use super::c_int;

    pub(crate) const HANDLE: c_int = 0;
    #[cfg(test)]
    pub(crate) const DATA_TYPE: c_int = 1;
    pub(crate) const BOOLEAN: c_int = 2;
    pub(crate) const INT64: c_int = 3;
    pub(crate) const DOUBLE: c_int = 5;
    pub(crate) const POINTER: c_int = 6;
    pub(crate) const DESCRIPTOR: c_int = 15;
    pub(crate) const INT32: c_int = 23;
    pub(crate) const CHAR: c_int = 24;
    pub(crate) const FRACTION: c_int = 26;

    /// Bytes of an element. What is not named here is an enumeration, a float or an `int`.
    pub(crate) fn size(of: c_int) -> usize {
        match of {
            BOOLEAN | CHAR => 1,
            HANDLE | INT64 | DOUBLE | POINTER | DESCRIPTOR => 8,
            FRACTION => 16,
            _ => 4,
        }
    }
}
