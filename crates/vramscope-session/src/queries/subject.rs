//! A device of a loaded file, for work that outlives a message.

use crate::messages::DeviceRef;
use std::sync::Arc;
use vramscope_report::{LoadedFile, Target};

/// A device that the file has, with a share in the file.
#[derive(Clone)]
pub(crate) struct Subject {
    pub(crate) file: Arc<LoadedFile>,
    pub(crate) device: DeviceRef,
    /// Index of the device's trace in its snapshot.
    index: usize,
}

impl Subject {
    /// The device that a message names; `None` if the file has no such device.
    pub(crate) fn new(file: &Arc<LoadedFile>, device: DeviceRef) -> Option<Self> {
        let index = file.target(device.part, device.device)?.index;
        Some(Self { file: file.clone(), device, index })
    }

    /// The subject of reports.
    pub(crate) fn at(&self) -> Target<'_> {
        let entry = &self.file.entries[self.device.part as usize];
        Target { path: &entry.path, entry, index: self.index }
    }
}
