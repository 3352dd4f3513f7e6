//! Versions, handles, and the descriptors that came before the backend API.
#![expect(unsafe_code, reason = "the functions have the interface of C")]

use super::real;
use super::status::{self, SUCCESS, answer, bad_param, is_nine};
use super::tensor::Tensor;
use crate::abi::api;
use crate::settings::settings;
use std::ffi::{c_char, c_int, c_void};

/// `CUDNN_DIM_MAX`: dimensions of a tensor.
const MAX_DIMENSIONS: usize = 8;

/// A handle of cuDNN. It has a stream only: no device is behind it.
pub(super) struct Handle {
    stream: *mut c_void,
}

/// A descriptor of a filter.
#[derive(Default)]
pub(super) struct Filter {
    pub(super) tensor: Tensor,
    format: c_int,
}

/// A descriptor whose content no answer depends on.
#[derive(Default)]
pub(super) struct Opaque {
    _address: u8,
}

/// Exports functions that run kernels: they do nothing. The callee of the C ABI may leave arguments
/// unread, so their lists are left out.
macro_rules! kernels {
    ($($name:ident)*) => {
        $crate::abi::api! { $(fn $name() -> std::ffi::c_int { $crate::cudnn::status::SUCCESS })* }
    };
}
pub(super) use kernels;

/// Exports functions that make and drop descriptors of a type.
macro_rules! descriptors {
    ($($create:ident $destroy:ident $type:ty;)*) => { $crate::abi::api! { $(
        fn $create(out: *mut *mut $type) -> std::ffi::c_int {
            if out.is_null() {
                return $crate::cudnn::status::bad_param();
            }
            $crate::cudnn::status::answer(out, Box::into_raw(Box::default()))
        }
        fn $destroy(descriptor: *mut $type) -> std::ffi::c_int {
            if !descriptor.is_null() {
                drop(Box::from_raw(descriptor));
            }
            $crate::cudnn::status::SUCCESS
        }
    )* } };
}
pub(super) use descriptors;

descriptors! {
    cudnnCreateTensorDescriptor cudnnDestroyTensorDescriptor Tensor;
    cudnnCreateFilterDescriptor cudnnDestroyFilterDescriptor Filter;
    cudnnCreateConvolutionDescriptor cudnnDestroyConvolutionDescriptor Opaque;
    cudnnCreateActivationDescriptor cudnnDestroyActivationDescriptor Opaque;
    cudnnCreatePoolingDescriptor cudnnDestroyPoolingDescriptor Opaque;
    cudnnCreateSpatialTransformerDescriptor cudnnDestroySpatialTransformerDescriptor Opaque;
}

// Setters of opaque descriptors have no more effect than kernels.
kernels! {
    cudnnSetConvolutionNdDescriptor
    cudnnSetConvolutionGroupCount
    cudnnSetConvolutionMathType
    cudnnSetActivationDescriptor
    cudnnSetPooling2dDescriptor
    cudnnSetSpatialTransformerNdDescriptor
    cudnnPoolingForward
    cudnnSpatialTfGridGeneratorForward
    cudnnSpatialTfGridGeneratorBackward
    cudnnSpatialTfSamplerForward
    cudnnSpatialTfSamplerBackward
}

api! {
    fn cudnnGetVersion() -> usize {
        settings().cudnn_version as usize
    }

    fn cudnnGetMaxDeviceVersion() -> usize {
        let (major, minor) = settings().gpu.capability;
        (major * 100 + minor * 10) as usize
    }

    fn cudnnGetCudartVersion() -> usize {
        settings().cuda as usize
    }

    fn cudnnGetProperty(property: c_int, out: *mut c_int) -> c_int {
        match part_of_version(settings().cudnn_version, property) {
            Some(part) => answer(out, part),
            None => bad_param(),
        }
    }

    fn cudnnGetErrorString(status: c_int) -> *const c_char {
        let library = if is_nine() { real::library() } else { None };
        library.map_or(status::name(status).as_ptr(), |library| (library.error_string)(status))
    }

    fn cudnnGetLastErrorString(message: *mut c_char, size: usize) -> () {
        if message.is_null() || size == 0 {
            return;
        }
        match real::library() {
            Some(library) => (library.last_error)(message, size),
            None => message.write(0),
        }
    }

    fn cudnnCreate(out: *mut *mut Handle) -> c_int {
        if out.is_null() {
            return bad_param();
        }
        answer(out, Box::into_raw(Box::new(Handle { stream: std::ptr::null_mut() })))
    }

    fn cudnnDestroy(handle: *mut Handle) -> c_int {
        if !handle.is_null() {
            drop(Box::from_raw(handle));
        }
        SUCCESS
    }

    fn cudnnSetStream(handle: *mut Handle, stream: *mut c_void) -> c_int {
        let Some(handle) = handle.as_mut() else { return bad_param() };
        handle.stream = stream;
        SUCCESS
    }

    fn cudnnGetStream(handle: *mut Handle, out: *mut *mut c_void) -> c_int {
        let Some(handle) = handle.as_ref() else { return bad_param() };
        answer(out, handle.stream)
    }

    fn cudnnSetTensorNdDescriptor(
        tensor: *mut Tensor,
        data_type: c_int,
        count: c_int,
        dims: *const c_int,
        strides: *const c_int,
    ) -> c_int {
        let (Some(tensor), Some(dims), Some(strides)) =
            (tensor.as_mut(), numbers(dims, count), numbers(strides, count))
        else {
            return bad_param();
        };
        *tensor = Tensor { data_type, dims, strides };
        SUCCESS
    }

    fn cudnnGetTensorNdDescriptor(
        tensor: *const Tensor,
        wanted: c_int,
        data_type: *mut c_int,
        count: *mut c_int,
        dims: *mut c_int,
        strides: *mut c_int,
    ) -> c_int {
        let Some(tensor) = tensor.as_ref() else { return bad_param() };
        write(&tensor.dims, wanted, dims);
        write(&tensor.strides, wanted, strides);
        answer(count, tensor.dims.len() as c_int).max(answer(data_type, tensor.data_type))
    }

    fn cudnnSetFilterNdDescriptor(
        filter: *mut Filter,
        data_type: c_int,
        format: c_int,
        count: c_int,
        dims: *const c_int,
    ) -> c_int {
        let (Some(filter), Some(dims)) = (filter.as_mut(), numbers(dims, count)) else {
            return bad_param();
        };
        *filter = Filter { tensor: Tensor::packed(data_type, &dims), format };
        SUCCESS
    }

    fn cudnnGetFilterNdDescriptor(
        filter: *const Filter,
        wanted: c_int,
        data_type: *mut c_int,
        format: *mut c_int,
        count: *mut c_int,
        dims: *mut c_int,
    ) -> c_int {
        let Some(filter) = filter.as_ref() else { return bad_param() };
        write(&filter.tensor.dims, wanted, dims);
        answer(count, filter.tensor.dims.len() as c_int)
            .max(answer(data_type, filter.tensor.data_type))
            .max(answer(format, filter.format))
    }
}

