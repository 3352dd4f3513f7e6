//! The model of the allocator beside PyTorch's own, in random programs.

use crate::cmd;
use crate::repo::Repo;
use anyhow::{Context, Result};

/// The releases of PyTorch, each with the folder for it below the target folder. The tests of the
/// recorder use the folder of 2.9.1, too.
const RELEASES: [(&str, &str); 5] = [
    ("2.1.2", "standin-2.1"),
    ("2.4.1", "standin-2.4"),
    ("2.7.1", "standin-2.7"),
    ("2.9.1", "standin"),
    ("2.15.0", "standin-2.15"),
];

/// Programs of each release.
const PROGRAMS: &str = "2000";

/// Runs random programs with five releases over the stand-in for the device, and compares every
/// segment, address and counter with the model. It downloads 4 GB and takes an hour.
pub(crate) fn differential(repo: &Repo) -> Result<()> {
    println!("\n==> long: random programs of PyTorch's allocator and of the model");
    let setup = repo.path("scripts/standin/setup.sh");
    let script = repo.path("scripts/allocator_differential.py");
    for (release, folder) in RELEASES {
        println!("PyTorch {release}");
        let standin = repo.target.join(folder);
        let mut command = cmd::command(&setup.to_string_lossy(), &[], &repo.root);
        cmd::run(command.arg(&standin).arg(release))?;
        let out = repo.target.join("differential").join(release);
        if out.exists() {
            std::fs::remove_dir_all(&out).with_context(|| format!("removing {}", out.display()))?;
        }
        let mut programs = cmd::command("python3", &["-B"], &repo.root);
        programs.arg(&script).args(["--programs", PROGRAMS]);
        programs.arg("--python").arg(standin.join("venv/bin/python"));
        programs.arg("--driver").arg(standin.join("fake")).arg("--out").arg(&out);
        cmd::run(&mut programs)?;
        let test =
            ["test", "--quiet", "--package", "vramscope-allocator", "--test", "differential"];
        let mut test = cmd::cargo(&test, &repo.root);
        cmd::run(test.args(["--", "--nocapture"]).env("VRAMSCOPE_DIFFERENTIAL", &out))?;
    }
    Ok(())
}
