//! Tensors, as descriptors name them.

use std::ffi::c_int;

/// Type, dimensions and strides of a tensor. The first dimensions are batch and channels.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tensor {
    /// The type of the elements, a `cudnnDataType_t`.
    pub(super) data_type: c_int,
    /// The dimensions, in elements.
    pub(super) dims: Vec<i64>,
    /// The distance of neighbors in each dimension, in elements.
    pub(super) strides: Vec<i64>,
}

impl Tensor {
    /// A tensor without gaps, the last dimension innermost.
    pub(super) fn packed(data_type: c_int, dims: &[i64]) -> Self {
        let mut strides = vec![1; dims.len()];
        for at in (1..dims.len()).rev() {
            strides[at - 1] = strides[at] * dims[at];
        }
        Self { data_type, dims: dims.to_vec(), strides }
    }

    /// Bytes of the elements.
    pub(super) fn bytes(&self) -> i64 {
        self.dims.iter().product::<i64>() * element_bytes(self.data_type)
    }

    /// Whether the channels are innermost (NHWC). One channel has no order.
    pub(super) fn is_channels_last(&self) -> bool {
        self.strides.len() > 2 && self.strides[1] == 1 && self.dims[1] > 1
    }

    /// Bytes of the elements with channels in units of 16 bytes.
    pub(super) fn padded_bytes(&self) -> i64 {
        match self.dims.get(1) {
            None | Some(0) => self.bytes(),
            Some(channels) => {
                let unit = (16 / element_bytes(self.data_type)).max(1);
                self.bytes() / channels * (channels + unit - 1).div_euclid(unit) * unit
            }
        }
    }
}

/// Bytes of an element of a `cudnnDataType_t`.
pub(super) fn element_bytes(data_type: c_int) -> i64 {
    match data_type {
        // Double, int64 and complex of floats.
        1 | 10 | 20 => 8,
        // Half and bfloat16.
        2 | 9 => 2,
        // int8, uint8, boolean, and floats of 8 bits; of 4 bits, too, which no convolution has.
        3 | 6 | 11..=13 | 15..=18 => 1,
        8 => 32,
        21 => 16,
        // Float, int32, four integers of 8 bits in one element.
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::Tensor;

    #[test]
    fn padded_bytes_rounds_channels_up_to_16_bytes() {
        // 3 channels of 4 bytes become 4; 3 of 2 bytes become 8.
        assert_eq!(Tensor::packed(0, &[2, 3, 5, 5]).padded_bytes(), 2 * 4 * 25 * 4);
        assert_eq!(Tensor::packed(2, &[2, 3, 5, 5]).padded_bytes(), 2 * 8 * 25 * 2);
        assert_eq!(Tensor::packed(0, &[2, 0, 5, 5]).padded_bytes(), 0);
    }

    #[test]
    fn packed_strides_are_those_of_nchw() {
        let tensor = Tensor::packed(0, &[2, 3, 5, 7]);
        assert_eq!(tensor.strides, [105, 35, 7, 1]);
        assert!(!tensor.is_channels_last());
        let last = Tensor { strides: vec![105, 1, 21, 3], ..tensor };
        assert!(last.is_channels_last());
    }
}
