//! The own cuDNN of the user, which plans without a device.
//!
//! cuDNN 9.8 and later take a description of the device as JSON
//! (`CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR`) for heuristics, engines and plans, in the place of a
//! handle. Nothing is ever executed.
#![expect(unsafe_code, reason = "loads a library and calls its functions")]

use super::names::{attribute, element, kind};
use super::records::Descriptor;
use super::status::SUCCESS;
use crate::notes::note;
use crate::settings::settings;
use libc::{RTLD_LOCAL, RTLD_NOW, dlerror, dlopen, dlsym};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;
use vramscope_gpus::Gpu;

type Create = unsafe extern "C" fn(c_int, *mut Descriptor) -> c_int;
type Act = unsafe extern "C" fn(Descriptor) -> c_int;
type Set = unsafe extern "C" fn(Descriptor, c_int, c_int, i64, *const c_void) -> c_int;
type Get = unsafe extern "C" fn(Descriptor, c_int, c_int, i64, *mut i64, *mut c_void) -> c_int;
type ErrorString = unsafe extern "C" fn(c_int) -> *const c_char;
type LastError = unsafe extern "C" fn(*mut c_char, usize);
type Version = unsafe extern "C" fn() -> usize;

/// The functions of the library, and the device that was described to it.
pub(super) struct Library {
    pub(super) create: Create,
    pub(super) destroy: Act,
    pub(super) set: Set,
    pub(super) get: Get,
    pub(super) finalize: Act,
    pub(super) error_string: ErrorString,
    pub(super) last_error: LastError,
    version: Version,
    /// The JSON of the device.
    json: String,
    /// The address of the device's descriptor.
    device: usize,
}

/// The library, if the settings name one that answers. Else the model answers. A note tells which.
pub(super) fn library() -> Option<&'static Library> {
    static LIBRARY: LazyLock<Option<Library>> = LazyLock::new(|| {
        let folder = settings().cudnn.as_ref();
        let library = folder.map(|folder| open(folder, &settings().gpu, settings().cuda));
        match &library {
            Some(Ok(library)) => {
                // SAFETY: the function has no arguments.
                note(&format!("cudnn {}", unsafe { (library.version)() }));
            }
            Some(Err(reason)) => {
                note("cudnn_model");
                note(&format!("cudnn_refused {reason}"));
            }
            None => note("cudnn_model"),
        }
        library.and_then(Result::ok)
    });
    LIBRARY.as_ref()
}

impl Library {
    /// Puts the description of the device into a descriptor that needs one.
    pub(super) fn describe_device(&self, descriptor: Descriptor, of: c_int) {
        let name = match of {
            kind::HEURISTICS => attribute::HEURISTICS_DEVICE,
            kind::PLAN => attribute::PLAN_DEVICE,
            kind::ENGINE => attribute::ENGINE_DEVICE,
            _ => return,
        };
        let device = self.device as Descriptor;
        // If this fails, finalizing fails, too, and the caller gets its status.
        // SAFETY: the descriptor is the caller's, the element is a descriptor of the library.
        unsafe { (self.set)(descriptor, name, element::DESCRIPTOR, 1, (&raw const device).cast()) };
    }

    /// Sets the JSON of the device in a descriptor of it.
    pub(super) fn set_json(&self, descriptor: Descriptor) -> c_int {
        let (length, text) = (self.json.len() as i64, self.json.as_ptr());
        // SAFETY: the descriptor is the caller's, and the text has this length.
        unsafe {
            (self.set)(descriptor, attribute::DEVICE_JSON, element::CHAR, length, text.cast())
        }
    }

    /// The library's text about its last error in this thread.
    fn last_error(&self) -> String {
        let mut text = [0_u8; 512];
        // SAFETY: the length is that of the buffer.
        unsafe { (self.last_error)(text.as_mut_ptr().cast(), text.len()) };
        CStr::from_bytes_until_nul(&text)
            .map(|text| text.to_string_lossy().trim().replace('\n', " "))
            .unwrap_or_default()
    }
}

