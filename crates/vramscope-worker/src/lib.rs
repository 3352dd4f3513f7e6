//! WebAssembly bindings of the web workers: they pass messages between JavaScript and
//! vramscope-session.
//!
//! Each file has its own web worker. It creates a [`RankWorker`], feeds it chunks and finishes it.
//! After that it posts the page's requests and calls `step` until no work is left. One more web
//! worker holds the [`RunWorker`] of the whole run.
//!
//! Small messages cross the boundary as objects (serde-wasm-bindgen). Columns are copied once, from
//! this module's memory into JavaScript arrays, whose buffers the web worker transfers.
//!
//! This crate runs only in a browser. The native tests of vramscope-session cover the calls.

use js_sys::{Float32Array, Object, Reflect, Uint32Array};
use serde::Serialize;
use vramscope_session::{
    Column, Coordinator, FileSession, Loader, MAX_SIDECAR_BYTES, Page, Reply, Slice, warm_up,
};
use wasm_bindgen::prelude::*;
#[cfg(all(feature = "threads", target_arch = "wasm32"))]
pub use wasm_bindgen_rayon::init_thread_pool;

/// Default memory limit of a file in bytes, as its loader counts memory.
///
/// A module can address 4 GiB. The rest is for memory that the loader does not count.
const DEFAULT_MEMORY_LIMIT: u64 = 3600 << 20;

/// Bytes of memory that the warm-up touches: about as many as a file of 10 MB needs.
const WARM_UP_MEMORY: usize = 8 << 20;

/// The session of one file.
#[wasm_bindgen]
pub struct RankWorker {
    session: FileSession,
}

#[wasm_bindgen]
impl RankWorker {
    /// Reads the file at `path`, of `total` bytes (0 when unknown), without a memory limit.
    #[wasm_bindgen(constructor)]
    pub fn new(path: &str, total: f64) -> Self {
        console_error_panic_hook::set_once();
        Self { session: FileSession::new(path, total as u64) }
    }

    /// A synthetic snapshot for the warm-up before the first file.
    ///
    /// The browser optimizes functions that run often. Reading and drawing this snapshot runs them.
    #[wasm_bindgen(js_name = madeUp)]
    pub fn made_up() -> Vec<u8> {
        // The system provides a memory page at its first write. Freed pages stay with this module.
        drop(std::hint::black_box(vec![1_u8; WARM_UP_MEMORY]));
        warm_up::snapshot()
    }

    /// Posts the requests that the page sends for a newly opened file.
    #[wasm_bindgen(js_name = postMadeUp)]
    pub fn post_made_up(&mut self) {
        for request in warm_up::requests() {
            self.session.post(request);
        }
    }

    /// Reads a file with a limit of `memory` bytes. Without one, the limit is 3,600 MiB.
    ///
    /// For a file that needs more, `finish` returns `tooLarge`. `feed` fails if the file exceeds
    /// the limit even without its event rows. With `first` or `last`, the session keeps only the
    /// events from `first` to `last` (inclusive) of each trace, and the events of blocks that are
    /// live in that range.
    pub fn within(
        path: &str,
        total: f64,
        memory: Option<f64>,
        first: Option<u32>,
        last: Option<u32>,
    ) -> Self {
        console_error_panic_hook::set_once();
        let mut loader = Loader::new(path, total as u64)
            .within(memory.map_or(DEFAULT_MEMORY_LIMIT, |bytes| bytes as u64));
        if first.is_some() || last.is_some() {
            loader = loader.of_events(
                first.unwrap_or(0)..last.map_or(u32::MAX, |last| last.saturating_add(1)),
            );
        }
        Self { session: FileSession::with_loader(loader) }
    }

    /// Reads the next bytes. JavaScript unpacks gzip files, and `read` is the number of bytes read
    /// from the stored file so far.
    ///
    /// # Errors
    /// A `Failure` object: the file is no snapshot, or exceeds the memory limit.
    pub fn feed(&mut self, chunk: &[u8], read: f64) -> Result<(), JsValue> {
        match self.session.feed_unpacked(chunk, read as u64) {
            Ok(()) => Ok(()),
            Err(failure) => Err(to_js(&failure)?),
        }
    }

    /// The reading progress, a `Progress` object; null after the end.
    ///
    /// # Errors
    /// The progress cannot be converted to an object.
    pub fn progress(&self) -> Result<JsValue, JsValue> {
        to_js(&self.session.progress())
    }

