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
mod cudnn;
#[cfg(target_os = "linux")]
mod notes;
#[cfg(target_os = "linux")]
mod settings;
pub mod shims;
