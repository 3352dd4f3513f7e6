//! What a dry run is of: read once from the environment.

use serde::Deserialize;
use std::path::PathBuf;
use std::sync::LazyLock;
use vramscope_gpus::Gpu;

/// The variable with the settings, as JSON.
const VARIABLE: &str = "VRAMSCOPE_DRY";

/// The settings of this process.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Settings {
    /// The device.
    pub(crate) gpu: Gpu,
    /// How many of it there are.
    pub(crate) devices: usize,
    /// The version of CUDA that PyTorch was built for, such as 12080.
    pub(crate) cuda: i32,
    /// The folder of the user's own cuDNN, 9.8 or later.
    pub(crate) cudnn: Option<PathBuf>,
    /// The version of cuDNN to report, such as 91900.
    pub(crate) cudnn_version: i32,
    /// A file of this run, in which its processes share the memory of the devices.
    pub(crate) shared: Option<PathBuf>,
    /// How many queries of an event find it pending.
    pub(crate) event_lag: u32,
    /// 1: print functions that are not there; 2: allocations, too.
    pub(crate) trace: u32,
    /// A file that gets the name of each function that is not there, a line each.
    pub(crate) unknown: Option<PathBuf>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            gpu: Gpu::h100(),
            devices: 1,
            cuda: 12080,
            cudnn: None,
            cudnn_version: 91900,
            shared: None,
            event_lag: 0,
            trace: 0,
            unknown: None,
        }
    }
}

/// The settings of this process.
pub(crate) fn settings() -> &'static Settings {
    static SETTINGS: LazyLock<Settings> = LazyLock::new(|| read(|name| std::env::var(name).ok()));
    &SETTINGS
}

/// The version of CUDA by the name of the runtime that this process has loaded; 12.8 without one.
fn cuda_of_process() -> i32 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let of = |(name, version)| maps.contains(name).then_some(version);
    let known = [("libcudart.so.13", 13_000), ("libcudart.so.11", 11_080)];
    known.into_iter().find_map(of).unwrap_or(12_080)
}

/// Reads the settings. The variables `FAKECUDA_*` come before those of the JSON.
fn read(variable: impl Fn(&str) -> Option<String>) -> Settings {
    let mut settings = match variable(VARIABLE).map(|text| serde_json::from_str(&text)) {
        // Without a launcher the libraries have their own names.
        None => Settings { cuda: cuda_of_process(), ..Settings::default() },
        Some(Ok(settings)) => settings,
        // The launcher writes it: anything else would answer for another device.
        Some(Err(error)) => panic!("{VARIABLE}: {error}"),
    };
    let number = |name| variable(name).and_then(|text: String| text.parse::<u64>().ok());
    if let Some(mib) = number("FAKECUDA_CAPACITY_MB") {
        settings.gpu.total_bytes = mib << 20;
    }
    if let Some(mib) = number("FAKECUDA_OVERHEAD_MB") {
        settings.gpu.context_bytes = mib << 20;
    }
    if let Some(mib) = number("FAKECUDA_L2_MB") {
        settings.gpu.l2_bytes = (mib << 20) as u32;
    }
    if let Some(count) = number("FAKECUDA_DEVICES") {
        settings.devices = count as usize;
    }
    if let Some(lag) = number("FAKECUDA_EVENT_LAG") {
        settings.event_lag = lag as u32;
    }
    if let Some(level) = number("FAKECUDA_TRACE") {
        settings.trace = level as u32;
    }
    settings
}