/// Major (0), minor (1) or patch level (2) of a version. cuDNN 8 has 8902 for 8.9.2, cuDNN 9 has
/// 91900 for 9.19.0.
fn part_of_version(version: c_int, property: c_int) -> Option<c_int> {
    let major = if version >= 90_000 { 10_000 } else { 1000 };
    match property {
        0 => Some(version / major),
        1 => Some(version % major / 100),
        2 => Some(version % 100),
        _ => None,
    }
}

/// Reads the dimensions of a tensor.
///
/// # Safety
///
/// `from` is null or points to `count` numbers.
unsafe fn numbers(from: *const c_int, count: c_int) -> Option<Vec<i64>> {
    let count = usize::try_from(count).ok().filter(|count| *count <= MAX_DIMENSIONS)?;
    if from.is_null() {
        return None;
    }
    // SAFETY: the caller has this many numbers there.
    let numbers = unsafe { std::slice::from_raw_parts(from, count) };
    Some(numbers.iter().map(|number| i64::from(*number)).collect())
}

/// Writes the dimensions of a tensor, at most `wanted`.
///
/// # Safety
///
/// `out` is null or points to memory for `wanted` numbers.
unsafe fn write(numbers: &[i64], wanted: c_int, out: *mut c_int) {
    let wanted = if out.is_null() { 0 } else { usize::try_from(wanted).unwrap_or(0) };
    for (at, number) in numbers.iter().take(wanted).enumerate() {
        // SAFETY: the place is below `wanted`.
        unsafe { out.add(at).write(*number as c_int) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;

    #[test]
    fn part_of_version_reads_both_forms() {
        let parts = |version| [0, 1, 2].map(|property| part_of_version(version, property));
        assert_eq!(parts(8902), [Some(8), Some(9), Some(2)]);
        assert_eq!(parts(91_900), [Some(9), Some(19), Some(0)]);
        assert_eq!(part_of_version(91_900, 3), None);
    }

    #[test]
    fn tensor_descriptor_returns_its_content() {
        let mut tensor = null_mut();
        let (mut data_type, mut count, mut dims, mut strides) = (0, 0, [0; 5], [0; 5]);
        // SAFETY: all pointers are those of variables with enough room.
        unsafe {
            assert_eq!(cudnnCreateTensorDescriptor(&raw mut tensor), SUCCESS);
            let (set, steps) = ([2, 3, 4], [12, 1, 3]);
            assert_eq!(
                cudnnSetTensorNdDescriptor(tensor, 2, 9, set.as_ptr(), steps.as_ptr()),
                bad_param()
            );
            assert_eq!(
                cudnnSetTensorNdDescriptor(tensor, 2, 3, set.as_ptr(), steps.as_ptr()),
                SUCCESS
            );
            assert_eq!(
                cudnnGetTensorNdDescriptor(
                    tensor,
                    2,
                    &raw mut data_type,
                    &raw mut count,
                    dims.as_mut_ptr(),
                    strides.as_mut_ptr(),
                ),
                SUCCESS
            );
            assert_eq!(cudnnDestroyTensorDescriptor(tensor), SUCCESS);
        }
        assert_eq!((data_type, count), (2, 3));
        assert_eq!((dims, strides), ([2, 3, 0, 0, 0], [12, 1, 0, 0, 0]));
    }

    #[test]
    fn handle_keeps_its_stream() {
        let (mut handle, mut stream) = (null_mut(), null_mut());
        // SAFETY: all pointers are those of variables.
        unsafe {
            assert_eq!(cudnnCreate(&raw mut handle), SUCCESS);
            assert_eq!(cudnnSetStream(handle, 0x40 as *mut c_void), SUCCESS);
            assert_eq!(cudnnGetStream(handle, &raw mut stream), SUCCESS);
            assert_eq!(cudnnDestroy(handle), SUCCESS);
            assert_eq!(cudnnSetStream(null_mut(), stream), bad_param());
        }
        assert_eq!(stream as usize, 0x40);
    }
}
