//! Keeps functions of Python from running.

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyList, PyString, PyTuple};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Refuses hooks. Older releases call the hook of a saved tensor to read it. A profile function is
/// called before the first line of a function of Python, and may raise.
pub(super) struct Profile<'py> {
    sys: Bound<'py, PyAny>,
    refuse: Bound<'py, PyAny>,
    /// The arguments of refused functions: what hooks have packed.
    packed: Bound<'py, PyList>,
    /// Whether functions are refused now.
    refuses: Arc<AtomicBool>,
}

impl<'py> Profile<'py> {
    pub(super) fn new(py: Python<'py>) -> PyResult<Self> {
        let packed = PyList::empty(py);
        let kept = packed.clone().unbind();
        let refuses = Arc::new(AtomicBool::new(false));
        let is_set = refuses.clone();
        let refuse = PyCFunction::new_closure(
            py,
            None,
            None,
            move |args: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| -> PyResult<()> {
                let py = args.py();
                let (frame, event): (Bound<'_, PyAny>, Bound<'_, PyString>) =
                    (args.get_item(0)?, args.get_item(1)?.cast_into()?);
                if !is_set.load(Relaxed) || event.to_cow()? != "call" {
                    return Ok(());
                }
                let code = frame.getattr("f_code")?;
                let count: usize = code.getattr("co_argcount")?.extract()?;
                let value = match count.checked_sub(1) {
                    Some(last) => {
                        let name = code.getattr("co_varnames")?.get_item(last)?;
                        frame.getattr("f_locals")?.get_item(name)?
                    }
                    None => py.None().into_bound(py),
                };
                kept.bind(py).append(value)?;
                Err(PyRuntimeError::new_err("no code of the program is run"))
            },
        )?;
        Ok(Self { sys: py.import("sys")?.into_any(), refuse: refuse.into_any(), packed, refuses })
    }

    /// Refuses functions of Python until [`Self::unset`], unless the program has a profile function
    /// of its own. Returns whether it does.
    pub(super) fn set(&mut self) -> PyResult<bool> {
        let is_free = self.sys.call_method0("getprofile")?.is_none();
        if is_free {
            self.sys.call_method1("setprofile", (&self.refuse,))?;
            self.refuses.store(true, Relaxed);
        }
        Ok(is_free)
    }

    pub(super) fn unset(&mut self) {
        // A hook of `sys.addaudithook` is asked below, and may run. Should it forbid the call, a
        // profile function stays that does nothing.
        if self.refuses.swap(false, Relaxed) {
            let _: PyResult<_> = self.sys.call_method1("setprofile", (self.sys.py().None(),));
        }
    }

    /// What was refused since the last call.
    pub(super) fn take(&self) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let packed: Vec<_> = self.packed.iter().collect();
        self.packed.del_slice(0, self.packed.len())?;
        // A profile function that raises is dropped.
        if !packed.is_empty() && self.refuses.load(Relaxed) {
            self.sys.call_method1("setprofile", (&self.refuse,))?;
        }
        Ok(packed)
    }

    /// Whether something was refused since the last call of [`Self::take`].
    pub(super) fn refused(&self) -> bool {
        !self.packed.is_empty()
    }
}
