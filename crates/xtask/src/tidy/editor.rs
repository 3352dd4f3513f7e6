//! What the extension may ask of VS Code. Snapshots come from anyone, and VS Code makes links that
//! run commands of text in notifications, tooltips and status bars. So the names of its interface
//! that the extension uses are listed here, with the file of those that could show such text.

use super::Source;

const ROOT: &str = "vscode/src/";
/// The only way to VS Code's interface.
const IMPORT: &str = "import * as vscode from \"vscode\";";
const WORD: &str = "vscode";
/// The name that runs a command: only with a text, and without arguments.
const RUN: &str = "commands.executeCommand";
const REMEDY: &str = "show messages with `tell`, and add what shows no text of files to \
                      tidy/editor.rs";

/// Names of VS Code's interface, each with the file that may use it. Without one, all may.
const NAMES: [(&str, &str); 41] = [
    ("CodeAction", ""),
    ("CodeActionContext", ""),
    ("CodeActionKind.QuickFix", ""),
    ("CodeActionProvider", ""),
    ("CustomDocument", ""),
    ("CustomReadonlyEditorProvider", ""),
    ("Diagnostic", "problem-list.ts"),
    ("DiagnosticRelatedInformation", "problem-list.ts"),
    ("DiagnosticSeverity.Error", ""),
    ("DiagnosticSeverity.Information", ""),
    ("DiagnosticSeverity.Warning", ""),
    ("ExtensionContext", ""),
    ("FileType.File", ""),
    ("Location", ""),
    ("Position", ""),
    ("Range", ""),
    ("TextDocument", ""),
    ("Uri", ""),
    ("Uri.file", ""),
    ("Uri.joinPath", ""),
    ("ViewColumn.Active", ""),
    ("ViewColumn.Beside", ""),
    ("Webview", ""),
    ("WebviewPanel", ""),
    (RUN, "extension.ts"),
    ("commands.registerCommand", "extension.ts"),
    ("languages.createDiagnosticCollection", "problem-list.ts"),
    ("languages.registerCodeActionsProvider", "extension.ts"),
    ("openWith", "problem-list.ts"),
    ("window.createWebviewPanel", "extension.ts"),
    ("window.registerCustomEditorProvider", "extension.ts"),
    ("window.showErrorMessage", "tell.ts"),
    ("window.showInformationMessage", "tell.ts"),
    ("window.showOpenDialog", "extension.ts"),
    ("window.showTextDocument", "sources.ts"),
    ("window.showWarningMessage", "tell.ts"),
    ("workspace.asRelativePath", "sources.ts"),
    ("workspace.findFiles", "sources.ts"),
    ("workspace.fs.readFile", "sources.ts"),
    ("workspace.fs.stat", "sources.ts"),
    ("workspace.workspaceFolders", ""),
];
/// Fields and addresses that make links of text.
const LINKS: [&str; 6] =
    ["allowCommands", "command:", "enableCommandUris", "isTrusted", "supportHtml", "target:"];
/// The command of a problem, whose arguments are the snapshot and an editor.
const COMMAND: &str = "command: \"vscode.openWith\"";

/// A use of VS Code's interface.
struct Use<'a> {
    line: usize,
    /// The names after `vscode`, with dots between.
    path: String,
    /// The text behind them.
    rest: &'a str,
}

pub(super) fn check(sources: &[Source]) -> Vec<String> {
    let mut broken = Vec::new();
    let mut used = Vec::new();
    for source in sources {
        let Some(file) =
            source.name.strip_prefix(ROOT).filter(|file| super::extension(file) != "css")
        else {
            continue;
        };
        let code = code(&source.text);
        for (line, text) in (1..).zip(code.lines()) {
            let found = LINKS.iter().filter(|link| text.replace(COMMAND, "").contains(**link));
            broken.extend(found.map(|link| format!("{}:{line} has {link}: {REMEDY}", source.name)));
        }
        for found in uses(&code) {
            if !may(file, &found) {
                let Use { line, path, .. } = &found;
                broken.push(format!("{}:{line} has {WORD}.{path}: {REMEDY}", source.name));
            }
            used.push(found.path);
        }
    }
    let unused = NAMES.iter().filter(|(name, _)| !used.iter().any(|path| path == name));
    broken.extend(unused.map(|(name, _)| format!("tidy/editor.rs lists {name}: nothing uses it")));
    broken
}

/// Whether a file may use a part of the interface.
fn may(file: &str, found: &Use<'_>) -> bool {
    let listed = NAMES.iter().find(|(name, _)| *name == found.path);
    let is_listed = listed.is_some_and(|(_, only)| only.is_empty() || *only == file);
    is_listed && (found.path != RUN || runs_a_text(found.rest))
}

/// Whether the arguments of a call are a text and nothing else.
fn runs_a_text(rest: &str) -> bool {
    let text = rest.strip_prefix("(\"").and_then(|rest| rest.split_once('"'));
    text.is_some_and(|(_, end)| end.starts_with(')'))
}