/// Opens the library in a folder and describes the device to it. An error is one line.
fn open(folder: &Path, gpu: &Gpu, cuda: c_int) -> Result<Library, String> {
    let path = folder.join("libcudnn_graph.so.9");
    let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the library is the user's own, which its PyTorch would load, too.
    let library = unsafe { dlopen(name.as_ptr(), RTLD_NOW | RTLD_LOCAL) };
    if library.is_null() {
        // SAFETY: the text of `dlerror` is valid until the thread's next call.
        return Err(unsafe { CStr::from_ptr(dlerror()) }.to_string_lossy().replace('\n', " "));
    }
    let find = |name: &CStr| {
        // SAFETY: the library was just opened.
        let function = unsafe { dlsym(library, name.as_ptr()) };
        let missing = || format!("{}: no {}", path.display(), name.to_string_lossy());
        if function.is_null() { Err(missing()) } else { Ok(function) }
    };
    macro_rules! function {
        ($type:ty, $name:literal) => {
            // SAFETY: the type is that of the function in cudnn_graph.h.
            unsafe { std::mem::transmute::<*mut c_void, $type>(find($name)?) }
        };
    }
    let mut library = Library {
        create: function!(Create, c"cudnnBackendCreateDescriptor"),
        destroy: function!(Act, c"cudnnBackendDestroyDescriptor"),
        set: function!(Set, c"cudnnBackendSetAttribute"),
        get: function!(Get, c"cudnnBackendGetAttribute"),
        finalize: function!(Act, c"cudnnBackendFinalize"),
        error_string: function!(ErrorString, c"cudnnGetErrorString"),
        last_error: function!(LastError, c"cudnnGetLastErrorString"),
        version: function!(Version, c"cudnnGetVersion"),
        json: device_json(gpu, cuda),
        device: 0,
    };
    let mut device: Descriptor = std::ptr::null_mut();
    // SAFETY: the pointer is that of a local variable.
    let mut status = unsafe { (library.create)(kind::DEVICE, &raw mut device) };
    if status == SUCCESS {
        status = library.set_json(device);
    }
    if status == SUCCESS {
        // SAFETY: the library made the descriptor.
        status = unsafe { (library.finalize)(device) };
    }
    if status != SUCCESS {
        let reason = library.last_error();
        return Err(format!("{}: status {status} for the device. {reason}", path.display()));
    }
    library.device = device as usize;
    Ok(library)
}

/// A GPU as cuDNN reads it. The names are those of cuDNN's own text for a device.
fn device_json(gpu: &Gpu, cuda: c_int) -> String {
    let (major, minor) = gpu.capability;
    serde_json::json!({
        "maxGridSize": [i32::MAX, 65535, 65535],
        "maxBlockSize": [1024, 1024, 64],
        "regsPerBlock": 65536,
        "multiProcessorCount": gpu.multiprocessors,
        "warpSize": 32,
        "maxSharedMemoryPerBlock": 48 << 10,
        "maxSharedMemoryPerBlockOptin": gpu.shared_memory_per_block_optin,
        // Since compute capability 8.0 the system keeps 1 KiB of each block's.
        "reservedSharedMemoryPerBlock": if major >= 8 { 1024 } else { 0 },
        "maxRegistersPerSM": 65536,
        "maxCtasPerSM": gpu.blocks_per_multiprocessor,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerSM": gpu.threads_per_multiprocessor,
        "pciDeviceId": 0,
        "isTccDriver": 0,
        "supportCoopLaunch": 1,
        "smClockRateKHz": gpu.clock_khz,
        "memClockRateKHz": gpu.memory_clock_khz,
        "l2CacheSize": gpu.l2_bytes,
        "deviceName": gpu.name,
        "deviceVer": major * 100 + minor * 10,
        "driverVer": cuda,
        "cudaDeviceId": 0,
        "totalGlobalMem": gpu.total_bytes,
    })
    .to_string()
}

#[cfg(test)]
mod tests {
    use super::{device_json, open};
    use vramscope_gpus::Gpu;

    #[test]
    fn device_json_has_version_and_sizes() {
        let json: serde_json::Value =
            serde_json::from_str(&device_json(&Gpu::h100(), 13000)).expect("a JSON object");
        assert_eq!(json["deviceVer"], 900);
        assert_eq!(json["l2CacheSize"], 52_428_800);
        assert_eq!(json["maxSharedMemoryPerBlock"], 49_152);
        assert_eq!(json.as_object().map(serde_json::Map::len), Some(23));
    }

    #[test]
    fn open_names_the_library_that_is_not_there() {
        let reason = open("/nowhere".as_ref(), &Gpu::h100(), 13000).err().unwrap_or_default();
        assert!(reason.contains("/nowhere/libcudnn_graph.so.9"), "{reason}");
    }
}
