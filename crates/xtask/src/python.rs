//! The Python package: format, lints, types and tests, and its wheel.
//!
//! Tests that record real programs need a PyTorch, which `VRAMSCOPE_TORCH` names (see
//! `python/tests/test_recorder.py`). Without one they are skipped, and pytest says how many.

use crate::{cmd, files, generate, install, repo::Repo, site, wasm};
use anyhow::{Context, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Tests that need the installed wheel.
const OF_WHEEL: [&str; 19] = [
    "test_answers.py",
    "test_clusters.py",
    "test_dataset.py",
    "test_docstrings.py",
    "test_document_blocks.py",
    "test_fleet.py",
    "test_live.py",
    "test_mcp.py",
    "test_notebook.py",
    "test_opening.py",
    "test_peaks.py",
    "test_pytest_plugin.py",
    "test_reader.py",
    "test_records.py",
    "test_serve.py",
    "test_tables.py",
    "test_types.py",
    "test_wheel.py",
    "test_workflow.py",
];

/// The scripts of the action for pull requests, seen from the Python package.
const ACTION: &str = "../.github/actions/memory";

/// Checks the Python package, and the format, lints and types of the action.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let tools = tools(repo, "python")?;
    let python = |args: &[&str]| -> Command {
        let mut command = cmd::command("python3", &["-m"], &repo.path("python"));
        command.args(args).env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let rules = ["--quiet", "--config", "pyproject.toml", ".", ACTION];
    cmd::run(python(&["ruff", "format", "--check"]).args(rules))?;
    cmd::run(python(&["ruff", "check"]).args(rules))?;
    let types = ["mypy", "--cache-dir", "/dev/null"];
    cmd::run(&mut python(&types))?;
    cmd::run(python(&types).arg(ACTION))?;
    let mut tests = python(&["pytest", "--quiet", "-p", "no:cacheprovider", "tests"]);
    cmd::run(tests.args(OF_WHEEL.map(|name| format!("--ignore=tests/{name}"))))
}

/// Builds the wheel for this machine, installs it without network, and tests what was installed.
///
/// The wheel is not optimized: three quarters of its dependencies are there from the step `test`.
/// publish.yml builds the wheels of a release, and checks their size.
pub(crate) fn wheel(repo: &Repo) -> Result<()> {
    if !repo.dist().join("index.html").is_file() {
        bail!("the wheel holds the page: run `cargo xtask build` first");
    }
    let tools = tools(repo, "python")?;
    let folder = repo.target.join("wheel");
    if folder.is_dir() {
        std::fs::remove_dir_all(&folder)
            .with_context(|| format!("emptying {}", folder.display()))?;
    }
    let maturin = tools.join("bin/maturin");
    let args =
        ["build", "--quiet", "--profile", "dev", "--strip", "--interpreter", "python3", "--out"];
    let mut build = cmd::command(&maturin.to_string_lossy(), &args, &repo.path("python"));
    cmd::run(build.arg(&folder))?;
    let [wheel] = files::below(&folder)?.try_into().map_err(|all: Vec<PathBuf>| {
        anyhow!("expected one wheel in {}, found {}", folder.display(), all.len())
    })?;
    let venv = folder.join("venv");
    let python = install_wheel(&wheel, &venv)?.join("python").to_string_lossy().into_owned();
    let fleet = folder.join("fleet");
    generate::two_runs(repo, 32, &fleet)?;
    // In another folder than the sources, which Python would import instead.
    let mut tests = cmd::command(&python, &["-m", "pytest", "--quiet"], &folder);
    tests.args(["-p", "no:cacheprovider"]);
    tests.args(OF_WHEEL.map(|name| repo.path("python/tests").join(name)));
    tests.env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
    let standin = repo.target.join(RECORDED[0].1);
    if standin.join("complete").is_file() {
        // `long` has installed it: tests of the wheel that record programs run, too.
        tests.env("LD_LIBRARY_PATH", standin.join("fake")).env("CUDA_MODULE_LOADING", "LAZY");
        tests.env("VRAMSCOPE_TORCH", standin.join("venv/bin/python"));
    }
    cmd::run(tests.env("VRAMSCOPE", venv.join("bin/vramscope")).env("VRAMSCOPE_FLEET", fleet))
}

/// Writes the lists that follow the findings, the manual page, the reference of the site, and what
/// commands print into the documents. Without the variable, tests check that they are current.
pub(crate) fn docs(repo: &Repo) -> Result<()> {
    let tools = tools(repo, "python")?;
    let tables = ["vramscope-report", "--test", "all", "lists::"];
    let manual = ["vramscope-cli", "--lib", "the_manual_page"];
    for test in [&tables[..], &manual] {
        let args = [&["test", "--quiet", "--package"], test].concat();
        cmd::run(cmd::cargo(&args, &repo.root).env("UPDATE_DOCUMENTS", "1"))?;
    }
    let program = site::reference(repo)?;
    let args = ["-m", "pytest", "--quiet", "-p", "no:cacheprovider", "-k", "print"];
    let mut outputs = cmd::command("python3", &args, &repo.path("python"));
    outputs.arg("tests/test_document_blocks.py").env("UPDATE_DOCUMENTS", "1");
    outputs.env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
    cmd::run(outputs.env("VRAMSCOPE", program))
}

/// Converts 256 ranks on Ray, and asks the queries of docs/fleets.md about 1,024 ranks.
pub(crate) fn fleet(repo: &Repo) -> Result<()> {
    println!("\n==> long: fleets of 256 ranks on Ray and 1,024 in DuckDB");
    wheel(repo)?;
    let python = repo.target.join("wheel/venv/bin/python").to_string_lossy().into_owned();
    install::python_packages(repo, &python, ".ci/ray.txt", None)?;
    let tools = tools(repo, "python")?;
    let folder = repo.target.join("wheel");
    for (ranks, name) in [(256, "test_ray.py"), (1024, "test_fleet.py")] {
        let fleet = folder.join(format!("fleet-{ranks}"));
        generate::two_runs(repo, ranks, &fleet)?;
        let mut tests = cmd::command(&python, &["-m", "pytest", "--quiet", "-rs"], &folder);
        tests.args(["-p", "no:cacheprovider"]).arg(repo.path("python/tests").join(name));
        tests.env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
        cmd::run(tests.env("VRAMSCOPE_FLEET", &fleet))?;
        std::fs::remove_dir_all(&fleet).with_context(|| format!("removing {}", fleet.display()))?;
    }
    Ok(())
}

/// The releases of PyTorch that the recorder is tested with, the folders for them below the target
/// folder, and the tests. 2.11 loses errors when it takes the stack of a free.
pub(crate) const RECORDED: [(&str, &str, &[&str]); 2] = [
    (
        "2.9.1",
        "standin",
        &[
            "test_clusters.py",
            "test_command.py",
            "test_documents.py",
            "test_record_command.py",
            "test_recorder.py",
            "test_recorder_ends.py",
            "test_trainers.py",
            "test_uses.py",
        ],
    ),
    ("2.11.0", "standin-2.11", &["test_command.py", "test_recorder_ends.py", "test_uses.py"]),
];

/// Records real programs with PyTorch's own allocator, over stand-ins for the CUDA libraries, and
/// reads what was recorded.
pub(crate) fn long(repo: &Repo) -> Result<()> {
    println!("\n==> long: recording with PyTorch over a stand-in for the device");
    let tools = tools(repo, "python")?;
    let setup = repo.path("scripts/standin/setup.sh");
    cmd::run(&mut cmd::cargo(&["build", "--quiet", "--package", "vramscope-cli"], &repo.root))?;
    for (release, folder, files) in RECORDED {
        println!("PyTorch {release}");
        let folder = repo.target.join(folder);
        let mut setup = cmd::command(&setup.to_string_lossy(), &[], &repo.root);
        cmd::run(setup.arg(&folder).arg(release))?;
        let args = ["-m", "pytest", "--quiet", "-rs", "-s", "-p", "no:cacheprovider"];
        let mut tests = cmd::command("python3", &args, &repo.path("python"));
        tests.args(files.iter().map(|name| format!("tests/{name}")));
        tests.env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
        tests.env("LD_LIBRARY_PATH", folder.join("fake")).env("CUDA_MODULE_LOADING", "LAZY");
        tests.env("VRAMSCOPE_TORCH", folder.join("venv/bin/python")).env("OMP_NUM_THREADS", "2");
        cmd::run(tests.env("VRAMSCOPE", repo.target.join("debug/vramscope")))?;
    }
    Ok(())
}

/// Looks for who holds memory in programs over the stand-in, with the wheel: a thousand times
/// beside busy threads, and for ten minutes beside all kinds of tensors. [`long`] has installed
/// PyTorch.
pub(crate) fn long_holders(repo: &Repo) -> Result<()> {
    println!("\n==> long: who holds memory, with PyTorch over a stand-in for the device");
    wheel(repo)?;
    for (release, folder, _) in RECORDED {
        println!("PyTorch {release}");
        let many = [("VRAMSCOPE_WALKS", "1000"), ("VRAMSCOPE_SECONDS", "600")];
        cmd::run(holder_tests(repo, folder)?.arg("tests/test_leaks.py").envs(many))?;
    }
    Ok(())
}

/// A minute of searches for the holders of memory beside all kinds of tensors, and searches among
/// very many objects. The step `wheel` has built the package.
pub(crate) fn holders(repo: &Repo) -> Result<()> {
    let (release, folder, _) = RECORDED[0];
    let setup = repo.path("scripts/standin/setup.sh");
    let mut setup = cmd::command(&setup.to_string_lossy(), &[], &repo.root);
    cmd::run(setup.arg(repo.target.join(folder)).arg(release))?;
    let mut tests = holder_tests(repo, folder)?;
    cmd::run(tests.args(["-k", IN_THE_GATE]).env("VRAMSCOPE_SECONDS", "60"))
}

/// Tests of the search for holders that the gate runs.
const IN_THE_GATE: &str =
    "no_kind or no_other_thread or audit or odd_things or middle or chain or wide or tree";

/// The tests of the search for holders, with the installed wheel and a PyTorch.
fn holder_tests(repo: &Repo, folder: &str) -> Result<Command> {
    let tools = tools(repo, "python")?;
    let libraries = repo.target.join("wheel/venv/lib");
    let [packages] = std::fs::read_dir(&libraries)
        .with_context(|| format!("reading {}", libraries.display()))?
        .map(|entry| Ok(entry?.path().join("site-packages")))
        .collect::<Result<Vec<PathBuf>>>()?
        .try_into()
        .map_err(|all| anyhow!("expected one Python, found {all:?}"))?;
    let folder = repo.target.join(folder);
    let args = ["-m", "pytest", "--quiet", "-rs", "-p", "no:cacheprovider"];
    let mut tests = cmd::command("python3", &args, &repo.path("python"));
    tests.arg("tests/test_holders.py");
    tests.env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
    tests.env("LD_LIBRARY_PATH", folder.join("fake")).env("CUDA_MODULE_LOADING", "LAZY");
    tests.env("VRAMSCOPE_TORCH", folder.join("venv/bin/python"));
    tests.env("VRAMSCOPE_PACKAGE", &packages);
    Ok(tests)
}

/// Records small programs with and without changes over the stand-in, and compares what `what-if`
/// and `diagnose` say with what the changes do. It takes half an hour.
pub(crate) fn twins(repo: &Repo) -> Result<()> {
    println!("\n==> long: changed programs with PyTorch over a stand-in for the device");
    cmd::run(&mut cmd::cargo(&["build", "--quiet", "--package", "vramscope-cli"], &repo.root))?;
    let (release, folder, _) = RECORDED[0];
    let folder = repo.target.join(folder);
    let setup = repo.path("scripts/standin/setup.sh");
    let mut setup = cmd::command(&setup.to_string_lossy(), &[], &repo.root);
    cmd::run(setup.arg(&folder).arg(release))?;
    let torch = folder.join("venv/bin/python").to_string_lossy().into_owned();
    let program = repo.target.join("debug/vramscope");
    let out = repo.target.join("twins");
    std::fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    let own = out.join("own");
    let (torch, own) = (torch.as_str(), own.as_path());
    let both: [&Path; 2] = [&out, &program];
    for (python, script, arguments) in [
        (torch, "scripts/twins/snippets.py", &both[..]),
        (torch, "scripts/twins/advice.py", &both[..]),
        (torch, "scripts/twins/record.py", &[own]),
        ("python3", "bench/recipes.py", &[&program, own]),
    ] {
        let mut command = cmd::command(python, &[script], &repo.root);
        command.args(arguments).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("LD_LIBRARY_PATH", folder.join("fake")).env("CUDA_MODULE_LOADING", "LAZY");
        cmd::run(&mut command)?;
    }
    Ok(())
}

/// Installs Jupyter beside the wheel, as a user of notebooks does. Returns the Python that has
/// both.
pub(crate) fn with_jupyter(repo: &Repo) -> Result<PathBuf> {
    wheel(repo)?;
    let python = repo.target.join("wheel/venv/bin/python");
    install::python_packages(repo, &python.to_string_lossy(), ".ci/jupyter.txt", None)?;
    Ok(python)
}

/// Runs the lines of docs/python.md with the experiment trackers that it names, beside the wheel.
/// [`long`] has installed PyTorch.
pub(crate) fn trackers(repo: &Repo) -> Result<()> {
    println!("\n==> long: reports in experiment trackers");
    wheel(repo)?;
    let python = repo.target.join("wheel/venv/bin/python").to_string_lossy().into_owned();
    install::python_packages(repo, &python, ".ci/trackers.txt", None)?;
    let tools = tools(repo, "python")?;
    let folder = repo.target.join("wheel");
    let mut tests = cmd::command(&python, &["-m", "pytest", "--quiet", "-rs"], &folder);
    tests.args(["-p", "no:cacheprovider"]).arg(repo.path("python/tests/test_trackers.py"));
    tests.env("PYTHONPATH", &tools).env("PYTHONDONTWRITEBYTECODE", "1");
    let standin = repo.target.join(RECORDED[0].1);
    tests.env("LD_LIBRARY_PATH", standin.join("fake"));
    cmd::run(tests.env("VRAMSCOPE_TORCH", standin.join("venv/bin/python")))
}

/// Installs the packages of `.ci/NAME.txt` below the target folder. Returns the folder that Python
/// imports them from.
pub(crate) fn tools(repo: &Repo, name: &str) -> Result<PathBuf> {
    let list = format!(".ci/{name}.txt");
    let requirements = repo.path(&list);
    let pinned = std::fs::read(&requirements)
        .with_context(|| format!("reading {}", requirements.display()))?;
    let version = wasm::fingerprint(&pinned).replace(' ', "-");
    let folder = repo.target.join("tools").join(format!("{name}-{version}"));
    let complete = folder.join("complete");
    if complete.is_file() {
        return Ok(folder);
    }
    install::python_packages(repo, "python3", &list, Some(&folder))?;
    std::fs::write(&complete, "").with_context(|| format!("writing {}", complete.display()))?;
    Ok(folder)
}

/// Makes an environment of Python and installs a wheel there without network. Returns the folder of
/// the environment's programs.
pub(crate) fn install_wheel(wheel: &Path, venv: &Path) -> Result<PathBuf> {
    let here = venv.parent().context("an environment without a folder around it")?;
    cmd::run(cmd::command("python3", &["-m", "venv"], here).arg(venv))?;
    let programs = venv.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let python = programs.join("python").to_string_lossy().into_owned();
    let pip = ["-m", "pip", "--disable-pip-version-check", "install", "--quiet"];
    let mut pip = cmd::command(&python, &pip, here);
    cmd::run(pip.args(["--no-index", "--no-deps"]).arg(wheel))?;
    Ok(programs)
}
