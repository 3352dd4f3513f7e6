//! Libraries beside driver and runtime.

mod blas;
mod cupti;
mod kernels;
pub(crate) mod nccl;
mod nvml;
mod nvrtc;
mod sizes;
pub(crate) mod sparse;
pub(crate) mod unknown;
