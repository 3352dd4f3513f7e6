//! Device memory by name.

use vramscope_gpus::Device;
pub use vramscope_gpus::names as gpu_names;

/// What the CUDA context and libraries take from a device, in bytes: an assumption, since the file
/// does not say it.
pub const CONTEXT: u64 = 512 << 20;

/// Reads a size: `80GiB`, `80GB`, `5644MiB`, a number of bytes, or the name of a device.
///
/// # Errors
///
/// The text is neither; the message names what was expected.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    if let Some(device) = Device::named(text) {
        return Ok(device.total_bytes());
    }
    let amount: String = text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
    let split = amount.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(amount.len());
    let (number, unit) = amount.split_at(split);
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" => 1024.0,
        "mib" | "m" => 1_048_576.0,
        "gib" | "g" => 1_073_741_824.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        _ => f64::NAN,
    };
    match number.parse::<f64>().map(|n| n * factor) {
        Ok(bytes) if (1.0..1e15).contains(&bytes) => Ok(bytes as u64),
        _ => Err(format!(
            "`{text}` is no size: expected bytes, a number with MiB, GiB or GB, or one of {}",
            gpu_names().collect::<Vec<_>>().join(", ")
        )),
    }
}

/// A GPU as a user writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// The name of the device; `None` for an amount.
    pub name: Option<&'static str>,
    /// What PyTorch can have on it, in bytes. An amount is all PyTorch's.
    pub available: u64,
}

/// Reads the name of a device, or an amount: a bare number is GiB.
///
/// # Errors
///
/// The text is neither; the message names what was expected.
pub fn parse_gpu(text: &str) -> Result<Gpu, String> {
    let text = text.trim();
    if let Some(device) = Device::named(text) {
        let available = device.total_bytes() - CONTEXT;
        return Ok(Gpu { name: Some(device.short_name), available });
    }
    let is_bare = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let amount = if is_bare { format!("{text}GiB") } else { text.to_owned() };
    let available = parse_memory(&amount).map_err(|error| error.replace(&amount, text))?;
    Ok(Gpu { name: None, available })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_is_a_name_or_an_amount_of_gibibytes() {
        let gib = 1_073_741_824.0;
        for (text, amount) in
            [("80", 80.0), (".5 gib", 0.5), ("79.1 GiB", 79.1), ("40960MiB", 40.0)]
        {
            let gpu = parse_gpu(text).unwrap();
            assert_eq!(gpu.name, None, "{text}");
            assert!((gpu.available as f64 / gib - amount).abs() < 1e-6, "{text}");
        }
        let h100 = Gpu { name: Some("H100"), available: (81_079 << 20) - CONTEXT };
        assert_eq!(parse_gpu("h100"), Ok(h100));
        assert_eq!(parse_gpu(" rtx 4090 ").map(|gpu| gpu.name), Ok(Some("RTX4090")));
        for text in ["much", "-1", "0", "99999999 TiB", "1.2.3", "80 x", ""] {
            assert!(parse_gpu(text).unwrap_err().starts_with(&format!("`{text}`")), "{text}");
        }
        assert!(gpu_names().all(|name| parse_gpu(name).unwrap().name == Some(name)));
    }
}
