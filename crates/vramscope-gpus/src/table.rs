//! The table of devices.
//!
//! Sources of the columns:
//!
//! - **`mib`**: `total_memory` of `torch.cuda.get_device_properties`, or the "total capacity" of
//!   PyTorch's out-of-memory messages. Driver and ECC change it by about 1 %. H100 (79.18 GiB) and
//!   H200 (139.80 GiB) were read on real devices with PyTorch 2.11. The others are readings that
//!   users published, not checked again.
//! - **`multiprocessors`**, **`clock_mhz`**, **`memory_mhz`**, **`bus_bits`**: whitepapers of
//!   Nvidia's architectures (Volta, Turing, GA100, GA102, Ada, Hopper, Blackwell) and data sheets.
//!   Clocks are boost clocks, which `deviceQuery` reports as "GPU Max Clock rate". Cards of other
//!   makers may have higher ones. The memory clock is half the data rate of a pin. A test compares
//!   it and the bus with the bandwidth of the data sheet.
//! - **`l2_kib`**: `deviceQuery`, `nvbench` or `L2_cache_size`, else the whitepaper. PyTorch has
//!   60 MiB for the H200 and 126 for the B200.
//!
//! Public readings of whole rows: T4 (chiemon.github.io/2024/12/25), RTX 4090
//! (NVIDIA/nvbench#207), RTX 5090 (NVIDIA/nccl#1637), L4
//! (bottlerocket-os/bottlerocket-kernel-kit#139), A100 40 GB (bottlerocket-os/bottlerocket#3873),
//! B200 (pytorch/ao#4002; older drivers report a bus of 8,192 bits). Clocks of the V100:
//! NVIDIA/nvidia-docker#914. The H100 has the numbers of the JSON that cuDNN 9.19 planned with.
//!
//! - **`teraflops`**: multiplications and additions without sparsity, accumulated in 32 bits: with
//!   numbers of 32 bits, in TF32 (32 bits again where a device lacks it), and of 16 bits. Nvidia's
//!   data sheets (T4, V100, A10, L4, L40S, RTX A6000, A100, H100 SXM, H200 SXM, HGX B200, which
//!   give most figures with sparsity: half of that here) and its whitepapers on GA102, Ada and
//!   Blackwell of the RTX cards. The A10G has no data sheet.
//! - **`link`**: of one direction of the link to the host, in GB/s, from the same data sheets: PCI
//!   Express of generation 3, 4 or 5 with 16 lanes.
//!
//! Estimates: the clock of the B200 ("similar to the H100", chipsandcheese.com) and of the A10G.

use crate::{CONTEXT, Gpu, Limits, Speeds};

/// A device of the table.
#[derive(Debug, PartialEq)]
pub struct Device {
    /// The name that users write, such as `RTX4090`.
    pub short_name: &'static str,
    /// Memory that CUDA reports as the total, in MiB.
    mib: u64,
    /// `None` for a device that CUDA does not run on.
    nvidia: Option<Nvidia>,
}

/// What Nvidia's libraries report of a device.
#[derive(Debug, PartialEq)]
struct Nvidia {
    name: &'static str,
    capability: (u32, u32),
    multiprocessors: u32,
    l2_kib: u32,
    clock_mhz: u32,
    memory_mhz: u32,
    bus_bits: u32,
    teraflops: Option<[f64; 3]>,
    link: f64,
}

/// A row: short name, MiB, name of CUDA, capability, multiprocessors, L2 in KiB, clocks of the
/// multiprocessors and of the memory in MHz, bits of the bus; tera operations in 32 bits, TF32 and
/// 16 bits, and GB/s of the link to the host.
macro_rules! devices {
    ($($short:literal $mib:literal $name:literal ($major:literal, $minor:literal)
       $sm:literal $l2:literal $clock:literal $memory:literal $bus:literal
       $teraflops:expr, $link:literal;)*) => {
        &[$(Device {
            short_name: $short,
            mib: $mib,
            nvidia: Some(Nvidia {
                name: $name,
                capability: ($major, $minor),
                multiprocessors: $sm,
                l2_kib: $l2,
                clock_mhz: $clock,
                memory_mhz: $memory,
                bus_bits: $bus,
                teraflops: $teraflops,
                link: $link,
            }),
        }),*]
    };
}

