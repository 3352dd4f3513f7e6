//! `vramscope export --as perfetto --trace`: reads the trace of `torch.profiler`.

use crate::Failure;
use flate2::bufread::MultiGzDecoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use vramscope_report::Target;
use vramscope_report::export::{MergeError, Profile, merge_profile};

/// The bytes that a gzip begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Writes the profiler's trace with the events of the device.
///
/// # Errors
/// As [`merge_profile`].
pub(super) fn merge(
    target: Target<'_>,
    path: &Path,
    out: &mut (dyn Write + Send),
) -> Result<(), Failure> {
    let profile = Profile { name: &path.display().to_string(), open: &|| open(path) };
    merge_profile(target, &profile, out).map_err(|error| match error {
        MergeError::Unusable(why) => Failure::Usage(why),
        MergeError::Output(error) => error.into(),
    })
}

/// Opens a trace, which may be a gzip.
fn open(path: &Path) -> io::Result<Box<dyn BufRead>> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let is_gzip = file.fill_buf()?.starts_with(&GZIP);
    Ok(if is_gzip {
        Box::new(BufReader::with_capacity(1 << 18, MultiGzDecoder::new(file)))
    } else {
        Box::new(file)
    })
}
