//! `vramscope mcp`: an MCP server on standard input and output, for agents.
//!
//! A tool runs the program itself and returns its JSON. So an agent gets the numbers that everyone
//! gets, a call that is canceled ends, and the memory of a large file is returned after each call.

mod tools;

use crate::Failure;
use crate::output;
use rmcp::model::{CallToolResult, ContentBlock};
use rmcp::{ServerHandler, ServiceExt as _, tool_handler, transport};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::process::Command;

/// The largest answer in bytes. Models read every byte of it.
const MAX_ANSWER: usize = 100_000;

/// Serves until standard input ends. `program` is the name that this program was called by.
///
/// # Errors
/// The client breaks the protocol, or standard input or output fails.
pub(crate) fn run(program: &OsStr) -> Result<(), Failure> {
    let server = Server { program: executable(program) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let service = server.serve(transport::stdio()).await.map_err(|error| error.to_string())?;
        service.waiting().await.map_err(|error| error.to_string())
    });
    served.map(|_| ()).map_err(|error| {
        output::complain(format_args!("mcp: {error}"));
        Failure::Input
    })
}

/// The program to run. Within the Python package this process is Python, and its name is that of
/// the script that calls the program.
fn executable(program: &OsStr) -> PathBuf {
    let is_program = |path: &PathBuf| {
        path.file_stem().is_some_and(|name| name.to_string_lossy().starts_with("vramscope"))
    };
    std::env::current_exe().ok().filter(is_program).unwrap_or_else(|| Path::new(program).to_owned())
}

/// The server. It keeps nothing between calls.
#[derive(Clone)]
pub(crate) struct Server {
    program: PathBuf,
}

#[tool_handler(
    router = Self::tool_router(),
    name = "vramscope",
    instructions = "Says what holds GPU memory in PyTorch memory snapshots (the files of \
                    torch.cuda.memory._dump_snapshot), why, and what to change. Start with \
                    diagnose. Ask on with the ids of its answer: show. Verify a change before you \
                    suggest it: what_if. Bytes are integers; events count from 0."
)]
impl ServerHandler for Server {}

impl Server {
    /// The answer of a command, as JSON.
    async fn answer(&self, arguments: Vec<OsString>) -> CallToolResult {
        let failed = |text: String| CallToolResult::error(vec![ContentBlock::text(text)]);
        let output = Command::new(&self.program)
            .args(&arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output()
            .await;
        let output = match output {
            Ok(output) => output,
            Err(error) => return failed(format!("{}: {error}", self.program.display())),
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        // A folder may have files that cannot be read; the others have an answer.
        match serde_json::from_slice(&output.stdout) {
            Ok(_) if output.stdout.len() > MAX_ANSWER => failed(format!(
                "The answer has {} bytes, more than {MAX_ANSWER}. Ask for fewer rows with limit.",
                output.stdout.len()
            )),
            Ok(answer) => {
                let mut result = CallToolResult::structured(answer);
                if !output.status.success() {
                    result.content.push(ContentBlock::text(errors));
                }
                result
            }
            Err(_) => failed(errors.trim().to_owned()),
        }
    }
}
