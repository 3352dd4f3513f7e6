//! Processes that share the memory of devices.

#![expect(unsafe_code, reason = "processes are forked")]

use super::numbers;
use super::table::{SLOTS, Table, started, started_of};
use crate::device::Devices;
use crate::errors::OUT_OF_MEMORY;
use crate::settings::Settings;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// 1 MiB.
const MIB: u64 = 1 << 20;

/// The variable with the file that a process of a test shares.
const FILE: &str = "VRAMSCOPE_DRY_TEST_SHARED";

/// Two devices of 1,000 MiB, of which each context takes 100.
fn devices(file: &Path) -> Devices {
    let mut settings =
        Settings { devices: 2, shared: Some(file.to_path_buf()), ..Settings::default() };
    settings.gpu.total_bytes = 1000 * MIB;
    settings.gpu.context_bytes = 100 * MIB;
    Devices::new(&settings)
}

/// A folder, and the file of the devices in it.
fn file() -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("memory");
    (folder, file)
}

/// Calls a function in a forked child, which ends without being waited for. Returns the child.
fn fork(call: impl FnOnce()) -> i32 {
    // SAFETY: the child only calls a function of a test, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(call));
        // SAFETY: the call ends the child.
        unsafe { libc::_exit(i32::from(result.is_err())) };
    }
    assert!(child > 0);
    let mut state = std::mem::MaybeUninit::<libc::siginfo_t>::uninit();
    let flags = libc::WEXITED | libc::WNOWAIT;
    // SAFETY: the place is valid.
    let ended =
        unsafe { libc::waitid(libc::P_PID, child as libc::id_t, state.as_mut_ptr(), flags) };
    assert_eq!(ended, 0);
    child
}

/// Waits for a child that must have succeeded.
fn wait(child: i32) {
    let mut state = 0;
    // SAFETY: the place is valid.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut state, 0) }, child);
    assert!(libc::WIFEXITED(state) && libc::WEXITSTATUS(state) == 0, "{state:x}");
}

/// A process that does what its standard input says: `other_process`.
struct Other {
    /// The process.
    child: Child,
    /// What it answers.
    answers: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Other {
    /// Starts it.
    fn start(file: &Path) -> Self {
        let mut child = Command::new("/proc/self/exe")
            .args(["device::shared::tests::other_process", "--exact", "--nocapture"])
            .env(FILE, file)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let answers = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, answers }
    }

    /// Lets it take memory of a device. Whether there was enough.
    fn take(&mut self, device: i32, mib: u64) -> bool {
        writeln!(self.child.stdin.as_mut().unwrap(), "{device} {mib}").unwrap();
        let answer = |line: std::io::Result<String>| line.unwrap().strip_prefix(">")?.parse().ok();
        self.answers.by_ref().find_map(answer).unwrap()
    }

    /// Kills it.
    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

#[test]
fn other_process() {
    // The other process of the tests below, which start it with this variable.
    let Ok(file) = std::env::var(FILE) else { return };
    let mut devices = devices(Path::new(&file));
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let (device, mib) = line.split_once(' ').unwrap();
        let result = devices.allocate(device.parse().unwrap(), mib.parse::<u64>().unwrap() * MIB);
        let mut out = std::io::stdout().lock();
        // The test harness has begun a line.
        writeln!(out, "\n>{}", result.is_ok()).unwrap();
        out.flush().unwrap();
    }
}

#[test]
fn processes_share_a_device_until_they_end() {
    let (_folder, file) = file();
    let mut devices = devices(&file);
    let mut other = Other::start(&file);
    assert!(other.take(0, 500));
    // Of 1,000 MiB, 600 are the other's and 100 this context's.
    assert_eq!(devices.free(0), Ok(300 * MIB));
    assert_eq!(devices.allocate(0, 302 * MIB), Err(OUT_OF_MEMORY));
    let address = devices.allocate(0, 300 * MIB).unwrap();
    assert!(!other.take(0, 2));
    assert!(other.take(1, 900));
    let pids = [std::process::id(), other.child.id()];
    let mut processes = devices.processes(0).unwrap();
    processes.sort_by_key(|&(pid, _)| pid != pids[0]);
    assert_eq!(processes, [(pids[0], 400 * MIB), (pids[1], 600 * MIB)]);
    // This process has not touched the other device.
    assert_eq!(devices.processes(1), Ok(vec![(pids[1], 1000 * MIB)]));
    assert_eq!(devices.used(1), Ok(1000 * MIB));
    assert_eq!(devices.release(address), Ok(()));
    assert!(other.take(0, 300));
    other.kill();
    assert_eq!(devices.free(0), Ok(900 * MIB));
    assert!(devices.allocate(0, 900 * MIB).is_ok());
    assert_eq!(devices.used(1), Ok(0));
}

#[test]
fn allocation_needs_no_question_for_what_the_ended_had() {
    let (_folder, file) = file();
    let mut devices = devices(&file);
    let mut other = Other::start(&file);
    assert!(other.take(0, 700));
    other.kill();
    assert!(devices.allocate(0, 900 * MIB).is_ok());
}

