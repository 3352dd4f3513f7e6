//! The limit of the memory that reading takes.

use std::fs;

/// Bytes that each of `files` that are read at a time may take: a part of `max_memory`, by
/// default of 80 % of the machine's memory. No limit where the system does not tell it.
pub(crate) fn limit(max_memory: Option<u64>, files: usize) -> u64 {
    let total = max_memory.or_else(|| Some(machine()? / 10 * 8));
    total.map_or(u64::MAX, |total| total / files.max(1) as u64)
}

/// The memory of the machine, or of the container if that is less. Only Linux tells it in a file.
fn machine() -> Option<u64> {
    let containers = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let limits =
        containers.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    limits.chain(installed(&fs::read_to_string("/proc/meminfo").ok()?)).min()
}

/// Bytes of `MemTotal`, which is in KiB.
fn installed(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installed_memory_is_read() {
        let text = "MemFree:  5 kB\nMemTotal:       24683656 kB\n";
        assert_eq!(installed(text), Some(24_683_656 << 10));
        assert_eq!(installed(""), None);
    }
}
