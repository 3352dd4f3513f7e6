//! The tools of the MCP server. Comments on fields become their descriptions.

use super::call::COLUMNS;
use super::fit::fit;
use super::{Server, answered, failed};
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use std::ffi::OsString;
use std::slice;
use vramscope_report::diagnostic::plain_text;
use vramscope_report::explain::explain as explained;

/// The size of an answer for which the caller does not ask for rows: about 1,500 tokens.
const ANSWER_BYTES: usize = 6000;

/// The size of a diagnosis.
const DIAGNOSIS_BYTES: &str = "--max-bytes=6000";

/// The most bytes of an answer with this limit of rows.
fn bytes(limit: Option<u32>) -> Option<usize> {
    limit.is_none().then_some(ANSWER_BYTES)
}

/// Rows that an answer has unless the caller asks for others.
const DEFAULT_ROWS: u32 = 8;

/// A list of texts, or one text.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Texts {
    List(Vec<String>),
    One(String),
}

impl Default for Texts {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl std::ops::Deref for Texts {
    type Target = [String];

    fn deref(&self) -> &[String] {
        match self {
            Self::List(texts) => texts,
            Self::One(text) => slice::from_ref(text),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Paths {
    /// Snapshot files and folders of them, such as the ranks of one run.
    paths: Texts,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct File {
    /// The snapshot file.
    path: String,
    /// The device's ordinal; by default one that ran out of memory, else the highest peak.
    device: Option<u32>,
    /// The most rows, 8 by default.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Peak {
    #[serde(flatten)]
    file: File,
    /// In place of call stacks: `module`, `shape`, or `holder` (variables that hold it at the end,
    /// and what dropping them frees, if the file beside the snapshot tells it). The answer has
    /// sites, lines and categories anyway.
    by: Option<String>,
    /// A moment in place of the peak: `end`, `oom`, `step:3`, an event such as `#1200`.
    at: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Id {
    /// The `id` of a finding or of a call stack, a block (`device:address@alloc_event`), or a
    /// search: `site:model.py:43`, `category:activation live@peak`, `step:3`, `>512MiB`.
    id: String,
    #[serde(flatten)]
    file: File,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Lines {
    #[serde(flatten)]
    file: File,
    /// Folders that have the program's source, such as the repository. A file belongs to a recorded
    /// path by the end of its path. Without them, lines have numbers, and text if it was recorded.
    #[serde(default)]
    source: Texts,
    /// The file, by the end of its path: `model.py`. By default the file that allocates most at the
    /// peak.
    source_file: Option<String>,
    /// Only lines of this function.
    function: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct WhatIf {
    /// The snapshot file.
    path: String,
    /// Allocator settings to change, such as `expandable_segments:True`. Each is one scenario.
    #[serde(default)]
    change: Texts,
    /// Changes of the program, as a list or with commas: the `recipe` of a fix in `diagnose`, or
    /// `checkpoint:all`, `batch:0.5,optimizer:8bit`, `chunked_loss:8`, `attention:flash`,
    /// `accumulate:2`, `foreach:off`, `del:model.py:43` (what it makes dies after backward).
    #[serde(default)]
    apply: Texts,
    /// A device, as `device_memory`: the cheapest changes are searched that fit on it.
    plan: Option<String>,
    /// The device's memory or name: `80GiB`, `H100`.
    device_memory: Option<String>,
    /// Of an inference engine: the length of the sequences for which its KV cache is sized, in
    /// tokens.
    length: Option<u64>,
    /// Of an inference engine: the tokens that the recorded KV cache holds, as the engine logs it.
    cache_tokens: Option<u64>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Pair {
    /// The snapshot or run before the change.
    before: String,
    /// The snapshot or run after it. Without it, two moments of `before` are compared.
    after: Option<String>,
    /// The first moment, if there is no `after`: `start`, `peak`, `end`, `oom`, `step:3`, `#1200`.
    from: Option<String>,
    /// The second moment.
    to: Option<String>,
    /// The most rows, 8 by default.
    limit: Option<u32>,
}

#[derive(Deserialize, JsonSchema)]
pub(super) struct Text {
    /// The out-of-memory message, or the log that has it.
    message: String,
}

/// The words of a command line.
fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(Into::into).collect()
}

/// The arguments of a command about a file. The file follows `--`, as its name may begin with `-`.
fn of_file(command: &str, file: &File, options: &[(&str, &Option<String>)]) -> Vec<OsString> {
    let limit = file.limit.unwrap_or(DEFAULT_ROWS).to_string();
    let mut arguments = words(&[command, "--limit", &limit, "--format=json"]);
    if let Some(device) = file.device {
        arguments.extend(words(&["--device", &device.to_string()]));
    }
    let given = options.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    arguments.extend(given.map(|(name, value)| format!("{name}={value}").into()));
    arguments.push("--".into());
    arguments
}

#[tool_router(vis = "pub(super)")]
impl Server {
    #[tool(
        description = "The verdict about snapshots: what is wrong, the main findings with their \
                       numbers and what to do, the peak, and what could not be looked for. Takes \
                       all ranks of a run at once.",
        annotations(read_only_hint = true)
    )]
    async fn diagnose(
        &self,
        Parameters(of): Parameters<Paths>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let command = words(&["diagnose", "--format=json", DIAGNOSIS_BYTES, "--"]);
        self.answer(command, &[], &of.paths, bytes(None), context).await
    }

    #[tool(
        description = "What holds memory at the peak: call stacks with bytes, categories, frames, \
                       and how much lower the next separate peak is.",
        annotations(read_only_hint = true)
    )]
    async fn peak(
        &self,
        Parameters(of): Parameters<Peak>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let command = of_file("peak", &of.file, &[("--by", &of.by), ("--at", &of.at)]);
        let path = slice::from_ref(&of.file.path);
        self.answer(command, &[], path, bytes(of.file.limit), context).await
    }

    #[tool(
        description = "The steps: the peak of each phase (forward, backward, optimizer) by \
                       category, which phase limits, what stays after each step, and growth.",
        annotations(read_only_hint = true)
    )]
    async fn steps(
        &self,
        Parameters(of): Parameters<File>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let command = of_file("steps", &of, &[]);
        self.answer(command, &[], slice::from_ref(&of.path), bytes(of.limit), context).await
    }

    #[tool(
        description = "The ranks of a run side by side, and over its iterations: peaks, groups of \
                       like ranks, ranks that hold more than the others and where, call sites \
                       that drift.",
        annotations(read_only_hint = true)
    )]
    async fn ranks(
        &self,
        Parameters(of): Parameters<Paths>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let limit = DEFAULT_ROWS.to_string();
        let command = words(&["ranks", "--format=json", "--limit", &limit, "--"]);
        self.answer(command, &[], &of.paths, bytes(None), context).await
    }