#[test]
fn mapped_memory_is_shared_too() {
    let (_folder, file) = file();
    let mut devices = devices(&file);
    let handle = devices.create(0, 500 * MIB).unwrap();
    let mut other = Other::start(&file);
    assert!(!other.take(0, 302));
    assert_eq!(devices.release_handle(handle), Ok(()));
    assert!(other.take(0, 302));
    other.kill();
}

#[test]
fn forked_child_counts_what_it_takes_itself() {
    let (_folder, file) = file();
    let mut devices = devices(&file);
    let address = devices.allocate(0, 400 * MIB).unwrap();
    let handle = devices.create(0, 100 * MIB).unwrap();
    let parent = std::process::id();
    let idle = fork(|| {
        devices.forked();
        assert_eq!(devices.processes(0), Ok(vec![(parent, 600 * MIB)]));
    });
    assert_eq!(devices.free(0), Ok(400 * MIB));
    let busy = fork(|| {
        devices.forked();
        assert_eq!(devices.allocate(0, 302 * MIB), Err(OUT_OF_MEMORY));
        let own = devices.allocate(0, 100 * MIB).unwrap();
        assert_eq!(devices.free(0), Ok(200 * MIB));
        // The parent goes on to hold what the child gives back.
        assert_eq!(devices.release(address), Ok(()));
        assert_eq!(devices.release_handle(handle), Ok(()));
        assert_eq!(devices.free(0), Ok(200 * MIB));
        let all = vec![(parent, 600 * MIB), (std::process::id(), 200 * MIB)];
        assert_eq!(devices.processes(0), Ok(all));
        // The addresses are used again, and are the child's now.
        let again: Vec<_> = (0..50).map(|_| devices.allocate(0, 4 * MIB).unwrap()).collect();
        assert_eq!(devices.free(0), Ok(0));
        for address in again {
            assert_eq!(devices.release(address), Ok(()));
        }
        assert_eq!(devices.release(own), Ok(()));
        assert_eq!(devices.free(0), Ok(300 * MIB));
    });
    // The child has ended, though nobody has waited for it yet.
    assert_eq!(devices.free(0), Ok(400 * MIB));
    assert_eq!(devices.release(address), Ok(()));
    assert_eq!(devices.free(0), Ok(800 * MIB));
    wait(idle);
    wait(busy);
}

#[test]
fn process_that_ends_with_the_lock_does_not_keep_it() {
    let (_folder, file) = file();
    let table = Table::open(&file).unwrap();
    // SAFETY: the call ends the child.
    wait(fork(|| table.with(|_| unsafe { libc::_exit(0) }).unwrap()));
    assert_eq!(table.with(|slots| slots.all().len()).unwrap(), 0);
    assert_eq!(table.with(|slots| slots.all().len()).unwrap(), 0);
}

#[test]
fn slots_of_the_ended_are_used_again() {
    let (_folder, file) = file();
    let table = Table::open(&file).unwrap();
    let pid = u64::from(std::process::id());
    let start = started(pid).unwrap();
    let add = |start| table.with(|slots| slots.add(pid, start)).unwrap();
    assert_eq!(add(start), Some(0));
    // The same number, of a process that started at another time.
    for slot in 1..SLOTS {
        assert_eq!(add(start + 1), Some(slot));
    }
    assert_eq!(add(start), Some(1));
    for slot in 2..SLOTS {
        assert_eq!(add(start), Some(slot));
    }
    assert_eq!(add(start), None);
}

#[test]
fn file_that_cannot_be_mapped_leaves_the_process_alone() {
    let (_folder, file) = file();
    let mut devices = devices(&file.join("none"));
    assert!(devices.shared.is_none());
    devices.forked();
    assert_eq!(devices.free(0), Ok(900 * MIB));
    assert_eq!(devices.processes(0), Ok(vec![(std::process::id(), 100 * MIB)]));
}

#[test]
fn visible_devices_have_numbers_of_the_machine() {
    let first = |visible| numbers(visible)[..4].to_vec();
    assert_eq!(first(None), [0, 1, 2, 3]);
    assert_eq!(first(Some("")), [0, 1, 2, 3]);
    assert_eq!(first(Some("3, 1")), [3, 1, 2, 3]);
    assert_eq!(first(Some("GPU-1,1")), [0, 1, 2, 3]);
    assert_eq!(first(Some("99")), [0, 1, 2, 3]);
}

#[test]
fn start_is_read_behind_a_name_with_parentheses() {
    let stat = |state, threads| {
        format!(
            "7 (a) b ({threads}) {state} 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 99 1"
        )
    };
    assert_eq!(started_of(&stat("S", 1)), Some(99));
    assert_eq!(started_of(&stat("Z", 1)), None);
    assert_eq!(started_of(&stat("Z", 2)), Some(99));
    assert_eq!(started_of("7"), None);
}