/// Devices that CUDA runs on.
static DEVICES: &[Device] = devices! {
    "T4"         14_917 "Tesla T4"                 (7, 5)  40   4_096 1_590  5_001   256
        Some([8.1, 8.1, 65.0]), 16.0;
    "V100-16GB"  16_144 "Tesla V100-SXM2-16GB"     (7, 0)  80   6_144 1_530    877 4_096
        Some([15.7, 15.7, 125.0]), 16.0;
    "V100"       32_494 "Tesla V100-SXM2-32GB"     (7, 0)  80   6_144 1_530    877 4_096
        Some([15.7, 15.7, 125.0]), 16.0;
    "RTX3090"    24_258 "NVIDIA GeForce RTX 3090"  (8, 6)  82   6_144 1_695  9_751   384
        Some([35.6, 35.6, 71.0]), 32.0;
    "RTX4090"    24_207 "NVIDIA GeForce RTX 4090"  (8, 9) 128  73_728 2_520 10_501   384
        Some([82.6, 82.6, 165.2]), 32.0;
    "RTX5090"    32_110 "NVIDIA GeForce RTX 5090" (12, 0) 170  98_304 2_407 14_001   512
        Some([104.8, 104.8, 209.5]), 64.0;
    "A10G"       22_583 "NVIDIA A10G"              (8, 6)  80   6_144 1_710  6_251   384
        None, 32.0;
    "A10"        22_583 "NVIDIA A10"               (8, 6)  72   6_144 1_695  6_251   384
        Some([31.2, 62.5, 125.0]), 32.0;
    "L4"         22_557 "NVIDIA L4"                (8, 9)  58  49_152 2_040  6_251   192
        Some([30.3, 60.0, 121.0]), 32.0;
    "L40S"       45_458 "NVIDIA L40S"              (8, 9) 142  98_304 2_520  9_001   384
        Some([91.6, 183.0, 362.0]), 32.0;
    "A6000"      48_677 "NVIDIA RTX A6000"         (8, 6)  84   6_144 1_800  8_001   384
        Some([38.7, 77.4, 154.8]), 32.0;
    "A100-40GB"  40_335 "NVIDIA A100-SXM4-40GB"    (8, 0) 108  40_960 1_410  1_215 5_120
        Some([19.5, 156.0, 312.0]), 32.0;
    "A100-80GB"  81_050 "NVIDIA A100-SXM4-80GB"    (8, 0) 108  40_960 1_410  1_593 5_120
        Some([19.5, 156.0, 312.0]), 32.0;
    "A100"       81_050 "NVIDIA A100-SXM4-80GB"    (8, 0) 108  40_960 1_410  1_593 5_120
        Some([19.5, 156.0, 312.0]), 32.0;
    "H100"       81_079 "NVIDIA H100 80GB HBM3"    (9, 0) 132  51_200 1_980  2_619 5_120
        Some([67.0, 494.5, 989.0]), 64.0;
    "H200"      143_156 "NVIDIA H200"              (9, 0) 132  61_440 1_980  3_201 6_144
        Some([67.0, 494.5, 989.0]), 64.0;
    "B200"      182_642 "NVIDIA B200"             (10, 0) 148 129_536 1_965  3_996 7_680
        Some([75.0, 1_100.0, 2_250.0]), 64.0;
};

/// Devices with memory only. The ROCm libraries of an MI300X have other functions than CUDA.
static OTHERS: [Device; 1] = [Device { short_name: "MI300X", mib: 196_592, nvidia: None }];

/// All devices.
pub fn devices() -> impl Iterator<Item = &'static Device> {
    DEVICES.iter().chain(&OTHERS)
}

/// The short names of all devices.
pub fn names() -> impl Iterator<Item = &'static str> {
    devices().map(|device| device.short_name)
}

