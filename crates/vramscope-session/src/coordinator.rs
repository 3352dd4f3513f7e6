//! Requests about a whole run: the order of its files, the overview, the comparison.

use crate::queries::{Compared, Ranks};
use crate::run_order::plan;
use vramscope_protocol::{RunRequest, RunResponse};
use vramscope_report::Quantity;

/// Answers requests about all files of a run. In a browser it runs in its own worker.
#[derive(Debug, Default)]
pub struct Coordinator {
    ranks: Ranks,
    compared: Option<Box<Compared>>,
}

impl Coordinator {
    /// Answers a request.
    pub fn handle(&mut self, request: &RunRequest) -> RunResponse {
        match request {
            RunRequest::Plan { id, files } => {
                let (title, rows) = plan(files);
                let (one, many) = if rows.iter().all(|row| row.rank.is_some()) {
                    ("rank", "ranks")
                } else {
                    ("file", "files")
                };
                let skipped = files.iter().filter(|file| file.skipped).count() as u64;
                let skipped = Quantity::count(skipped, "other file", "other files");
                RunResponse::Planned {
                    id: *id,
                    title,
                    skipped_text: (skipped.value > 0).then(|| format!("{} skipped", skipped.exact)),
                    skipped,
                    count_text: Quantity::count(rows.len() as u64, one, many).exact,
                    rows,
                }
            }
            RunRequest::View { id, query } => {
                RunResponse::Overview { id: *id, overview: self.ranks.answer(query) }
            }
            RunRequest::Compare { id, query } => {
                let answer = Compared::answer(&mut self.compared, query);
                RunResponse::Compared { id: *id, answer }
            }
            RunRequest::Matrix { id, query } => {
                RunResponse::Matrix { id: *id, answer: self.ranks.matrix(query) }
            }
        }
    }
}
