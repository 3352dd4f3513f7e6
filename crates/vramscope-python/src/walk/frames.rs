//! Whether other threads leave graphs and gradients alone.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};

/// Functions of PyTorch that a thread is in while a backward pass runs, with the end of their file.
const BACKWARD: [(&str, &str, &str); 3] = [
    ("_engine_run_backward", "autograd", "graph.py"),
    ("backward", "autograd", "__init__.py"),
    ("grad", "autograd", "__init__.py"),
];

/// Where the other threads of Python are.
#[derive(PartialEq)]
pub(super) struct Others<'py>(Vec<Other<'py>>);

struct Other<'py> {
    id: u64,
    frame: Bound<'py, PyAny>,
    instruction: i64,
}

impl PartialEq for Other<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id && self.frame.is(&other.frame) && self.instruction == other.instruction
    }
}

impl<'py> Others<'py> {
    pub(super) fn new(py: Python<'py>) -> PyResult<Self> {
        let here: u64 = py.import("threading")?.call_method0("get_ident")?.extract()?;
        let frames = py.import("sys")?.call_method0("_current_frames")?.cast_into::<PyDict>()?;
        let mut others = Vec::new();
        for (id, frame) in frames {
            let id: u64 = id.extract()?;
            if id != here {
                let instruction = frame.getattr("f_lasti")?.extract()?;
                others.push(Other { id, frame, instruction });
            }
        }
        others.sort_by_key(|other| other.id);
        Ok(Self(others))
    }

    /// Holds no frame any more.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }
}

/// What a thread is in.
struct Thread {
    id: u64,
    is_in_backward: bool,
    /// Whether it is in code of PyTorch, but for the loading of data.
    is_in_torch: bool,
    /// Whether the function that it is in names `grad`.
    names_gradients: bool,
}

fn threads(torch: &Bound<'_, PyAny>) -> PyResult<Vec<Thread>> {
    let py = torch.py();
    let of_torch: String = torch.getattr("__path__")?.get_item(0)?.extract()?;
    let frames = py.import("sys")?.call_method0("_current_frames")?.cast_into::<PyDict>()?;
    let mut threads = Vec::new();
    for (id, mut frame) in frames {
        let names = frame.getattr("f_code")?;
        let mut thread = Thread {
            id: id.extract()?,
            is_in_backward: false,
            is_in_torch: false,
            names_gradients: names_gradients(&names)?,
        };
        while !frame.is_none() {
            let code = frame.getattr("f_code")?;
            let name = code.getattr("co_name")?.cast_into::<PyString>()?;
            let file = code.getattr("co_filename")?.cast_into::<PyString>()?;
            let (name, file) = (name.to_cow()?, file.to_cow()?);
            thread.is_in_backward |= BACKWARD.iter().any(|(wanted, folder, end)| {
                let above = file.strip_suffix(end).map(|above| above.trim_end_matches(['/', '\\']));
                name == *wanted && above.is_some_and(|above| above.ends_with(folder))
            });
            let inside = file.strip_prefix(&of_torch).map(|inside| inside.replace('\\', "/"));
            let is_own = inside.is_some_and(|inside| !inside.starts_with("/utils/data/"));
            thread.is_in_torch |= is_own;
            frame = frame.getattr("f_back")?;
        }
        threads.push(thread);
    }
    Ok(threads)
}

/// Whether a function names `grad`, as an attribute or as a text.
fn names_gradients(code: &Bound<'_, PyAny>) -> PyResult<bool> {
    for names in ["co_names", "co_consts"] {
        for name in code.getattr(names)?.cast_into::<PyTuple>()? {
            if let Ok(name) = name.cast::<PyString>()
                && name.to_cow()? == "grad"
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether gradients and graphs may be read now, by the number of devices in use.
///
/// Other threads change them without the interpreter's lock: a backward pass frees what nodes save,
/// an operation in place replaces a node, and `tensor.grad = None` lets go of the lock while the
/// gradient that it drops can still be read. Reading them then ends the process. So no other thread
/// may be in code of PyTorch, or in a function that names gradients. Allowed is the only backward
/// pass of all threads where this thread is PyTorch's own for the only device in use: that pass
/// waits for us.
pub(super) fn may_read(torch: &Bound<'_, PyAny>, devices: usize) -> PyResult<bool> {
    let py = torch.py();
    let threading = py.import("threading")?;
    let here: u64 = threading.call_method0("get_ident")?.extract()?;
    // A thread that Python has not started has no entry, or one of this type.
    let known = threading.getattr("_active")?.cast_into::<PyDict>()?.get_item(here)?;
    let dummy = threading.getattr("_DummyThread")?;
    let is_engine = known.is_none_or(|known| known.get_type().is(&dummy));
    let threads = threads(torch)?;
    let passes = threads.iter().filter(|thread| thread.is_in_backward).count();
    let waits = is_engine && passes == 1 && devices <= 1;
    Ok(threads.iter().all(|thread| {
        let is_busy = thread.is_in_backward || thread.is_in_torch || thread.names_gradients;
        thread.id == here || !is_busy || (waits && thread.is_in_backward)
    }))
}
