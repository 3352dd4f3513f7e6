//! WebAssembly of the workers: carries messages to an engine, and nothing else.
//!
//! A worker belongs to one file. It makes a [`RankWorker`], feeds it chunks and finishes it; then
//! it posts what the page asks and steps until there is nothing left to do. One more worker holds a
//! [`RunWorker`], which sees the whole run.
//!
//! Small messages cross as objects (serde-wasm-bindgen); columns are copied out of this module's
//! memory once, into arrays of JavaScript's own, whose buffers the worker transfers.
//!
//! What is here runs in a browser only; everything that it calls is tested natively in
//! vramscope-session.

use js_sys::{Float32Array, Object, Reflect, Uint32Array};
use serde::Serialize;
use vramscope_session::Loader;
use vramscope_session::{Column, Coordinator, FileSession, Reply, Slice, warm_up};
use wasm_bindgen::prelude::*;
#[cfg(all(feature = "threads", target_arch = "wasm32"))]
pub use wasm_bindgen_rayon::init_thread_pool;

/// Bytes that a file may take, as its loader counts them. A module can address 4 GiB; the rest is
/// for what is not counted.
const MEMORY: u64 = 3600 << 20;

/// Memory that is there before the first file, in bytes: about what one of ten megabytes needs.
const WARM_MEMORY: usize = 8 << 20;

/// One file's engine, as JavaScript sees it.
#[wasm_bindgen]
pub struct RankWorker {
    session: FileSession,
}

#[wasm_bindgen]
impl RankWorker {
    /// For the file at `path`, of `total` bytes (0 when that is not known).
    #[wasm_bindgen(constructor)]
    pub fn new(path: &str, total: f64) -> Self {
        console_error_panic_hook::set_once();
        Self { session: FileSession::new(path, total as u64) }
    }

    /// A made-up snapshot, for the browser to see read and drawn before there is a file: what it
    /// saw often, it optimizes.
    #[wasm_bindgen(js_name = madeUp)]
    pub fn made_up() -> Vec<u8> {
        // The system hands memory over when it is first written, page by page. What is freed here
        // stays this module's.
        drop(std::hint::black_box(vec![1_u8; WARM_MEMORY]));
        warm_up::snapshot()
    }

    /// Ask of the made-up snapshot what a page asks of a file that it opens.
    ///
    /// # Errors
    /// Only when a question cannot be turned into an object.
    #[wasm_bindgen(js_name = postMadeUp)]
    pub fn post_made_up(&mut self) -> Result<(), JsValue> {
        warm_up::requests().into_iter().try_for_each(|question| self.post(to_js(&question)?))
    }

    /// As [`RankWorker::new`] makes one, which ends in words before more than `memory` bytes are
    /// needed; all that there are unless told. Of every trace only the events from `first` to
    /// `last` are read, and those of what is live around them.
    pub fn within(
        path: &str,
        total: f64,
        memory: Option<f64>,
        first: Option<u32>,
        last: Option<u32>,
    ) -> Self {
        console_error_panic_hook::set_once();
        let mut loader =
            Loader::new(path, total as u64).within(memory.map_or(MEMORY, |bytes| bytes as u64));
        if first.is_some() || last.is_some() {
            loader = loader.of_events(
                first.unwrap_or(0)..last.map_or(u32::MAX, |last| last.saturating_add(1)),
            );
        }
        Self { session: FileSession::with_loader(loader) }
    }

    /// Read the next bytes, unpacked if the file is a gzip, of which `read` bytes have been read so
    /// far.
    ///
    /// # Errors
    /// A `Failure` object.
    pub fn feed(&mut self, chunk: &[u8], read: f64) -> Result<(), JsValue> {
        match self.session.feed_unpacked(chunk, read as u64) {
            Ok(()) => Ok(()),
            Err(failure) => Err(to_js(&failure)?),
        }
    }

    /// How far reading is, a `Progress` object; null when it is over.
    ///
    /// # Errors
    /// Only when it cannot be turned into an object.
    pub fn progress(&self) -> Result<JsValue, JsValue> {
        to_js(&self.session.progress())
    }

    /// The bytes have ended; gives a `Response`, `loaded` or `failed`.
    ///
    /// # Errors
    /// Only when the answer cannot be turned into an object.
    pub fn finish(&mut self) -> Result<JsValue, JsValue> {
        to_js(&self.session.finish())
    }

    /// A `Request`, to be answered by a later `step`.
    ///
    /// # Errors
    /// When the object is no request.
    pub fn post(&mut self, request: JsValue) -> Result<(), JsValue> {
        self.session.post(serde_wasm_bindgen::from_value(request)?);
        Ok(())
    }

    /// A slice of work: `{response, columns}` when it brought an answer, null when there is more to
    /// do before the next one, undefined when there is nothing to do.
    ///
    /// # Errors
    /// Only when the answer cannot be turned into an object.
    pub fn step(&mut self) -> Result<JsValue, JsValue> {
        match self.session.slice() {
            Slice::Idle => Ok(JsValue::UNDEFINED),
            Slice::Working => Ok(JsValue::NULL),
            Slice::Answer(answer) => reply(*answer),
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

/// The coordinator, as JavaScript sees it.
#[wasm_bindgen]
#[derive(Default)]
pub struct RunWorker {
    coordinator: Coordinator,
}

#[wasm_bindgen]
impl RunWorker {
    /// A run without files.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        console_error_panic_hook::set_once();
        Self::default()
    }

    /// Answer a `RunRequest` with a `RunResponse`.
    ///
    /// # Errors
    /// When the object is no request.
    pub fn handle(&mut self, request: JsValue) -> Result<JsValue, JsValue> {
        to_js(&self.coordinator.handle(&serde_wasm_bindgen::from_value(request)?))
    }
}

/// Plain objects, `null` for `None`: what JSON would give, which is what the generated types say.
fn to_js(value: &impl Serialize) -> Result<JsValue, JsValue> {
    Ok(value.serialize(&serde_wasm_bindgen::Serializer::json_compatible())?)
}

fn reply(reply: Reply) -> Result<JsValue, JsValue> {
    let columns = Object::new();
    for (name, column) in reply.columns {
        let array: JsValue = match column {
            Column::F32(numbers) => Float32Array::from(numbers.as_slice()).into(),
            Column::U32(numbers) => Uint32Array::from(numbers.as_slice()).into(),
        };
        Reflect::set(&columns, &name.into(), &array)?;
    }
    let out = Object::new();
    Reflect::set(&out, &"response".into(), &to_js(&reply.response)?)?;
    Reflect::set(&out, &"columns".into(), &columns)?;
    Ok(out.into())
}
