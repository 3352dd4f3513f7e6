//! Files with a CUDA runtime of their own, linked into them. It would ask the driver for private
//! tables: a dry run has none.

use super::elf::{Library, Symbols};
use super::error::Error;
use super::owner;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file whose functions fail in a dry run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// The file.
    pub file: PathBuf,
    /// Why, as a sentence.
    pub reason: String,
    /// Whether it is certain. Else the file has a text of the runtime, and may never run it.
    pub is_certain: bool,
}

/// The first function that a file with device code calls.
const REGISTER: &str = "__cudaRegisterFatBinary";
/// The section that the CUDA compiler writes for a file that calls [`REGISTER`].
const DEVICE_CODE: &str = ".nvFatBinSegment";
/// An error message of the runtime. The driver and other libraries do not have it.
const MESSAGE: &[u8] = b"CUDA driver version is insufficient for CUDA runtime version";
/// Larger sections of constants are not searched for [`MESSAGE`], in bytes.
const MOST_CONSTANTS: u64 = 16 << 20;

/// Whether a file has a CUDA runtime inside.
pub(super) fn inside(file: &mut Library, symbols: &Symbols) -> Result<Option<Refused>, Error> {
    let is_runtime = |soname: &str| owner::of_soname(soname).is_some_and(|s| s.library == "cudart");
    if file.needed.iter().any(|needed| is_runtime(needed)) {
        return Ok(None);
    }
    let refused = |file: &Library, reason: &str, is_certain| {
        let reason = format!("{reason}. A dry run cannot stand in for a runtime inside of a file.");
        Some(Refused { file: file.path().to_owned(), reason, is_certain })
    };
    if symbols.defined.iter().any(|name| name == "cudaGetDeviceCount" || name == REGISTER) {
        return Ok(refused(file, "It defines functions of the CUDA runtime", true));
    }
    let sections = file.sections()?;
    let asks_for_it = symbols.undefined.iter().any(|symbol| symbol.name == REGISTER);
    if !asks_for_it && sections.iter().any(|s| s.name == DEVICE_CODE && s.size > 0) {
        let reason = "It has kernels that no CUDA runtime outside of it registers";
        return Ok(refused(file, reason, true));
    }
    let constants = sections.iter().find(|s| s.name == ".rodata" && s.size <= MOST_CONSTANTS);
    let Some(constants) = constants else { return Ok(None) };
    if memmem::find(&file.bytes(constants)?, MESSAGE).is_some() {
        return Ok(refused(file, "It contains a message of the CUDA runtime", false));
    }
    Ok(None)
}
