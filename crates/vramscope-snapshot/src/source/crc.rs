//! The checksum of gzip.

/// flate2's, with the instructions of the processor.
#[cfg(not(target_arch = "wasm32"))]
pub(super) type Crc = flate2::Crc;
/// A byte at a time: 16 kB less to download.
#[cfg(target_arch = "wasm32")]
pub(super) type Crc = ByBytes;

/// The checksum by a table of 256 numbers.
#[cfg(any(test, target_arch = "wasm32"))]
pub(super) struct ByBytes {
    table: [u32; 256],
    state: u32,
}

#[cfg(any(test, target_arch = "wasm32"))]
impl ByBytes {
    const POLYNOMIAL: u32 = 0xedb8_8320;

    pub(super) fn new() -> Self {
        let bit = |crc: u32, _| (crc >> 1) ^ (Self::POLYNOMIAL * (crc & 1));
        Self { table: std::array::from_fn(|byte| (0..8).fold(byte as u32, bit)), state: !0 }
    }

    pub(super) fn reset(&mut self) {
        self.state = !0;
    }

    pub(super) fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let at = (self.state ^ u32::from(*byte)) & 0xff;
            self.state = (self.state >> 8) ^ self.table[at as usize];
        }
    }

    pub(super) fn sum(&self) -> u32 {
        !self.state
    }
}

#[cfg(test)]
mod tests {
    use super::ByBytes;

    #[test]
    fn both_checksums_are_equal() {
        let (mut ours, mut theirs) = (ByBytes::new(), flate2::Crc::new());
        for round in 0..3_u8 {
            let bytes: Vec<u8> = (0..=255).map(|byte: u8| byte.wrapping_mul(7) ^ round).collect();
            ours.update(&bytes);
            theirs.update(&bytes);
            assert_eq!(ours.sum(), theirs.sum());
        }
        ours.reset();
        assert_eq!(ours.sum(), 0);
    }
}
