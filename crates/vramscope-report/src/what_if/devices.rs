//! Device memory by name.

/// Names of devices with the memory that CUDA reports for them, in MiB. PyTorch's out-of-memory
/// messages name it as "total capacity".
const DEVICES: [(&str, u64); 18] = [
    ("T4", 14_917),
    ("V100-16GB", 16_144),
    ("V100", 32_494),
    ("RTX3090", 24_258),
    ("RTX4090", 24_207),
    ("RTX5090", 32_110),
    ("A10G", 22_583),
    ("A10", 22_583),
    ("L4", 22_557),
    ("L40S", 45_458),
    ("A6000", 48_677),
    ("A100-40GB", 40_335),
    ("A100-80GB", 81_050),
    ("A100", 81_050),
    ("H100", 81_008),
    ("H200", 143_075),
    ("B200", 182_642),
    ("MI300X", 196_592),
];

/// What the CUDA context and libraries take from a device, in bytes: an assumption, since the file
/// does not say it.
pub const CONTEXT: u64 = 512 << 20;

/// Reads a size: `80GiB`, `80GB`, `5644MiB`, a number of bytes, or the name of a device.
///
/// # Errors
///
/// The text is neither; the message names what was expected.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    let name: String = text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect::<String>();
    let plain = |s: &str| s.replace(['-', ' '], "").to_ascii_uppercase();
    if let Some((_, mib)) = DEVICES.iter().find(|(device, _)| plain(device) == plain(&name)) {
        return Ok(mib << 20);
    }
    let split = name.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(name.len());
    let (number, unit) = name.split_at(split);
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
            DEVICES.map(|(device, _)| device).join(", ")
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
    let plain = |s: &str| s.replace(['-', ' ', '_'], "").to_ascii_uppercase();
    let text = text.trim();
    if let Some((name, mib)) = DEVICES.iter().find(|(name, _)| plain(name) == plain(text)) {
        return Ok(Gpu { name: Some(name), available: (mib << 20) - CONTEXT });
    }
    let is_bare = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    let amount = if is_bare { format!("{text}GiB") } else { text.to_owned() };
    let available = parse_memory(&amount).map_err(|error| error.replace(&amount, text))?;
    Ok(Gpu { name: None, available })
}

/// The names of all devices that [`parse_gpu`] knows.
pub fn gpu_names() -> impl Iterator<Item = &'static str> {
    DEVICES.into_iter().map(|(name, _)| name)
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
        let h100 = Gpu { name: Some("H100"), available: (81_008 << 20) - CONTEXT };
        assert_eq!(parse_gpu("h100"), Ok(h100));
        assert_eq!(parse_gpu(" rtx 4090 ").map(|gpu| gpu.name), Ok(Some("RTX4090")));
        for text in ["much", "-1", "0", "99999999 TiB", "1.2.3", "80 x", ""] {
            assert!(parse_gpu(text).unwrap_err().starts_with(&format!("`{text}`")), "{text}");
        }
        assert!(gpu_names().all(|name| parse_gpu(name).unwrap().name == Some(name)));
    }
}
