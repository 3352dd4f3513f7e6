//! A device without a GPU.
//!
//! PyTorch's own allocator, autograd and optimizers run over the functions of this library. Device
//! memory is an address range whose pages exist once they are touched, and kernels do nothing.
//!
//! Each function `NAME` of a library of Nvidia is exported as `vs_NAME`. [`shims`] writes small ELF
//! files with the names of those libraries, whose functions jump here.

#[cfg(target_os = "linux")]
mod abi;
#[cfg(target_os = "linux")]
mod attributes;
#[cfg(target_os = "linux")]
mod cudnn;
#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
mod driver;
#[cfg(target_os = "linux")]
mod errors;
#[cfg(target_os = "linux")]
mod libraries;
#[cfg(target_os = "linux")]
mod lookup;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod notes;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod runtime;
#[cfg(target_os = "linux")]
mod settings;
pub mod shims;
#[cfg(target_os = "linux")]
mod tables;