/// The text with its comment lines and its imports of the interface empty.
fn code(text: &str) -> String {
    let is_code = |line: &&str| !line.trim_start().starts_with("//") && line.trim() != IMPORT;
    text.lines()
        .map(|line| Some(line).filter(is_code).unwrap_or_default().to_owned() + "\n")
        .collect()
}

/// All uses of the interface. A name that is no use, as in a text, counts too.
fn uses(code: &str) -> impl Iterator<Item = Use<'_>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    code.match_indices(WORD).filter_map(move |(at, _)| {
        let (before, mut rest) = (&code[..at], &code[at + WORD.len()..]);
        if before.ends_with(is_name) || rest.starts_with(is_name) {
            return None;
        }
        let mut names = Vec::new();
        while let Some(after) = rest.trim_start().strip_prefix('.') {
            let after = after.trim_start();
            let end = after.find(|c| !is_name(c)).unwrap_or(after.len());
            names.push(&after[..end]);
            rest = &after[end..];
        }
        Some(Use { line: 1 + before.matches('\n').count(), path: names.join("."), rest })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The violations of a text in a file of the extension, without those of unused names.
    fn broken(file: &str, text: &str) -> Vec<String> {
        let source = Source { name: format!("{ROOT}{file}"), text: format!("{IMPORT}\n{text}\n") };
        let found = check(&[source]).into_iter();
        found.filter(|line| !line.contains("nothing uses it")).collect()
    }

    #[test]
    fn only_tell_shows_messages() {
        let call = "void vscode.window.showErrorMessage(words);";
        assert!(broken("tell.ts", call).is_empty());
        let found = broken("panel.ts", call);
        assert_eq!(found.len(), 1);
        assert!(found[0].starts_with("vscode/src/panel.ts:2 has vscode.window.showErrorMessage: "));
    }

    #[test]
    fn no_other_way_leads_to_a_message() {
        for text in [
            "const { showErrorMessage } = vscode.window;",
            "const { window } = vscode;",
            "const ui = vscode.window;",
            "vscode.window\n  .showErrorMessage(words);",
            "vscode . window . showWarningMessage(words);",
            "vscode?.window.showErrorMessage(words);",
            "vscode.window?.showErrorMessage(words);",
            "vscode[\"window\"].showErrorMessage(words);",
            "vscode.window[\"showErrorMessage\"](words);",
            "(vscode as any).window.showErrorMessage(words);",
            "import { window } from \"vscode\";",
            "import * as ui from \"vscode\";",
            "import vscode from 'vscode';",
            "export * from \"vscode\";",
            "const ui = require(\"vscode\");",
            "const ui = await import(\"vscode\");",
            "function show(window: typeof vscode.window) {}",
            "`${vscode.window.showErrorMessage(words)}`",
        ] {
            assert!(!broken("panel.ts", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn no_other_place_shows_text_or_runs_commands() {
        for text in [
            "new vscode.MarkdownString(words)",
            "vscode.window.setStatusBarMessage(words);",
            "vscode.window.createStatusBarItem();",
            "vscode.window.withProgress({ title: words }, run);",
            "vscode.window.showQuickPick(names);",
            "vscode.window.showInputBox({ prompt: words });",
            "vscode.window.createOutputChannel(words);",
            "vscode.window.createTerminal().sendText(words);",
            "vscode.window.registerTreeDataProvider(words, tree);",
            "new vscode.TreeItem(words);",
            "new vscode.Hover(words);",
            "vscode.env.openExternal(address);",
            "vscode.Uri.parse(words);",
            "vscode.commands.executeCommand(words);",
            "vscode.commands.executeCommand(\"vscode.open\", address);",
            "vscode.commands.executeCommand(`${words}`);",
            "diagnostic.code = { value: kind, target: address };",
            "webview.options = { enableCommandUris: true };",
            "tooltip.isTrusted = true;",
            "const address = `command:${name}`;",
            "action.command = { title, command: name, arguments: [] };",
        ] {
            assert!(!broken("extension.ts", text).is_empty(), "{text}");
        }
    }

    #[test]
    fn harmless_names_and_comments_pass() {
        for text in [
            "// vscode.window.showErrorMessage, vscode",
            "const at = vscode.Uri.file(path);",
            "await vscode.commands.executeCommand(\"workbench.actions.view.problems\");",
            "const folder = vscode.workspace.workspaceFolders?.[0];",
            "declare function acquireVsCodeApi(): void;",
        ] {
            assert_eq!(broken("extension.ts", text), [""; 0], "{text}");
        }
        let action = "action.command = { title, command: \"vscode.openWith\", arguments: [uri] };";
        assert_eq!(broken("problem-list.ts", action), [""; 0]);
    }

    #[test]
    fn a_name_that_nothing_uses_is_reported() {
        assert_eq!(check(&[]).len(), NAMES.len());
    }
}
