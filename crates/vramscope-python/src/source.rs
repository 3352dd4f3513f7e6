//! A binary file of Python as a source of bytes.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::{self, Read};

/// An object with the method `read` of binary files.
pub(crate) struct Source {
    file: Py<PyAny>,
    /// What `read` raised.
    pub(crate) failure: Option<PyErr>,
}

impl Source {
    pub(crate) fn new(file: Py<PyAny>) -> Self {
        Self { file, failure: None }
    }
}

impl Read for &mut Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = Python::attach(|py| {
            let piece = self.file.bind(py).call_method1("read", (buffer.len(),))?;
            let piece = piece.cast::<PyBytes>().map_err(|_| {
                PyTypeError::new_err("the file is open as text: expected mode \"rb\"")
            })?;
            let bytes = piece.as_bytes();
            let room = buffer.get_mut(..bytes.len()).ok_or_else(|| {
                PyTypeError::new_err("`read` of the file returned more bytes than were asked for")
            })?;
            room.copy_from_slice(bytes);
            Ok(bytes.len())
        });
        read.map_err(|failure| {
            self.failure = Some(failure);
            io::Error::other("`read` of the file raised an exception")
        })
    }
}
