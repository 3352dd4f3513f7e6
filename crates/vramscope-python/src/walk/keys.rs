//! The keys by which PyTorch dispatches what a tensor is asked.

use pyo3::prelude::*;

/// Keys of dispatch with which a question may run code: of Python, or of what is wrapped.
const RUNNING: [&str; 13] = [
    "Python",
    "PythonTLSSnapshot",
    "PythonDispatcher",
    "PreDispatch",
    "Functionalize",
    "Batched",
    "VmapMode",
    "FuncTorchBatched",
    "FuncTorchBatchedDecomposition",
    "FuncTorchGradWrapper",
    "FuncTorchVmapMode",
    "FuncTorchDynamicLayerBackMode",
    "FuncTorchDynamicLayerFrontMode",
];

/// Tells the tensors that answer without code of the program.
pub(super) struct Keys<'py> {
    of: Bound<'py, PyAny>,
    running: u64,
}

impl<'py> Keys<'py> {
    /// `None` for a release that does not tell keys.
    pub(super) fn new(own: &Bound<'py, PyAny>) -> Option<Self> {
        let bits = |set: Bound<'py, PyAny>| set.call_method0("raw_repr")?.extract::<u64>();
        let (key, set) = (own.getattr("DispatchKey").ok()?, own.getattr("DispatchKeySet").ok()?);
        let known = RUNNING.iter().filter_map(|name| key.getattr(*name).ok());
        let running = known.map(|key| set.call1((key,)).and_then(bits));
        let running = running.collect::<PyResult<Vec<u64>>>().ok()?.into_iter();
        let of = own.getattr("_dispatch_keys").ok()?;
        Some(Self { of, running: running.fold(0, |all, one| all | one) })
    }

    pub(super) fn may_run(&self, tensor: &Bound<'py, PyAny>) -> bool {
        let keys = self.of.call1((tensor,)).and_then(|keys| keys.call_method0("raw_repr"));
        keys.and_then(|keys| keys.extract::<u64>()).map_or(true, |keys| keys & self.running != 0)
    }
}
