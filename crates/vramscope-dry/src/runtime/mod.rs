//! The runtime API (libcudart).
//!
//! Work is done when it is asked for, or not at all: kernels do nothing.

pub(crate) mod copy;
mod event;
mod graph;
mod kernel;
mod library;
mod memory;
mod pool;
mod properties;
mod status;
mod stream;
pub(crate) mod timeline;

#[cfg(test)]
mod tests;

pub(crate) use kernel::{ACTIVE_BLOCKS, REGISTERS, code_version, set_code_version};
pub(crate) use memory::{allocate_host, free_host};
pub(crate) use properties::{cudaDeviceGetByPCIBusId, write_text};