    /// The largest file beside a snapshot that is used, in bytes.
    #[wasm_bindgen(js_name = maxSidecar)]
    pub fn max_sidecar() -> f64 {
        MAX_SIDECAR_BYTES as f64
    }

    /// Takes the file beside the snapshot. A fault of it is a warning of the snapshot.
    #[wasm_bindgen(js_name = setSidecar)]
    pub fn set_sidecar(&mut self, json: Vec<u8>) {
        self.session.set_sidecar(Ok(json));
    }

    /// The file beside the snapshot cannot be read, for this reason.
    #[wasm_bindgen(js_name = refuseSidecar)]
    pub fn refuse_sidecar(&mut self, reason: String) {
        self.session.set_sidecar(Err(reason));
    }

    /// Takes the dimensions of the model that the user gives. A fault of it is a warning of the
    /// snapshot.
    #[wasm_bindgen(js_name = setDims)]
    pub fn set_dims(&mut self, text: String) {
        self.session.set_widths(text);
    }

    /// Ends the file and returns a `Response`: `loaded`, `failed` or `tooLarge`.
    ///
    /// # Errors
    /// The response cannot be converted to an object.
    pub fn finish(&mut self) -> Result<JsValue, JsValue> {
        to_js(&self.session.finish())
    }

    /// Queues a `Request`. A later [`RankWorker::step`] answers it.
    ///
    /// # Errors
    /// The object is no valid request.
    pub fn post(&mut self, request: JsValue) -> Result<(), JsValue> {
        self.session.post(serde_wasm_bindgen::from_value(request)?);
        Ok(())
    }

    /// Runs one slice of work.
    ///
    /// Returns `{response, columns}` when the slice finished a reply, null when work is left, and
    /// undefined when the queue is empty.
    ///
    /// # Errors
    /// The reply cannot be converted to an object.
    pub fn step(&mut self) -> Result<JsValue, JsValue> {
        match self.session.slice() {
            Slice::Idle => Ok(JsValue::UNDEFINED),
            Slice::Working => Ok(JsValue::NULL),
            Slice::Answer(answer) => reply_to_js(*answer),
        }
    }

    /// The size of this module's memory in bytes.
    #[wasm_bindgen(js_name = memoryBytes)]
    pub fn memory_bytes(&self) -> f64 {
        let memory: js_sys::WebAssembly::Memory = wasm_bindgen::memory().unchecked_into();
        let buffer: js_sys::ArrayBuffer = memory.buffer().unchecked_into();
        f64::from(buffer.byte_length())
    }
}

/// The coordinator of a run.
#[wasm_bindgen]
#[derive(Default)]
pub struct RunWorker {
    coordinator: Coordinator,
}

#[wasm_bindgen]
impl RunWorker {
    /// Creates a run without files.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        console_error_panic_hook::set_once();
        Self::default()
    }

    /// Answers a `RunRequest` with a `RunResponse`.
    ///
    /// # Errors
    /// The object is no valid request.
    pub fn handle(&mut self, request: JsValue) -> Result<JsValue, JsValue> {
        to_js(&self.coordinator.handle(&serde_wasm_bindgen::from_value(request)?))
    }

    /// Reads further lines of an index, and returns a `RunResponse` of kind `indexed`. `first`
    /// begins another index.
    ///
    /// # Errors
    /// The answer cannot be converted to an object.
    #[wasm_bindgen(js_name = readIndex)]
    pub fn read_index(&mut self, id: u32, text: &[u8], first: bool) -> Result<JsValue, JsValue> {
        to_js(&self.coordinator.read_index(id, text, first))
    }
}

/// Converts a value to plain objects, with null for `None` and with the texts of its units. The
/// generated TypeScript types expect this.
fn to_js(value: &impl Serialize) -> Result<JsValue, JsValue> {
    Ok(Page(value).serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}

/// Converts a reply to `{response, columns}`, and copies each column into a typed array.
fn reply_to_js(reply: Reply) -> Result<JsValue, JsValue> {
    let columns = Object::new();
    for (name, column) in reply.columns {
        let array: JsValue = match column {
            Column::F32(values) => Float32Array::from(values.as_slice()).into(),
            Column::U32(values) => Uint32Array::from(values.as_slice()).into(),
        };
        Reflect::set(&columns, &name.into(), &array)?;
    }
    let out = Object::new();
    Reflect::set(&out, &"response".into(), &to_js(&reply.response)?)?;
    Reflect::set(&out, &"columns".into(), &columns)?;
    Ok(out.into())
}