impl Device {
    /// The device of a name as a user writes it. Case, spaces, `-` and `_` do not matter.
    #[must_use]
    pub fn named(text: &str) -> Option<&'static Self> {
        let plain = |c: &char| !matches!(c, '-' | '_') && !c.is_whitespace();
        let upper = |c: char| c.to_ascii_uppercase();
        let same = |name: &str| {
            name.chars().filter(plain).map(upper).eq(text.chars().filter(plain).map(upper))
        };
        devices().find(|device| same(device.short_name))
    }

    /// Memory that CUDA reports as the total, in bytes.
    #[must_use]
    pub const fn total_bytes(&self) -> u64 {
        self.mib << 20
    }

    /// The device of a name as CUDA or a user writes it. CUDA's name of an A100 with 80 GB is that
    /// of two rows: they are equal.
    #[must_use]
    pub fn called(text: &str) -> Option<&'static Self> {
        let is_called = |device: &&Self| device.nvidia.as_ref().is_some_and(|of| of.name == text);
        Self::named(text).or_else(|| devices().find(is_called))
    }

    /// How fast the device is; `None` where no data sheet is known.
    #[must_use]
    pub fn speeds(&self) -> Option<Speeds> {
        let nvidia = self.nvidia.as_ref()?;
        let [single, tf32, half] = nvidia.teraflops?.map(|tera| tera * 1e12);
        let transfers = f64::from(nvidia.memory_mhz) * 2e6;
        let memory = transfers * f64::from(nvidia.bus_bits / 8);
        Some(Speeds { name: self.short_name, single, tf32, half, memory, link: nvidia.link * 1e9 })
    }

    /// All numbers of the device.
    ///
    /// # Errors
    ///
    /// CUDA does not run on it: PyTorch needs other libraries there.
    pub fn gpu(&self) -> Result<Gpu, String> {
        let limits = self.nvidia.as_ref().and_then(|nvidia| Limits::of(nvidia.capability));
        let (Some(nvidia), Some(limits)) = (&self.nvidia, limits) else {
            return Err(format!(
                "A dry run cannot stand in for an {}: PyTorch runs on it with the libraries of \
                 ROCm, not of CUDA. Name a GPU of Nvidia.",
                self.short_name
            ));
        };
        Ok(Gpu {
            name: nvidia.name.to_owned(),
            total_bytes: self.total_bytes(),
            context_bytes: CONTEXT,
            capability: nvidia.capability,
            multiprocessors: nvidia.multiprocessors,
            shared_memory_per_multiprocessor: limits.shared_memory,
            shared_memory_per_block_optin: limits.shared_memory_per_block_optin,
            threads_per_multiprocessor: limits.threads,
            blocks_per_multiprocessor: limits.blocks,
            l2_bytes: nvidia.l2_kib << 10,
            clock_khz: nvidia.clock_mhz * 1000,
            memory_clock_khz: nvidia.memory_mhz * 1000,
            memory_bus_bits: nvidia.bus_bits,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_as_users_write_them() {
        for name in names() {
            assert_eq!(Device::named(name).unwrap().short_name, name);
            assert_eq!(Device::named(&name.to_lowercase()).unwrap().short_name, name);
        }
        assert_eq!(Device::named(" rtx 4090 ").unwrap().short_name, "RTX4090");
        assert_eq!(Device::named("a100_40gb").unwrap().short_name, "A100-40GB");
        assert!(Device::named("").is_none() && Device::named("80").is_none());
        let error = Gpu::named("H1000").unwrap_err();
        assert!(error.starts_with("`H1000` is no known GPU: expected one of T4, "), "{error}");
    }

    #[test]
    fn every_device_of_nvidia_has_limits() {
        for device in DEVICES {
            let gpu = device.gpu().unwrap();
            assert!(gpu.context_bytes < gpu.total_bytes, "{}", gpu.name);
            let optin = gpu.shared_memory_per_block_optin;
            assert!(optin <= gpu.shared_memory_per_multiprocessor, "{}", gpu.name);
        }
        let error = Gpu::named("mi300x").unwrap_err();
        assert!(error.contains("ROCm"), "{error}");
        assert_eq!(Device::named("MI300X").unwrap().total_bytes(), 196_592 << 20);
        assert_eq!(Limits::of((6, 1)), None);
    }

    /// Bandwidths of the data sheets, in GB/s: twice the clock, times the bytes of the bus.
    #[test]
    fn clocks_and_bus_give_the_bandwidth_of_the_data_sheet() {
        for (name, expected) in [
            ("T4", 320),
            ("V100", 900),
            ("RTX3090", 936),
            ("RTX4090", 1008),
            ("RTX5090", 1792),
            ("A10G", 600),
            ("A10", 600),
            ("L4", 300),
            ("L40S", 864),
            ("A6000", 768),
            ("A100-40GB", 1555),
            ("A100-80GB", 2039),
            ("H100", 3350),
            ("H200", 4900),
            ("B200", 7700),
        ] {
            let gpu = Gpu::named(name).unwrap();
            let bytes = u64::from(gpu.memory_bus_bits / 8) * u64::from(gpu.memory_clock_khz) * 2;
            assert!((bytes / 1_000_000).abs_diff(expected) * 100 <= expected, "{name}: {bytes}");
        }
    }

    /// As a real H100 reported them to PyTorch 2.11 and to cuDNN 9.19.
    #[test]
    fn the_h100_has_the_numbers_of_a_real_one() {
        let gpu = Gpu::h100();
        assert_eq!(gpu, Gpu::named("h100").unwrap());
        assert_eq!((gpu.name.as_str(), gpu.total_bytes), ("NVIDIA H100 80GB HBM3", 85_017_493_504));
        assert_eq!(gpu.shared_memory_per_multiprocessor, 233_472);
        assert_eq!(gpu.shared_memory_per_block_optin, 232_448);
        assert_eq!((gpu.l2_bytes, gpu.multiprocessors), (52_428_800, 132));
        // "total capacity of 79.18 GiB", and 139.80 on an H200.
        let gib = |gpu: Gpu| (gpu.total_bytes as f64 / (1u64 << 30) as f64 * 100.0).round();
        assert_eq!(gib(gpu), 7918.0);
        assert_eq!(gib(Gpu::named("H200").unwrap()), 13_980.0);
    }
}