    #[tool(
        description = "How snapshots were recorded: settings of the allocator, steps, \
                       memory optimizations that the run has or lacks, warnings.",
        annotations(read_only_hint = true)
    )]
    async fn info(
        &self,
        Parameters(of): Parameters<Paths>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let command = words(&["info", "--format=json", "--"]);
        self.answer(command, &[], &of.paths, bytes(None), context).await
    }

    #[tool(
        description = "What an id stands for, with its blocks and call stacks: a finding, a call \
                       stack, a block, or any search.",
        annotations(read_only_hint = true)
    )]
    async fn show(
        &self,
        Parameters(of): Parameters<Id>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let mut command = of_file("show", &of.file, &[]);
        command.push(of.id.into());
        let path = slice::from_ref(&of.file.path);
        self.answer(command, &[], path, bytes(of.file.limit), context).await
    }

    #[tool(
        description = "The lines of a source file with the memory of each: at the peak, own and \
                       with all that is called, and grown per step. Also its functions, and the \
                       files with most bytes. Says where the source may not be the code that ran.",
        annotations(read_only_hint = true)
    )]
    async fn source(
        &self,
        Parameters(of): Parameters<Lines>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let options = [("--file", &of.source_file), ("--function", &of.function)];
        let command = of_file("source", &of.file, &options);
        let path = slice::from_ref(&of.file.path);
        self.answer(command, &of.source, path, bytes(of.file.limit), context).await
    }

    #[tool(
        description = "Simulates the recording with other allocator settings, another device or \
                       a changed program: peaks, out-of-memory events, what fits. Use it to \
                       verify a change before suggesting it. Without changes: the usual ones. \
                       `fits` is about `pytorch_memory`; without a limit it is true.",
        annotations(read_only_hint = true)
    )]
    async fn what_if(
        &self,
        Parameters(of): Parameters<WhatIf>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let mut command = words(&["what-if", "--format=json"]);
        let mut option = |name: &str, value: &str| command.push(format!("{name}={value}").into());
        of.change.iter().for_each(|change| option("--change", change));
        if !of.apply.is_empty() {
            option("--apply", &of.apply.join(","));
        }
        for (name, value) in [("--plan", &of.plan), ("--device-memory", &of.device_memory)] {
            if let Some(value) = value {
                option(name, value);
            }
        }
        for (name, count) in [("--length", of.length), ("--cache-tokens", of.cache_tokens)] {
            if let Some(count) = count {
                option(name, &count.to_string());
            }
        }
        command.push("--".into());
        self.answer(command, &[], slice::from_ref(&of.path), bytes(None), context).await
    }

    #[tool(
        description = "Explains an out-of-memory message, or those of a log, without a snapshot: \
                       what each figure means, which causes they show, allow or exclude, and what \
                       only a recording can tell.",
        annotations(read_only_hint = true)
    )]
    async fn explain(&self, Parameters(of): Parameters<Text>) -> CallToolResult {
        let explained = explained(&of.message);
        match serde_json::to_value(&explained) {
            Ok(answer) => {
                answered(fit(answer, bytes(None)), &plain_text(&explained.answer(), COLUMNS), &[])
            }
            Err(error) => failed(error.to_string()),
        }
    }

    #[tool(
        description = "Compares two snapshots, or two runs of ranks: peaks, categories, call \
                       stacks that came, went, grew and shrank, and the cause. Or two moments of \
                       one snapshot: what came, went and stayed.",
        annotations(read_only_hint = true)
    )]
    async fn diff(
        &self,
        Parameters(of): Parameters<Pair>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        let limit = of.limit.unwrap_or(DEFAULT_ROWS).to_string();
        let mut command = words(&["diff", "--format=json", "--limit", &limit]);
        for (name, value) in [("--from", &of.from), ("--to", &of.to)] {
            command.extend(value.as_ref().map(|value| format!("{name}={value}").into()));
        }
        let paths: Vec<String> = std::iter::once(of.before).chain(of.after).collect();
        command.push("--".into());
        self.answer(command, &[], &paths, bytes(of.limit), context).await
    }
}
